//! Tools about the text of a document, in the same room as the people who have it open.
//! Positions and lengths count Unicode code points.

mod binary;
mod edit;

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterError, JupyterServer, truncate};
use live_document::{
    Edit, EditOptions, Edited, Room, RoomError, RoomKind,
    pool::{Lease, PoolError},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Call, Effect, ToolDefinition, ToolError,
    output::JsonObject,
    people::{PersonHere, people},
};
use crate::tools::text::{Describe, Page};
use crate::types::Toolset;

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
    /// Characters, if `content_unit` says nothing else
    pub(super) content_length: usize,
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_unit: Option<&'static str>,
    #[schemars(with = "Vec<JsonObject>")]
    people: Vec<PersonHere>,
}

impl Describe for DocumentContent {
    fn describe(&self, page: &mut Page) {
        page.line(format_args!("revision {}", self.revision))
            .block(&self.content);
    }
}

async fn get_document_content(call: Call, arguments: ContentArguments) -> Result<DocumentContent, ToolError> {
    let max = arguments.max_content.unwrap_or(DEFAULT_MAX_CONTENT);
    let (_, content) = read(&call, arguments.server.as_deref(), &arguments.path, max).await?;
    Ok(content)
}

/// A text as it stands now, cut to `max` characters, and its room, unless it is too large to be opened.
pub(super) async fn read(
    call: &Call,
    server: Option<&str>,
    path: &str,
    max: usize,
) -> Result<(Option<(Arc<JupyterServer>, Lease)>, DocumentContent), ToolError> {
    match text_room(call, server, path).await {
        Err(ToolError::Pool(PoolError::Room(RoomError::Jupyter(JupyterError::LargeDocument { .. })))) => {
            let content = beginning(call.server(server)?, &call.file(path)?, max).await?;
            Ok((None, content))
        }
        Err(error) => Err(error),
        Ok((server, _, room)) => {
            let content = content(call, &room, max);
            Ok((Some((server, room)), content))
        }
    }
}

/// The beginning of a text file that is too large to be opened, as it is on disk.
async fn beginning(server: &JupyterServer, path: &DocPath, max: usize) -> Result<DocumentContent, ToolError> {
    let file = server.document(path).await?;
    let beginning = Beginning::read(server, path, max).await?;
    let text = beginning.text.ok_or_else(|| binary::refusal(server.name(), &file))?;
    Ok(DocumentContent {
        content: text,
        truncated: true,
        content_length: usize::try_from(file.size.unwrap_or_default()).unwrap_or(usize::MAX),
        // No edit can be checked against it, since it is not open.
        revision: String::new(),
        content_unit: Some(BYTES),
        people: Vec::new(),
    })
}

/// Unit of `content_length` where nobody has counted the characters.
pub(super) const BYTES: &str = "bytes";
/// The most that is read of a file that is not opened.
const MAX_BEGINNING: usize = 8 * 1024 * 1024;

/// The first characters of a file.
pub(super) struct Beginning {
    /// The text; none if the file is not text.
    pub(super) text: Option<String>,
}

impl Beginning {
    /// Whether it is text, and some.
    pub(super) fn has_text(&self) -> bool {
        self.text.as_ref().is_some_and(|text| !text.is_empty())
    }

    pub(super) async fn read(server: &JupyterServer, path: &DocPath, max: usize) -> Result<Self, ToolError> {
        // A character has four bytes at most.
        let bytes = max.saturating_mul(4).clamp(4, MAX_BEGINNING);
        let mut bytes = server.beginning(path, bytes).await?;
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            // A character that the range has cut.
            bytes.truncate(error.valid_up_to());
        }
        let text = String::from_utf8(bytes).ok();
        Ok(Self {
            text: text.map(|text| truncate(text, max).text),
        })
    }
}

fn content(call: &Call, room: &Room, max: usize) -> DocumentContent {
    let (revision, text) = room.text();
    let is_whole = text.chars().count() <= max;
    room.record_text(&call.principal().id, &revision, &text, is_whole);
    let cut = truncate(text, max);
    DocumentContent {
        content: cut.text,
        truncated: cut.truncated,
        content_length: cut.full_length,
        revision,
        content_unit: None,
        people: people(room),
    }
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
    match call.room(&server, &path, RoomKind::Text).await {
        Ok(room) => Ok((server, path, room)),
        Err(error @ ToolError::Pool(PoolError::Room(RoomError::Refused { .. }))) => {
            Err(binary::explained(&server, &path).await.unwrap_or(error))
        }
        Err(error) => Err(error),
    }
}
