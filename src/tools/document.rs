//! Tools about the text of a document, in the same room as the people who have it open.
//! Positions and lengths count Unicode code points.

mod save;

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterError, JupyterServer, counted, truncate};
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
use crate::tools::text::described_by;
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
        ToolDefinition::new(
            document,
            "save_document",
            "Saves a notebook or text document as it stands now, like Ctrl+S; answers when the file has it.",
            Effect::Set,
            save::save_document,
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
    let text = beginning.text.ok_or_else(|| {
        let why = format!("{path:?} is a binary file, and too large to be read as a whole; code that runs can read it");
        ToolError::argument("path", why)
    })?;
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct InsertArguments {
    path: String,
    position: usize,
    text: String,
    if_revision: Option<String>,
    /// Even over what people typed since
    #[serde(default)]
    force: bool,
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

described_by!(message: Spliced);

async fn insert_document_text(call: Call, arguments: InsertArguments) -> Result<Spliced, ToolError> {
    let InsertArguments {
        path,
        position,
        text,
        if_revision,
        force,
        server,
    } = arguments;
    let options = EditOptions {
        if_revision: if_revision.as_deref(),
        force,
        ..EditOptions::default()
    };
    let length = text.chars().count();
    let splice = Edit::SpliceText {
        position,
        delete: 0,
        insert: text,
    };
    let edited = edit(&call, server.as_deref(), &path, &[splice], options).await?;
    let message = format!(
        "Successfully inserted {} at position {position}",
        counted(length, "character")
    );
    Ok(spliced(message, position, length, None, edited))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DeleteArguments {
    path: String,
    position: usize,
    length: usize,
    if_revision: Option<String>,
    /// Even over what people typed since
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

async fn delete_document_text(call: Call, arguments: DeleteArguments) -> Result<Spliced, ToolError> {
    let DeleteArguments {
        path,
        position,
        length,
        if_revision,
        force,
        server,
    } = arguments;
    let options = EditOptions {
        if_revision: if_revision.as_deref(),
        force,
        ..EditOptions::default()
    };
    let splice = Edit::SpliceText {
        position,
        delete: length,
        insert: String::new(),
    };
    let edited = edit(&call, server.as_deref(), &path, &[splice], options).await?;
    let message = format!(
        "Successfully deleted {} from position {position}",
        counted(length, "character")
    );
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
    /// Even over what people typed since
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

async fn replace_document_text(call: Call, arguments: ReplaceArguments) -> Result<Spliced, ToolError> {
    let ReplaceArguments {
        path,
        position,
        length,
        text,
        if_revision,
        force,
        server,
    } = arguments;
    let options = EditOptions {
        if_revision: if_revision.as_deref(),
        force,
        ..EditOptions::default()
    };
    let new_length = text.chars().count();
    let splice = Edit::SpliceText {
        position,
        delete: length,
        insert: text,
    };
    let edited = edit(&call, server.as_deref(), &path, &[splice], options).await?;
    let message = format!(
        "Successfully replaced {} with {} at position {position}",
        counted(length, "character"),
        counted(new_length, "new character")
    );
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
