//! A notebook's cells in the words of the resources.

use live_document::Cell;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Opened, sanitize::sanitized};
use crate::srcbook::{Book, BookCell, BookCellKind, Nameable, extension, file_names, mime_type};

/// Bytes of the shortest beginning of an id by which a cell is found.
const MIN_BEGINNING: usize = 4;

/// The cells of one moment, and the language they are in.
pub(super) struct Cells {
    pub(super) revision: String,
    pub(super) language: String,
    pub(super) cells: Vec<Cell>,
    /// Names of the cells as files, in their order.
    names: Vec<String>,
}

/// Metadata of a cell, told beside its source.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CellMetadata {
    pub(super) cell_id: String,
    pub(super) cell_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) language: Option<String>,
    pub(super) filename: String,
    pub(super) status: String,
    pub(super) has_outputs: bool,
}

impl Cells {
    pub(super) fn of(opened: &Opened) -> Self {
        let Ok(looked) = opened
            .room
            .cells(|order| Ok::<_, std::convert::Infallible>((0..order.count()).collect()));
        let cells = looked.cells.into_iter().map(|(_, cell)| cell).collect();
        Self::new(looked.revision, language(&opened.room.metadata()), cells)
    }

    fn new(revision: String, language: String, cells: Vec<Cell>) -> Self {
        let names = file_names(&cells.iter().map(nameable).collect::<Vec<_>>(), &language);
        Self {
            revision,
            language,
            cells,
            names,
        }
    }

    /// The cell of an id, or of the beginning of one that only it has.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        let exact = self.cells.iter().position(|cell| cell.id == id);
        exact.or_else(|| {
            let begins = |cell: &Cell| id.len() >= MIN_BEGINNING && cell.id.starts_with(id);
            let first = self.cells.iter().position(begins)?;
            let is_only = !self.cells[first + 1..].iter().any(begins);
            is_only.then_some(first)
        })
    }

    /// The cell of a file, which is called after its own name or after its id.
    pub(super) fn position_of_file(&self, name: &str) -> Option<usize> {
        let by_name = self.names.iter().position(|known| known == name);
        by_name.or_else(|| {
            let is_it = |cell: &Cell| format!("{}.{}", cell.id, self.extension(cell)) == name;
            self.cells.iter().position(is_it)
        })
    }

    pub(super) fn metadata_of(&self, index: usize) -> CellMetadata {
        let cell = &self.cells[index];
        let status = match cell.execution_state.as_str() {
            "" => "idle",
            state => state,
        };
        CellMetadata {
            cell_id: cell.id.clone(),
            cell_type: cell.cell_type.clone(),
            language: (cell.cell_type == "code").then(|| self.language.clone()),
            filename: self.names[index].clone(),
            status: status.to_owned(),
            has_outputs: !cell.outputs.is_empty(),
        }
    }

    pub(super) fn mime_type(&self, index: usize) -> &'static str {
        match BookCellKind::of(&self.cells[index].cell_type) {
            BookCellKind::Code => mime_type(&self.language),
            BookCellKind::Markdown => "text/markdown",
            BookCellKind::Raw => "text/plain",
        }
    }

    /// All cells as JSON, outputs included.
    pub(super) fn to_json(&self) -> Value {
        let shown = |index: usize| {
            let cell = &self.cells[index];
            let metadata = self.metadata_of(index);
            let mut shown = json!({
                "id": cell.id,
                "type": cell.cell_type,
                "source": cell.source,
                "filename": metadata.filename,
                "metadata": cell.metadata,
            });
            if let Some(language) = metadata.language {
                shown["language"] = language.into();
                shown["status"] = metadata.status.into();
                shown["executionCount"] = cell.execution_count.clone();
                shown["outputs"] = cell.outputs.iter().cloned().map(sanitized).collect();
            }
            shown
        };
        (0..self.cells.len()).map(shown).collect()
    }

    pub(super) fn into_book(self, title: &str) -> Book {
        Book {
            title: title.to_owned(),
            language: self.language,
            cells: self.cells.into_iter().map(book_cell).collect(),
        }
    }

    fn extension(&self, cell: &Cell) -> &'static str {
        match BookCellKind::of(&cell.cell_type) {
            BookCellKind::Code => extension(&self.language),
            BookCellKind::Markdown => "md",
            BookCellKind::Raw => "txt",
        }
    }
}

fn nameable(cell: &Cell) -> Nameable<'_> {
    let kind = BookCellKind::of(&cell.cell_type);
    Nameable::new(kind, Some(&cell.id), cell.metadata.as_object())
}

fn book_cell(cell: Cell) -> BookCell {
    BookCell {
        id: Some(cell.id),
        kind: BookCellKind::of(&cell.cell_type),
        source: cell.source,
        metadata: cell.metadata.as_object().cloned().unwrap_or_default(),
    }
}

/// The template that a notebook was made from.
pub(super) fn pattern(metadata: &Value) -> Option<String> {
    let pattern = metadata.pointer("/srcbook/pattern")?;
    pattern.as_str().map(str::to_owned)
}

/// The language of a notebook; Python where nothing says otherwise, as in Jupyter.
fn language(metadata: &Value) -> String {
    let named = |pointer: &str| {
        metadata
            .pointer(pointer)
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
    };
    let language = named("/language_info/name").or_else(|| named("/kernelspec/language"));
    language.unwrap_or("python").to_owned()
}
