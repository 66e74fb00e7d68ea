//! Differences for people to read: unified diffs, cell by cell.

use std::sync::Arc;

use serde::Serialize;

use crate::Content;

/// A difference of one cell, or of a text document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// None in a text document, and for the metadata of a notebook.
    pub cell_id: Option<Arc<str>>,
    /// Its position in the new content; in the old one if it was deleted.
    pub index: Option<usize>,
    pub status: Status,
    /// What else differs than the text.
    pub parts: Vec<Part>,
    /// The unified diff of the text, without a head; empty if it is the same.
    pub unified: String,
    /// Lines that are new, and lines that are gone.
    pub added: usize,
    pub removed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Changed,
    Inserted,
    Deleted,
    /// It stands somewhere else; its text may have changed too.
    Moved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Kind,
    Metadata,
    Attachments,
    Outputs,
}

/// The differences in the order of the new content, each deleted cell where it was; with `context` lines around each.
pub fn diff(old: &Content, new: &Content, context: usize) -> Vec<Difference> {
    let _ = (old, new, context);
    Vec::new()
}
