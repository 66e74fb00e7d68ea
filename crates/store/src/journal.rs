//! What was noted but is not yet written. Callers never wait for the disk: the newest version of each
//! record is kept here, and one task writes all that there is in one transaction, again and again.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sqlx::SqlitePool;
use tokio::sync::{Notify, watch};

use super::{
    executions::{ExecutionRecord, rename, upsert},
    size::Bounds,
};

/// Records that may wait to be written. Only a disk that fails for long lets so many gather; then the
/// one that has waited longest is given up. The same holds for renames.
const MAX_PENDING: usize = 4096;
const MAX_PENDING_BYTES: usize = 256 * 1024 * 1024;
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
    /// Of all that is pending, about.
    bytes: usize,
    /// In their order. What is pending has followed them already; what is stored has not.
    renames: VecDeque<Arc<Rename>>,
    /// Counts what was noted.
    version: u64,
    /// Why the last attempt to write failed.
    failure: Option<String>,
}

#[derive(Debug, Clone)]
struct Pending {
    record: Arc<ExecutionRecord>,
    bytes: usize,
    version: u64,
    /// The oldest version that nothing on disk covers.
    since: u64,
}

/// A file or directory whose executions have another path now.
#[derive(Debug)]
pub(super) struct Rename {
    pub(super) server: String,
    pub(super) from: String,
    pub(super) to: String,
    version: u64,
}

/// Renames come first: the records are newer than they are.
#[derive(Debug, Default)]
struct Batch {
    renames: Vec<Arc<Rename>>,
    records: Vec<(Arc<ExecutionRecord>, u64)>,
}

impl Journal {
    pub(super) fn note(&self, record: ExecutionRecord) {
        let bytes = record.bytes();
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let since = state.remove(&record.execution_id).map(|pending| pending.since);
        while state.has_no_room_for(bytes) {
            state.give_one_up();
            self.progress.send_replace(());
        }
        let id = record.execution_id.clone();
        state.bytes += bytes;
        let pending = Pending {
            record: Arc::new(record),
            bytes,
            version,
            since: since.unwrap_or(version),
        };
        state.pending.insert(id, pending);
        drop(state);
        self.noted.notify_one();
    }

    pub(super) fn note_rename(&self, server: &str, from: &str, to: &str) {
        let mut state = self.state();
        state.version += 1;
        let rename = Arc::new(Rename {
            server: server.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            version: state.version,
        });
        let State { pending, version, .. } = &mut *state;
        for pending in pending.values_mut() {
            let path = pending.record.path.as_deref();
            if let Some(path) = path.and_then(|path| rename.moved(&pending.record.server, path)) {
                Arc::make_mut(&mut pending.record).path = Some(path);
                // One that is being written under its old path is written again.
                pending.version = *version;
            }
        }
        if state.renames.len() >= MAX_PENDING {
            tracing::error!("cannot record the new name of a notebook for its executions: too many writes are waiting");
            state.renames.pop_front();
        }
        state.renames.push_back(rename);
        drop(state);
        self.noted.notify_one();
    }

    /// The renames that stored records have not followed yet, in their order.
    pub(super) fn renames(&self) -> Vec<Arc<Rename>> {
        self.state().renames.iter().cloned().collect()
    }

