//! Records that are not yet written. Callers never wait for the disk: the newest version of each record is kept here,
//! and one task writes all of them in one transaction, again and again.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use crate::{
    ExecutionRecord,
    database::Database,
    executions::{Batch, Origin, Rename},
    size::Bounds,
};

/// Records that may wait to be written. Only a disk that fails for long lets so many gather; then the
/// one that has waited longest is given up. The same holds for renames.
const MAX_PENDING: usize = 4096;
const MAX_PENDING_BYTES: usize = 256 * 1024 * 1024;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Longest wait of readers for a rename that is being written. After that they are told the old name.
const RENAME_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Journal {
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
    /// In their order, each with its version. What is pending has followed them already; what is stored has not.
    renames: VecDeque<(u64, Arc<Rename>)>,
    /// Number of records and renames so far.
    version: u64,
    /// Reason why the last attempt to write failed.
    failure: Option<String>,
    /// Counts the records that were given up.
    lost: u64,
}

#[derive(Debug)]
struct Pending {
    record: Arc<ExecutionRecord>,
    bytes: usize,
    version: u64,
    /// The oldest version that nothing on disk covers.
    since: u64,
}

impl Journal {
    pub(crate) fn note(&self, record: ExecutionRecord) {
        let bytes = record.bytes();
        let mut state = self.state.lock();
        state.version += 1;
        let version = state.version;
        let since = state.remove(&record.execution_id).map(|pending| pending.since);
        while state.has_no_room_for(bytes) {
            state.drop_oldest();
            self.progress.send_replace(());
        }
        let id = record.execution_id.clone();
        let pending = Pending {
            record: Arc::new(record),
            bytes,
            version,
            since: since.unwrap_or(version),
        };
        state.pending.insert(id, pending);
        state.bytes += bytes;
        drop(state);
        self.noted.notify_one();
    }

    pub(crate) fn note_rename(&self, server: &str, from: Origin, to: &str) {
        let rename = Rename {
            server: server.to_owned(),
            from,
            to: to.to_owned(),
        };
        let mut state = self.state.lock();
        state.version += 1;
        let version = state.version;
        for pending in state.pending.values_mut() {
            if let Some(path) = rename.new_path(&pending.record) {
                Arc::make_mut(&mut pending.record).path = Some(path);
                // One that is being written under its old path is written again.
                pending.version = version;
            }
        }
        if state.renames.len() >= MAX_PENDING {
            tracing::error!("cannot record the new name of a notebook for its executions: too many writes are waiting");
            state.renames.pop_front();
        }
        state.renames.push_back((version, Arc::new(rename)));
        drop(state);
        self.noted.notify_one();
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<ExecutionRecord>> {
        let state = self.state.lock();
        state.pending.get(id).map(|pending| Arc::clone(&pending.record))
    }

    pub(crate) fn all(&self) -> Vec<Arc<ExecutionRecord>> {
        self.state.lock().records()
    }

    pub(crate) fn len(&self) -> usize {
        self.state.lock().pending.len()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.state.lock().lost
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Waits until everything that was noted before is on disk.
    pub(crate) async fn wait_until_flushed(&self) {
        let noted = self.state.lock().version;
        self.wait_until_written(noted).await;
    }

    /// Waits until everything that was noted before is on disk, or could not be written.
    pub(crate) async fn wait_until_flushed_or_failed(&self) {
        let noted = self.state.lock().version;
        let is_over = |state: &State| state.failure.is_some() || state.has_written(noted);
        let mut progress = self.progress.subscribe();
        while !is_over(&self.state.lock()) && progress.changed().await.is_ok() {}
    }

    /// Waits until stored records have followed the renames that were noted before, if they can be written.
    pub(crate) async fn wait_for_renames(&self) {
        let newest = {
            let state = self.state.lock();
            let newest = state.renames.back().map(|(version, _)| *version);
            newest.filter(|_| state.failure.is_none())
        };
        if let Some(version) = newest {
            let _ = timeout(RENAME_TIMEOUT, self.wait_until_written(version)).await;
        }
    }

    async fn wait_until_written(&self, version: u64) {
        let mut progress = self.progress.subscribe();
        while !self.state.lock().has_written(version) && progress.changed().await.is_ok() {}
    }

    /// Everything there is to write, with the version it has come to.
    async fn next_batch(&self) -> (Batch, u64) {
        loop {
            let (batch, version) = self.state.lock().to_write();
            if !batch.renames.is_empty() || !batch.records.is_empty() {
                return (batch, version);
            }
            self.noted.notified().await;
        }
    }

    /// Drops what is on disk up to a version. What was noted again meanwhile stays.
    fn on_written(&self, version: u64) {
        let mut state = self.state.lock();
        state.renames.retain(|(noted, _)| *noted > version);
        state.pending.retain(|_, pending| pending.version > version);
        state.bytes = state.pending.values().map(|pending| pending.bytes).sum();
        for pending in state.pending.values_mut() {
            pending.since = pending.since.max(version + 1);
        }
        if state.failure.take().is_some() {
            tracing::info!("the store can write again");
        }
        drop(state);
        self.progress.send_replace(());
    }

    /// Writes records, for ever.
    pub(crate) async fn write(self: Arc<Self>, database: Database, gateway: String, mut bounds: Bounds) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (batch, version) = self.next_batch().await;
            match database.write_executions(&batch, &gateway).await {
                Ok(bytes) => {
                    bounds.on_written(bytes, &database).await;
                    self.on_written(version);
                    pause = FIRST_PAUSE;
                }
                Err(error) => {
                    tracing::error!(%error, records = batch.records.len(), "the store cannot write; trying again");
                    self.state.lock().failure = Some(error.to_string());
                    self.progress.send_replace(());
                    sleep(pause).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }
}

impl State {
    fn records(&self) -> Vec<Arc<ExecutionRecord>> {
        let pending = self.pending.values();
        pending.map(|pending| Arc::clone(&pending.record)).collect()
    }

    fn to_write(&self) -> (Batch, u64) {
        let batch = Batch {
            renames: self.renames.iter().map(|(_, rename)| Arc::clone(rename)).collect(),
            records: self.records(),
        };
        (batch, self.version)
    }

    fn has_written(&self, version: u64) -> bool {
        self.pending.values().all(|pending| pending.since > version)
            && self.renames.front().is_none_or(|(noted, _)| *noted > version)
    }

    fn drop_oldest(&mut self) {
        let oldest = self.pending.iter().min_by_key(|(_, pending)| pending.since);
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            tracing::error!(
                execution_id = id,
                "lost the record of an execution: too many writes are waiting"
            );
            self.remove(&id);
            self.lost += 1;
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

impl Rename {
    /// The path of a record's notebook after it, if it moved.
    fn new_path(&self, record: &ExecutionRecord) -> Option<String> {
        let path = record.path.as_deref().filter(|_| record.server == self.server)?;
        match &self.from {
            Origin::Path(from) => {
                let below = path.strip_prefix(from)?;
                let is_it = below.is_empty() || below.starts_with('/');
                is_it.then(|| format!("{}{below}", self.to))
            }
            Origin::File(file_id) => {
                let is_it = record.file_id.as_ref() == Some(file_id) && path != self.to;
                is_it.then(|| self.to.clone())
            }
        }
    }
}
