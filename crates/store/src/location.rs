//! Place of the database, as `store.url` says. Its password is never shown.

use std::{
    ffi::OsString,
    fmt,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    str::FromStr,
};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use crate::StoreError;

/// Characters that must be escaped in a URL.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#').add(b' ');

#[derive(Clone)]
pub(crate) enum Location {
    Memory,
    File(PathBuf),
    Postgres(Box<PgConnectOptions>),
}

impl Location {
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        if url.starts_with("postgres:") || url.starts_with("postgresql:") {
            return parse_postgres(url);
        }
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
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("the database in memory"),
            Self::File(file) => file.display().fmt(f),
            Self::Postgres(options) => f.write_str(&describe(options)),
        }
    }
}

fn parse_postgres(url: &str) -> Result<Location, StoreError> {
    let options = PgConnectOptions::from_str(url).map_err(|error| StoreError::PostgresUrl {
        why: match error {
            sqlx::Error::Configuration(why) => why.to_string(),
            other => other.to_string(),
        },
    })?;
    let options = options.application_name("jupyter-mcp-gateway");
    // One line for each statement would drown everything else.
    Ok(Location::Postgres(Box::new(options.disable_statement_logging())))
}

/// The database for those who run it, without its user and password.
pub(crate) fn describe(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    let host = options
        .get_socket()
        .map_or_else(|| options.get_host().to_owned(), |socket| socket.display().to_string());
    format!("the PostgreSQL database {database} at {host}:{}", options.get_port())
}

/// The URL of a file.
pub fn file_url(file: &Path) -> String {
    format!("sqlite://{}", percent_encode(file.as_os_str().as_bytes(), ESCAPED))
}
