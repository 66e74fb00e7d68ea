//! Changes of sources and texts by edits, for the callers who made them.

use std::{collections::HashMap, sync::Arc};

use yrs::{Text, Transact};

use super::{super::changes::CallingLine, Document, Edit, text_of};

/// A source, or the text of a document, that an edit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceChange {
    /// None for a text document.
    pub cell: Option<String>,
    /// Position of the cell, or its last one if it is deleted.
    pub position: usize,
    /// Code, markdown or raw.
    pub kind: String,
    /// Kind before, if it was another one.
    pub old_kind: Option<String>,
    /// None for a new cell.
    pub before: Option<String>,
    /// None for a cell that is deleted.
    pub after: Option<String>,
}

/// Sources that edits are about, before they are done.
pub(crate) struct Touched {
    subjects: Subjects,
    before: Vec<Source>,
}

enum Subjects {
    Text,
    Cells(Vec<String>),
    AllCells,
}

/// A source with its place, or the text of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Nothing for a text document.
    pub cell: Option<String>,
    pub position: usize,
    pub kind: String,
    pub text: String,
}

/// Longer texts are not searched for names at every stroke of a key.
const MAX_SEARCHED: u32 = 1_000_000;

impl Document {
    /// The lines of these cells, or of the text, in which somebody may be called by name.
    pub(crate) fn calling(&self, cells: &[Arc<str>]) -> Vec<CallingLine> {
        let mut lines = Vec::new();
        let txn = self.doc.transact();
        if !self.is_notebook() {
            if self.source.len(&txn) <= MAX_SEARCHED {
                CallingLine::add_all(&"".into(), &self.text_in(&txn), &mut lines);
            }
            return lines;
        }
        for cell in cells {
            let source = self.source_in(&txn, cell).unwrap_or_default();
            CallingLine::add_all(cell, &source, &mut lines);
        }
        lines
    }

    /// The same of all cells.
    pub(crate) fn all_calling(&self) -> Vec<CallingLine> {
        let cells: Vec<Arc<str>> = self.order.iter().map(|entry| Arc::clone(&entry.id)).collect();
        self.calling(&cells)
    }

    pub(crate) fn touched_by(&self, edits: &[Edit]) -> Touched {
        let subjects = self.subjects(edits);
        let before = self.sources_of(&subjects);
        Touched { subjects, before }
    }

    /// Changes by edits, in the order of the document; deleted cells come last.
    pub(crate) fn changes_since(&self, touched: Touched) -> Vec<SourceChange> {
        let mut before: HashMap<Option<String>, Source> = touched
            .before
            .into_iter()
            .map(|source| (source.cell.clone(), source))
            .collect();
        let mut changes = Vec::new();
        for now in self.sources_of(&touched.subjects) {
            let was = before.remove(&now.cell);
            let old_kind = was
                .as_ref()
                .map(|was| &was.kind)
                .filter(|kind| **kind != now.kind)
                .cloned();
            let was = was.map(|was| was.text);
            if old_kind.is_some() || was.as_ref() != Some(&now.text) {
                changes.push(SourceChange {
                    cell: now.cell,
                    position: now.position,
                    kind: now.kind,
                    old_kind,
                    before: was,
                    after: Some(now.text),
                });
            }
        }
        let mut gone: Vec<Source> = before.into_values().collect();
        gone.sort_by_key(|source| source.position);
        changes.extend(gone.into_iter().map(|source| SourceChange {
            cell: source.cell,
            position: source.position,
            kind: source.kind,
            old_kind: None,
            before: Some(source.text),
            after: None,
        }));
        changes
    }

    fn subjects(&self, edits: &[Edit]) -> Subjects {
        if !self.is_notebook() {
            return Subjects::Text;
        }
        let mut ids = Vec::new();
        for edit in edits {
            match edit {
                Edit::InsertCells { cells, .. }
                | Edit::InsertBefore { cells, .. }
                | Edit::InsertAfter { cells, .. }
                | Edit::AppendCells { cells } => ids.extend(cells.iter().map(|cell| cell.id.clone())),
                Edit::SetSource { cell, .. } | Edit::SetKind { cell, .. } | Edit::DeleteBlank { cell } => {
                    ids.push(cell.clone());
                }
                Edit::ReplaceText { cell, .. } | Edit::Splice { cell, .. } => ids.extend(cell.clone()),
                Edit::DeleteCells { cells } => ids.extend(cells.iter().cloned()),
                Edit::SetNotebook { .. } => return Subjects::AllCells,
                Edit::MoveCells { .. }
                | Edit::ClearOutputs { .. }
                | Edit::SpliceText { .. }
                | Edit::AppendText { .. }
                | Edit::SetText { .. } => {}
            }
        }
        Subjects::Cells(ids)
    }

    fn sources_of(&self, subjects: &Subjects) -> Vec<Source> {
        let mut sources: Vec<Source> = match subjects {
            Subjects::Text => vec![Source {
                cell: None,
                position: 0,
                kind: String::new(),
                text: self.text(),
            }],
            Subjects::Cells(ids) => self.sources(ids.iter().filter_map(|id| self.position_of(id))),
            Subjects::AllCells => self.sources(0..self.cell_count()),
        };
        sources.sort_by_key(|source| source.position);
        sources
    }

    /// The sources of cells, without anything else that cells have.
    pub(crate) fn sources(&self, positions: impl IntoIterator<Item = usize>) -> Vec<Source> {
        let txn = self.doc.transact();
        let at = |position: usize| {
            let entry = self.order.get(position)?;
            let map = entry.hook.as_ref()?.get(&txn)?;
            Some(Source {
                cell: Some(entry.id.to_string()),
                position,
                kind: text_of(&map, &txn, "cell_type"),
                text: text_of(&map, &txn, "source"),
            })
        };
        positions.into_iter().filter_map(at).collect()
    }
}
