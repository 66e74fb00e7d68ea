//! `check-config`: the same reading and checking as `serve`, without serving.

use std::path::Path;

use super::{CommandError, require_supported};
use crate::config::{Config, environment, warnings};

pub(super) fn run(file: &Path) -> Result<(), CommandError> {
    let env = environment()?;
    let config = Config::load(Some(file), &env)?;
    require_supported(&config, &env, Some(file))?;
    for warning in warnings(&config) {
        eprintln!("{}: warning: {warning}", file.display());
    }
    println!("{}: ok", file.display());
    Ok(())
}
