//! Errors of the store, in words for the operator: which file, why, and what to do.

use std::{io, path::PathBuf, time::Duration};

use sqlx::{error::ErrorKind, migrate::MigrateError};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "no such database is supported; expected \"sqlite://FILE\", \"sqlite::memory:\" or \
         \"postgres://USER:PASSWORD@HOST/DATABASE\""
    )]
    Unsupported,
    #[error("the URL is not one of PostgreSQL: {why}; expected \"postgres://USER:PASSWORD@HOST/DATABASE\"")]
    PostgresUrl { why: String },
    #[error("cannot connect to {place}: {why}; check store.url and that the server runs")]
    Connect { place: String, why: String },
    #[error("the store cannot be used: there is no connection to its database, or all are busy")]
    NoConnection,
    #[error("the URL names no file; expected \"sqlite://FILE\" or \"sqlite::memory:\"")]
    NoFile,
    #[error("the URL has parameters, which are not supported; write a ? in a file's name as %3F")]
    Parameters,
    #[error(
        "{} cannot be created: {why}; set store.url to a file in a folder that the gateway may write to",
        file.display()
    )]
    Create { file: PathBuf, why: io::Error },
    #[error("the store is in memory, where no other process can look; set store.url to a database that is kept")]
    InMemory,
    #[error(
        "{} does not exist; run this where the gateway runs, with its config, so that store.url means the same file",
        file.display()
    )]
    NoSuchFile { file: PathBuf },
    #[error("{file} cannot be opened as a database: {why}; set store.url to another file, or repair this one")]
    Open { file: String, why: sqlx::Error },
    #[error(
        "{file} was made by a newer version of the gateway (schema {found}, known up to {known}); \
         run that version, or set store.url to another database"
    )]
    Newer { file: String, found: i64, known: i64 },
    #[error(
        "{file} cannot be brought to the current schema: {why}; restore a backup, or set store.url to another database"
    )]
    Migrate { file: String, why: MigrateError },
    #[error("the store cannot write: {why}; it keeps trying")]
    Writing { why: String },
    #[error("the store has not answered within {after:?}")]
    Timeout { after: Duration },
    #[error("the store knows no document {document}: its history was removed")]
    UnknownDocument { document: i64 },
    #[error("the document has no version {version:?}")]
    UnknownVersion { version: String },
    #[error("the store cannot be used: {0}")]
    Query(#[from] sqlx::Error),
}

impl StoreError {
    /// Returns whether the database works and refuses what it was given.
    pub(crate) fn is_refusal(&self) -> bool {
        let Self::Query(sqlx::Error::Database(error)) = self else {
            return false;
        };
        // Class 22 of SQL is data that does not fit.
        !matches!(error.kind(), ErrorKind::Other) || error.code().is_some_and(|code| code.starts_with("22"))
    }
}
