//! `check-config`: the same reading and checking as `serve`, without serving.

use std::path::Path;

use super::{CommandError, require_supported};
use crate::config::{Config, environment, warnings};

pub(super) fn run(file: &Path) -> Result<(), CommandError> {
    let config = Config::load(Some(file), &environment()?)?;
    require_supported(&config, Some(file))?;
    for warning in warnings(&config) {
        eprintln!("{}: warning: {warning}", file.display());
    }
    println!("{}: ok", file.display());
    Ok(())
}
