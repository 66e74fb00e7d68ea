//! Tools about the text of a document, in the same room as the people who have it open.
//! Positions and lengths count Unicode code points.

mod content;
mod edit;
mod line_scan;
mod save;

pub(super) use content::{BYTES, Beginning, DocumentContent, read};

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterServer};
use live_document::{Edit, EditOptions, Edited, RoomKind, pool::Lease};

use super::{Call, Effect, ToolDefinition, ToolError};
use crate::types::Toolset;

pub(super) fn tools() -> Vec<ToolDefinition> {
    let document = Toolset::Document;
    vec![
        ToolDefinition::new(
            document,
            "get_document_content",
            "Reads a text document, or some of its lines, as it stands now, unsaved changes included.",
            Effect::Read,
            content::get_document_content,
        ),
        ToolDefinition::new(
            document,
            "insert_document_text",
            "Inserts text at a position (-1: the end).",
            Effect::Add,
            edit::insert_document_text,
        ),
        ToolDefinition::new(
            document,
            "delete_document_text",
            "Deletes characters from a position.",
            Effect::Change,
            edit::delete_document_text,
        ),
        ToolDefinition::new(
            document,
            "replace_document_text",
            "Replaces characters from a position by text.",
            Effect::Change,
            edit::replace_document_text,
        ),
        ToolDefinition::new(
            document,
            "edit_document_text",
            "Replaces text that a document has exactly once (`replace_all`: every occurrence) and answers the diff.",
            Effect::Change,
            edit::edit_document_text,
        ),
        ToolDefinition::new(
            document,
            "save_document",
            "Saves a notebook or text document as it stands now, like Ctrl+S; answers when the file has it.",
            Effect::Set,
            save::save_document,
        ),
    ]
}

/// Edits a text, whole or not at all.
pub(super) async fn edit(
    call: &Call,
    server: Option<&str>,
    path: &str,
    edits: &[Edit],
    options: EditOptions<'_>,
) -> Result<Edited, ToolError> {
    let (_, _, room) = text_room(call, server, path).await?;
    call.edit(&room, edits, options).await
}

/// The room of a text document that a call names.
pub(super) async fn text_room(
    call: &Call,
    server: Option<&str>,
    path: &str,
) -> Result<(Arc<JupyterServer>, DocPath, Lease), ToolError> {
    let server = Arc::clone(call.server(server)?);
    let path = call.file(path)?;
    if path.is_notebook() {
        // As text it would be a second, unsynchronised room on the same file.
        return Err(ToolError::argument(
            "path",
            format!("{path:?} is a notebook; use the tools for notebooks"),
        ));
    }
    let room = call.room(&server, &path, RoomKind::Text).await?;
    Ok((server, path, room))
}