    /// Waits until everything that was noted before is on disk.
    pub(super) async fn flushed(&self) {
        let mut progress = self.progress.subscribe();
        let noted = self.state().version;
        let done = || {
            let state = self.state();
            let mut renames = state.renames.iter();
            state.pending.values().all(|pending| pending.since > noted) && renames.all(|rename| rename.version > noted)
        };
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
            let batch = self.state().to_write();
            if !batch.is_empty() {
                return batch;
            }
            self.noted.notified().await;
        }
    }

    /// A record that was noted again meanwhile stays, for its newer version.
    fn written(&self, batch: &Batch) {
        let mut state = self.state();
        state
            .renames
            .retain(|rename| !batch.renames.iter().any(|written| Arc::ptr_eq(written, rename)));
        for (record, version) in &batch.records {
            let id = &record.execution_id;
            match state.pending.get_mut(id) {
                Some(pending) if pending.version > *version => pending.since = version + 1,
                _ => drop(state.remove(id)),
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
    fn to_write(&self) -> Batch {
        Batch {
            renames: self.renames.iter().cloned().collect(),
            records: self.pending.values().map(Pending::to_write).collect(),
        }
    }

    fn give_one_up(&mut self) {
        let oldest = self.pending.iter().min_by_key(|(_, pending)| pending.since);
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            tracing::error!(
                execution_id = id,
                "lost the record of an execution: too many writes are waiting"
            );
            self.remove(&id);
        }
    }

    /// One record is taken, however large it is.
    fn has_no_room_for(&self, bytes: usize) -> bool {
        let is_full = self.pending.len() >= MAX_PENDING || self.bytes + bytes > MAX_PENDING_BYTES;
        is_full && !self.pending.is_empty()
    }

    fn remove(&mut self, id: &str) -> Option<Pending> {
        let removed = self.pending.remove(id)?;
        self.bytes = self.bytes.saturating_sub(removed.bytes);
        Some(removed)
    }
}

impl Pending {
    fn to_write(&self) -> (Arc<ExecutionRecord>, u64) {
        (Arc::clone(&self.record), self.version)
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.renames.is_empty() && self.records.is_empty()
    }
}

impl Rename {
    fn moved(&self, server: &str, path: &str) -> Option<String> {
        rebased(path, &self.from, &self.to).filter(|_| self.server == server)
    }

    fn moved_back(&self, server: &str, path: &str) -> Option<String> {
        rebased(path, &self.to, &self.from).filter(|_| self.server == server)
    }
}

/// Where a path is after a file or directory was renamed, if it is that or lies below it.
fn rebased(path: &str, from: &str, to: &str) -> Option<String> {
    let below = path.strip_prefix(from)?;
    (below.is_empty() || below.starts_with('/')).then(|| format!("{to}{below}"))
}

/// Where a stored path is after renames, if that is somewhere else.
pub(super) fn moved(renames: &[Arc<Rename>], server: &str, path: &str) -> Option<String> {
    let step = |at: Option<String>, rename: &Arc<Rename>| rename.moved(server, at.as_deref().unwrap_or(path)).or(at);
    renames.iter().fold(None, step)
}

/// Where a path was before renames, if that was somewhere else.
pub(super) fn moved_back(renames: &[Arc<Rename>], server: &str, path: &str) -> Option<String> {
    let step = |at: Option<String>, rename: &Arc<Rename>| {
        let before = rename.moved_back(server, at.as_deref().unwrap_or(path));
        before.or(at)
    };
    renames.iter().rev().fold(None, step)
}

/// Writes what is noted, for ever.
pub(super) async fn write(journal: Arc<Journal>, pool: SqlitePool, gateway: String, mut bounds: Bounds) {
    let mut pause = FIRST_PAUSE;
    loop {
        let batch = journal.next_batch().await;
        match write_batch(&pool, &batch, &gateway).await {
            Ok(bytes) => {
                bounds.on_written(bytes, &pool).await;
                journal.written(&batch);
                pause = FIRST_PAUSE;
            }
            Err(error) => {
                tracing::error!(%error, records = batch.records.len(), "the store cannot write; trying again");
                journal.failed(error.to_string());
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
    }
}

/// How many bytes the records take, about.
async fn write_batch(pool: &SqlitePool, batch: &Batch, gateway: &str) -> Result<usize, sqlx::Error> {
    let mut transaction = pool.begin().await?;
    for moved in &batch.renames {
        rename(&mut transaction, moved).await?;
    }
    let mut bytes = 0;
    for (record, _) in &batch.records {
        bytes += upsert(&mut transaction, record, gateway).await?;
    }
    transaction.commit().await?;
    Ok(bytes)
}
