//! Single changes of a content. Each knows what was and what is, so that it can be taken back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Cell, CellKind, Json, Outputs, Splice};

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
        /// A run wrote them, and not the author of the version. Undo leaves them.
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
