//! Connections to SQLite: a file, or a database in memory.

use std::{
    fs::OpenOptions,
    io::ErrorKind,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use sqlx::{
    ConnectOptions, Connection, SqlitePool,
    sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::{StoreError, location::Location};

/// Longest wait of a statement for another process that writes to the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait of a caller for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite writes one at a time; the others read meanwhile.
const CONNECTIONS: u32 = 4;
/// Pages that a connection keeps in memory, in KiB. What is written is hardly ever read again, and the system keeps the file in
/// memory anyway.
const CACHE: &str = "-512";
/// The journal beside the file is cut to this size once its content is in the file.
const JOURNAL_BYTES: &str = "8388608";

/// A database in memory goes with its last connection, and a connection goes with whoever used it when a runtime ends. So there
/// is a second one that nobody uses, in a pool of its own, which is the second result.
pub(super) async fn connect_memory(location: &Location) -> Result<(SqlitePool, SqlitePool), StoreError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // SQLite shares what has the same name in this process, if that begins with a slash.
    let name = format!("/gateway-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let options = SqliteConnectOptions::new().filename(name).vfs("memdb");
    let pool = || SqlitePoolOptions::new().max_connections(1).min_connections(1);
    let pool = || pool().idle_timeout(None).max_lifetime(None);
    let kept = connect(location, pool(), options.clone()).await?;
    Ok((connect(location, pool(), options).await?, kept))
}

pub(super) async fn connect_file(location: &Location, file: &Path) -> Result<SqlitePool, StoreError> {
    create(file)?;
    let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS);
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
        .pragma("cache_size", CACHE)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        // One line for each statement would drown everything else.
        .disable_statement_logging();
    let pool = pool
        // A connection to a file does not go away.
        .test_before_acquire(false)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // SQLite itself takes back what a full disk refused, after which sqlx counts on a transaction that is none, and the
        // connection would begin no other. What was given up is taken back before the answer to a ping.
        .after_release(|connection, _| {
            Box::pin(async move {
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        });
    let pool = pool.connect_with(options);
    pool.await.map_err(|why| StoreError::Open {
        file: location.to_string(),
        why,
    })
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
