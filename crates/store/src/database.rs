//! The two databases, SQLite and PostgreSQL, behind one way to run statements. Statements are written once, with `$1`
//! and so on, which both understand; the little that only one of them can say is asked of the [`Database`].

mod postgres;
mod row;
mod sqlite;
mod statement;

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use sqlx::{PgPool, Postgres, Sqlite, SqlitePool};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

pub(crate) use row::{Row, readable};
pub(crate) use statement::Statement;

use crate::{StoreError, StoreObserver, StoreOperation, location::Location, observer::Observed};

/// Longest time for a statement, the wait for a connection included. A database that cannot be reached must not
/// hold callers for ever.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// A pool of connections to one database, and its observer.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) connections: Connections,
    observed: Observed,
    /// Keeps a database in memory there, whatever becomes of the connections to it.
    kept: Option<SqlitePool>,
    /// Permit to write to SQLite, which has one writer at a time and makes others sleep for milliseconds before they retry.
    writer: Option<Arc<Semaphore>>,
}

/// A pool of connections.
#[derive(Debug, Clone)]
pub(crate) enum Connections {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Changes that are made together or not at all. Dropping it takes them back.
#[derive(Debug)]
pub(crate) struct Transaction {
    pub(crate) changes: Changes,
    observed: Observed,
    _permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub(crate) enum Changes {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

impl Database {
    /// Opens the database, making the file where there is none.
    pub(crate) async fn connect(location: &Location, connections: u32) -> Result<Self, StoreError> {
        let mut kept = None;
        let connections = match location {
            Location::Memory => {
                let (connections, other) = sqlite::connect_memory(location).await?;
                kept = Some(other);
                Connections::Sqlite(connections)
            }
            Location::File(file) => Connections::Sqlite(sqlite::connect_file(location, file).await?),
            Location::Postgres(options) => Connections::Postgres(postgres::connect(options, connections).await?),
        };
        let writer = matches!(connections, Connections::Sqlite(_)).then(|| Arc::new(Semaphore::new(1)));
        Ok(Self {
            connections,
            observed: Observed::default(),
            kept,
            writer,
        })
    }

    /// Sets the observer that measures it and its clones from now on.
    pub(crate) fn observe(&self, observer: Arc<dyn StoreObserver>) {
        self.observed.set(observer);
    }

    /// The clock of the database, in microseconds since 1970.
    pub(crate) fn now(&self) -> &'static str {
        match &self.connections {
            Connections::Sqlite(_) => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Connections::Postgres(_) => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
        }
    }

    /// Fails if it cannot be read, soon and with the reason.
    pub(crate) async fn ping(&self) -> Result<(), StoreError> {
        match &self.connections {
            Connections::Sqlite(_) => {
                let statement = Statement::new("SELECT execution_id FROM executions LIMIT 1");
                self.row(statement).await.map(drop)
            }
            Connections::Postgres(pool) => {
                let started = Instant::now();
                let answered = postgres::ping(pool).await;
                self.observed.tell(StoreOperation::Read, started, answered)
            }
        }
    }

    /// Every row of the answer.
    pub(crate) async fn rows(&self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        let started = Instant::now();
        let rows = match &self.connections {
            Connections::Sqlite(pool) => {
                let rows = bounded(statement.sqlite().fetch_all(pool)).await;
                rows.map(|rows| rows.into_iter().map(Row::Sqlite).collect())
            }
            Connections::Postgres(pool) => {
                let rows = bounded(statement.postgres().fetch_all(pool)).await;
                rows.map(|rows| rows.into_iter().map(Row::Postgres).collect())
            }
        };
        self.observed.tell(StoreOperation::Read, started, rows)
    }

    /// The first row of the answer, if there is one.
    pub(crate) async fn row(&self, statement: Statement<'_>) -> Result<Option<Row>, StoreError> {
        let started = Instant::now();
        let row = match &self.connections {
            Connections::Sqlite(pool) => {
                let row = bounded(statement.sqlite().fetch_optional(pool)).await;
                row.map(|row| row.map(Row::Sqlite))
            }
            Connections::Postgres(pool) => {
                let row = bounded(statement.postgres().fetch_optional(pool)).await;
                row.map(|row| row.map(Row::Postgres))
            }
        };
        self.observed.tell(StoreOperation::Read, started, row)
    }

    /// Runs a statement and says how many rows it changed.
    pub(crate) async fn execute(&self, statement: Statement<'_>) -> Result<u64, StoreError> {
        let started = Instant::now();
        let _permit = self.write_permit().await?;
        let changed = match &self.connections {
            Connections::Sqlite(pool) => {
                let done = bounded(statement.sqlite().execute(pool)).await;
                done.map(|done| done.rows_affected())
            }
            Connections::Postgres(pool) => {
                let done = bounded(statement.postgres().execute(pool)).await;
                done.map(|done| done.rows_affected())
            }
        };
        self.observed.tell(StoreOperation::Write, started, changed)
    }

    /// Begins changes that belong together. SQLite takes its one lock for writing at once: taken later, it may be
    /// refused.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        let started = Instant::now();
        let permit = self.write_permit().await?;
        let changes = match &self.connections {
            Connections::Sqlite(pool) => bounded(pool.begin_with("BEGIN IMMEDIATE")).await.map(Changes::Sqlite),
            Connections::Postgres(pool) => bounded(pool.begin()).await.map(Changes::Postgres),
        };
        Ok(Transaction {
            changes: self.observed.tell(StoreOperation::Begin, started, changes)?,
            observed: self.observed.clone(),
            _permit: permit,
        })
    }

