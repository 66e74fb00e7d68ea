//! Collaboration sessions: what this vocabulary calls an open room.

use jupyter_client::{DocPath, JupyterServer};
use live_document::pool::Lease;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::text::described_by;
use crate::tools::{
    Call, ToolError,
    cells::notebook,
    document::text_room,
    session::{Session, session},
};

/// A room, and who is in it.
#[derive(Serialize, JsonSchema)]
pub(super) struct CollaborationState {
    #[serde(flatten)]
    session: Option<Session>,
    room_id: String,
    collaborators: Vec<String>,
}

impl CollaborationState {
    pub(super) fn of(call: &Call, server: &JupyterServer, path: &DocPath, room: &Lease) -> Self {
        let info = room.info();
        Self {
            session: call.pool().find(server.name(), path, info.kind).map(session),
            room_id: info.kind.room_id(&info.file_id),
            collaborators: room.present(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NotebookArguments {
    path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CreatedSession {
    description: String,
    #[serde(flatten)]
    state: CollaborationState,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_type: Option<String>,
}

described_by!(description: CreatedSession);

pub(super) async fn create_notebook_session(
    call: Call,
    arguments: NotebookArguments,
) -> Result<CreatedSession, ToolError> {
    let (server, path, room) = notebook(&call, arguments.server.as_deref(), &arguments.path).await?;
    Ok(CreatedSession {
        description: format!("The collaboration session of '{path}' is open; edits are seen by everybody in it."),
        state: CollaborationState::of(&call, &server, &path, &room),
        file_type: None,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DocumentArguments {
    path: String,
    /// file, text, markdown or the extension (default: detected)
    file_type: Option<String>,
    server: Option<String>,
}

pub(super) async fn create_document_session(
    call: Call,
    arguments: DocumentArguments,
) -> Result<CreatedSession, ToolError> {
    let file_type = file_type(&call.file(&arguments.path)?, arguments.file_type.as_deref())?;
    let (server, path, room) = text_room(&call, arguments.server.as_deref(), &arguments.path).await?;
    Ok(CreatedSession {
        description: format!("The collaboration session of '{path}' is open; edits are seen by everybody in it."),
        state: CollaborationState::of(&call, &server, &path, &room),
        file_type: Some(file_type),
    })
}

/// The type of a text document. Jupyter edits all of them in one kind of room, so that it only has to be true.
pub(super) fn file_type(path: &DocPath, given: Option<&str>) -> Result<String, ToolError> {
    let extension = path
        .name()
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_lowercase());
    let detected = match extension.as_deref() {
        Some("md" | "markdown") => "markdown",
        _ => "text",
    };
    let Some(given) = given else {
        return Ok(detected.to_owned());
    };
    let is_true = [Some("file"), Some("text"), Some(detected), extension.as_deref()].contains(&Some(given));
    if !is_true {
        let allowed = ["file", "text", detected, extension.as_deref().unwrap_or("text")];
        let mut allowed = allowed.to_vec();
        allowed.sort_unstable();
        allowed.dedup();
        let why = format!(
            "{path:?} is no {given:?}; allowed: {}, or leave it out",
            allowed.join(", ")
        );
        return Err(ToolError::argument("file_type", why));
    }
    Ok(given.to_owned())
}
