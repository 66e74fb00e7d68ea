//! Edits of a document, as data: they can be checked before anything changes, and repeated in a document that the
//! server has rebuilt.

use jupyter_client::counted;
use serde_json::Value;

use super::{refusal::Refused, splice::Splice};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    Code,
    Markdown,
    Raw,
}

impl CellKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [Self::Code, Self::Markdown, Self::Raw]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// A cell to be made. Its id is chosen beforehand, so that making it twice can be noticed.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCell {
    pub id: String,
    pub kind: CellKind,
    pub source: String,
    pub metadata: Value,
    pub outputs: Vec<Value>,
    pub execution_count: Option<i64>,
    /// Images and the like that its text refers to; code has none.
    pub attachments: Option<Value>,
    /// True if JupyterLab may run active content in its outputs. Existing outputs must come from a run.
    pub trusted: bool,
}

impl NewCell {
    pub fn new(kind: CellKind, source: impl Into<String>) -> Self {
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            kind,
            source: source.into(),
            metadata: Value::Object(serde_json::Map::new()),
            outputs: Vec::new(),
            execution_count: None,
            attachments: None,
            trusted: true,
        }
    }
}

/// One change. Several of them are applied in one transaction; positions mean the document before it. What is about
/// many places or the whole comes alone: `DeleteCells`, `MoveCells`, `SetNotebook`, `SetText`.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    InsertCells {
        at: usize,
        cells: Vec<NewCell>,
    },
    /// Before a cell, wherever it is by then.
    InsertBefore {
        cell: String,
        cells: Vec<NewCell>,
    },
    /// After a cell, wherever it is by then.
    InsertAfter {
        cell: String,
        cells: Vec<NewCell>,
    },
    /// After the last one there is by then.
    AppendCells {
        cells: Vec<NewCell>,
    },
    SetSource {
        cell: String,
        source: String,
    },
    /// Also sets the source, if that changes with the kind.
    SetKind {
        cell: String,
        kind: CellKind,
        source: Option<String>,
    },
    DeleteCells {
        cells: Vec<String>,
    },
    /// Deletes a cell if it is still empty.
    DeleteBlank {
        cell: String,
    },
    /// Puts cells, in this order, before another one that is not among them, or at the end.
    MoveCells {
        cells: Vec<String>,
        before: Option<String>,
    },
    /// Removes the outputs and counts of code cells, except of those that run.
    ClearOutputs {
        cells: Vec<String>,
    },
    /// Makes this the whole notebook, touching only what differs.
    SetNotebook {
        metadata: Value,
        cells: Vec<NewCell>,
    },
    /// Positions and lengths count code points.
    SpliceText {
        position: usize,
        delete: usize,
        insert: String,
    },
    /// At the end, wherever that is by then.
    AppendText {
        text: String,
    },
    SetText {
        text: String,
    },
    /// Replaces what a cell, or a text document, has exactly once, wherever that is by then; every occurrence with `all`.
    /// An empty `old` is found only in an empty text.
    ReplaceText {
        cell: Option<String>,
        old: String,
        new: String,
        all: bool,
    },
    /// Changes parts of a cell, or of a text document, from the end to the beginning.
    Splice {
        cell: Option<String>,
        splices: Vec<Splice>,
    },
}

/// Conditions and options of an edit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EditOptions<'a> {
    /// Revision since which others must not have changed the same places.
    pub if_revision: Option<&'a str>,
    /// True if it is done although it removes what somebody is typing.
    pub force: bool,
    /// The tool that makes it, for those who follow changes.
    pub tool: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("there is no cell {id:?}; the notebook has {} ({some}); read it again for their ids", counted(*.count, "cell"))]
    UnknownCell { id: String, count: usize, some: String },
    #[error("position {position} is out of range; allowed: 0 to {length}")]
    Position { position: usize, length: usize },
    #[error(
        "position {position} and length {length} reach beyond the end; the text has {available} characters from there"
    )]
    Length {
        position: usize,
        length: usize,
        available: usize,
    },
    #[error(
        "the changes at positions {first} and {second} overlap; change each part of the text once, and count all positions in the text before the call"
    )]
    Overlap { first: usize, second: usize },
    #[error("nothing was changed: the text to replace was found {found} times")]
    Matches { found: usize },
    #[error("nothing was changed: {what}; read it again and repeat the edit")]
    Stale { what: String },
    #[error(transparent)]
    Refused(Box<Refused>),
    #[error("`if_revision` {given:?} is not a current revision of this document; read it again to get one")]
    UnknownRevision { given: String },
    #[error("this is not a {wanted}; use the tools for the other kind of document")]
    WrongKind { wanted: &'static str },
}
