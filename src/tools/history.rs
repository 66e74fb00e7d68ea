//! Tools for the history of documents: versions, differences, restoring and undoing, and forks, in which
//! changes are proposed and from which they are merged.

mod diff;
mod discard;
mod fork;
mod list;
mod list_forks;
mod merge;
mod restore;
mod review;
mod subject;
mod undo;

pub use review::{ForkReview, ReviewedCell, review_fork};

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
        ToolDefinition::new(
            history,
            "fork_document",
            "Makes a fork: a copy of a notebook or text document to try changes in. Pass its fork_id to any tool that reads, edits \
             or runs the document, to work in the fork instead.",
            Effect::Add,
            fork::fork_document,
        ),
        ToolDefinition::new(
            history,
            "list_document_forks",
            "Lists the forks of a document, with what each changes.",
            Effect::Read,
            list_forks::list_document_forks,
        ),
        ToolDefinition::new(
            history,
            "merge_document_fork",
            "Merges a fork into its document, all of it or only cell_ids. What others typed meanwhile stays; lines that both \
             changed stand there in both versions, and the answer names them.",
            Effect::Change,
            merge::merge_document_fork,
        )
        .asking(),
        ToolDefinition::new(
            history,
            "discard_document_fork",
            "Discards a fork with all that was changed in it.",
            Effect::Change,
            discard::discard_document_fork,
        ),
    ]
}
