//! Single changes of a content. Each has the old and the new value, so that it can be reverted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    Cell, CellKind, Json, Outputs, Splice,
    content::{RUN_CELL_METADATA, RUN_METADATA},
    text,
};

/// The operations of a delta are done one after another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operation {
    /// A change of the text of a document that is no notebook; positions are those before it.
    #[serde(rename = "t")]
    Text { splices: Vec<Splice> },
    #[serde(rename = "s")]
    Source { cell: Arc<str>, splices: Vec<Splice> },
    #[serde(rename = "i")]
    Insert { at: Place, cell: Arc<Cell> },
    #[serde(rename = "d")]
    Delete { at: Place, cell: Arc<Cell> },
    #[serde(rename = "m")]
    Move { cell: Arc<str>, from: Place, to: Place },
    #[serde(rename = "k")]
    Kind {
        cell: Arc<str>,
        old: CellKind,
        new: CellKind,
    },
    /// Of a cell, or of the notebook.
    #[serde(rename = "M")]
    Metadata {
        cell: Option<Arc<str>>,
        old: Json,
        new: Json,
    },
    #[serde(rename = "a")]
    Attachments {
        cell: Arc<str>,
        old: Option<Json>,
        new: Option<Json>,
    },
    /// Outputs and the count of runs.
    #[serde(rename = "o")]
    Outputs {
        cell: Arc<str>,
        old: (Outputs, Option<i64>),
        new: (Outputs, Option<i64>),
        /// True if a run wrote them, and not the author of the version. Undo leaves them.
        by_run: bool,
    },
}

/// A place between two cells; none is before the first, and after the last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Place {
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Arc<str>>,
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Arc<str>>,
}

impl Operation {
    /// The cell that it is about; none for a text or a whole notebook.
    pub fn cell(&self) -> Option<&str> {
        match self {
            Self::Text { .. } | Self::Metadata { cell: None, .. } => None,
            Self::Insert { cell, .. } | Self::Delete { cell, .. } => Some(&cell.id),
            Self::Source { cell, .. }
            | Self::Move { cell, .. }
            | Self::Kind { cell, .. }
            | Self::Metadata { cell: Some(cell), .. }
            | Self::Attachments { cell, .. }
            | Self::Outputs { cell, .. } => Some(cell),
        }
    }

    /// True if a run wrote it, and not the author.
    pub(crate) fn is_by_run(&self) -> bool {
        match self {
            Self::Outputs { by_run, .. } => *by_run,
            Self::Metadata { cell: None, old, new } => old.is_same_without(new, RUN_METADATA),
            Self::Metadata { old, new, .. } => old.is_same_without(new, RUN_CELL_METADATA),
            _ => false,
        }
    }

    pub(crate) fn invert(&self) -> Self {
        match self.clone() {
            Self::Text { splices } => Self::Text {
                splices: text::invert(&splices),
            },
            Self::Source { cell, splices } => Self::Source {
                cell,
                splices: text::invert(&splices),
            },
            Self::Insert { at, cell } => Self::Delete { at, cell },
            Self::Delete { at, cell } => Self::Insert { at, cell },
            Self::Move { cell, from, to } => Self::Move {
                cell,
                from: to,
                to: from,
            },
            Self::Kind { cell, old, new } => Self::Kind {
                cell,
                old: new,
                new: old,
            },
            Self::Metadata { cell, old, new } => Self::Metadata {
                cell,
                old: new,
                new: old,
            },
            Self::Attachments { cell, old, new } => Self::Attachments {
                cell,
                old: new,
                new: old,
            },
            Self::Outputs { cell, old, new, by_run } => Self::Outputs {
                cell,
                old: new,
                new: old,
                by_run,
            },
        }
    }
}
