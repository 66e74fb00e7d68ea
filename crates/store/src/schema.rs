//! The schema and how a database gets it: the files of `migrations/`, embedded.

use std::sync::LazyLock;

use sqlx::{
    SqlSafeStr,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};

use crate::{
    StoreError,
    database::{Changes, Database, Statement},
    location::Location,
};

/// Embeds the files in a folder of `migrations` by name. sqlx's own macro would do so too, but needs all of SQLite
/// a second time, at build time.
macro_rules! embed {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../migrations/", $folder, "/", $name, ".sql")))),+]
    };
}

/// Name and SQL.
type Step = (&'static str, &'static str);

/// Every step, in order, with its SQL. Databases know a step by its position and by the hash of its SQL.
const SQLITE: &[Step] = embed![
    "sqlite":
    "0001_executions",
    "0002_gateways",
    "0003_notebooks",
    "0004_activity",
    "0005_terms",
    "0006_sizes",
    "0007_leases",
    "0008_files",
    "0009_history",
    "0010_approvals",
    "0011_oauth",
    "0012_audit_counts",
];

const POSTGRES: &[Step] = embed![
    "postgres":
    "0001_executions",
    "0002_history",
    "0003_approvals",
    "0004_oauth",
    "0005_audit_counts",
];

/// Only one gateway at a time looks for what is missing. Waiting for another one is bounded, its work is not.
const POSTGRES_LOCK: [&str; 3] = [
    "SET LOCAL lock_timeout = '60s'",
    "SET LOCAL statement_timeout = 0",
    "SELECT pg_advisory_xact_lock(4077263000)",
];

static SQLITE_MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| migrator(SQLITE));
static POSTGRES_MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| migrator(POSTGRES));

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

/// Applies what is missing, all or nothing, and one process at a time: a gateway that starts at the same
/// moment waits, and then finds nothing left to do.
pub(crate) async fn migrate(database: &Database, location: &Location) -> Result<Migrated, StoreError> {
    let mut transaction = database.begin().await?;
    let migrator = match &transaction.changes {
        Changes::Sqlite(_) => &*SQLITE_MIGRATOR,
        Changes::Postgres(_) => &*POSTGRES_MIGRATOR,
    };
    if transaction.is_postgres() {
        for statement in POSTGRES_LOCK {
            transaction.execute(Statement::new(statement)).await?;
        }
    }
    let applied = match &mut transaction.changes {
        Changes::Sqlite(transaction) => apply(migrator, &mut **transaction).await,
        Changes::Postgres(transaction) => apply(migrator, &mut **transaction).await,
    };
    let applied = applied.map_err(|why| refused(why, newest(migrator), location))?;
    transaction.commit().await?;
    Ok(Migrated {
        database: location.to_string(),
        version: newest(migrator),
        applied,
    })
}

async fn apply<C: Migrate>(migrator: &Migrator, connection: &mut C) -> Result<Vec<String>, MigrateError> {
    connection.ensure_migrations_table(&migrator.table_name).await?;
    let before = connection.list_applied_migrations(&migrator.table_name).await?;
    migrator.run_direct(None, connection, false).await?;
    let missing = migrator
        .iter()
        .filter(|step| before.iter().all(|applied| applied.version != step.version));
    Ok(missing
        .map(|step| format!("{:04} {}", step.version, step.description))
        .collect())
}

fn refused(why: MigrateError, known: i64, location: &Location) -> StoreError {
    let file = location.to_string();
    match why {
        MigrateError::VersionMissing(found) => StoreError::Newer { file, found, known },
        MigrateError::Execute(why) => StoreError::Open { file, why },
        why => StoreError::Migrate { file, why },
    }
}

fn migrator(steps: &[Step]) -> Migrator {
    let migration = |(version, (name, sql)): (i64, &Step)| {
        let (_, description) = name.split_once('_').unwrap_or_default();
        let description = description.replace('_', " ");
        let sql = (*sql).into_sql_str();
        Migration::new(version, description.into(), MigrationType::Simple, sql, false)
    };
    let mut migrator = Migrator::with_migrations((1..).zip(steps).map(migration).collect());
    // The transaction has the lock already.
    migrator.set_locking(false);
    migrator
}

fn newest(migrator: &Migrator) -> i64 {
    migrator.iter().map(|step| step.version).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_is_embedded_in_its_place() {
        for (folder, steps) in [("sqlite", SQLITE), ("postgres", POSTGRES)] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../migrations")
                .join(folder);
            let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let mut files: Vec<_> = files.map(|file| file.file_stem().unwrap().to_owned()).collect();
            files.sort_unstable();
            let embedded: Vec<_> = steps.iter().map(|(name, _)| *name).collect();
            assert_eq!(files, embedded);
            for (step, name) in migrator(steps).iter().zip(embedded) {
                let written = format!("{:04}_{}", step.version, step.description.replace(' ', "_"));
                assert_eq!(written, name);
            }
        }
    }
}
