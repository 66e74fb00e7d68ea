//! The task that writes versions, document by document, as soon as they are there. A database that fails is tried
//! again, and what waits meanwhile is bounded.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use live_document::DocumentId;
use parking_lot::Mutex;
use store::StoreError;
use tokio::{
    sync::{Notify, watch},
    time::sleep,
};

use super::{
    History,
    settle::LOOK_INTERVAL,
    track::{State, Track},
};

/// Versions that may wait to be written, and about the bytes they take.
const MAX_PENDING: usize = 10_000;
const MAX_PENDING_BYTES: usize = 64 * 1024 * 1024;
/// Renames that may wait.
const MAX_RENAMES: usize = 1000;
/// Time from the first version to be written until it is: the edit is on its way to Jupyter, and its caller comes first.
const AFTER_EDIT: Duration = Duration::from_millis(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Versions of one document that are written before those of another one.
const TURN: usize = 64;
/// Attempts for a version that the database refuses although it takes others.
const MAX_FAILURES: u32 = 5;

/// Documents with something to write, in the order in which they came.
#[derive(Default)]
pub(super) struct Queue {
    ready: Mutex<VecDeque<Arc<Track>>>,
    /// Documents with changes that others may be about to write.
    unsettled: Mutex<Vec<Arc<Track>>>,
    renames: Mutex<VecDeque<Rename>>,
    noted: Notify,
    versions: AtomicUsize,
    bytes: AtomicUsize,
    /// Counts the versions that were written.
    written: AtomicU64,
    failure: Mutex<Option<String>>,
    /// Changes whenever something was written or given up.
    progress: watch::Sender<()>,
}

/// A file or directory with another path.
#[derive(Clone)]
struct Rename {
    server: Arc<str>,
    from: String,
    to: String,
}

impl Queue {
    pub(super) fn add(&self, track: &Arc<Track>) {
        let was_queued = std::mem::replace(&mut track.lock().is_queued, true);
        if !was_queued {
            self.ready.lock().push_back(Arc::clone(track));
            self.noted.notify_one();
        }
    }

    pub(super) fn add_unsettled(&self, track: &Arc<Track>) {
        let mut unsettled = self.unsettled.lock();
        if !unsettled.iter().any(|known| Arc::ptr_eq(known, track)) {
            unsettled.push(Arc::clone(track));
        }
    }

    pub(super) fn remove_unsettled(&self, track: &Arc<Track>) {
        self.unsettled.lock().retain(|known| !Arc::ptr_eq(known, track));
    }

    pub(super) fn unsettled(&self) -> Vec<Arc<Track>> {
        self.unsettled.lock().clone()
    }

    fn has_unsettled(&self) -> bool {
        !self.unsettled.lock().is_empty()
    }

    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        let (versions, held) = (
            self.versions.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        );
        versions < MAX_PENDING && (held == 0 || held + bytes <= MAX_PENDING_BYTES)
    }

    pub(super) fn reserve(&self, bytes: usize) {
        self.versions.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn release(&self, bytes: usize) {
        self.versions.fetch_sub(1, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.written.fetch_add(1, Ordering::Relaxed);
    }

    /// Versions that are not written yet.
    pub(super) fn pending(&self) -> usize {
        self.versions.load(Ordering::Relaxed)
    }

    /// Reason why the last attempt to write failed.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().clone()
    }

    fn next(&self) -> Option<Arc<Track>> {
        let track = self.ready.lock().pop_front()?;
        track.lock().is_queued = false;
        Some(track)
    }
}

/// Writes versions and renames, for ever.
pub(super) async fn write(history: Arc<History>) {
    let queue = &history.queue;
    let (mut pause, mut looked) = (FIRST_PAUSE, Instant::now());
    loop {
        let worked = async {
            if looked.elapsed() >= LOOK_INTERVAL {
                looked = Instant::now();
                history.settle_all().await?;
            }
            history.write_next().await
        };
        match worked.await {
            Ok(true) => pause = FIRST_PAUSE,
            Ok(false) => tokio::select! {
                () = queue.noted.notified() => sleep(AFTER_EDIT).await,
                () = sleep(LOOK_INTERVAL), if queue.has_unsettled() => {}
            },
            Err(error) => {
                tracing::error!(%error, versions = queue.pending(), "the history cannot be written; trying again");
                *queue.failure.lock() = Some(error.to_string());
                queue.progress.send_replace(());
                sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
        }
    }
}

impl History {
    /// Records that a file or a directory was renamed, also one that is not open.
    pub fn note_rename(&self, server: &Arc<str>, from: &str, to: &str) {
        let mut renames = self.queue.renames.lock();
        if renames.len() >= MAX_RENAMES {
            tracing::error!("cannot record the new name of a document in its history: too many writes are waiting");
            renames.pop_front();
        }
        renames.push_back(Rename {
            server: Arc::clone(server),
            from: from.to_owned(),
            to: to.to_owned(),
        });
        drop(renames);
        self.queue.noted.notify_one();
    }

    /// Waits until the versions of a document, or of all, are written. While the database refuses, it waits.
    pub(super) async fn wait_until_written(&self, document: Option<&DocumentId>) {
        let is_written = || match document {
            Some(document) => self.track(document).is_none_or(|track| track.lock().is_written()),
            None => self.tracks.iter().all(|track| track.lock().is_written()) && self.queue.renames.lock().is_empty(),
        };
        self.wait_until(is_written).await;
    }

    /// Waits until the number of a document in the store is known.
    pub(super) async fn wait_until_found(&self, track: &Track) {
        self.wait_until(|| track.lock().stored.is_some()).await;
    }

    async fn wait_until(&self, is_so: impl Fn() -> bool) {
        let mut progress = self.queue.progress.subscribe();
        while !is_so() && progress.changed().await.is_ok() {}
    }

    /// Writes for one document; returns whether there was one.
    async fn write_next(&self) -> Result<bool, StoreError> {
        let rename = self.queue.renames.lock().front().cloned();
        if let Some(rename) = rename {
            self.store
                .rename_documents(&rename.server, &rename.from, &rename.to)
                .await?;
            self.queue.renames.lock().pop_front();
            self.on_progress();
            return Ok(true);
        }
        let Some(track) = self.queue.next() else {
            return Ok(false);
        };
        let written = self.write_track(&track).await;
        if let Err(error) = &written {
            self.on_failure(&track, error);
        }
        if track.lock().has_work() {
            self.queue.add(&track);
        }
        self.tracks.remove_if(&track.document, |_, known| {
            let state = known.lock();
            state.open == 0 && state.is_written()
        });
        written.map(|()| true)
    }

    async fn write_track(&self, track: &Arc<Track>) -> Result<(), StoreError> {
        for _ in 0..TURN {
            let (moved, entry, needs_repair) = {
                let state = track.lock();
                let moved = state.has_moved.then(|| state.path.clone());
                (moved, state.pending.front().cloned(), state.needs_repair())
            };
            if let Some(path) = moved {
                let id = &track.document;
                self.store
                    .note_document_path(&id.server, &id.file_id, path.as_str())
                    .await?;
                let mut state = track.lock();
                state.has_moved = state.path != path;
            } else if let Some(entry) = entry {
                self.write_entry(track, &entry).await?;
                self.queue.release(entry.weight);
                self.metrics.version_written();
            } else if needs_repair {
                self.repair(track).await?;
            } else {
                return Ok(());
            }
            self.on_progress();
        }
        Ok(())
    }

    pub(super) fn on_progress(&self) {
        if self.queue.failure.lock().take().is_some() {
            tracing::info!("the history can be written again");
        }
        self.queue.progress.send_replace(());
    }

    /// Gives up a version that the database refuses again and again although it takes those of others.
    fn on_failure(&self, track: &Arc<Track>, error: &StoreError) {
        let written = self.queue.written.load(Ordering::Relaxed);
        let mut state = track.lock();
        if matches!(error, StoreError::UnknownDocument { .. }) {
            // Its history was removed; the next attempt begins another.
            state.stored = None;
        }
        let given_up = state.on_failure(written);
        drop(state);
        if let Some(entry) = given_up {
            self.queue.release(entry.weight);
            self.on_lost(&track.document, &error.to_string());
        }
    }
}

impl State {
    fn on_failure(&mut self, written: u64) -> Option<Arc<super::track::Entry>> {
        let is_alone = self
            .written_at_failure
            .replace(written)
            .is_some_and(|before| before < written);
        self.failures += u32::from(is_alone);
        if self.failures < MAX_FAILURES {
            return None;
        }
        self.failures = 0;
        let given_up = self.pending.pop_front();
        self.lost += u64::from(given_up.is_some());
        given_up
    }
}
