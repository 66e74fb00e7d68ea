//! The schema and how a database gets it: the files of `migrations/`, embedded.

use sqlx::{
    SqlitePool,
    migrate::{Migrate, MigrateError, Migrator},
};

use super::Location;
use crate::StoreError;

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// What bringing a database up to date has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migrated {
    /// The database, as people know it.
    pub database: String,
    /// The schema that it has now.
    pub version: i64,
    /// The steps that were missing, by name.
    pub applied: Vec<String>,
}

pub(super) async fn migrate(pool: &SqlitePool, location: &Location) -> Result<Migrated, StoreError> {
    let applied = apply(pool).await.map_err(|why| match why {
        MigrateError::VersionMissing(found) => StoreError::Newer {
            file: location.to_string(),
            found,
            known: newest(),
        },
        MigrateError::Execute(why) => StoreError::Open {
            file: location.to_string(),
            why,
        },
        why => StoreError::Migrate {
            file: location.to_string(),
            why,
        },
    })?;
    Ok(Migrated {
        database: location.to_string(),
        version: newest(),
        applied,
    })
}

/// All or nothing, and one process at a time: a gateway that starts at the same moment waits, and then
/// finds nothing left to do.
async fn apply(pool: &SqlitePool) -> Result<Vec<String>, MigrateError> {
    let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
    let connection = &mut *transaction;
    connection.ensure_migrations_table(&MIGRATOR.table_name).await?;
    let before = connection.list_applied_migrations(&MIGRATOR.table_name).await?;
    MIGRATOR.run_direct(None, connection, false).await?;
    transaction.commit().await?;
    let missing = MIGRATOR
        .iter()
        .filter(|step| before.iter().all(|applied| applied.version != step.version));
    Ok(missing
        .map(|step| format!("{:04} {}", step.version, step.description))
        .collect())
}

fn newest() -> i64 {
    MIGRATOR.iter().map(|step| step.version).max().unwrap_or_default()
}
