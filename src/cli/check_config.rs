//! `check-config`: the same reading and checking as `serve`, without serving.

use std::path::Path;

use super::{CommandError, require_supported};
use crate::config::{Config, environment};

pub(super) fn run(file: &Path) -> Result<(), CommandError> {
    let config = Config::load(Some(file), &environment()?)?;
    require_supported(&config, Some(file))?;
    println!("{}: ok", file.display());
    Ok(())
}
