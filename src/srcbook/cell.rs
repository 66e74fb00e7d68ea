//! A notebook as far as markdown can say it: no outputs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BookCellKind {
    Code,
    #[default]
    Markdown,
    Raw,
}

impl BookCellKind {
    /// The kind of a cell type; what is neither code nor markdown is raw.
    pub fn of(cell_type: &str) -> Self {
        match cell_type {
            "code" => Self::Code,
            "markdown" => Self::Markdown,
            _ => Self::Raw,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct BookCell {
    /// Id of the cell; none in what people wrote by hand.
    pub id: Option<String>,
    pub kind: BookCellKind,
    pub source: String,
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    pub title: String,
    pub language: String,
    pub cells: Vec<BookCell>,
}

/// Content of a file's first comment.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Header {
    #[serde(default)]
    pub(super) language: String,
    /// The markdown that follows is this cell, its heading included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cell: Option<Marker>,
    /// The heading that follows belongs to no cell.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) untitled: bool,
}

/// Comment on a cell, beside its source.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Marker {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    #[serde(default, rename = "type", skip_serializing_if = "is_markdown")]
    pub(super) kind: BookCellKind,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) metadata: Map<String, Value>,
    /// Lines that were changed, by number, as they really are.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) was: Map<String, Value>,
    /// The last line was added, to close a fence.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) closed: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_markdown(kind: &BookCellKind) -> bool {
    *kind == BookCellKind::Markdown
}
