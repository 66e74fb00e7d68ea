//! What was noted but is not yet written. Callers never wait for the disk: the newest version of each
//! record is kept here, and one task writes all that there is in one transaction, again and again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::SqlitePool;
use tokio::sync::{Notify, watch};

use super::executions::{ExecutionRecord, upsert};

/// Records that may wait to be written. Only a disk that fails for long lets so many gather; then the
/// one that has waited longest is given up.
const MAX_PENDING: usize = 4096;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Journal {
    state: Mutex<State>,
    noted: Notify,
    /// Changes whenever records were written or given up.
    progress: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    pending: HashMap<String, Pending>,
    /// Counts what was noted.
    version: u64,
    /// Why the last attempt to write failed.
    failure: Option<String>,
}

#[derive(Debug, Clone)]
struct Pending {
    record: Arc<ExecutionRecord>,
    version: u64,
    /// The oldest version that nothing on disk covers.
    since: u64,
}

type Batch = Vec<(Arc<ExecutionRecord>, u64)>;

impl Journal {
    pub(super) fn note(&self, record: ExecutionRecord) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let since = state.pending.get(&record.execution_id).map(|pending| pending.since);
        if since.is_none() && state.pending.len() >= MAX_PENDING {
            state.give_one_up();
            self.progress.send_replace(());
        }
        let id = record.execution_id.clone();
        let pending = Pending {
            record: Arc::new(record),
            version,
            since: since.unwrap_or(version),
        };
        state.pending.insert(id, pending);
        drop(state);
        self.noted.notify_one();
    }

    /// Waits until everything that was noted before is on disk.
    pub(super) async fn flushed(&self) {
        let mut progress = self.progress.subscribe();
        let noted = self.state().version;
        let done = || self.state().pending.values().all(|pending| pending.since > noted);
        while !done() && progress.changed().await.is_ok() {}
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<ExecutionRecord>> {
        let state = self.state();
        state.pending.get(id).map(|pending| Arc::clone(&pending.record))
    }

    pub(super) fn all(&self) -> Vec<Arc<ExecutionRecord>> {
        let state = self.state();
        state
            .pending
            .values()
            .map(|pending| Arc::clone(&pending.record))
            .collect()
    }

    pub(super) fn len(&self) -> usize {
        self.state().pending.len()
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    async fn next_batch(&self) -> Batch {
        loop {
            let batch: Batch = self.state().pending.values().map(Pending::to_write).collect();
            if !batch.is_empty() {
                return batch;
            }
            self.noted.notified().await;
        }
    }

    /// A record that was noted again meanwhile stays, for its newer version.
    fn written(&self, batch: &Batch) {
        let mut state = self.state();
        for (record, version) in batch {
            let id = &record.execution_id;
            match state.pending.get_mut(id) {
                Some(pending) if pending.version > *version => pending.since = version + 1,
                _ => drop(state.pending.remove(id)),
            }
        }
        if state.failure.take().is_some() {
            tracing::info!("the store can write again");
        }
        drop(state);
        self.progress.send_replace(());
    }

    fn failed(&self, why: String) {
        self.state().failure = Some(why);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn give_one_up(&mut self) {
        let oldest = self.pending.iter().min_by_key(|(_, pending)| pending.since);
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            tracing::error!(execution_id = id, "a record is lost, too many wait to be written");
            self.pending.remove(&id);
        }
    }
}

impl Pending {
    fn to_write(&self) -> (Arc<ExecutionRecord>, u64) {
        (Arc::clone(&self.record), self.version)
    }
}

/// Writes what is noted, for ever.
pub(super) async fn write(journal: Arc<Journal>, pool: SqlitePool, gateway: String) {
    let mut pause = FIRST_PAUSE;
    loop {
        let batch = journal.next_batch().await;
        match write_batch(&pool, &batch, &gateway).await {
            Ok(()) => {
                journal.written(&batch);
                pause = FIRST_PAUSE;
            }
            Err(error) => {
                tracing::error!(%error, records = batch.len(), "the store cannot write; trying again");
                journal.failed(error.to_string());
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
    }
}

async fn write_batch(pool: &SqlitePool, batch: &Batch, gateway: &str) -> Result<(), sqlx::Error> {
    let mut transaction = pool.begin().await?;
    for (record, _) in batch {
        upsert(&mut transaction, record, gateway).await?;
    }
    transaction.commit().await
}
