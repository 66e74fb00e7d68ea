//! The shared document with what the gateway must know beside it: the order of cells, revisions, and
//! what the server has acknowledged. Does no I/O.

mod check;
mod cursors;
mod discarded;
mod doubles;
mod edits;
mod observing;
mod outputs;
mod recognition;
mod restoring;
mod selection;
mod whole;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use jupyter_client::limits::MAX_FRAME_BYTES;
use serde_json::{Value, json};
use tokio::sync::watch;
use yrs::{
    ArrayRef, Doc, GetString, Hook, MapRef, Observable, OffsetKind, Options, ReadTxn, StateVector, Text, TextRef,
    Transact, TransactionMut, Update,
    block::ClientID,
    updates::{decoder::Decode, encoder::Encode},
};

pub(super) use discarded::Discarded;
use observing::{CellEntry, Observed, Observer, Step};
pub use outputs::{CellWrite, OutputsChange, OutputsWritten, QueuedCell, RunEnd, StreamTail};
pub(super) use recognition::Return;
pub(super) use restoring::Held;
use selection::Selection;

use super::{
    Cell, EditError, RoomKind,
    acknowledgement::{Acknowledgements, Ticket},
    awareness::Cursors,
    change_log::{Author, ChangeLog},
    depths::Depths,
    edit::Edit,
    json::map_to_json,
    notebook::{execution_count, file_cell, has_error, notebook_metadata, read_cell, set_metadata, text_of},
    replay::Journal,
    scan::{Excess, Scanned, check_vector, scan},
    splice::{self, Splice},
};

