//! `migrate`: brings the store's schema up to date, as `serve` would, and says what it did.

use std::path::Path;

use store::Store;

use super::{CommandError, block_on, checked_config, failed};

pub(super) fn run(file: Option<&Path>) -> Result<(), CommandError> {
    let config = checked_config(file)?;
    let migrated = block_on(Store::migrate(config.store.url.expose()))?.map_err(|error| failed(&error))?;
    for step in &migrated.applied {
        println!("{}: applied {step}", migrated.database);
    }
    println!("{}: up to date at schema {}", migrated.database, migrated.version);
    Ok(())
}
