//! Tools about documents as files, over Jupyter's contents API and without joining a room.

mod create;
mod delete;
mod file_type;
mod info;
mod listing;
mod manage;
mod search;
mod untrusted;
mod walk;

pub(super) use listing::is_open;
pub(super) use walk::Walk;

use super::{Effect, ToolDefinition, definition::WORK_COST};
use crate::types::Toolset;

pub(super) fn tools() -> Vec<ToolDefinition> {
    use Effect::{Add, Change, Read, Set};
    let files = Toolset::Files;
    vec![
        ToolDefinition::new(
            files,
            "list_documents",
            "Lists a directory or, with `path_filter` or `file_type`, files at every depth.",
            Read,
            listing::list_documents,
        )
        .also_in(&[Toolset::Collab]),
        ToolDefinition::new(
            files,
            "create_document",
            "Creates a document; refuses if the path exists.",
            Add,
            create::create_document,
        ),
        ToolDefinition::new(
            files,
            "get_document_info",
            "Returns a document's metadata and, if asked, its saved content.",
            Read,
            info::get_document_info,
        ),
        ToolDefinition::new(
            files,
            "delete_document",
            "Deletes a document and ends its kernel.",
            Change,
            delete::delete_document,
        ),
        ToolDefinition::new(
            files,
            "rename_document",
            "Renames or moves a document.",
            Change,
            manage::rename_document,
        ),
        ToolDefinition::new(
            files,
            "copy_document",
            "Copies a file to a new path; refuses if that exists.",
            Add,
            manage::copy_document,
        ),
        ToolDefinition::new(
            files,
            "overwrite_document",
            "Sets a document's whole content, merged with what people type.",
            Set,
            manage::overwrite_document,
        ),
        ToolDefinition::new(
            files,
            "search_documents",
            "Finds lines in notebooks and text files: in sources, in outputs, or in all (`where`).",
            Read,
            search::search_documents,
        )
        .costing(WORK_COST),
    ]
}
