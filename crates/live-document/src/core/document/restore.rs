//! Restoration of what a restarted Jupyter has removed from a document. It begins with the updates it had stored,
//! without the latest ones, and then makes that the same as the file, which may be older or written by half. What
//! everybody in the room had before is restored.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use yrs::{Transact, TransactionMut};

use super::{
    super::{
        Cell, CellKind, CellWrite, NewCell, OutputsChange, RunEnd,
        edit_journal::{EditJournal, Subject},
        notebook::text_of,
    },
    CellEntry, Document,
    cell_identity::Placed,
    discarded::is_still_there,
    splice,
};

/// Content of a document at one moment.
pub(crate) struct Snapshot {
    text: String,
    pub(super) cells: Vec<Placed>,
}

impl Snapshot {
    /// The same for another document, in which other changes may have the same numbers.
    pub(crate) fn of_another_document(mut self) -> Self {
        for cell in &mut self.cells {
            cell.made = None;
        }
        self
    }

    /// The sources of all cells, and the text of the document.
    fn texts(&self) -> impl Iterator<Item = (Subject, &str)> {
        let sources = self.cells.iter().map(|placed| &placed.cell);
        let sources = sources.map(|cell| (Subject::Cell(cell.id.clone()), cell.source.as_str()));
        sources.chain([(Subject::Text, self.text.as_str())])
    }

    /// The source of a cell, or the text of the document.
    pub(crate) fn text_of(&self, subject: &Subject) -> Option<&str> {
        match subject {
            Subject::Cell(id) => {
                let cell = self.cells.iter().find(|placed| placed.cell.id == *id)?;
                Some(&cell.cell.source)
            }
            Subject::Text => Some(&self.text),
            Subject::Metadata => None,
        }
    }
}

impl Document {
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            text: self.text(),
            cells: self.placed(),
        }
    }

    /// Restores what is missing of the content before, and returns the number of places changed. What others have added
    /// meanwhile stays, and what we had deleted goes again.
    pub(crate) fn restore(&mut self, held: &Snapshot) -> usize {
        self.journal.set_author(None);
        let mut changes = 0;
        if self.text() != held.text {
            self.redo(|document, txn| document.restore_text(txn, &held.text));
            changes += 1;
        }
        let present = self.cells(0..self.cell_count());
        // Of several with the same id the first counts.
        let present: HashMap<String, Cell> = present
            .into_iter()
            .rev()
            .map(|(_, cell)| (cell.id.clone(), cell))
            .collect();
        let mut seen = HashSet::new();
        let mut before: Option<&str> = None;
        let cells = held.cells.iter().map(|placed| &placed.cell);
        for cell in cells.filter(|cell| seen.insert(&*cell.id)) {
            let now = present.get(&cell.id);
            if !now.is_some_and(|now| is_same(now, cell)) {
                changes += 1;
                match now {
                    None => self.restore_cell(before, cell),
                    Some(now) => self.restore_parts(now, cell),
                }
            }
            before = Some(&cell.id);
        }
        let deleted: Vec<String> = self
            .journal
            .deletions()
            .filter(|(id, source)| {
                let is_back = present.get(*id).is_some_and(|now| now.source == **source);
                is_back && !seen.contains(*id)
            })
            .map(|(id, _)| id.to_owned())
            .collect();
        if !deleted.is_empty() {
            changes += deleted.len();
            self.redo(|document, txn| document.delete(txn, &deleted));
        }
        changes
    }

    /// Restores sources and texts that a restarted server has set back to what they were before, or between, our unsaved
    /// edits; nobody else has changed those. Returns which are as they should be. `theirs` is the server's document if this one
    /// was merged with it.
    pub(crate) fn restore_changed(
        &mut self,
        unsaved: &EditJournal,
        before: &Snapshot,
        theirs: Option<&Self>,
    ) -> HashSet<Subject> {
        self.journal.set_author(None);
        let mut restored = HashSet::new();
        let edits = unsaved.texts();
        let merged = self.texts();
        let theirs = theirs.map_or_else(|| merged.clone(), Self::texts);
        for (subject, ours) in before.texts() {
            let Some(merged) = merged.get(&subject) else {
                continue;
            };
            let edits = edits.get(&subject).map(Vec::as_slice).unwrap_or_default();
            let wanted = match theirs.get(&subject) {
                _ if merged == ours => ours,
                Some(theirs) if is_set_back(theirs, ours, edits) => ours,
                Some(theirs) if is_doubled(merged, theirs, ours, edits) => theirs,
                _ => continue,
            };
            if merged != wanted {
                self.redo(|document, txn| match &subject {
                    Subject::Cell(id) => document.set_source(txn, id, wanted),
                    Subject::Text | Subject::Metadata => document.restore_text(txn, wanted),
                });
            }
            restored.insert(subject);
        }
        restored
    }

    /// The sources of all cells, and the text of the document.
    fn texts(&self) -> HashMap<Subject, String> {
        let txn = self.doc.transact();
        let source = |entry: &CellEntry| {
            let cell = entry.hook.as_ref()?.get(&txn)?;
            Some((Subject::Cell(entry.id.to_string()), text_of(&cell, &txn, "source")))
        };
        let sources = self.order.iter().rev().filter_map(source);
        sources.chain([(Subject::Text, self.text_in(&txn))]).collect()
    }

    /// The source of a cell, or the text of the document.
    pub(super) fn text_of(&self, subject: &Subject) -> Option<String> {
        match subject {
            Subject::Cell(id) => self.source(id),
            Subject::Text => Some(self.text()),
            Subject::Metadata => None,
        }
    }

    fn restore_text(&mut self, txn: &mut TransactionMut<'_>, text: &str) {
        let now = self.text_in(txn);
        self.splice_text(txn, &now, &splice::between(&now, text));
    }

    fn restore_cell(&mut self, before: Option<&str>, cell: &Cell) {
        let at = before.and_then(|id| self.position_of(id)).map_or(0, |at| at + 1);
        let cell = NewCell::from(cell);
        self.redo(|document, txn| document.insert(txn, at, &[cell]));
    }

    fn restore_parts(&mut self, now: &Cell, cell: &Cell) {
        if now.source != cell.source {
            self.redo(|document, txn| document.set_source(txn, &cell.id, &cell.source));
        }
        if now.outputs != cell.outputs || now.execution_count != cell.execution_count {
            let write = CellWrite {
                begin: true,
                outputs: Some(OutputsChange {
                    push: cell.outputs.clone(),
                    ..OutputsChange::default()
                }),
                end: Some(RunEnd {
                    execution_count: cell.execution_count.as_i64(),
                }),
            };
            self.write_cell(&super::OBSERVER.into(), &cell.id, &write);
        }
    }
}

