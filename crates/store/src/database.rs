//! The two databases, SQLite and PostgreSQL, behind one way to run statements. Statements are written once, with `$1`
//! and so on, which both understand; the little that only one of them can say is asked of the [`Database`].

mod postgres;
mod row;
mod sqlite;
mod statement;

use std::{future::Future, time::Duration};

use sqlx::{PgPool, Postgres, Sqlite, SqlitePool};
use tokio::time::timeout;

pub(crate) use row::{Row, readable};
pub(crate) use statement::Statement;

use crate::{StoreError, location::Location};

/// Longest time for a statement, the wait for a connection included. A database that cannot be reached must not
/// hold callers for ever.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A pool of connections to one database.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Changes that are made together or not at all. Dropping it takes them back.
#[derive(Debug)]
pub(crate) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Database {
    /// Opens the database, making the file where there is none.
    pub(crate) async fn connect(location: &Location, connections: u32) -> Result<Self, StoreError> {
        match location {
            Location::Memory => Ok(Self::Sqlite(sqlite::connect_memory(location).await?)),
            Location::File(file) => Ok(Self::Sqlite(sqlite::connect_file(location, file).await?)),
            Location::Postgres(options) => Ok(Self::Postgres(postgres::connect(options, connections).await?)),
        }
    }

    /// The clock of the database, in microseconds since 1970.
    pub(crate) fn now(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Self::Postgres(_) => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
        }
    }

    /// Fails if it cannot be read, soon and with the reason.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(_) => {
                let statement = Statement::new("SELECT execution_id FROM executions LIMIT 1");
                self.row(statement).await.map(drop)
            }
            Self::Postgres(pool) => postgres::ping(pool).await,
        }
    }

    /// Every row of the answer.
    pub(crate) async fn rows(&self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Sqlite(pool) => {
                let rows = bounded(statement.sqlite().fetch_all(pool)).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Self::Postgres(pool) => {
                let rows = bounded(statement.postgres().fetch_all(pool)).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// The first row of the answer, if there is one.
    pub(crate) async fn row(&self, statement: Statement<'_>) -> Result<Option<Row>, StoreError> {
        match self {
            Self::Sqlite(pool) => Ok(bounded(statement.sqlite().fetch_optional(pool)).await?.map(Row::Sqlite)),
            Self::Postgres(pool) => Ok(bounded(statement.postgres().fetch_optional(pool))
                .await?
                .map(Row::Postgres)),
        }
    }

    /// Runs a statement and says how many rows it changed.
    pub(crate) async fn execute(&self, statement: Statement<'_>) -> Result<u64, StoreError> {
        match self {
            Self::Sqlite(pool) => Ok(bounded(statement.sqlite().execute(pool)).await?.rows_affected()),
            Self::Postgres(pool) => Ok(bounded(statement.postgres().execute(pool)).await?.rows_affected()),
        }
    }

    /// Begins changes that belong together. SQLite takes its one lock for writing at once: taken later, it may be
    /// refused.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        match self {
            Self::Sqlite(pool) => Ok(Transaction::Sqlite(bounded(pool.begin_with("BEGIN IMMEDIATE")).await?)),
            Self::Postgres(pool) => Ok(Transaction::Postgres(bounded(pool.begin()).await?)),
        }
    }

    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

impl Transaction {
    /// Every row of the answer.
    pub(crate) async fn rows(&mut self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Sqlite(transaction) => {
                let rows = bounded(statement.sqlite().fetch_all(&mut **transaction)).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Self::Postgres(transaction) => {
                let rows = bounded(statement.postgres().fetch_all(&mut **transaction)).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }

    /// The first row of the answer, if there is one.
    pub(crate) async fn row(&mut self, statement: Statement<'_>) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Runs a statement and says how many rows it changed.
    pub(crate) async fn execute(&mut self, statement: Statement<'_>) -> Result<u64, StoreError> {
        match self {
            Self::Sqlite(transaction) => Ok(bounded(statement.sqlite().execute(&mut **transaction))
                .await?
                .rows_affected()),
            Self::Postgres(transaction) => Ok(bounded(statement.postgres().execute(&mut **transaction))
                .await?
                .rows_affected()),
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(transaction) => bounded(transaction.commit()).await,
            Self::Postgres(transaction) => bounded(transaction.commit()).await,
        }
    }
}

async fn bounded<T>(work: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, StoreError> {
    match timeout(STATEMENT_TIMEOUT, work).await {
        Ok(Err(sqlx::Error::PoolTimedOut)) => Err(StoreError::NoConnection),
        Ok(result) => Ok(result?),
        Err(_) => Err(StoreError::Timeout {
            after: STATEMENT_TIMEOUT,
        }),
    }
}
