//! Applying a delta of history to a document: in one transaction, touching only what it is about.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use history::{Content, Delta, Hash, Operation, Outputs, Unfitting, VersionId};
use serde_json::Value;
use yrs::{Array, Transact, TransactionMut};

use super::{
    super::{CellKind, NewCell, notebook::source_of},
    Applied, Author, Document, OBSERVER, splice,
};

/// A delta with what is needed to apply it.
pub(crate) struct Restoration<'a> {
    pub(crate) delta: &'a Delta,
    /// The content of the document now.
    pub(crate) now: &'a Content,
    pub(crate) undoes: &'a [VersionId],
    /// Outputs that are kept.
    pub(crate) outputs: &'a HashMap<Hash, Vec<Value>>,
}

impl Document {
    /// Applies a delta that was made for what the document says now. Also returns the cells whose outputs are not kept.
    pub(crate) fn apply_delta(
        &mut self,
        author: &Arc<str>,
        restoration: &Restoration<'_>,
    ) -> Result<(Applied, Vec<Arc<str>>), Unfitting> {
        let wanted = restoration.delta.apply(restoration.now)?;
        self.journal.set_author(Some(author));
        let author = Author::Local(Arc::clone(author));
        let doc = self.begin();
        Ok(self.editing(restoration.undoes, |document| {
            let mut txn = doc.transact_mut_with(OBSERVER);
            let missing = document.perform_delta(&mut txn, restoration, &wanted);
            (document.finish(txn, &author), missing)
        }))
    }

    fn perform_delta(
        &mut self,
        txn: &mut TransactionMut<'_>,
        restoration: &Restoration<'_>,
        wanted: &Content,
    ) -> Vec<Arc<str>> {
        let Arranged { remade, mut missing } = self.arrange(txn, restoration, wanted);
        let is_remade = |operation: &&Operation| operation.cell().is_some_and(|cell| remade.contains(cell));
        for operation in restoration.delta.operations.iter().filter(|one| !is_remade(one)) {
            match operation {
                Operation::Text { splices } => {
                    let old = self.text_in(txn);
                    self.splice_text(txn, &old, &splice::in_units(&old, splices));
                }
                Operation::Metadata { cell: None, new, .. } => self.set_metadata(txn, &new.value()),
                Operation::Source { cell, splices } => self.splice_cell(txn, cell, splices, wanted),
                Operation::Metadata {
                    cell: Some(cell), new, ..
                } => self.set_cell_metadata(txn, cell, &new.value()),
                Operation::Attachments { cell, new, .. } => {
                    let attachments = new.as_ref().map(history::Json::value);
                    self.set_attachments(txn, cell, attachments.as_ref());
                }
                Operation::Outputs { cell, new, .. } => {
                    let kept = kept(new.0, restoration.outputs);
                    match kept {
                        Some(outputs) => self.set_outputs(txn, cell, &outputs, new.1),
                        None => missing.push(Arc::clone(cell)),
                    }
                }
                Operation::Insert { .. }
                | Operation::Delete { .. }
                | Operation::Move { .. }
                | Operation::Kind { .. } => {}
            }
        }
        missing
    }

    /// Changes a source that stands in its place.
    fn splice_cell(
        &mut self,
        txn: &mut TransactionMut<'_>,
        cell: &Arc<str>,
        splices: &[history::Splice],
        wanted: &Content,
    ) {
        let Some(map) = self.map(txn, cell) else { return };
        match source_of(&map, txn) {
            Some(_) => {
                let old = self.source_in(txn, cell).unwrap_or_default();
                self.splice_source(txn, cell, &splice::in_units(&old, splices));
            }
            None => {
                let source = wanted.cell(cell).map(|cell| Arc::clone(&cell.source));
                self.set_source(txn, cell, &source.unwrap_or_default());
            }
        }
    }

