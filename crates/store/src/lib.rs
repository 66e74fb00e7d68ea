//! Records that outlive the process: executions, versions of documents, forks, activities, the record of calls. The only
//! place that knows sqlx; knows nothing of Jupyter or MCP. What is noted is written in the background and never waited for.
//!
//! | module | what it owns |
//! | --- | --- |
//! | `record`, `status` | executions as values |
//! | `executions`, `notebook_runs` | their table, and the questions that can be asked of it |
//! | `journal` | executions that were noted and are not yet written |
//! | `documents`, `versions` | documents of files; their versions, snapshots and blobs |
//! | `forks` | copies of documents in which changes are proposed |
//! | `activity_log`, `audit`, `notes` | logs, and records of them that are not yet written |
//! | `oauth` | browser logins: clients, logins under way, grants and their tokens |
//! | `revocations` | tokens that were revoked while gateways run |
//! | `console` | the database for an operator's command, which is no gateway |
//! | `compaction`, `size` | the limits, and keeping within them |
//! | `observer` | events of the database for metrics |
//! | `lease`, `process`, `health` | the gateways that use the database, whether one is gone, whether the database can be written to |
//! | `database` | the two databases, and statements that both run; the seam for another one |
//! | `location`, `schema`, `row` | where the database is, its migrations, columns to values and back |

mod activity_log;
mod audit;
mod compaction;
mod console;
mod database;
mod documents;
mod error;
mod executions;
mod forks;
mod health;
mod journal;
mod lease;
mod location;
mod notebook_runs;
mod notes;
mod oauth;
mod observer;
mod process;
mod record;
mod revocations;
mod row;
mod schema;
mod size;
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
pub use audit::{AuditFilter, AuditPage, AuditRow};
pub use compaction::{Compacted, SnapshotSource};
pub use console::Console;
pub use documents::{DocumentKey, DocumentRow};
pub use error::StoreError;
pub use executions::Unfinished;
pub use forks::ForkRecord;
pub use lease::OtherGateway;
pub use location::file_url;
pub use notebook_runs::{NotebookRuns, RunsByNotebook};
pub use oauth::{AccessToken, Grant, NewGrant, NewTokens, Redeemed, RegisteredClient};
pub use observer::{Backlog, StoreObserver, StoreOperation};
pub use record::{AbandonedExecution, CellRecord, ExecutionFilter, ExecutionRecord, StoredQuestion, Terms};
pub use revocations::RevokedToken;
pub use schema::Migrated;
pub use size::{HistoryLimits, LogLimits, StoreLimits};
pub use status::{ExecutionKind, ExecutionStatus, ExecutionWordError};
pub use versions::{Appended, Before, NewVersion, Snapshot, VersionFilter, VersionRow};

use self::{
    compaction::Compaction, database::Database, health::Health, journal::Journal, lease::Lease, location::Location,
    notes::Notes, size::Bounds,
};

/// Longest wait on close for a disk that does not take the remaining records.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle of the one store; clones share it. When the last is gone, writing ends.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    journal: Arc<Journal>,
    activity: Arc<Notes<ActivityRecord>>,
    audit: Arc<Notes<AuditRow>>,
    lease: Arc<Lease>,
    health: Arc<Health>,
    limits: StoreLimits,
    compaction: Arc<Compaction>,
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
        let limits = limits.within(&location);
        let database = Database::connect(&location, limits.connections).await?;
        schema::migrate(&database, &location).await?;
        let lease = Arc::new(Lease::begin(&database).await?);
        let journal = Arc::new(Journal::default());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let writing = Arc::clone(&journal).write(database.clone(), lease.gateway.clone(), Bounds::new(limits));
        tasks.spawn(stop.clone().run_until_cancelled_owned(writing));
        let health = Arc::<Health>::default();
        let (activity, audit) = (Arc::<Notes<_>>::default(), Arc::<Notes<_>>::default());
        let activities = Arc::clone(&activity).write(database.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(activities));
        let audits = Arc::clone(&audit).write(database.clone());
        tasks.spawn(stop.clone().run_until_cancelled_owned(audits));
        tasks.spawn(Arc::clone(&lease).hold(database.clone(), Arc::clone(&health), stop.clone()));
        Ok(Self {
            database,
            journal,
            activity,
            audit,
            lease,
            health,
            limits,
            compaction: Arc::default(),
            tasks,
            _stop_with_last: Arc::new(stop.clone().drop_guard()),
            stop,
        })
    }

    /// Only brings the schema up to date.
    pub async fn migrate(url: &str) -> Result<Migrated, StoreError> {
        let location = Location::parse(url)?;
        let database = Database::connect(&location, 1).await?;
        let migrated = schema::migrate(&database, &location).await;
        database.close().await;
        migrated
    }

    /// Checks that this version supports a URL.
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

    /// Tells how many records were given up, because the database failed for too long. It does not keep the store
    /// open.
    pub fn lost_records(&self) -> impl Fn() -> LostRecords + Send + Sync + 'static {
        let (journal, activity, audit) = (
            Arc::clone(&self.journal),
            Arc::clone(&self.activity),
            Arc::clone(&self.audit),
        );
        move || LostRecords {
            executions: journal.lost(),
            activities: activity.lost(),
            audits: audit.lost(),
        }
    }

    /// Sets the observer that measures the database from now on.
    pub fn observe(&self, observer: Arc<dyn StoreObserver>) {
        self.database.observe(observer);
    }

    /// Tells how many records wait to be written. It does not keep the store open.
    pub fn backlog(&self) -> impl Fn() -> Backlog + Send + Sync + 'static {
        let (journal, activity, audit) = (
            Arc::clone(&self.journal),
            Arc::clone(&self.activity),
            Arc::clone(&self.audit),
        );
        move || Backlog {
            executions: journal.len(),
            activities: activity.len(),
            audits: audit.len(),
        }
    }

    /// Tells whether the last attempts to write succeeded. It does not keep the store open.
    pub fn is_writing(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (journal, activity, audit, health) = (
            Arc::clone(&self.journal),
            Arc::clone(&self.activity),
            Arc::clone(&self.audit),
            Arc::clone(&self.health),
        );
        move || {
            journal.failure().is_none()
                && activity.failure().is_none()
                && audit.failure().is_none()
                && health.failure().is_none()
        }
    }

    /// Waits until everything noted so far is on disk, unless the disk refuses.
    pub async fn flush_if_possible(&self) {
        self.journal.wait_until_flushed_or_failed().await;
    }

    /// Checks that the store can be read and written.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let failure = self.journal.failure();
        let failure = failure.or_else(|| self.activity.failure());
        let failure = failure.or_else(|| self.audit.failure());
        match failure.or_else(|| self.health.failure()) {
            Some(why) => Err(StoreError::Writing { why }),
            None => self.database.ping().await,
        }
    }

    /// Writes the remaining records, ends the lease and closes the database; nothing works afterwards.
    pub async fn close(&self) {
        if timeout(CLOSE_TIMEOUT, self.flush()).await.is_err() {
            let records = self.journal.len() + self.activity.len() + self.audit.len();
            tracing::error!(records, "the store could not write everything before the gateway left");
        }
        self.stop.cancel();
        self.tasks.close();
        let _ = timeout(CLOSE_TIMEOUT, self.tasks.wait()).await;
        // It waits for everybody who still uses a connection.
        if timeout(CLOSE_TIMEOUT, self.database.close()).await.is_err() {
            tracing::error!("the database was still used when the gateway left");
        }
    }
}
