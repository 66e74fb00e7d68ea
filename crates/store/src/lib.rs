//! What outlives the process: the executions. The only place that knows sqlx; knows nothing of Jupyter or MCP.
//! Writing is never waited for: records are noted, and written in the background.
//!
//! | module | what it owns |
//! | --- | --- |
//! | `record`, `status` | executions as values |
//! | `executions`, `activity` | the questions that can be asked of them |
//! | `journal` | what was noted and is not yet written |
//! | `lease`, `process` | which gateways use the database, and whether one is gone |
//! | `backend` | what is needed of a database; the seam for another one |
//! | `sqlite`, `sql`, `row` | the database there is; statements and rows that another would share |

mod activity_log;
mod audit;
mod backend;
mod database;
mod documents;
mod error;
mod executions;
mod forks;
mod journal;
mod lease;
mod notebook_runs;
mod notes;
mod process;
mod record;
mod row;
mod size;
mod sql;
mod sqlite;
mod status;
#[cfg(test)]
mod tests;
mod versions;

use std::{sync::Arc, time::Duration};

use tokio::time::timeout;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

pub use activity_log::{ActivityFilter, ActivityRecord};
pub use audit::{AuditFilter, AuditRow};
pub use documents::{DocumentKey, DocumentRow};
pub use error::StoreError;
pub use forks::ForkRecord;
pub use lease::OtherGateway;
pub use notebook_runs::{NotebookRuns, RunsByNotebook};
pub use record::{CellRecord, ExecutionFilter, ExecutionRecord, LeftBehind, StoredQuestion, Terms};
pub use size::StoreLimits;
pub use sqlite::{Migrated, file_url};
pub use status::{ExecutionKind, ExecutionStatus, ExecutionWordError};
pub use versions::{Appended, Before, NewVersion, Snapshot, VersionFilter, VersionRow};

use self::{
    backend::Backend,
    database::Database,
    journal::Journal,
    lease::Lease,
    notes::Notes,
    size::Bounds,
    sqlite::{Location, SqliteBackend},
};

/// How often old records are looked for.
const PRUNE_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// How long leaving waits for a disk that does not take what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle of the one store; clones share it. When the last is gone, writing ends.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    database: Database,
    journal: Arc<Journal>,
    activity: Arc<Notes<ActivityRecord>>,
    audit: Arc<Notes<AuditRow>>,
    lease: Arc<Lease>,
    /// Those that write and renew the lease.
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_with_last: Arc<DropGuard>,
}

/// Records that were given up since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostRecords {
    pub executions: u64,
    pub activities: u64,
    pub audits: u64,
}

impl Store {
    /// Opens the database, making the file and bringing its schema up to date where needed.
    pub async fn open(url: &str, limits: StoreLimits) -> Result<Self, StoreError> {
        let location = Location::parse(url)?;
        let sqlite = SqliteBackend::open(&location).await?;
        let database = Database::Sqlite(sqlite.pool());
        let backend: Arc<dyn Backend> = Arc::new(sqlite);
        let lease = Arc::new(Lease::begin(&*backend).await?);
        let journal = Arc::new(Journal::default());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let writing = Arc::clone(&journal).write(
            Arc::clone(&backend),
            lease.gateway.clone(),
            Bounds::new(limits.within(&location)),
        );
        tasks.spawn(stop.clone().run_until_cancelled_owned(writing));
        let (activity, audit) = (Arc::<Notes<_>>::default(), Arc::<Notes<_>>::default());
        let activities = Arc::clone(&activity).write(database.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(activities));
        let audits = Arc::clone(&audit).write(database.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(audits));
        tasks.spawn(Arc::clone(&lease).hold(Arc::clone(&backend), stop.clone()));
        Ok(Self {
            backend,
            database,
            journal,
            activity,
            audit,
            lease,
            tasks,
            _stop_with_last: Arc::new(stop.clone().drop_guard()),
            stop,
        })
    }

    /// Only brings the schema up to date.
    pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
        SqliteBackend::migrate(&Location::parse(url)?).await
    }

    /// Whether this version can use such a URL at all.
    pub fn check_url(url: &str) -> Result<(), StoreError> {
        Location::parse(url).map(drop)
    }

    /// Waits until everything noted so far is on disk. While the disk refuses, it waits.
    pub async fn flush(&self) {
        tokio::join!(
            self.journal.wait_until_flushed(),
            self.activity.wait_until_written(),
            self.audit.wait_until_written(),
        );
    }

    /// Counts of records that were given up, because the database failed for too long.
    pub fn lost(&self) -> LostRecords {
        LostRecords {
            executions: self.journal.lost(),
            activities: self.activity.lost(),
            audits: self.audit.lost(),
        }
    }

    /// Whether the store can be read and written.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let failure = self.journal.failure();
        let failure = failure.or_else(|| self.activity.failure());
        match failure.or_else(|| self.audit.failure()) {
            Some(why) => Err(StoreError::Writing { why }),
            None => self.backend.ping().await,
        }
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

    /// Writes what is left, ends the lease and lets go of the database; nothing works afterwards.
    pub async fn close(&self) {
        if timeout(CLOSE_TIMEOUT, self.flush()).await.is_err() {
            let records = self.journal.len() + self.activity.len() + self.audit.len();
            tracing::error!(records, "the store could not write everything before the gateway left");
        }
        self.stop.cancel();
        self.tasks.close();
        let _ = timeout(CLOSE_TIMEOUT, self.tasks.wait()).await;
        self.backend.close().await;
    }
}
