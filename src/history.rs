//! The history of documents: takes every version of open documents, keeps them in the store in their order, and
//! derives contents, undo plans and notices from them. Editing never waits for it. Knows nothing of MCP or of principals'
//! rules.
//!
//! | module | what it owns |
//! | --- | --- |
//! | `track` | one document: its content after the newest version, and versions that are not written yet |
//! | `writer` | the one task that writes, its retries, and what is given up |
//! | `append` | the next version of a log, whoever else wrote to it meanwhile |
//! | `settle` | changes that another gateway may be about to write |
//! | `contents` | contents of stored versions |
//! | `snapshots` | contents for the store, where older versions go |
//! | `listing`, `version`, `told` | versions as callers see them |
//! | `undo` | the delta that takes versions back |
//! | `notices` | documents that lost what was recorded of them |

mod append;
mod contents;
mod error;
mod listing;
mod notices;
mod settle;
mod snapshots;
#[cfg(test)]
mod tests;
mod told;
mod track;
mod undo;
mod version;
mod writer;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use dashmap::DashMap;
use history::{Author, Blob, Content, Delta, VersionId};
use jupyter_client::DocPath;
use live_document::{DocumentId, HistorySink, Loss, Recorded};
use store::Store;
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use store::{Before, VersionFilter as Filter};

pub use self::{
    error::HistoryError,
    listing::{Listing, Subject},
    told::{ToldVersion, difference_text, timestamp},
    undo::{Choice, UndoPlan, Whose},
    version::{Kind, Version},
};
use self::{
    notices::{Notices, What},
    snapshots::Snapshots,
    track::{Entry, Track},
    version::{names, new_id},
    writer::Queue,
};
use crate::telemetry::Metrics;

/// Versions that a slow follower may be behind; it learns that it missed some.
const MAX_ADDED: usize = 256;
/// Losses that a slow follower may be behind.
const MAX_LOSSES: usize = 64;
/// Longest wait at the end for a database that does not take what is left.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A document that suddenly lost most of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostContent {
    pub document: Arc<DocumentId>,
    pub path: DocPath,
    pub loss: Loss,
    /// The version that has what was lost.
    pub version: VersionId,
}

