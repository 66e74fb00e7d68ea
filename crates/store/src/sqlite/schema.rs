//! The schema and how a database gets it: the files of `migrations/`, embedded.

use std::sync::LazyLock;

use sqlx::{
    SqlSafeStr, SqlitePool,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};

use super::Location;
use crate::StoreError;

/// Embeds the files in `migrations/sqlite` by name. sqlx's own macro would do so too, but needs all of SQLite
/// a second time, at build time.
macro_rules! embed {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../migrations/sqlite/", $name, ".sql")))),+]
    };
}

/// Every step, in order, with its SQL. Databases know a step by its position and by the hash of its SQL.
const STEPS: &[(&str, &str)] = embed![
    "0001_executions",
    "0002_gateways",
    "0003_notebooks",
    "0004_activity",
    "0005_terms",
    "0006_sizes",
    "0007_leases",
    "0008_files",
    "0009_history",
];

static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let migration = |(version, (name, sql)): (i64, &(&'static str, &'static str))| {
        let (_, description) = name.split_once('_').unwrap_or_default();
        let description = description.replace('_', " ");
        Migration::new(
            version,
            description.into(),
            MigrationType::Simple,
            (*sql).into_sql_str(),
            false,
        )
    };
    Migrator::with_migrations((1..).zip(STEPS).map(migration).collect())
});

/// Result of bringing a database up to date.
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

/// Applies what is missing, all or nothing, and one process at a time: a gateway that starts at the same
/// moment waits, and then finds nothing left to do.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_is_embedded_in_its_place() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/sqlite");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.map(|file| file.file_stem().unwrap().to_owned()).collect();
        files.sort_unstable();
        let embedded: Vec<_> = STEPS.iter().map(|(name, _)| *name).collect();
        assert_eq!(files, embedded);
        for (step, name) in MIGRATOR.iter().zip(embedded) {
            let written = format!("{:04}_{}", step.version, step.description.replace(' ', "_"));
            assert_eq!(written, name);
        }
    }
}
