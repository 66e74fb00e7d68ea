//! Tools about the text of a document, in the same room as the people who have it open.
//! Positions and lengths count Unicode code points.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Effect, ToolDefinition, ToolError};
use crate::{
    jupyter::{
        JupyterServer,
        room::{Edit, Edited, Room, RoomKind},
    },
    pool::Lease,
    types::{DocPath, Toolset, truncate},
};

const DEFAULT_MAX_CONTENT: usize = 32_768;

pub(super) fn tools() -> Vec<ToolDefinition> {
    let document = Toolset::Document;
    vec![
        ToolDefinition::new(
            document,
            "get_document_content",
            "Reads a text document as it stands now, unsaved changes included.",
            Effect::Read,
            get_document_content,
        ),
        ToolDefinition::new(
            document,
            "insert_document_text",
            "Inserts text at a position.",
            Effect::Add,
            insert_document_text,
        ),
        ToolDefinition::new(
            document,
            "delete_document_text",
            "Deletes characters from a position.",
            Effect::Change,
            delete_document_text,
        ),
        ToolDefinition::new(
            document,
            "replace_document_text",
            "Replaces characters from a position by text.",
            Effect::Change,
            replace_document_text,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContentArguments {
    path: String,
    /// Characters
    #[schemars(extend("default" = 32768))]
    max_content: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DocumentContent {
    content: String,
    pub(super) truncated: bool,
    pub(super) content_length: usize,
    revision: String,
}

async fn get_document_content(call: Call, arguments: ContentArguments) -> Result<DocumentContent, ToolError> {
    let (_, _, room) = text_room(&call, arguments.server.as_deref(), &arguments.path).await?;
    Ok(content(&room, arguments.max_content.unwrap_or(DEFAULT_MAX_CONTENT)))
}

/// A text as it stands now, cut to `max` characters.
pub(super) fn content(room: &Room, max: usize) -> DocumentContent {
    let (revision, text) = room.text();
    let cut = truncate(text, max);
    DocumentContent {
        content: cut.text,
        truncated: cut.truncated,
        content_length: cut.full_length,
        revision,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InsertArguments {
    path: String,
    position: usize,
    text: String,
    if_revision: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Spliced {
    message: String,
    position: usize,
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_length: Option<usize>,
    revision: String,
    acknowledged: bool,
}

async fn insert_document_text(call: Call, arguments: InsertArguments) -> Result<Spliced, ToolError> {
    let InsertArguments {
        path,
        position,
        text,
        if_revision,
        server,
    } = arguments;
    let length = text.chars().count();
    let splice = Edit::SpliceText {
        position,
        delete: 0,
        insert: text,
    };
    let edited = edit(&call, server.as_deref(), &path, &[splice], if_revision.as_deref()).await?;
    let message = format!("Successfully inserted {length} characters at position {position}");
    Ok(spliced(message, position, length, None, edited))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    path: String,
    position: usize,
    length: usize,
    if_revision: Option<String>,
    server: Option<String>,
}

async fn delete_document_text(call: Call, arguments: DeleteArguments) -> Result<Spliced, ToolError> {
    let DeleteArguments {
        path,
        position,
        length,
        if_revision,
        server,
    } = arguments;
    let splice = Edit::SpliceText {
        position,
        delete: length,
        insert: String::new(),
    };
    let edited = edit(&call, server.as_deref(), &path, &[splice], if_revision.as_deref()).await?;
    let message = format!("Successfully deleted {length} characters from position {position}");
    Ok(spliced(message, position, length, None, edited))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplaceArguments {
    path: String,
    position: usize,
    length: usize,
    text: String,
    if_revision: Option<String>,
    server: Option<String>,
}

async fn replace_document_text(call: Call, arguments: ReplaceArguments) -> Result<Spliced, ToolError> {
    let ReplaceArguments {
        path,
        position,
        length,
        text,
        if_revision,
        server,
    } = arguments;
    let new_length = text.chars().count();
    let splice = Edit::SpliceText {
        position,
        delete: length,
        insert: text,
    };
    let edited = edit(&call, server.as_deref(), &path, &[splice], if_revision.as_deref()).await?;
    let message =
        format!("Successfully replaced {length} characters with {new_length} new characters at position {position}");
    Ok(spliced(message, position, length, Some(new_length), edited))
}

fn spliced(message: String, position: usize, length: usize, new_length: Option<usize>, edited: Edited) -> Spliced {
    Spliced {
        message,
        position,
        length,
        new_length,
        revision: edited.revision,
        acknowledged: edited.acknowledged,
    }
}

/// Edits a text, whole or not at all.
pub(super) async fn edit(
    call: &Call,
    server: Option<&str>,
    path: &str,
    edits: &[Edit],
    if_revision: Option<&str>,
) -> Result<Edited, ToolError> {
    let (_, _, room) = text_room(call, server, path).await?;
    let principal = call.principal();
    Ok(room.edit(&principal.id, &principal.name, edits, if_revision).await?)
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
