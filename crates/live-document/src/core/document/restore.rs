//! What a restarted Jupyter has taken out of a document. It begins with what it had noted down of it, some of which
//! came too late to be noted, and then makes that the same as the file, which may be older or written by half. What
//! everybody in the room had before is brought back.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use yrs::TransactionMut;

use super::{
    super::{
        Cell, CellKind, CellWrite, NewCell, OutputsChange, RunEnd,
        edit_journal::{EditJournal, Subject},
    },
    Document,
    cell_identity::Placed,
    splice,
};

/// What a document held at one moment.
pub(crate) struct Snapshot {
    text: String,
    pub(super) cells: Vec<Placed>,
}

impl Snapshot {
    /// The same for another document, in which somebody else may have made what has the same number.
    pub(crate) fn of_another_document(mut self) -> Self {
        for cell in &mut self.cells {
            cell.made = None;
        }
        self
    }
}

impl Document {
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            text: self.text(),
            cells: self.placed(),
        }
    }

    /// Brings back what is missing of what was held, and tells how many places that took. What others have added
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
    /// edits; nobody else has changed those. Returns what was restored.
    ///
    /// Merging alone does not bring them back: what the server had noted down of an edit it has taken out again. Others who
    /// came back before us may have brought back some of our edits and not all; then what stands there has a state of ours
    /// in it, and nothing that ours has not.
    pub(crate) fn restore_changed(
        &mut self,
        unsaved: &EditJournal,
        before: &Snapshot,
        theirs: &Self,
    ) -> HashSet<Subject> {
        self.journal.set_author(None);
        let mut restored = HashSet::new();
        for (subject, states) in unsaved.states() {
            let is_set_back = |theirs: &str, ours: &str| {
                let keeps_a_state = states.iter().any(|state| is_subsequence(state, theirs));
                states.contains(theirs) || keeps_a_state && is_subsequence(theirs, ours)
            };
            match &subject {
                Subject::Cell(id) => {
                    let ours = before.cells.iter().find(|placed| placed.cell.id == *id);
                    if let (Some(ours), Some(theirs)) = (ours, theirs.source(id))
                        && is_set_back(&theirs, &ours.cell.source)
                        && self.position_of(id).is_some()
                    {
                        self.redo(|document, txn| document.set_source(txn, id, &ours.cell.source));
                        restored.insert(subject);
                    }
                }
                Subject::Text if is_set_back(&theirs.text(), &before.text) => {
                    self.redo(|document, txn| document.restore_text(txn, &before.text));
                    restored.insert(subject);
                }
                Subject::Text | Subject::Metadata => {}
            }
        }
        restored
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

/// Whether a text has all characters of another, in their order.
fn is_subsequence(part: &str, whole: &str) -> bool {
    let mut rest = whole.chars();
    part.chars().all(|wanted| rest.any(|character| character == wanted))
}