    /// Waits for the permit to write, where there is one writer at a time.
    async fn write_permit(&self) -> Result<Option<OwnedSemaphorePermit>, StoreError> {
        let Some(writer) = &self.writer else { return Ok(None) };
        let permit = timeout(STATEMENT_TIMEOUT, Arc::clone(writer).acquire_owned()).await;
        let timed_out = |_| StoreError::Timeout {
            after: STATEMENT_TIMEOUT,
        };
        // It is never closed.
        Ok(permit.map_err(timed_out)?.ok())
    }

    pub(crate) async fn close(&self) {
        match &self.connections {
            Connections::Sqlite(pool) => pool.close().await,
            Connections::Postgres(pool) => pool.close().await,
        }
        if let Some(kept) = &self.kept {
            kept.close().await;
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        matches!(self.connections, Connections::Sqlite(_))
    }
}

impl Transaction {
    /// Every row of the answer.
    pub(crate) async fn rows(&mut self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        let started = Instant::now();
        let rows = match &mut self.changes {
            Changes::Sqlite(transaction) => {
                let rows = bounded(statement.sqlite().fetch_all(&mut **transaction)).await;
                rows.map(|rows| rows.into_iter().map(Row::Sqlite).collect())
            }
            Changes::Postgres(transaction) => {
                let rows = bounded(statement.postgres().fetch_all(&mut **transaction)).await;
                rows.map(|rows| rows.into_iter().map(Row::Postgres).collect())
            }
        };
        self.observed.tell(StoreOperation::Read, started, rows)
    }

    /// The first row of the answer, if there is one.
    pub(crate) async fn row(&mut self, statement: Statement<'_>) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(statement).await?.into_iter().next())
    }

    /// Runs a statement and says how many rows it changed.
    pub(crate) async fn execute(&mut self, statement: Statement<'_>) -> Result<u64, StoreError> {
        let started = Instant::now();
        let changed = match &mut self.changes {
            Changes::Sqlite(transaction) => {
                let done = bounded(statement.sqlite().execute(&mut **transaction)).await;
                done.map(|done| done.rows_affected())
            }
            Changes::Postgres(transaction) => {
                let done = bounded(statement.postgres().execute(&mut **transaction)).await;
                done.map(|done| done.rows_affected())
            }
        };
        self.observed.tell(StoreOperation::Write, started, changed)
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.changes, Changes::Postgres(_))
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        let started = Instant::now();
        let committed = match self.changes {
            Changes::Sqlite(transaction) => bounded(transaction.commit()).await,
            Changes::Postgres(transaction) => bounded(transaction.commit()).await,
        };
        self.observed.tell(StoreOperation::Commit, started, committed)
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
