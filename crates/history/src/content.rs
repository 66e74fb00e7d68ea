//! A document at one moment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Json, Outputs,
    encoding::{self, DecodeError},
};

/// The content of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    #[serde(rename = "n")]
    Notebook(Notebook),
    #[serde(rename = "t")]
    Text(Arc<str>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notebook {
    #[serde(rename = "m")]
    pub metadata: Json,
    /// Shared with earlier and later contents, as far as they are the same.
    #[serde(rename = "c")]
    pub cells: Vec<Arc<Cell>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    #[serde(rename = "i")]
    pub id: Arc<str>,
    #[serde(rename = "k")]
    pub kind: CellKind,
    #[serde(rename = "s")]
    pub source: Arc<str>,
    #[serde(rename = "m")]
    pub metadata: Json,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Json>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub execution_count: Option<i64>,
    #[serde(rename = "o", default)]
    pub outputs: Outputs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CellKind {
    #[serde(rename = "c")]
    Code,
    #[serde(rename = "m")]
    Markdown,
    /// Raw cells, and those of a kind that nbformat does not know.
    #[serde(rename = "r")]
    Raw,
}

impl Content {
    /// Bytes of its texts.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Notebook(notebook) => notebook.cells.iter().map(|cell| cell.source.len()).sum(),
        }
    }

    pub fn cell(&self, id: &str) -> Option<&Arc<Cell>> {
        self.cells().iter().find(|cell| *cell.id == *id)
    }

    /// The cells in their order; none of a text document.
    pub fn cells(&self) -> &[Arc<Cell>] {
        match self {
            Self::Notebook(notebook) => &notebook.cells,
            Self::Text(_) => &[],
        }
    }

    /// Returns whether both are the same but for what runs write.
    pub fn is_same_but_for_runs(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => one == other,
            (Self::Notebook(one), Self::Notebook(other)) => {
                one.metadata.is_same_without(&other.metadata, RUN_METADATA)
                    && one.cells.len() == other.cells.len()
                    && one
                        .cells
                        .iter()
                        .zip(&other.cells)
                        .all(|(one, other)| one.is_same_but_for_runs(other))
            }
            _ => false,
        }
    }

    /// The form in which it is stored.
    pub fn encode(&self) -> Vec<u8> {
        encoding::encode(self)
    }

    /// Reads what [`Self::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        encoding::decode(bytes)
    }
}

/// Members of a notebook's metadata that come from its kernel, and not from an author.
pub(crate) const RUN_METADATA: &[&str] = &["kernelspec", "language_info", "widgets"];
/// Members of a cell's metadata that runs write.
pub(crate) const RUN_CELL_METADATA: &[&str] = &["execution", "ExecuteTime"];

impl Cell {
    pub(crate) fn is_same_but_for_runs(&self, other: &Self) -> bool {
        self.id == other.id
            && self.kind == other.kind
            && self.source == other.source
            && self.metadata.is_same_without(&other.metadata, RUN_CELL_METADATA)
            && self.attachments == other.attachments
    }
}

impl CellKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }

    pub fn parse(name: &str) -> Self {
        match name {
            "code" => Self::Code,
            "markdown" => Self::Markdown,
            _ => Self::Raw,
        }
    }
}
