//! Doing edits, once they are known to be possible: those of one batch in one transaction.

use std::sync::Arc;

use serde_json::Value;
use yrs::{Any, Array, GetString, Map, MapRef, Out, ReadTxn, Transact, TransactionMut};

use super::{
    super::{
        CellKind, NewCell,
        matches::replacing,
        notebook::{prelim, set_metadata, source_of, text_of},
    },
    Applied, Author, CellEntry, Document, Edit, EditError, OBSERVER, Selection, Splice, apply_splices, splice,
};

impl Document {
    /// Checks a batch of edits against the document as it stands, then applies it in one transaction.
    pub(crate) fn apply_local(&mut self, author: &Arc<str>, edits: &[Edit]) -> Result<Applied, EditError> {
        self.editing(&[], |document| document.apply_edits(author, edits))
    }

    fn apply_edits(&mut self, author: &Arc<str>, edits: &[Edit]) -> Result<Applied, EditError> {
        self.journal.set_author(Some(author));
        let author = Author::Local(Arc::clone(author));
        self.check(edits)?;
        if !self.is_notebook() {
            Self::check_positions(edits.iter(), &self.text())?;
        }
        let doc = self.begin();
        let mut txn = doc.transact_mut_with(OBSERVER);
        // From the end to the beginning, so that the positions of what is still to be done stay true.
        let mut ordered: Vec<((usize, bool), &Edit)> =
            edits.iter().map(|edit| (self.place(&txn, edit), edit)).collect();
        ordered.sort_by_key(|(place, _)| *place);
        for ((at, _), edit) in ordered.into_iter().rev() {
            self.perform(&mut txn, at, edit);
        }
        Ok(self.finish(txn, &author))
    }

    /// Says in the document that it is not saved, as JupyterLab does, unless it says so already.
    pub(crate) fn mark_dirty(&mut self) -> Option<Applied> {
        // No version has this, so that an edit need not be recorded before.
        let doc = self.doc.clone();
        let mut txn = doc.transact_mut_with(OBSERVER);
        if says_dirty(&self.state, &txn) {
            return None;
        }
        self.state.insert(&mut txn, "dirty", true);
        Some(self.finish(txn, &Author::Unknown))
    }

    /// Returns whether the document is marked as unsaved.
    pub(crate) fn is_dirty(&self) -> bool {
        says_dirty(&self.state, &self.doc.transact())
    }

    /// Position of an edit, and whether it removes something there: insertions before a position come first.
    fn place(&self, txn: &impl ReadTxn, edit: &Edit) -> (usize, bool) {
        let of = |cell: &str| self.position_of(cell).unwrap_or_default();
        match edit {
            Edit::InsertCells { at, .. } => (*at, false),
            Edit::InsertBefore { cell, .. } => (of(cell), false),
            Edit::InsertAfter { cell, .. } => (of(cell) + 1, false),
            Edit::AppendCells { .. } => (self.cell_count(), false),
            Edit::SetSource { cell, .. }
            | Edit::SetKind { cell, .. }
            | Edit::DeleteBlank { cell }
            | Edit::ReplaceText { cell: Some(cell), .. }
            | Edit::Splice { cell: Some(cell), .. } => (of(cell), true),
            Edit::SpliceText { position, delete, .. } => (*position, *delete > 0),
            Edit::AppendText { .. } => (self.source.get_string(txn).chars().count(), false),
            Edit::DeleteCells { .. }
            | Edit::MoveCells { .. }
            | Edit::ClearOutputs { .. }
            | Edit::ReplaceText { cell: None, .. }
            | Edit::SetNotebook { .. }
            | Edit::SetText { .. }
            | Edit::Splice { cell: None, .. } => (0, true),
        }
    }

    fn perform(&mut self, txn: &mut TransactionMut<'_>, at: usize, edit: &Edit) {
        match edit {
            Edit::InsertCells { cells, .. }
            | Edit::InsertBefore { cells, .. }
            | Edit::InsertAfter { cells, .. }
            | Edit::AppendCells { cells } => self.insert(txn, at, cells),
            Edit::SetSource { cell, source } => self.set_source(txn, cell, source),
            Edit::SetKind { cell, kind, source } => self.set_kind(txn, cell, *kind, source.as_deref()),
            Edit::DeleteCells { cells } => self.delete(txn, cells),
            Edit::DeleteBlank { cell } => {
                let source = self.map(txn, cell).map(|map| text_of(&map, txn, "source"));
                if source.is_some_and(|source| source.is_empty()) {
                    self.delete(txn, std::slice::from_ref(cell));
                }
            }
            Edit::MoveCells { cells, before } => self.move_cells(txn, cells, before.as_deref()),
            Edit::ClearOutputs { cells } => self.clear_outputs_of(txn, cells),
            Edit::SetNotebook { metadata, cells } => {
                self.set_metadata(txn, metadata);
                self.set_cells(txn, cells);
            }
            Edit::SpliceText { delete, insert, .. } => self.splice_at(txn, at, *delete, insert),
            Edit::AppendText { text } => self.splice_at(txn, at, 0, text),
            Edit::SetText { text } => {
                let old = self.source.get_string(txn);
                self.splice_text(txn, &old, &splice::between(&old, text));
            }
            Edit::ReplaceText { cell, old, new, all } => self.replace(txn, cell.as_deref(), (old, new), *all),
            Edit::Splice { cell: None, splices } => {
                let old = self.source.get_string(txn);
                self.splice_text(txn, &old, splices);
            }
            Edit::Splice {
                cell: Some(cell),
                splices,
            } => self.splice_source(txn, cell, splices),
        }
    }

