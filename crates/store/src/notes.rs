//! Records that are only ever added. Whoever notes one never waits: they queue up, and one task writes them in their
//! order, many in one transaction. While the database fails they wait here, as many as there is room for.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use crate::{
    StoreError,
    database::{Database, Transaction},
};

/// Records that may wait to be written; then the one that has waited longest is given up.
const MAX_WAITING: usize = 16_384;
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;
/// Time in which more records gather. What they tell of is answered first.
const GATHERING: Duration = Duration::from_millis(5);
/// Records in one transaction.
const BATCH: usize = 512;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Longest wait of readers for what was noted before they asked.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// A record of a table that only grows.
#[async_trait]
pub(crate) trait Note: fmt::Debug + Send + Sync + 'static {
    const TABLE: &'static str;

    /// About what it takes in memory.
    fn bytes(&self) -> usize;

    async fn insert(&self, transaction: &mut Transaction) -> Result<(), StoreError>;
}

#[derive(Debug)]
pub(crate) struct Notes<T> {
    state: Mutex<State<T>>,
    noted: Notify,
    /// Changes whenever records were written or given up, or could not be written.
    progress: watch::Sender<()>,
    lost: AtomicU64,
}

#[derive(Debug)]
struct State<T> {
    /// In their order, each with its number.
    waiting: VecDeque<(u64, Arc<T>)>,
    /// Number of the first ones that are being written.
    writing: usize,
    bytes: usize,
    /// The number of the newest.
    newest: u64,
    /// Reason why the last attempt to write failed.
    failure: Option<String>,
}

impl<T> Default for Notes<T> {
    fn default() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            writing: 0,
            bytes: 0,
            newest: 0,
            failure: None,
        };
        Self {
            state: Mutex::new(state),
            noted: Notify::new(),
            progress: watch::Sender::default(),
            lost: AtomicU64::new(0),
        }
    }
}

impl<T: Note> Notes<T> {
    pub(crate) fn note(&self, record: T) {
        let bytes = record.bytes();
        let mut state = self.state.lock();
        let mut given_up = 0;
        while state.has_no_room_for(bytes) {
            // Not one that is being written, which would be neither lost nor kept.
            let first = state.writing;
            state.remove(first);
            given_up += 1;
        }
        state.newest += 1;
        let number = state.newest;
        state.bytes += bytes;
        state.waiting.push_back((number, Arc::new(record)));
        drop(state);
        if given_up > 0 {
            self.on_lost(given_up);
        }
        self.noted.notify_one();
    }

    /// Number of those that could not be kept.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Number of those that are not yet written.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.state.lock().failure.clone()
    }

    /// Returns whether a record that is noted now will be written: the last ones were, and there is room to wait.
    pub(crate) fn can_take(&self) -> bool {
        let state = self.state.lock();
        let is_full = state.waiting.len() >= MAX_WAITING || state.bytes >= MAX_WAITING_BYTES;
        state.failure.is_none() && !is_full
    }

    /// Waits until everything that was noted before is written.
    pub(crate) async fn wait_until_written(&self) {
        let newest = self.state.lock().newest;
        let mut progress = self.progress.subscribe();
        while !self.state.lock().has_written(newest) && progress.changed().await.is_ok() {}
    }

    /// Waits a moment for what was noted before, so that whoever did something finds it. A database that fails is not
    /// waited for.
    pub(crate) async fn wait_to_read(&self) {
        let wait = async {
            let newest = self.state.lock().newest;
            let mut progress = self.progress.subscribe();
            while {
                let state = self.state.lock();
                state.failure.is_none() && !state.has_written(newest)
            } && progress.changed().await.is_ok()
            {}
        };
        let _ = timeout(READ_TIMEOUT, wait).await;
    }

    /// Writes what is noted, for ever.
    pub(crate) async fn write(self: Arc<Self>, database: Database) {
        let mut pause = FIRST_PAUSE;
        loop {
            let batch = self.next_batch().await;
            match self.write_batch(&database, &batch).await {
                Ok(()) => {
                    self.on_written(&batch);
                    pause = FIRST_PAUSE;
                }
                Err(error) => {
                    tracing::error!(table = T::TABLE, %error, records = batch.len(), "the store cannot write; trying again");
                    self.state.lock().on_failure(&error);
                    self.progress.send_replace(());
                    sleep(pause).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
            }
        }
    }

    async fn next_batch(&self) -> Vec<(u64, Arc<T>)> {
        loop {
            let batch = self.state.lock().begin_batch();
            if !batch.is_empty() {
                return batch;
            }
            self.noted.notified().await;
            sleep(GATHERING).await;
        }
    }

    /// Writes all of a batch, or, where the database refuses one of them for what it says, all others.
    async fn write_batch(&self, database: &Database, batch: &[(u64, Arc<T>)]) -> Result<(), StoreError> {
        match insert(database, batch).await {
            Err(error) if error.is_refusal() => {}
            result => return result,
        }
        for note in batch {
            match insert(database, std::slice::from_ref(note)).await {
                Err(error) if error.is_refusal() => {
                    tracing::error!(table = T::TABLE, %error, "the database refuses a record, which is lost");
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
                result => result?,
            }
        }
        Ok(())
    }

    fn on_written(&self, batch: &[(u64, Arc<T>)]) {
        let mut state = self.state.lock();
        state.writing = 0;
        for _ in batch {
            state.remove(0);
        }
        if state.failure.take().is_some() {
            tracing::info!(table = T::TABLE, "the store can write again");
        }
        drop(state);
        self.progress.send_replace(());
    }

    fn on_lost(&self, records: u64) {
        // Said once in a while: there may be thousands.
        if self.lost.fetch_add(records, Ordering::Relaxed).is_multiple_of(1000) {
            tracing::error!(table = T::TABLE, "records are lost: too many writes are waiting");
        }
        self.progress.send_replace(());
    }
}

async fn insert<T: Note>(database: &Database, batch: &[(u64, Arc<T>)]) -> Result<(), StoreError> {
    let mut transaction = database.begin().await?;
    for (_, record) in batch {
        record.insert(&mut transaction).await?;
    }
    transaction.commit().await
}

impl<T: Note> State<T> {
    fn has_no_room_for(&self, bytes: usize) -> bool {
        let is_full = self.waiting.len() >= MAX_WAITING || self.bytes + bytes > MAX_WAITING_BYTES;
        is_full && self.waiting.len() > self.writing
    }

    fn begin_batch(&mut self) -> Vec<(u64, Arc<T>)> {
        let batch: Vec<_> = self.waiting.iter().take(BATCH).cloned().collect();
        self.writing = batch.len();
        batch
    }

    fn on_failure(&mut self, error: &StoreError) {
        self.writing = 0;
        self.failure = Some(error.to_string());
    }

    fn remove(&mut self, index: usize) {
        if let Some((_, record)) = self.waiting.remove(index) {
            self.bytes = self.bytes.saturating_sub(record.bytes());
        }
    }

    fn has_written(&self, number: u64) -> bool {
        self.waiting.front().is_none_or(|(oldest, _)| *oldest > number)
    }
}