fn is_same(now: &Cell, held: &Cell) -> bool {
    now.source == held.source && now.outputs == held.outputs && now.execution_count == held.execution_count
}

impl From<&Cell> for NewCell {
    fn from(cell: &Cell) -> Self {
        Self {
            id: cell.id.clone(),
            kind: CellKind::parse(&cell.cell_type).unwrap_or(CellKind::Raw),
            source: cell.source.clone(),
            metadata: match &cell.metadata {
                Value::Object(members) => members.clone().into(),
                _ => Value::Object(serde_json::Map::new()),
            },
            outputs: cell.outputs.clone(),
            execution_count: cell.execution_count.as_i64(),
            attachments: cell.attachments.clone(),
            trusted: true,
        }
    }
}

/// Returns whether a restarted server has reset a text. Merging alone does not restore it: the server has deleted
/// what it had stored of an edit. Others who came back before us may have restored some of our edits and not all;
/// then the server's text contains a state of ours, and nothing that ours does not.
fn is_set_back(theirs: &str, ours: &str, edits: &[(&str, &str)]) -> bool {
    let mut states = edits.iter().flat_map(|(old, new)| [*old, *new]);
    let keeps_a_state = |theirs: &str| states.clone().any(|state| is_subsequence(state, theirs));
    let keeps_only_ours = keeps_a_state(theirs) && is_subsequence(theirs, ours);
    states.any(|state| state == theirs) || keeps_only_ours
}

/// Returns whether merging has duplicated something in a text: somebody restored it in a document of the server in
/// which it was missing, and we have it as it was restored before.
fn is_doubled(merged: &str, theirs: &str, ours: &str, edits: &[(&str, &str)]) -> bool {
    let has_all = edits.iter().all(|(old, new)| is_still_there(old, new, theirs));
    has_all && is_subsequence(ours, theirs) && is_subsequence(theirs, merged)
}

/// Returns whether a text has all characters of another, in their order.
fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars().all(|wanted| rest.any(|character| character == wanted))
}
