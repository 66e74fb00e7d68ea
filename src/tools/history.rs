//! Tools about what documents were and could be: forks, in which changes are proposed and from which they are taken over.

mod discard;
mod fork;
mod list;
mod merge;
mod review;

use super::{Effect, ToolDefinition};
use crate::types::Toolset;

pub(super) fn tools() -> Vec<ToolDefinition> {
    let history = Toolset::History;
    vec![
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
            list::list_document_forks,
        ),
        ToolDefinition::new(
            history,
            "merge_document_fork",
            "Merges a fork into its document, all of it or only cell_ids. What others typed meanwhile stays; where both changed \
             the same place nothing is done unless forced.",
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
