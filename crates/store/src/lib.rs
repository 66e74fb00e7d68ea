//! What outlives the process, in SQLite: the executions. The only place that knows sqlx; knows nothing
//! of Jupyter or MCP. Writing is never waited for: records are noted, and written in the background.

mod activity;
mod error;
mod executions;
mod journal;
mod location;
mod presence;
mod schema;
mod size;
mod status;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use sqlx::SqlitePool;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use activity::{Activities, Activity};
pub use error::StoreError;
pub use executions::{CellRecord, ExecutionFilter, ExecutionRecord, LeftBehind, StoredQuestion, Terms};
pub use location::file_url;
pub use presence::OtherGateway;
pub use schema::Migrated;
pub use size::StoreLimits;
pub use status::{ExecutionKind, ExecutionStatus, ExecutionWordError};

use self::{journal::Journal, location::Location, presence::Presence, size::Bounds};

/// How often old records are looked for.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long leaving waits for a disk that does not take what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle of the one store; clones share it. When the last is gone, writing ends.
#[derive(Debug, Clone)]
pub struct Store {
    pool: SqlitePool,
    journal: Arc<Journal>,
    presence: Arc<Presence>,
    _writer: Arc<DropGuard>,
}

impl Store {
    /// Opens the database, making the file and bringing its schema up to date where needed.
    pub async fn open(url: &str, limits: StoreLimits) -> Result<Self, StoreError> {
        let location = Location::parse(url)?;
        let pool = location.connect().await?;
        schema::migrate(&pool, &location).await?;
        let presence = Arc::new(Presence::begin(&location)?);
        let journal = Arc::new(Journal::default());
        let stop = CancellationToken::new();
        let bounds = Bounds::new(limits.within(&location));
        let writing = journal::write(Arc::clone(&journal), pool.clone(), presence.gateway.clone(), bounds);
        tokio::spawn(stop.clone().run_until_cancelled_owned(writing));
        Ok(Self {
            pool,
            journal,
            presence,
            _writer: Arc::new(stop.drop_guard()),
        })
    }

    /// Only brings the schema up to date.
    pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
        let location = Location::parse(url)?;
        let pool = location.connect().await?;
        let migrated = schema::migrate(&pool, &location).await;
        pool.close().await;
        migrated
    }

    /// Whether this version can use such a URL at all.
    pub fn check_url(url: &str) -> Result<(), StoreError> {
        Location::parse(url).map(drop)
    }

    /// Waits until everything noted so far is on disk. While the disk refuses, it waits.
    pub async fn flush(&self) {
        self.journal.flushed().await;
    }

    /// Whether the store can be read and written.
    pub async fn ping(&self) -> Result<(), StoreError> {
        if let Some(why) = self.journal.failure() {
            return Err(StoreError::Writing { why });
        }
        let query = sqlx::query("SELECT execution_id FROM executions LIMIT 1");
        query.fetch_optional(&self.pool).await?;
        Ok(())
    }

    /// Prunes now and every hour, until told to stop.
    pub async fn prune_regularly(&self, keep: Duration, stop: CancellationToken) {
        loop {
            match self.prune(keep).await {
                Ok(0) => {}
                Ok(records) => tracing::info!(records, "old executions are forgotten"),
                Err(error) => tracing::warn!(%error, "old executions cannot be forgotten"),
            }
            let pause = tokio::time::sleep(PRUNE_INTERVAL);
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    }

    /// Writes what is left and lets go of the file; nothing works afterwards.
    pub async fn close(&self) {
        if timeout(CLOSE_TIMEOUT, self.flush()).await.is_err() {
            let records = self.journal.len();
            tracing::error!(records, "the store could not write everything before the gateway left");
        }
        self.pool.close().await;
        self.presence.end();
    }
}
