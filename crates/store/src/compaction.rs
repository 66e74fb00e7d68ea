//! Keeps the store within its limits, in the background: what is too old or too much is removed, the oldest first.

mod documents;
mod logs;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::logs::ACTIVITY;
use crate::{
    HistoryLimits, Snapshot, Store, StoreError,
    database::{Database, Statement},
};

/// Time between compactions when little is written.
const INTERVAL: Duration = Duration::from_secs(5 * 60);
/// Time between looks for old executions, which takes reading all of them.
const EXECUTIONS_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The limits are checked whenever this part of the smaller one was written.
const SLACK: usize = 16;
/// Pages that SQLite gives back to the disk at a time: 8 MiB.
const VACUUM_PAGES: &str = "PRAGMA incremental_vacuum(2048)";

/// Makes the content of documents as it was after a version, so that older versions can go.
#[async_trait]
pub trait SnapshotSource: Send + Sync {
    /// The content after a version, or none if it cannot be made.
    async fn snapshot(&self, document: i64, seq: i64) -> Option<Snapshot>;

    /// The ids of versions that must stay, whatever the limits are.
    fn pinned(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Counts of what a compaction removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    pub executions: u64,
    pub activities: u64,
    pub audits: u64,
    /// Expired clients, logins, grants and tokens of browser logins.
    pub logins: u64,
    pub versions: u64,
    /// Whose whole history was removed.
    pub documents: u64,
    pub blobs: u64,
}

#[derive(Default)]
pub(crate) struct Compaction {
    source: OnceLock<Arc<dyn SnapshotSource>>,
    /// Bytes written since the limits were last checked.
    appended: AtomicI64,
    is_due: Notify,
    /// Time of the last search for executions.
    executions_seen_to: Mutex<Option<Instant>>,
}

impl Store {
    /// Sets the maker of snapshots, once. Without it, only versions before an existing snapshot are removed.
    pub fn set_snapshot_source(&self, source: Arc<dyn SnapshotSource>) {
        let _ = self.compaction.source.set(source);
    }

    /// Keeps within the limits until told to stop.
    pub async fn compact_regularly(&self, stop: CancellationToken) {
        loop {
            match self.compact().await {
                Ok(removed) if removed == Compacted::default() => {}
                Ok(removed) => tracing::info!(?removed, "the oldest of what is stored was removed"),
                Err(error) => tracing::warn!(%error, "old records cannot be removed from the store; trying again"),
            }
            let pause = async {
                tokio::select! {
                    () = tokio::time::sleep(INTERVAL) => {}
                    () = self.compaction.is_due.notified() => {}
                }
            };
            if stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
        }
    }

    /// Removes what is too old or too much.
    pub async fn compact(&self) -> Result<Compacted, StoreError> {
        self.compaction.appended.store(0, Ordering::Relaxed);
        let mut removed = Compacted {
            activities: self.prune_log(&ACTIVITY, self.limits.activity).await?,
            audits: self.prune_audit(self.limits.audit).await?,
            ..Compacted::default()
        };
        if self.compaction.has_to_see_to_executions() {
            removed.executions = self.prune_executions(self.limits.keep).await?;
        }
        removed.logins = self.remove_expired_logins().await?;
        self.compact_documents(&mut removed).await?;
        removed.blobs = self.remove_unused_blobs().await?;
        if removed != Compacted::default() {
            vacuum(&self.database).await?;
        }
        Ok(removed)
    }
}

impl Compaction {
    pub(crate) fn on_appended(&self, bytes: i64, limits: &HistoryLimits) {
        let appended = self.appended.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let slack = limits.bytes.min(limits.bytes_per_document) / SLACK;
        if usize::try_from(appended).is_ok_and(|appended| appended > slack) {
            self.appended.store(0, Ordering::Relaxed);
            self.is_due.notify_one();
        }
    }

    fn has_to_see_to_executions(&self) -> bool {
        let mut last = self.executions_seen_to.lock();
        let is_due = last.is_none_or(|last| last.elapsed() >= EXECUTIONS_INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

impl std::fmt::Debug for Compaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compaction").finish_non_exhaustive()
    }
}

/// Gives room back to the disk, a little each time. PostgreSQL does so by itself.
async fn vacuum(database: &Database) -> Result<(), StoreError> {
    if database.is_sqlite() {
        database.rows(Statement::new(VACUUM_PAGES)).await?;
    }
    Ok(())
}

/// The time a duration ago.
fn ago(age: Duration) -> SystemTime {
    SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH)
}
