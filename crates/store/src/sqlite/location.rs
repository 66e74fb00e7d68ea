//! Where the database is: reading `store.url`, and making the file.

use std::{
    ffi::OsString,
    fmt,
    fs::OpenOptions,
    io::ErrorKind,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use sqlx::{
    ConnectOptions, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};

use crate::StoreError;

/// How long a statement waits for another process that writes to the same file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a caller waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLite writes one at a time; the others read meanwhile.
const CONNECTIONS: u32 = 4;
/// What would not mean itself in a URL.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#').add(b' ');

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Location {
    Memory,
    File(PathBuf),
}

impl Location {
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let rest = url.strip_prefix("sqlite:").ok_or(StoreError::Unsupported)?;
        match rest.strip_prefix("//").unwrap_or(rest) {
            ":memory:" => Ok(Self::Memory),
            "" => Err(StoreError::NoFile),
            path if path.contains('?') => Err(StoreError::Parameters),
            path => {
                let bytes = percent_decode_str(path).collect();
                Ok(Self::File(OsString::from_vec(bytes).into()))
            }
        }
    }

    /// Opens it, and makes the file where there is none.
    pub(crate) async fn connect(&self) -> Result<SqlitePool, StoreError> {
        let pool = SqlitePoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT);
        let (options, pool) = match self {
            // The database goes with its last connection, so there is one, and it stays.
            Self::Memory => {
                let pool = pool.max_connections(1).min_connections(1);
                let pool = pool.idle_timeout(None).max_lifetime(None);
                (SqliteConnectOptions::new().in_memory(true), pool)
            }
            Self::File(file) => {
                create(file)?;
                let options = SqliteConnectOptions::new().filename(file);
                (options, pool.max_connections(CONNECTIONS))
            }
        };
        let options = options
            .journal_mode(SqliteJournalMode::Wal)
            // Survives a killed process; only a power cut can take the last moments.
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
            // One line for each statement would drown everything else.
            .disable_statement_logging();
        pool.connect_with(options).await.map_err(|why| StoreError::Open {
            file: self.to_string(),
            why,
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("the database in memory"),
            Self::File(file) => file.display().fmt(f),
        }
    }
}

/// The URL of a file.
pub fn file_url(file: &Path) -> String {
    format!("sqlite://{}", percent_encode(file.as_os_str().as_bytes(), ESCAPED))
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
