//! `check-config`: the same reading and checking as `serve`, without serving.

use std::path::Path;

use super::CommandError;
use crate::{app::unsupported, config::Config};

pub(super) fn run(file: &Path) -> Result<(), CommandError> {
    let config = Config::load(Some(file), &std::env::vars().collect())?;
    unsupported(&config).map_err(|error| CommandError::BadConfig(format!("{}: {error}", file.display())))?;
    println!("{}: ok", file.display());
    Ok(())
}
