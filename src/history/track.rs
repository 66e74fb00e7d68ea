//! One document whose versions are recorded: its content after the newest one, and those that are not written yet.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use history::{Author, Blob, Content, Delta, Operation, Splice, VersionId};
use jupyter_client::DocPath;
use live_document::DocumentId;
use parking_lot::{Mutex, MutexGuard};
use store::DocumentKey;

use super::{
    settle::Unsettled,
    version::{Kind, Version},
};

/// The kind under which the store has forks.
pub(super) const FORK: &str = "fork";
/// About what a version takes in memory beside its texts.
const ENTRY_BYTES: usize = 512;

pub(super) struct Track {
    pub(super) document: Arc<DocumentId>,
    state: Mutex<State>,
}

pub(super) struct State {
    /// The original's id if it is a fork.
    pub(super) path: DocPath,
    /// The store has another path.
    pub(super) has_moved: bool,
    /// Number of times that the document is open: twice for the moment in which a duplicate is closed.
    pub(super) open: usize,
    /// Content after the newest version; none if one did not fit, so that the content is not known.
    pub(super) live: Option<Content>,
    pub(super) pending: VecDeque<Arc<Entry>>,
    /// The end of the log, once it is known.
    pub(super) stored: Option<Stored>,
    /// The newest version and its revision.
    pub(super) latest: (VersionId, Option<String>),
    /// Versions that were given up since the newest stored one.
    pub(super) lost: u64,
    /// Other gateways write versions of the document too.
    pub(super) is_shared: bool,
    /// Changes that others may be about to write.
    pub(super) unsettled: Option<Unsettled>,
    /// Time until which somebody waits for the log to be complete.
    pub(super) hurried_until: Option<Instant>,
    /// True if the writer knows that there is something to write.
    pub(super) is_queued: bool,
    /// Versions of all documents that had been written when the last attempt for this one failed.
    pub(super) written_at_failure: Option<u64>,
    /// Attempts that failed although others were written.
    pub(super) failures: u32,
}

/// The end of a document's log in the store.
#[derive(Clone)]
pub(super) struct Stored {
    /// The store's number of the document.
    pub(super) document: i64,
    pub(super) seq: i64,
    pub(super) content: Content,
    pub(super) since_snapshot: Since,
}

/// Versions since the last snapshot.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Since {
    pub(super) versions: i64,
    /// Bytes of their deltas.
    pub(super) bytes: usize,
    /// Bytes of the snapshot.
    pub(super) snapshot: usize,
}

/// A version that is not written yet.
pub(super) struct Entry {
    pub(super) version: Version,
    pub(super) author: Author,
    pub(super) before: Content,
    pub(super) after: Content,
    pub(super) delta: Delta,
    pub(super) blobs: Vec<Blob>,
    /// It took away most of the document, and nobody is known to have wanted that.
    pub(super) is_loss: bool,
    /// Bytes that it takes in memory, about.
    pub(super) weight: usize,
}

impl Entry {
    /// Returns whether it tells what a document was opened with, and not what was changed.
    pub(super) fn is_opening(&self) -> bool {
        self.version.kind == Kind::Opened
    }

    pub(super) fn weigh(before: &Content, after: &Content, delta: &Delta, blobs: &[Blob]) -> usize {
        let blobs: usize = blobs.iter().map(|blob| blob.json.len()).sum();
        let content = match (before, after) {
            (Content::Text(before), Content::Text(after)) if before != after => after.len(),
            _ => after.cells().len() * size_of::<usize>(),
        };
        let operations: usize = delta.operations.iter().map(|operation| weight(operation, after)).sum();
        ENTRY_BYTES + blobs + content + operations
    }
}

fn weight(operation: &Operation, after: &Content) -> usize {
    let splices =
        |splices: &[Splice]| -> usize { splices.iter().map(|splice| splice.old.len() + splice.new.len()).sum() };
    match operation {
        Operation::Text { splices: all } => splices(all),
        Operation::Source { cell, splices: all } => splices(all) + after.cell(cell).map_or(0, |cell| cell.source.len()),
        Operation::Insert { cell, .. } | Operation::Delete { cell, .. } => {
            let attachments = cell.attachments.as_ref().map_or(0, |json| json.as_str().len());
            ENTRY_BYTES + cell.source.len() + cell.metadata.as_str().len() + attachments
        }
        Operation::Metadata { old, new, .. } => old.as_str().len() + new.as_str().len(),
        Operation::Attachments { old, new, .. } => {
            let bytes = |json: &Option<history::Json>| json.as_ref().map_or(0, |json| json.as_str().len());
            bytes(old) + bytes(new)
        }
        Operation::Move { .. } | Operation::Kind { .. } | Operation::Outputs { .. } => ENTRY_BYTES,
    }
}

impl Track {
    pub(super) fn new(document: Arc<DocumentId>, path: &DocPath, content: &Content, id: VersionId) -> Self {
        let state = State {
            path: path.clone(),
            has_moved: false,
            open: 0,
            live: Some(content.clone()),
            pending: VecDeque::new(),
            stored: None,
            latest: (id, None),
            lost: 0,
            is_shared: false,
            unsettled: None,
            hurried_until: None,
            is_queued: false,
            written_at_failure: None,
            failures: 0,
        };
        Self {
            document,
            state: Mutex::new(state),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn key(&self) -> DocumentKey {
        let (server, file_id) = (self.document.server.to_string(), self.document.file_id.to_string());
        match self.document.is_fork() {
            true => DocumentKey {
                server,
                // It has no path of its own, by which another one could be taken for it.
                path: file_id.clone(),
                file_id,
                kind: FORK.to_owned(),
            },
            false => DocumentKey {
                server,
                file_id,
                path: self.lock().path.to_string(),
                kind: self.document.kind.file_type().to_owned(),
            },
        }
    }

    /// Records the present path of the document.
    pub(super) fn set_path(&self, state: &mut State, path: &DocPath) {
        state.has_moved |= state.path != *path && !self.document.is_fork();
        state.path = path.clone();
    }

    /// The versions that are not written yet, the newest first.
    pub(super) fn pending_versions(&self) -> Vec<Version> {
        let state = self.lock();
        let edits = state.pending.iter().rev().filter(|entry| !entry.is_opening());
        edits.map(|entry| entry.version.clone()).collect()
    }

    /// Removes an entry that is in the store, or need not be.
    pub(super) fn on_written(&self, entry: &Arc<Entry>, stored: Stored) {
        let mut state = self.lock();
        if state.pending.front().is_some_and(|front| Arc::ptr_eq(front, entry)) {
            state.pending.pop_front();
        }
        state.stored = Some(stored);
        (state.failures, state.written_at_failure) = (0, None);
    }
}

impl State {
    /// Returns whether there is something to write.
    pub(super) fn has_work(&self) -> bool {
        self.has_moved || !self.pending.is_empty() || self.needs_repair()
    }

    /// Returns whether the log has everything.
    pub(super) fn is_written(&self) -> bool {
        !self.has_work() && self.unsettled.is_none()
    }

    /// Returns whether the last versions were given up, so that the log does not end with the content that there is.
    pub(super) fn needs_repair(&self) -> bool {
        self.lost > 0 && self.live.is_some() && self.pending.is_empty()
    }
}
