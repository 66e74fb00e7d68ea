//! Connections to SQLite: a file, or a database in memory.

use std::{fs::OpenOptions, io::ErrorKind, os::unix::fs::OpenOptionsExt, path::Path, time::Duration};

use sqlx::{
    ConnectOptions, Connection, SqliteConnection, SqlitePool,
    sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{StoreError, location::Location};

/// Longest wait of a statement for another process that writes to the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait of a caller for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite writes one at a time; the others read meanwhile.
const CONNECTIONS: u32 = 4;
/// The journal beside the file is cut to this size once its content is in the file.
const JOURNAL_BYTES: &str = "8388608";

/// The database goes with its last connection, so there is one, and it stays.
pub(super) async fn connect_memory(location: &Location) -> Result<SqlitePool, StoreError> {
    let pool = SqlitePoolOptions::new().max_connections(1).min_connections(1);
    let pool = pool.idle_timeout(None).max_lifetime(None);
    connect(location, pool, SqliteConnectOptions::new().in_memory(true)).await
}

pub(super) async fn connect_file(location: &Location, file: &Path) -> Result<SqlitePool, StoreError> {
    create(file)?;
    let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS);
    let pool = pool.after_release(|connection, _| Box::pin(has_ended_its_transaction(connection)));
    connect(location, pool, SqliteConnectOptions::new().filename(file)).await
}

async fn connect(
    location: &Location,
    pool: SqlitePoolOptions,
    options: SqliteConnectOptions,
) -> Result<SqlitePool, StoreError> {
    let options = options
        // Files of earlier versions keep their mode: what is deleted there leaves room for what comes.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        // Survives a killed process; only a power cut can take the last moments.
        .synchronous(SqliteSynchronous::Normal)
        .pragma("journal_size_limit", JOURNAL_BYTES)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        // One line for each statement would drown everything else.
        .disable_statement_logging();
    // A connection to a file does not go away.
    let pool = pool.test_before_acquire(false).acquire_timeout(ACQUIRE_TIMEOUT);
    let pool = pool.connect_with(options);
    pool.await.map_err(|why| StoreError::Open {
        file: location.to_string(),
        why,
    })
}

/// Returns whether a connection can be used again. SQLite ends a transaction by itself when the disk is full. sqlx cannot roll it
/// back then and goes on counting it, and the connection would refuse to begin another one for ever.
async fn has_ended_its_transaction(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // What was dropped is rolled back before this is answered.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// Creates the file. What agents ran is their owners' business, so nobody else may read it. SQLite gives the files
/// beside it the same mode. A file that exists is left alone: to close it here would take away the
/// locks that SQLite has on it in this process.
fn create(file: &Path) -> Result<(), StoreError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    match made {
        Err(why) if why.kind() != ErrorKind::AlreadyExists => Err(StoreError::Create {
            file: file.to_owned(),
            why,
        }),
        _ => Ok(()),
    }
}
