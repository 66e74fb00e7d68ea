//! `migrate`: brings the store's schema up to date, as `serve` would, and says what it did.

use std::path::Path;

use store::Store;

use super::{CommandError, failed, load_config, require_supported};
use crate::config::environment;

pub(super) fn run(file: Option<&Path>) -> Result<(), CommandError> {
    let env = environment()?;
    let config = load_config(file, &env)?;
    require_supported(&config, &env, file)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    let migrated = runtime
        .block_on(Store::migrate(config.store.url.expose()))
        .map_err(|error| failed(&error))?;
    for step in &migrated.applied {
        println!("{}: applied {step}", migrated.database);
    }
    println!("{}: up to date at schema {}", migrated.database, migrated.version);
    Ok(())
}