/// The history of all documents of a gateway.
pub struct History {
    store: Store,
    metrics: Metrics,
    /// Documents that are open, or have versions that are not written.
    tracks: DashMap<Arc<DocumentId>, Arc<Track>>,
    queue: Queue,
    notices: Notices,
    /// Documents that have another version, for those who follow them.
    added: broadcast::Sender<Arc<DocumentId>>,
    losses: broadcast::Sender<LostContent>,
    /// Versions that were given up since the process began.
    lost: AtomicU64,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl History {
    /// A history that writes to a store from now on.
    pub fn start(store: Store, metrics: Metrics) -> Arc<Self> {
        let history = Arc::new(Self {
            store,
            metrics,
            tracks: DashMap::new(),
            queue: Queue::default(),
            notices: Notices::default(),
            added: broadcast::Sender::new(MAX_ADDED),
            losses: broadcast::Sender::new(MAX_LOSSES),
            lost: AtomicU64::new(0),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        history.store.set_snapshot_source(Arc::new(Snapshots::of(&history)));
        let writing = writer::write(Arc::clone(&history));
        history
            .tasks
            .spawn(history.stop.clone().run_until_cancelled_owned(writing));
        history
    }

    /// Follows documents that get another version.
    pub fn added(&self) -> broadcast::Receiver<Arc<DocumentId>> {
        self.added.subscribe()
    }

    /// Follows documents that suddenly lose most of their content.
    pub fn losses(&self) -> broadcast::Receiver<LostContent> {
        self.losses.subscribe()
    }

    fn tell_loss(&self, track: &Track) {
        // A fork is a proposal: its document has everything.
        let loss = self.notices.loss_of(&track.document);
        if let Some((loss, version)) = loss.filter(|_| !track.document.is_fork()) {
            // Nobody may be following.
            let _ = self.losses.send(LostContent {
                document: Arc::clone(&track.document),
                path: track.lock().path.clone(),
                loss,
                version,
            });
        }
    }

    /// The notice for a user of a document, if it was not told yet.
    pub fn take_notice(&self, document: &DocumentId, principal: &Arc<str>) -> Option<String> {
        if document.is_fork() {
            return None;
        }
        let path = self.tracks.get(document)?.lock().path.clone();
        self.notices.take(document, &path, principal)
    }

    /// Records that a document was restored to one of its versions.
    pub fn on_restored(&self, document: &DocumentId) {
        self.notices.settle(document);
    }

    /// The id of the newest version of an open document, if it led to this revision.
    pub fn version_of(&self, document: &DocumentId, revision: &str) -> Option<VersionId> {
        let track = self.track(document)?;
        let state = track.lock();
        let (id, known) = &state.latest;
        (known.as_deref() == Some(revision)).then(|| id.clone())
    }

    /// Records the present content of an open document, which makes up for versions that could not be followed.
    pub fn observe(&self, document: &DocumentId, content: &Content) {
        let Some(track) = self.track(document).filter(|track| track.lock().live.is_none()) else {
            return;
        };
        track.lock().live = Some(content.clone());
        self.queue.add(&track);
    }

    /// Versions that are not written yet.
    pub fn pending(&self) -> usize {
        self.queue.pending()
    }

    fn track(&self, document: &DocumentId) -> Option<Arc<Track>> {
        self.tracks.get(document).map(|track| Arc::clone(&track))
    }

    /// Writes what is left, as far as the database takes it, and ends.
    pub async fn close(&self) {
        for track in &self.tracks {
            track.lock().hurry();
        }
        if tokio::time::timeout(CLOSE_TIMEOUT, self.wait_until_written(None))
            .await
            .is_err()
        {
            let versions = self.queue.pending();
            tracing::error!(versions, "the history could not be written before the gateway left");
        }
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn add_entry(&self, track: &Arc<Track>, entry: Entry) {
        let document = &track.document;
        let mut state = track.lock();
        if !entry.is_opening() {
            state.latest = (entry.version.id.clone(), entry.version.revision.clone());
        }
        state.live = Some(entry.after.clone());
        // An opening is what makes up for versions that were given up.
        if !entry.is_opening() && !self.queue.has_room_for(entry.weight) {
            state.lost += 1;
            drop(state);
            self.on_lost(document, "too many versions wait to be written");
            return;
        }
        self.queue.reserve(entry.weight);
        state.pending.push_back(Arc::new(entry));
        drop(state);
        self.queue.add(track);
        // Nobody may be following.
        let _ = self.added.send(Arc::clone(document));
    }

    fn on_lost(&self, document: &DocumentId, why: &str) {
        self.lost.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.metrics.version_lost();
        tracing::error!(
            server = &*document.server,
            file_id = &*document.file_id,
            why,
            "lost a version of a document"
        );
    }
}

impl HistorySink for History {
    fn opened(&self, document: &Arc<DocumentId>, path: &DocPath, content: &Content, blobs: Vec<Blob>) {
        let time = SystemTime::now();
        let id = new_id(time);
        let fresh = || Arc::new(Track::new(Arc::clone(document), path, content, id.clone()));
        let track = {
            let known = self.tracks.entry(Arc::clone(document)).or_insert_with(fresh);
            // Counted while nobody else can forget it.
            known.lock().open += 1;
            Arc::clone(&known)
        };
        track.set_path(&mut track.lock(), path);
        let version = Version {
            id,
            seq: None,
            time,
            kind: Kind::Opened,
            principal: None,
            authors: names(&Author::Outside).1,
            tool: None,
            revision: None,
            summary: String::new(),
            size: i64::try_from(content.size()).unwrap_or(i64::MAX),
            undoes: Vec::new(),
            is_undone: false,
        };
        let delta = Delta::default();
        let entry = Entry {
            weight: Entry::weigh(content, content, &delta, &blobs),
            version,
            author: Author::Outside,
            before: content.clone(),
            after: content.clone(),
            delta,
            blobs,
            is_loss: false,
        };
        self.add_entry(&track, entry);
    }

    fn record(&self, recorded: Recorded) {
        let Some(track) = self.track(&recorded.document) else {
            return self.on_lost(&recorded.document, "it was not opened");
        };
        let (before, good) = {
            let mut state = track.lock();
            track.set_path(&mut state, &recorded.path);
            let Some(live) = state.live.clone() else {
                state.lost += 1;
                drop(state);
                return self.on_lost(&recorded.document, "its content is not known");
            };
            (live, state.latest.0.clone())
        };
        let after = match recorded.delta.apply(&before) {
            // The recorder has it already, and it takes the memory of one.
            Ok(after) if after == recorded.content => recorded.content.clone(),
            Ok(after) => after,
            Err(error) => {
                let mut state = track.lock();
                state.live = None;
                state.lost += 1;
                drop(state);
                return self.on_lost(&recorded.document, &error.to_string());
            }
        };
        if let Some(loss) = recorded.loss {
            tracing::warn!(
                server = &*recorded.document.server,
                path = %recorded.path,
                cells_before = loss.cells_before,
                cells_after = loss.cells_after,
                version = %good,
                "a document suddenly lost most of its content"
            );
            self.notices.add(&recorded.document, What::Loss(loss), good);
        }
        self.add_entry(&track, entry(recorded, before, after));
    }

    fn renamed(&self, document: &Arc<DocumentId>, _from: &DocPath, to: &DocPath) {
        let Some(track) = self.track(document) else {
            return;
        };
        {
            let mut state = track.lock();
            state.path = to.clone();
            state.has_moved = !track.document.is_fork();
        }
        self.queue.add(&track);
    }

    fn closed(&self, document: &Arc<DocumentId>) {
        let Some(track) = self.track(document) else {
            return;
        };
        let open = {
            let mut state = track.lock();
            state.open = state.open.saturating_sub(1);
            state.open
        };
        if open == 0 {
            // The writer forgets it once everything is written.
            self.queue.add(&track);
        }
    }
}

fn entry(recorded: Recorded, before: Content, after: Content) -> Entry {
    let (principal, authors) = names(&recorded.author);
    let version = Version {
        id: new_id(recorded.time),
        seq: None,
        time: recorded.time,
        kind: Kind::of(&recorded.author),
        principal,
        authors,
        tool: recorded.tool.as_deref().map(str::to_owned),
        revision: Some(recorded.revision),
        summary: recorded.delta.summary(),
        size: i64::try_from(recorded.size).unwrap_or(i64::MAX),
        undoes: recorded.undoes,
        is_undone: false,
    };
    Entry {
        weight: Entry::weigh(&before, &after, &recorded.delta, &recorded.blobs),
        version,
        author: recorded.author,
        before,
        after,
        delta: recorded.delta,
        is_loss: recorded.loss.is_some(),
        blobs: recorded.blobs,
    }
}