    /// Brings the cells into their order: those that are deleted, moved or of another kind go, and come back where they belong,
    /// as they are wanted.
    fn arrange(&mut self, txn: &mut TransactionMut<'_>, restoration: &Restoration<'_>, wanted: &Content) -> Arranged {
        let leaving = leaving(&restoration.delta.operations);
        let is_inserted = |operation: &Operation| matches!(operation, Operation::Insert { .. });
        if leaving.is_empty() && !restoration.delta.operations.iter().any(is_inserted) {
            return Arranged::default();
        }
        let copies: HashMap<&String, (NewCell, String)> = leaving
            .iter()
            .filter(|id| wanted.cell(id).is_some())
            .filter_map(|id| Some((id, self.copy_of(txn, id)?)))
            .collect();
        let mut order: Vec<String> = self.order.iter().map(|entry| entry.id.to_string()).collect();
        for id in &leaving {
            // Of several cells with one id the first is meant.
            if let Some(at) = order.iter().position(|other| other == id) {
                order.remove(at);
            }
        }
        self.delete(txn, &leaving);
        let mut arranged = Arranged {
            remade: leaving.iter().cloned().collect(),
            missing: Vec::new(),
        };
        let mut at = 0;
        for (index, cell) in wanted.cells().iter().enumerate() {
            if let Some(place) = order[at..].iter().position(|id| **id == *cell.id) {
                at += place + 1;
                continue;
            }
            let copy = copies.get(&cell.id.to_string());
            let new = remake(cell, copy.map(|(copy, _)| copy), restoration, &mut arranged.missing);
            let after = index.checked_sub(1).map(|before| wanted.cells()[before].id.to_string());
            let before = wanted.cells().get(index + 1).map(|next| next.id.to_string());
            self.insert_between(txn, at, (after, before), std::slice::from_ref(&new));
            if let Some((_, state)) = copy {
                self.show_state(txn, at, state);
            }
            order.insert(at, new.id);
            at += 1;
        }
        arranged
    }

    /// Shows a cell that was moved while it runs as running.
    fn show_state(&self, txn: &mut TransactionMut<'_>, at: usize, state: &str) {
        if !state.is_empty()
            && let Some(yrs::Out::YMap(map)) = self.cells.get(txn, u32::try_from(at).unwrap_or(u32::MAX))
        {
            yrs::Map::insert(&map, txn, "execution_state", state);
        }
    }
}

/// Outcome for the cells.
#[derive(Default)]
struct Arranged {
    /// Those that went, and came back as they are wanted if they did.
    remade: HashSet<String>,
    /// Those that came without their outputs.
    missing: Vec<Arc<str>>,
}

/// The cells that cannot stay as they are, each once.
fn leaving(operations: &[Operation]) -> Vec<String> {
    let mut leaving: Vec<String> = operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Delete { cell, .. } => Some(cell.id.to_string()),
            Operation::Kind { cell, .. } | Operation::Move { cell, .. } => Some(cell.to_string()),
            _ => None,
        })
        .collect();
    leaving.sort_unstable();
    leaving.dedup();
    leaving
}

/// A cell as it is wanted, with its outputs if they are known: history has them, or the document while they stay the same.
fn remake(
    cell: &history::Cell,
    copy: Option<&NewCell>,
    restoration: &Restoration<'_>,
    missing: &mut Vec<Arc<str>>,
) -> NewCell {
    let kind = CellKind::parse(cell.kind.as_str()).unwrap_or(CellKind::Raw);
    let mut new = NewCell {
        id: cell.id.to_string(),
        metadata: cell.metadata.value(),
        attachments: cell.attachments.as_ref().map(history::Json::value),
        ..NewCell::new(kind, &*cell.source)
    };
    if kind != CellKind::Code {
        return new;
    }
    let is_set = restoration
        .delta
        .operations
        .iter()
        .any(|operation| matches!(operation, Operation::Outputs { cell: set, .. } if *set == cell.id));
    if let Some(copy) = copy.filter(|copy| copy.kind == kind && !is_set) {
        new.outputs.clone_from(&copy.outputs);
        (new.execution_count, new.trusted) = (copy.execution_count, copy.trusted);
        return new;
    }
    match kept(cell.outputs, restoration.outputs) {
        Some(outputs) => {
            // Outputs that come from anywhere but a run are not trusted.
            new.trusted = outputs.is_empty();
            (new.outputs, new.execution_count) = (outputs, cell.execution_count);
        }
        None => missing.push(Arc::clone(&cell.id)),
    }
    new
}

/// Outputs as nbformat has them, if they are known.
fn kept(outputs: Outputs, kept: &HashMap<Hash, Vec<Value>>) -> Option<Vec<Value>> {
    match outputs {
        Outputs::None => Some(Vec::new()),
        Outputs::Kept(hash) => kept.get(&hash).cloned(),
        Outputs::Omitted => None,
    }
}
