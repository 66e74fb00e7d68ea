//! Tools about what happened to documents: their versions, differences, restoring and undoing.

mod diff;
mod list;
mod restore;
mod subject;
mod undo;

use super::{Effect, ToolDefinition};
use crate::types::Toolset;

pub(super) fn tools() -> Vec<ToolDefinition> {
    let history = Toolset::History;
    vec![
        ToolDefinition::new(
            history,
            "get_document_history",
            "Lists a document's recorded versions, newest first.",
            Effect::Read,
            list::get_document_history,
        ),
        ToolDefinition::new(
            history,
            "restore_document_version",
            "Makes a document what it was at a version.",
            Effect::Change,
            restore::restore_document_version,
        ),
        ToolDefinition::new(
            history,
            "undo_changes",
            "Undoes your own last edits, and nothing of others.",
            Effect::Change,
            undo::undo_changes,
        ),
        ToolDefinition::new(
            history,
            "diff_document",
            "Shows what changed between versions, cell by cell.",
            Effect::Read,
            diff::diff_document,
        ),
    ]
}