    fn splice_at(&mut self, txn: &mut TransactionMut<'_>, at: usize, delete: usize, insert: &str) {
        let old = self.source.get_string(txn);
        if let Some(splice) = splice::at_code_points(&old, at, delete, insert) {
            self.splice_text(txn, &old, &[splice]);
        }
    }

    pub(crate) fn insert(&mut self, txn: &mut TransactionMut<'_>, at: usize, cells: &[NewCell]) {
        let after = at
            .checked_sub(1)
            .and_then(|index| self.order.get(index))
            .map(|entry| entry.id.to_string());
        // One that they replace will not be there.
        let stays = |entry: &&CellEntry| cells.iter().all(|cell| *cell.id != *entry.id);
        let before = self.order.iter().skip(at).find(stays).map(|entry| entry.id.to_string());
        self.insert_between(txn, at, (after, before), cells);
    }

    pub(super) fn insert_between(
        &mut self,
        txn: &mut TransactionMut<'_>,
        at: usize,
        (after, before): (Option<String>, Option<String>),
        cells: &[NewCell],
    ) {
        for (offset, cell) in cells.iter().enumerate() {
            self.cells
                .insert(txn, u32::try_from(at + offset).unwrap_or(u32::MAX), prelim(cell));
        }
        if let Some(last) = cells.last() {
            let whole = 0..splice::utf16_len(&last.source);
            self.selection = Some(Selection::of_edit(Some(&last.id), vec![whole]));
            self.journal.inserted(after, before, cells);
        }
    }

    pub(crate) fn set_source(&mut self, txn: &mut TransactionMut<'_>, cell: &str, source: &str) {
        let Some(map) = self.map(txn, cell) else { return };
        let Some(text) = source_of(&map, txn) else {
            // A plain string where shared text belongs cannot be edited by two people; replacing it mends that.
            map.insert(txn, "source", yrs::TextPrelim::new(source));
            return;
        };
        let splices = splice::between(&text.get_string(txn), source);
        self.splice_source(txn, cell, &splices);
    }

    pub(super) fn splice_source(&mut self, txn: &mut TransactionMut<'_>, cell: &str, splices: &[Splice]) {
        let Some(text) = self.map(txn, cell).and_then(|map| source_of(&map, txn)) else {
            return;
        };
        if !splices.is_empty() {
            let old = text.get_string(txn);
            apply_splices(&text, txn, splices);
            self.selection = Some(Selection::of_edit(Some(cell), splice::spans(splices)));
            self.journal.changed(cell, &old, &text.get_string(txn));
        }
    }

    /// Replaces what is found in a text. What is not found was refused before.
    fn replace(&mut self, txn: &mut TransactionMut<'_>, cell: Option<&str>, (old, new): (&str, &str), all: bool) {
        let now = match cell {
            Some(cell) => self.source_in(txn, cell).unwrap_or_default(),
            None => self.source.get_string(txn),
        };
        let Ok(splices) = replacing(&now, old, new, all) else {
            return;
        };
        match cell {
            Some(cell) => self.splice_source(txn, cell, &splices),
            None => self.splice_text(txn, &now, &splices),
        }
    }

    /// Makes a cell one of another kind, as JupyterLab does it: by another cell in its place. It keeps its id.
    fn set_kind(&mut self, txn: &mut TransactionMut<'_>, id: &str, kind: CellKind, source: Option<&str>) {
        let Some((at, old)) = self.position_of(id).and_then(|at| Some((at, self.read_in(txn, at)?))) else {
            return;
        };
        let source = source.unwrap_or(&old.source);
        if old.cell_type == kind.as_str() {
            return self.set_source(txn, id, source);
        }
        let mut new = NewCell::new(kind, source);
        id.clone_into(&mut new.id);
        new.metadata = old.metadata;
        new.attachments = old.attachments.filter(|_| kind != CellKind::Code);
        self.delete(txn, &[id.to_owned()]);
        self.insert(txn, at, &[new]);
    }

    pub(crate) fn delete(&mut self, txn: &mut TransactionMut<'_>, cells: &[String]) {
        let mut positions: Vec<usize> = cells.iter().filter_map(|cell| self.position_of(cell)).collect();
        positions.sort_unstable();
        positions.dedup();
        for position in positions.iter().rev() {
            let id = self.order[*position].id.to_string();
            let source = self
                .map(txn, &id)
                .map(|map| text_of(&map, txn, "source"))
                .unwrap_or_default();
            self.cells.remove(txn, u32::try_from(*position).unwrap_or(u32::MAX));
            self.journal.deleted(&id, &source);
        }
    }

    pub(crate) fn set_metadata(&mut self, txn: &mut TransactionMut<'_>, metadata: &Value) {
        if let Some(old) = set_metadata(&self.meta, txn, metadata) {
            self.journal.metadata_changed(old, metadata.clone());
        }
    }
}

fn says_dirty(state: &MapRef, txn: &impl ReadTxn) -> bool {
    matches!(state.get(txn, "dirty"), Some(Out::Any(Any::Bool(true))))
}