const OBSERVER: &str = "gateway";
/// As many ids are named to who asked for a cell that is not there.
const SOME_IDS: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(super) enum UpdateError {
    #[error("an update cannot be read: {0}")]
    Unreadable(#[from] yrs::encoding::read::Error),
    #[error("an update does not fit the document: {0}")]
    Unfitting(#[from] yrs::error::UpdateError),
    #[error(transparent)]
    Excess(#[from] Excess),
}

pub(super) struct Document {
    kind: RoomKind,
    doc: Doc,
    cells: ArrayRef,
    source: TextRef,
    state: MapRef,
    meta: MapRef,
    order: Vec<CellEntry>,
    log: ChangeLog,
    /// When the document last changed, for those who watch it.
    pub(super) changed: watch::Sender<SystemTime>,
    pub(super) acknowledgements: Acknowledgements,
    pub(super) journal: Journal,
    /// Cells that came although they were there, while that is looked after.
    doubled: Option<HashSet<Arc<str>>>,
    /// Cells that others gave another id, with the one they had.
    renamed: Vec<(Arc<str>, Hook<MapRef>)>,
    /// What it saw of the transaction that just ended is still to be noted.
    observer: Observer,
    /// How deep its blocks are, so that none comes to be deeper than can be handled.
    depths: Depths,
    /// How much it has grown at most since its size was last measured, that size included.
    grown: usize,
    /// What our last edit changed, or where a run of ours is.
    selection: Option<Selection>,
    /// How often the server noted in the document that it wrote it to disk.
    saves: Arc<AtomicU64>,
    /// How often it was noted whether the document differs from the file.
    resets: Arc<AtomicU64>,
}

/// An edit that was applied here and must be sent.
pub(super) struct Applied {
    pub(super) update: Vec<u8>,
    pub(super) ticket: Ticket,
    pub(super) revision: String,
    /// What was changed, as JupyterLab shows selections.
    pub(super) cursors: Option<Cursors>,
}

impl Document {
    pub(super) fn new(kind: RoomKind) -> Self {
        let mut options = Options::with_client_id(ClientID::new(super::new_client_id()));
        options.offset_kind = OffsetKind::Utf16;
        let doc = Doc::with_options(options);
        let (cells, source) = (doc.get_or_insert_array("cells"), doc.get_or_insert_text("source"));
        let (state, meta) = (doc.get_or_insert_map("state"), doc.get_or_insert_map("meta"));
        let observer = Observer::default();
        observer.look_at(kind, &cells, &source);
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
            order: Vec::new(),
            log: ChangeLog::new(),
            changed: watch::Sender::new(SystemTime::now()),
            acknowledgements: Acknowledgements::default(),
            journal: Journal::default(),
            doubled: None,
            renamed: Vec::new(),
            observer,
            depths: Depths::default(),
            grown: 0,
            selection: None,
            saves,
            resets,
        }
    }

    pub(super) fn saves(&self) -> u64 {
        self.saves.load(Ordering::Relaxed)
    }

    pub(super) fn resets(&self) -> u64 {
        self.resets.load(Ordering::Relaxed)
    }

    /// The hash of the file as the server last wrote it, if it did.
    pub(super) fn file_hash(&self) -> String {
        text_of(&self.state, &self.doc.transact(), "hash")
    }

    pub(super) fn kind(&self) -> RoomKind {
        self.kind
    }

    pub(super) fn state_vector(&self) -> StateVector {
        self.doc.transact().state_vector()
    }

    /// Whether somebody who is known here has done something that is not.
    pub(super) fn is_behind(&self, vector: &StateVector) -> bool {
        let known = self.state_vector();
        let mut others = vector.iter();
        others.any(|(client, clock)| known.get(client) > 0 && *clock > known.get(client))
    }

    /// What somebody with this state vector lacks.
    pub(super) fn diff(&self, vector: &StateVector) -> Vec<u8> {
        self.doc.transact().encode_diff_v1(vector)
    }

    /// Where the server says the file is now; it follows renames.
    pub(super) fn path(&self) -> Option<String> {
        let txn = self.doc.transact();
        Some(text_of(&self.state, &txn, "path")).filter(|path| !path.is_empty())
    }

    pub(super) fn revision(&self) -> String {
        self.log.revision()
    }

    pub(super) fn cell_count(&self) -> usize {
        self.order.len()
    }

    pub(super) fn id_at(&self, position: usize) -> Option<&str> {
        self.order.get(position).map(|entry| &*entry.id)
    }

    /// The ids of the first cells, and whether there are more.
    pub(super) fn some_ids(&self) -> String {
        let some: Vec<&str> = self.cell_ids().take(SOME_IDS).collect();
        match self.cell_count() {
            0 => "none".to_owned(),
            count if count > SOME_IDS => some.join(", ") + ", ...",
            _ => some.join(", "),
        }
    }

    pub(super) fn is_notebook(&self) -> bool {
        self.kind == RoomKind::Notebook
    }

    pub(super) fn log(&self) -> &ChangeLog {
        &self.log
    }

    /// The ids of all cells, in order.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.cell_ids().collect()
    }

    pub(super) fn cell(&self, id: &str) -> Option<Cell> {
        let (_, cell) = self.cells(self.position_of(id)).pop()?;
        Some(cell)
    }

    fn cell_ids(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|entry| &*entry.id)
    }

    /// Several cells under one look at the document.
    pub(super) fn cells(&self, indices: impl IntoIterator<Item = usize>) -> Vec<(usize, Cell)> {
        let txn = self.doc.transact();
        let read = |index: usize| Some((index, self.read_in(&txn, index)?));
        indices.into_iter().filter_map(read).collect()
    }

    pub(super) fn position_of(&self, cell: &str) -> Option<usize> {
        self.order.iter().position(|entry| &*entry.id == cell)
    }

    pub(super) fn text(&self) -> String {
        self.source.get_string(&self.doc.transact())
    }

    pub(super) fn source(&self, cell: &str) -> Option<String> {
        self.source_in(&self.doc.transact(), cell)
    }

    pub(super) fn is_code(&self, cell: &str) -> bool {
        let txn = self.doc.transact();
        self.map(&txn, cell)
            .is_some_and(|map| text_of(&map, &txn, "cell_type") == "code")
    }

    pub(super) fn execution_count_of(&self, cell: &str) -> Option<i64> {
        let txn = self.doc.transact();
        execution_count(&self.map(&txn, cell)?, &txn).as_i64()
    }

    pub(super) fn has_errors(&self) -> bool {
        let txn = self.doc.transact();
        let mut cells = self.order.iter().filter_map(|entry| entry.hook.as_ref()?.get(&txn));
        cells.any(|cell| has_error(&cell, &txn))
    }

    /// What a notebook says of itself as a whole.
    pub(super) fn metadata(&self) -> Value {
        notebook_metadata(&self.meta, &self.doc.transact())
    }

    /// Whether cells have ids in the file, which older formats do not know.
    fn file_has_ids(&self) -> bool {
        let meta = map_to_json(&self.meta, &self.doc.transact());
        meta.get("nbformat_minor").and_then(Value::as_i64).unwrap_or(5) >= 5
    }

    /// The whole notebook in the form of its file.
    pub(super) fn notebook(&self) -> Value {
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
    pub(super) fn apply_remote(&mut self, update: &[u8]) -> Result<(), UpdateError> {
        self.take_in(update, false)
    }

    /// Takes in what somebody has just done.
    pub(super) fn apply_live(&mut self, update: &[u8]) -> Result<(), UpdateError> {
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
        let mut txn = self.doc.transact_mut_with("remote");
        let applied = txn.apply_update(update);
        drop(txn);
        self.note_changes(&author, is_live);
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
    pub(super) fn set_kernelspec(&mut self, author: &Arc<str>, spec: &Value) -> Applied {
        let doc = self.doc.clone();
        let mut txn = doc.transact_mut_with(OBSERVER);
        let mut metadata = notebook_metadata(&self.meta, &txn);
        metadata["kernelspec"] = spec.clone();
        set_metadata(&self.meta, &mut txn, &metadata);
        self.finish(txn, &Author::Local(Arc::clone(author)))
    }

    /// Ends a transaction of our own: its changes are noted and its acknowledgement is awaited.
    fn finish(&mut self, txn: TransactionMut<'_>, author: &Author) -> Applied {
        let update = txn.encode_update_v1();
        let (insertions, deletions) = (txn.insert_set().clone(), txn.delete_set().clone());
        drop(txn);
        self.note_changes(author, false);
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

    pub(super) fn metadata_in(&self, txn: &impl ReadTxn) -> Value {
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
    pub(super) fn source_in(&self, txn: &impl ReadTxn, cell: &str) -> Option<String> {
        self.map(txn, cell).map(|map| text_of(&map, txn, "source"))
    }

    fn text_in(&self, txn: &impl ReadTxn) -> String {
        self.source.get_string(txn)
    }

    /// Changes the whole text once more, if it is still what it was before.
    pub(super) fn repeat_text(&mut self, txn: &mut TransactionMut<'_>, old: &str, new: &str) -> Option<bool> {
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
    pub(super) fn redo(&mut self, change: impl FnOnce(&mut Self, &mut TransactionMut<'_>)) -> Applied {
        let doc = self.doc.clone();
        let mut txn = doc.transact_mut_with(OBSERVER);
        change(self, &mut txn);
        self.finish(txn, &Author::Unknown)
    }

    /// Brings the order of cells and the log up to what the observer saw.
    fn note_changes(&mut self, author: &Author, is_typing: bool) {
        let observed = self.observer.take();
        if observed.is_empty() {
            return;
        }
        self.log.advance();
        self.changed.send_replace(SystemTime::now());
        for change in observed {
            match change {
                Observed::Structure(steps) => {
                    self.reorder(steps, author, is_typing);
                    self.log.whole_changed(author, is_typing);
                }
                Observed::Identified(index, id) => self.rename(index, id, author),
                Observed::Source(id) => self.log.cell_changed(&id, author, is_typing),
                Observed::PartAt(index, id, part, is_changed) => {
                    if let Some(entry) = self.order.get(index) {
                        self.observer.belongs_to(id, part, &entry.id);
                        if is_changed {
                            self.log.cell_changed(&entry.id, author, is_typing);
                        }
                    }
                }
                Observed::Rest => {}
                Observed::Text => self.log.whole_changed(author, is_typing),
            }
        }
    }

    fn rename(&mut self, index: usize, id: Arc<str>, author: &Author) {
        let Some(entry) = self.order.get_mut(index).filter(|entry| entry.id != id) else {
            return;
        };
        let old = std::mem::replace(&mut entry.id, Arc::clone(&id));
        if let Some(hook) = entry.hook.clone().filter(|_| !author.is_local()) {
            self.renamed.push((Arc::clone(&old), hook));
        }
        self.log.cell_removed(&old);
        self.log.cell_changed(&id, author, false);
    }

    fn reorder(&mut self, steps: Vec<Step>, author: &Author, is_typing: bool) {
        let mut at = 0;
        let mut removed = HashMap::new();
        let mut added = Vec::new();
        let kept = |step: &Step| match step {
            Step::Keep(count) => Some(*count),
            Step::Remove(_) | Step::Add(_) => None,
        };
        self.log.moved(author, steps.iter().map_while(kept).sum());
        for step in steps {
            match step {
                Step::Keep(count) => at += count,
                Step::Remove(count) => {
                    let end = (at + count).min(self.order.len());
                    for entry in self.order.drain(at.min(end)..end) {
                        if let Some(history) = self.log.cell_removed(&entry.id) {
                            removed.insert(Arc::clone(&entry.id), history);
                        }
                        if !author.is_local() {
                            self.journal.forget(&entry.id);
                        }
                    }
                }
                Step::Add(entries) => {
                    if let Some(doubled) = &mut self.doubled {
                        let known: HashSet<&str> = self.order.iter().map(|entry| &*entry.id).collect();
                        let again = entries.iter().filter(|entry| known.contains(&*entry.id));
                        doubled.extend(again.map(|entry| Arc::clone(&entry.id)));
                    }
                    let count = entries.len();
                    added.extend(entries.iter().map(|entry| Arc::clone(&entry.id)));
                    let place = at.min(self.order.len());
                    self.order.splice(place..place, entries);
                    at += count;
                }
            }
        }
        // Noted last, since a cell may be replaced by one with the same id.
        for id in added {
            if let Some(history) = removed.remove(&id) {
                self.log.cell_replaced(&id, history);
            }
            self.log.cell_changed(&id, author, is_typing);
        }
    }
}

/// Who made an update, if it is one client that adds something. Who only takes something away is not told.
fn author_of(update: &Update) -> Author {
    let insertions = update.insertions(true);
    let mut clients = insertions.client_ids().map(|client| client.get());
    match (clients.next(), clients.next()) {
        (Some(client), None) => Author::Client(client),
        _ => Author::Unknown,
    }
}

/// One update in the place of several.
pub(super) fn merge<'u>(updates: impl IntoIterator<Item = &'u Vec<u8>>) -> Option<Vec<u8>> {
    yrs::merge_updates_v1(updates).ok()
}

/// Encodes a state vector for the wire.
pub(super) fn encode_vector(vector: &StateVector) -> Vec<u8> {
    vector.encode_v1()
}

pub(super) fn decode_vector(bytes: &[u8]) -> Result<StateVector, UpdateError> {
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
