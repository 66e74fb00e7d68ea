//! The whole content of a document as a value, which can be kept and compared.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cell, Edit, NewCell};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentContent {
    Notebook { metadata: Value, cells: Vec<Cell> },
    Text(String),
}

impl DocumentContent {
    /// The cells of a notebook; a text has none.
    pub fn cells(&self) -> &[Cell] {
        match self {
            Self::Notebook { cells, .. } => cells,
            Self::Text(_) => &[],
        }
    }

    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells().iter().find(|cell| cell.id == id)
    }

    /// The text of a plain document; a notebook has none.
    pub fn text(&self) -> &str {
        match self {
            Self::Notebook { .. } => "",
            Self::Text(text) => text,
        }
    }

    /// The edit that makes this the content of a document, touching only what differs.
    pub(crate) fn into_edit(self) -> Edit {
        match self {
            Self::Text(text) => Edit::SetText { text },
            Self::Notebook { metadata, cells } => Edit::SetNotebook {
                metadata,
                cells: cells.iter().map(new_cell).collect(),
            },
        }
    }
}

/// A cell to be made anew. Nobody knows who made its outputs, so that JupyterLab must sanitize them.
fn new_cell(cell: &Cell) -> NewCell {
    NewCell {
        trusted: cell.outputs.is_empty(),
        ..NewCell::from(cell)
    }
}
