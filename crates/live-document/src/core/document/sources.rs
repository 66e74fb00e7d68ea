//! What edits made of sources and texts, for those who did them.

use std::collections::HashMap;

use super::{Document, Edit};

/// A source, or the text of a document, that an edit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceChange {
    /// Nothing for a text document.
    pub cell: Option<String>,
    /// Where the cell is, or was if it is deleted.
    pub position: usize,
    /// Nothing for a new cell.
    pub before: Option<String>,
    /// Nothing for a cell that is deleted.
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

struct Source {
    cell: Option<String>,
    position: usize,
    text: String,
}

impl Document {
    pub(crate) fn touched_by(&self, edits: &[Edit]) -> Touched {
        let subjects = self.subjects(edits);
        let before = self.sources_of(&subjects);
        Touched { subjects, before }
    }

    /// What edits have changed, in the order of the document; what is gone comes last.
    pub(crate) fn changes_since(&self, touched: Touched) -> Vec<SourceChange> {
        let mut before: HashMap<Option<String>, Source> = touched
            .before
            .into_iter()
            .map(|source| (source.cell.clone(), source))
            .collect();
        let mut changes = Vec::new();
        for now in self.sources_of(&touched.subjects) {
            let was = before.remove(&now.cell).map(|source| source.text);
            if was.as_ref() != Some(&now.text) {
                changes.push(SourceChange {
                    cell: now.cell,
                    position: now.position,
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
        let at = |position: usize| {
            let cell = self.id_at(position)?.to_owned();
            let text = self.source(&cell)?;
            Some(Source {
                cell: Some(cell),
                position,
                text,
            })
        };
        let mut sources: Vec<Source> = match subjects {
            Subjects::Text => vec![Source {
                cell: None,
                position: 0,
                text: self.text(),
            }],
            Subjects::Cells(ids) => ids.iter().filter_map(|id| at(self.position_of(id)?)).collect(),
            Subjects::AllCells => {
                let cells = self.cells(0..self.cell_count()).into_iter();
                let source = |(position, cell): (usize, crate::Cell)| Source {
                    cell: Some(cell.id),
                    position,
                    text: cell.source,
                };
                cells.map(source).collect()
            }
        };
        sources.sort_by_key(|source| source.position);
        sources
    }
}
