//! The shared document with what the gateway must know beside it: the order of cells, revisions, and
//! what the server has acknowledged. Does no I/O.

mod cell_identity;
mod cell_list;
mod check;
mod cursors;
mod delta;
mod discarded;
mod duplicate_cells;
mod edits;
mod moves;
mod observing;
mod outputs;
mod recording;
mod restore;
mod selection;
mod sources;
pub(crate) mod whole;

use std::{
    collections::HashSet,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use jupyter_client::limits::MAX_FRAME_BYTES;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use yrs::{
    ArrayRef, Doc, GetString, Hook, MapRef, Observable, OffsetKind, Options, ReadTxn, StateVector, Text, TextRef,
    Transact, TransactionMut, Update,
    block::ClientID,
    updates::{decoder::Decode, encoder::Encode},
};

pub(crate) use cell_identity::FileAge;
use cell_list::CellList;
pub(crate) use delta::Restoration;
pub(crate) use discarded::Discarded;
use observing::{CellEntry, Observer};
pub use outputs::{CellWrite, OutputsChange, OutputsWritten, QueuedCell, RunEnd, StreamTail};
use recording::Origin;
pub(crate) use restore::Snapshot;
use selection::Selection;
pub use selection::{Position, PositionError};
pub use sources::{Source, SourceChange};

use super::{
    Cell, DocumentContent, EditError, RoomKind,
    acknowledgement::{Acknowledgements, Ticket},
    awareness::Cursors,
    change_log::{Author, ChangeLog},
    changes::ChangeStream,
    clock::Clock,
    depths::Depths,
    edit::Edit,
    edit_journal::EditJournal,
    json::map_to_json,
    notebook::{execution_count, file_cell, has_error, notebook_metadata, read_cell, set_metadata, text_of},
    recorder::Recorder,
    scan::{Excess, Scanned, check_vector, scan},
    splice::{self, Splice},
};

const OBSERVER: &str = "gateway";
/// Number of ids that are named to callers who asked for a cell that is not there.
const SOME_IDS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum UpdateError {
    #[error("an update cannot be read: {0}")]
    Unreadable(#[from] yrs::encoding::read::Error),
    #[error("an update does not fit the document: {0}")]
    Unfitting(#[from] yrs::error::UpdateError),
    #[error(transparent)]
    Excess(#[from] Excess),
}

pub(crate) struct Document {
    kind: RoomKind,
    doc: Doc,
    cells: ArrayRef,
    source: TextRef,
    state: MapRef,
    meta: MapRef,
    order: CellList,
    log: ChangeLog,
    /// Watch of the time of the last change.
    pub(crate) changed: watch::Sender<SystemTime>,
    changed_at: Instant,
    /// Stream of its changes.
    pub(crate) stream: Option<ChangeStream>,
    /// The tool by which it is being edited.
    tool: Option<Arc<str>>,
    /// Makes versions of it, if they are kept.
    recorder: Option<Box<Recorder>>,
    pub(crate) acknowledgements: Acknowledgements,
    pub(crate) journal: EditJournal,
    /// Cells that came although they were there, while that is looked after.
    duplicated: Option<HashSet<Arc<str>>>,
    /// Cells that others gave another id, with the one they had.
    renamed: Vec<(Arc<str>, Hook<MapRef>)>,
    /// Observer of transactions; what it saw of the last one is still to be recorded.
    observer: Observer,
    /// Depths of its blocks, so that none becomes deeper than can be handled.
    depths: Depths,
    /// Upper bound of its size: the last measurement, and what was added since.
    grown: usize,
    /// Range of our last edit, or the place of our run.
    selection: Option<Selection>,
    /// Number of saves that the server noted in the document.
    saves: Arc<AtomicU64>,
    /// Number of times the server noted whether the document differs from the file.
    resets: Arc<AtomicU64>,
}

/// An edit that was applied here and must be sent.
pub(crate) struct Applied {
    pub(crate) update: Vec<u8>,
    pub(crate) ticket: Ticket,
    pub(crate) revision: String,
    /// Changed ranges, as JupyterLab shows selections.
    pub(crate) cursors: Option<Cursors>,
}

impl Document {
    pub(crate) fn new(kind: RoomKind, clock: Clock) -> Self {
        let mut options = Options::with_client_id(ClientID::new(super::new_client_id()));
        options.offset_kind = OffsetKind::Utf16;
        let doc = Doc::with_options(options);
        let (cells, source) = (doc.get_or_insert_array("cells"), doc.get_or_insert_text("source"));
        let (state, meta) = (doc.get_or_insert_map("state"), doc.get_or_insert_map("meta"));
        let observer = Observer::default();
        observer.observe(kind, &cells, &source, &meta);
        let saves = Arc::new(AtomicU64::new(0));
        let resets = Arc::new(AtomicU64::new(0));
        let (saved, reset) = (Arc::clone(&saves), Arc::clone(&resets));
        state.observe(OBSERVER, move |txn, event| {
            let keys = event.keys(txn);
            for (key, counter) in [("hash", &saved), ("dirty", &reset)] {
                if keys.contains_key(key) {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            kind,
            doc,
            cells,
            source,
            state,
            meta,
            order: CellList::default(),
            log: ChangeLog::new(clock),
            changed_at: clock.now(),
            stream: None,
            tool: None,
            recorder: None,
            changed: watch::Sender::new(clock.wall()),
            acknowledgements: Acknowledgements::default(),
            journal: EditJournal::default(),
            duplicated: None,
            renamed: Vec::new(),
            observer,
            depths: Depths::default(),
            grown: 0,
            selection: None,
            saves,
            resets,
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.log.clock()
    }

    pub(crate) fn set_now(&mut self, now: Instant) {
        self.log.set_now(now);
    }

    /// Tells those who watch that the document changed.
    fn mark_changed(&mut self) {
        self.changed_at = self.clock().now();
        self.changed.send_replace(self.clock().wall());
    }

    pub(crate) fn unchanged_for(&self) -> Duration {
        self.clock().since(self.changed_at)
    }

    pub(crate) fn saves(&self) -> u64 {
        self.saves.load(Ordering::Relaxed)
    }

    pub(crate) fn resets(&self) -> u64 {
        self.resets.load(Ordering::Relaxed)
    }

    /// The hash of the file as the server last wrote it, if it did.
    pub(crate) fn file_hash(&self) -> String {
        text_of(&self.state, &self.doc.transact(), "hash")
    }

    pub(crate) fn kind(&self) -> RoomKind {
        self.kind
    }

    #[cfg(test)]
    pub(crate) fn client_id(&self) -> u64 {
        self.doc.client_id().get()
    }

    pub(crate) fn state_vector(&self) -> StateVector {
        self.doc.transact().state_vector()
    }

    /// Encodes the update that a peer with this state vector lacks.
    pub(crate) fn diff(&self, vector: &StateVector) -> Vec<u8> {
        self.doc.transact().encode_diff_v1(vector)
    }

    /// Path of the file as the server has it now; it follows renames.
    pub(crate) fn path(&self) -> Option<String> {
        let txn = self.doc.transact();
        Some(text_of(&self.state, &txn, "path")).filter(|path| !path.is_empty())
    }

    pub(crate) fn revision(&self) -> String {
        self.log.revision()
    }

    pub(crate) fn cell_count(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn id_at(&self, position: usize) -> Option<&str> {
        self.order.get(position).map(|entry| &*entry.id)
    }

    /// The ids of the first cells, and whether there are more.
    pub(crate) fn some_ids(&self) -> String {
        let some: Vec<&str> = self.cell_ids().take(SOME_IDS).collect();
        match self.cell_count() {
            0 => "none".to_owned(),
            count if count > SOME_IDS => some.join(", ") + ", ...",
            _ => some.join(", "),
        }
    }

    /// Everything that the document holds.
    pub(crate) fn content(&self) -> DocumentContent {
        match self.kind {
            RoomKind::Notebook => DocumentContent::Notebook {
                metadata: self.metadata(),
                cells: self
                    .cells(0..self.cell_count())
                    .into_iter()
                    .map(|(_, cell)| cell)
                    .collect(),
            },
            RoomKind::Text => DocumentContent::Text(self.text()),
        }
    }

    pub(crate) fn is_notebook(&self) -> bool {
        self.kind == RoomKind::Notebook
    }

    pub(crate) fn log(&self) -> &ChangeLog {
        &self.log
    }

    /// The ids of all cells, in order.
    pub(crate) fn ids(&self) -> Vec<&str> {
        self.cell_ids().collect()
    }

    pub(crate) fn cell(&self, id: &str) -> Option<Cell> {
        let (_, cell) = self.cells(self.position_of(id)).pop()?;
        Some(cell)
    }

    fn cell_ids(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|entry| &*entry.id)
    }

    /// Several cells under one look at the document.
    pub(crate) fn cells(&self, indices: impl IntoIterator<Item = usize>) -> Vec<(usize, Cell)> {
        let txn = self.doc.transact();
        let read = |index: usize| Some((index, self.read_in(&txn, index)?));
        indices.into_iter().filter_map(read).collect()
    }

    pub(crate) fn position_of(&self, cell: &str) -> Option<usize> {
        self.order.position_of(cell)
    }

    /// The cells whose ids begin with something, with their positions.
    pub(crate) fn starting_with<'a>(&'a self, prefix: &'a str) -> Vec<(usize, &'a str)> {
        self.order.starting_with(prefix)
    }

    /// The ids of all cells in the order of their characters, each once.
    pub(crate) fn sorted_ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.order.sorted_ids()
    }

    /// The ids that come before and after an id in the order of their characters.
    pub(crate) fn neighbours(&self, id: &str) -> [Option<&Arc<str>>; 2] {
        self.order.neighbours(id)
    }

    pub(crate) fn has_cell(&self, id: &str) -> bool {
        self.order.contains(id)
    }

    pub(crate) fn text(&self) -> String {
        self.source.get_string(&self.doc.transact())
    }

    pub(crate) fn source(&self, cell: &str) -> Option<String> {
        self.source_in(&self.doc.transact(), cell)
    }

    pub(crate) fn is_code(&self, cell: &str) -> bool {
        let txn = self.doc.transact();
        self.map(&txn, cell)
            .is_some_and(|map| text_of(&map, &txn, "cell_type") == "code")
    }

    pub(crate) fn execution_count_of(&self, cell: &str) -> Option<i64> {
        let txn = self.doc.transact();
        execution_count(&self.map(&txn, cell)?, &txn).as_i64()
    }

    pub(crate) fn has_errors(&self) -> bool {
        let txn = self.doc.transact();
        let mut cells = self.order.iter().filter_map(|entry| entry.hook.as_ref()?.get(&txn));
        cells.any(|cell| has_error(&cell, &txn))
    }

    /// Metadata of the notebook.
    pub(crate) fn metadata(&self) -> Value {
        notebook_metadata(&self.meta, &self.doc.transact())
    }

    /// Returns whether cells have ids in the file, which older formats do not know.
    fn file_has_ids(&self) -> bool {
        let meta = map_to_json(&self.meta, &self.doc.transact());
        meta.get("nbformat_minor").and_then(Value::as_i64).unwrap_or(5) >= 5
    }

    /// The whole notebook in the form of its file.
    pub(crate) fn notebook(&self) -> Value {
        let txn = self.doc.transact();
        let meta = map_to_json(&self.meta, &txn);
        let minor = meta.get("nbformat_minor").and_then(Value::as_i64).unwrap_or(5);
        let cells: Vec<Value> = (0..self.order.len())
            .filter_map(|index| self.order[index].hook.as_ref()?.get(&txn))
            .map(|cell| file_cell(&cell, &txn, minor >= 5))
            .collect();
        json!({
            "cells": cells,
            "metadata": notebook_metadata(&self.meta, &txn),
            "nbformat": meta.get("nbformat").cloned().unwrap_or_else(|| json!(4)),
            "nbformat_minor": minor,
        })
    }

    /// Takes in what the server sent of a document that we have just joined or come back to.
    pub(crate) fn apply_remote(&mut self, update: &[u8]) -> Result<(), UpdateError> {
        self.take_in(update, false)
    }

    /// Takes in what somebody has just done.
    pub(crate) fn apply_live(&mut self, update: &[u8]) -> Result<(), UpdateError> {
        self.take_in(update, true)
    }

    /// Nothing is decoded that was not looked through before.
    fn take_in(&mut self, update: &[u8], is_live: bool) -> Result<(), UpdateError> {
        let Scanned { update, blocks } = scan(update)?;
        self.depths.admit(blocks)?;
        self.grow(update.len())?;
        let update = Update::decode_v1(&update)?;
        self.acknowledgements.received(&update);
        let author = author_of(&update);
        let origin = self.prepare_version(&update);
        let mut txn = self.doc.transact_mut_with("remote");
        let applied = txn.apply_update(update);
        drop(txn);
        self.note_changes(&author, is_live, &origin);
        Ok(applied?)
    }

    /// Refuses to grow beyond what can be held. Much of what comes replaces something, so that the size is measured
    /// before it is found to be too large.
    fn grow(&mut self, bytes: usize) -> Result<(), Excess> {
        self.grown = self.grown.saturating_add(bytes);
        if self.grown > MAX_FRAME_BYTES {
            self.grown = self.diff(&StateVector::default()).len().saturating_add(bytes);
        }
        match self.grown > MAX_FRAME_BYTES {
            true => Err(Excess::Size),
            false => Ok(()),
        }
    }

    /// Names the kernel that the notebook is written for.
    pub(crate) fn set_kernelspec(&mut self, author: &Arc<str>, spec: &Value) -> Applied {
        self.change(&Author::Local(Arc::clone(author)), |document, txn| {
            let mut metadata = notebook_metadata(&document.meta, txn);
            metadata["kernelspec"] = spec.clone();
            set_metadata(&document.meta, txn, &metadata);
        })
    }

    /// The document for a transaction of our own, which [`Self::finish`] ends.
    fn begin(&mut self) -> Doc {
        self.record_edit();
        self.doc.clone()
    }

    /// Ends a transaction of our own: its changes are noted and its acknowledgement is awaited.
    fn finish(&mut self, txn: TransactionMut<'_>, author: &Author) -> Applied {
        let update = txn.encode_update_v1();
        let (insertions, deletions) = (txn.insert_set().clone(), txn.delete_set().clone());
        drop(txn);
        self.note_changes(author, false, &Origin::Local);
        self.grown += update.len();
        // Others put theirs beside and into our blocks. Our own are never too deep.
        let _ = scan(&update).and_then(|scanned| self.depths.admit(scanned.blocks));
        let ticket = self.acknowledgements.expect(insertions, deletions);
        let cursors = self.cursors();
        // What the next edit does not touch is not its author's.
        self.selection = None;
        Applied {
            update,
            ticket,
            revision: self.revision(),
            cursors,
        }
    }

    pub(crate) fn metadata_in(&self, txn: &impl ReadTxn) -> Value {
        notebook_metadata(&self.meta, txn)
    }

    fn read_in(&self, txn: &impl ReadTxn, index: usize) -> Option<Cell> {
        let cell = self.order.get(index)?.hook.as_ref()?.get(txn)?;
        Some(read_cell(&cell, txn))
    }

    fn splice_text(&mut self, txn: &mut TransactionMut<'_>, old: &str, splices: &[Splice]) {
        if splices.is_empty() {
            return;
        }
        let source = self.source.clone();
        apply_splices(&source, txn, splices);
        self.selection = Some(Selection::of_edit(None, splice::spans(splices)));
        self.journal.text_changed(old, &source.get_string(txn));
    }

    fn map(&self, txn: &impl ReadTxn, cell: &str) -> Option<MapRef> {
        self.order.get(self.position_of(cell)?)?.hook.as_ref()?.get(txn)
    }

    /// A cell's source inside a transaction.
    pub(crate) fn source_in(&self, txn: &impl ReadTxn, cell: &str) -> Option<String> {
        self.map(txn, cell).map(|map| text_of(&map, txn, "source"))
    }

    fn text_in(&self, txn: &impl ReadTxn) -> String {
        self.source.get_string(txn)
    }

    /// Changes the whole text once more, if it is still what it was before.
    pub(crate) fn repeat_text(&mut self, txn: &mut TransactionMut<'_>, old: &str, new: &str) -> Option<bool> {
        let now = self.source.get_string(txn);
        if now == new {
            return None;
        }
        let same = now == old;
        if same {
            self.splice_text(txn, &now, &splice::between(&now, new));
        }
        Some(same)
    }

    /// Runs a change that is not an edit of a caller but of an earlier document, done again.
    pub(crate) fn redo(&mut self, change: impl FnOnce(&mut Self, &mut TransactionMut<'_>)) -> Applied {
        self.change(&Author::Unknown, change)
    }

    /// Runs a change in a transaction of its own.
    fn change(&mut self, author: &Author, change: impl FnOnce(&mut Self, &mut TransactionMut<'_>)) -> Applied {
        let doc = self.begin();
        let mut txn = doc.transact_mut_with(OBSERVER);
        change(self, &mut txn);
        self.finish(txn, author)
    }
}

/// Author of an update, if it is one client that inserts something. Deletions have no author.
fn author_of(update: &Update) -> Author {
    let insertions = update.insertions(true);
    let mut clients = insertions.client_ids().map(|client| client.get());
    match (clients.next(), clients.next()) {
        (Some(client), None) => Author::Client(client),
        _ => Author::Unknown,
    }
}

/// The hash that Jupyter notes of a file with this text.
pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// One update in the place of several.
pub(crate) fn merge<'u>(updates: impl IntoIterator<Item = &'u Vec<u8>>) -> Option<Vec<u8>> {
    yrs::merge_updates_v1(updates).ok()
}

/// Encodes a state vector for the wire.
pub(crate) fn encode_vector(vector: &StateVector) -> Vec<u8> {
    vector.encode_v1()
}

pub(crate) fn decode_vector(bytes: &[u8]) -> Result<StateVector, UpdateError> {
    check_vector(bytes).map_err(Excess::from)?;
    Ok(StateVector::decode_v1(bytes)?)
}

fn apply_splices(text: &TextRef, txn: &mut TransactionMut<'_>, splices: &[Splice]) {
    for splice in splices {
        if splice.delete > 0 {
            text.remove_range(txn, splice.at, splice.delete);
        }
        if !splice.insert.is_empty() {
            text.insert(txn, splice.at, &splice.insert);
        }
    }
}

#[cfg(test)]
mod tests;
