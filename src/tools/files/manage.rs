//! Renaming, copying and overwriting documents.

use jupyter_client::{DocPath, DocumentKind, JupyterError, JupyterServer, NewDocument, counted};
use live_document::{CellKind, Edit, EditOptions, NewCell, RoomError, RoomKind, pool::PoolError};
use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    create::{bytes, parse_notebook},
    untrusted::Disarmed,
};
use crate::tools::text::described_by;
use crate::tools::{Call, ToolError, cells::Edited, changes, document::Beginning, output::ToolReply};

/// Characters that are examined to tell text from binary data.
const MAX_SNIFFED: usize = 64 * 1024;
/// Time that a document may take to be open with the file that replaced its own, and how often that is tried.
const OPEN_TIMEOUT: Duration = Duration::from_secs(4);
const OPEN_AGAIN: Duration = Duration::from_millis(200);

/// Refuses to move a directory unless all that is in it is allowed, here and there. Jupyter is asked
/// what it is only where the rules leave a doubt.
pub(super) async fn require_contents(
    call: &Call,
    server: &JupyterServer,
    path: &DocPath,
    places: &[&DocPath],
) -> Result<(), ToolError> {
    let refusal = places
        .iter()
        .find_map(|place| call.principal().require_tree(place).err());
    match refusal {
        Some(refusal) if server.document(path).await?.kind == DocumentKind::Directory => Err(refusal.into()),
        _ => Ok(()),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenameArguments {
    path: String,
    #[serde(rename = "newPath")]
    new_path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Renamed {
    message: String,
    old_path: String,
    new_path: String,
}

pub(super) async fn rename_document(call: Call, arguments: RenameArguments) -> Result<Renamed, ToolError> {
    call.require_unreviewed("nothing is renamed")?;
    let server = call.server(arguments.server.as_deref())?;
    let old = call.file(&arguments.path)?;
    let new = call.file(&arguments.new_path)?;
    require_contents(&call, server, &old, &[&old, &new]).await?;
    if old != new {
        server.rename(&old, &new).await?;
        call.pool().renamed(server.name(), &old, &new);
        // What is run next under the new name must find the kernel there.
        call.engine().renamed(server, &old, &new).await;
    } else {
        server.document(&old).await?;
    }
    Ok(Renamed {
        message: format!("Successfully renamed document from '{old}' to '{new}'"),
        old_path: old.to_string(),
        new_path: new.to_string(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CopyArguments {
    path: String,
    #[serde(rename = "copyPath")]
    copy_path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Copied {
    message: String,
    original_path: String,
    copy_path: String,
}

pub(super) async fn copy_document(call: Call, arguments: CopyArguments) -> Result<Copied, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let original = call.file(&arguments.path)?;
    let copy = call.file(&arguments.copy_path)?;
    require_contents(&call, server, &original, &[&original, &copy]).await?;
    match call.open_room(server, &original, RoomKind::of(&original)).await? {
        // What people and agents typed last is in the room and not yet in the file.
        Some(room) => server.create(&copy, room.content()).await.map(drop)?,
        None => server.copy(&original, &copy).await?,
    }
    Ok(Copied {
        message: format!("Successfully copied document from '{original}' to '{copy}'"),
        original_path: original.to_string(),
        copy_path: copy.to_string(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverwriteArguments {
    path: String,
    /// Text or nbformat JSON
    content: Option<String>,
    /// Bytes of a binary file instead
    content_base64: Option<String>,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Overwritten {
    message: String,
    path: String,
    content_length: usize,
    #[serde(flatten)]
    edited: Option<Edited>,
}

described_by!(message: Renamed, Copied);

pub(super) async fn overwrite_document(
    call: Call,
    arguments: OverwriteArguments,
) -> Result<ToolReply<Overwritten>, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    let content = match (arguments.content, arguments.content_base64) {
        (Some(content), None) => content,
        (None, Some(given)) if arguments.if_revision.is_none() => {
            return overwrite_bytes(&call, server, &path, &given).await;
        }
        (None, Some(_)) => {
            let why = "a binary file has no revisions; leave it out";
            return Err(ToolError::argument("if_revision", why));
        }
        (None, None) | (Some(_), Some(_)) => {
            return Err(ToolError::argument(
                "content",
                "give either `content` or `content_base64`",
            ));
        }
    };
    let content_length = content.chars().count();
    let kind = server.document(&path).await?.kind;
    let mut left_out = Disarmed::default();
    let edit = match kind {
        DocumentKind::Notebook => {
            let notebook;
            (notebook, left_out) = parse_notebook(&content)?;
            set_notebook(&notebook)
        }
        DocumentKind::File => Edit::SetText { text: content.clone() },
        DocumentKind::Directory => {
            return Err(ToolError::argument(
                "path",
                format!("{path:?} is a directory and has no content"),
            ));
        }
    };
    let room_kind = if kind == DocumentKind::Notebook {
        RoomKind::Notebook
    } else {
        RoomKind::Text
    };
    let mut text = None;
    let edited = match call.room(server, &path, room_kind).await {
        Ok(room) => {
            let options = EditOptions {
                if_revision: arguments.if_revision.as_deref(),
                force: arguments.force,
                ..EditOptions::default()
            };
            let edited = call.edit(&room, &[edit], options).await?;
            text = Some(match room_kind {
                RoomKind::Notebook => changes::of_cells(&room, &edited, &[]),
                RoomKind::Text => changes::of_text(path.as_str(), &edited),
            });
            Some(Edited::from(edited))
        }
        // Nobody can be typing where there are no live documents, nor in a file that cannot be opened as one, so the
        // file itself is replaced.
        Err(ToolError::Pool(PoolError::Room(
            RoomError::Jupyter(JupyterError::NoCollaboration { .. } | JupyterError::LargeDocument { .. })
            | RoomError::Refused { .. }
            | RoomError::Excess { .. },
        ))) if arguments.if_revision.is_none() => {
            call.require_unreviewed("a file that is not open as a document is not replaced")?;
            let document = match kind {
                DocumentKind::Notebook => NewDocument::Notebook(parse_notebook(&content)?.0),
                DocumentKind::File | DocumentKind::Directory => NewDocument::Text(content),
            };
            server.write(&path, document).await?;
            wait_until_open(&call, server, &path, room_kind).await;
            None
        }
        Err(error) => return Err(error),
    };
    let message = format!("Successfully overwrote document at '{path}'{}", left_out.sentence());
    let text = match text {
        Some(text) => text + &left_out.sentence(),
        None => message.clone(),
    };
    let value = Overwritten {
        message,
        path: path.to_string(),
        content_length,
        edited,
    };
    Ok(ToolReply::told(text, value))
}

/// Replaces a binary file, which is never open as a live document.
async fn overwrite_bytes(
    call: &Call,
    server: &JupyterServer,
    path: &DocPath,
    given: &str,
) -> Result<ToolReply<Overwritten>, ToolError> {
    call.require_unreviewed("a binary file is not overwritten")?;
    let (base64, size) = bytes(given)?;
    let is_file = server.document(path).await?.kind == DocumentKind::File;
    let is_open = call.pool().lease_open(server.name(), path, RoomKind::Text).is_some();
    if !is_file || is_open || Beginning::read(server, path, MAX_SNIFFED).await?.has_text() {
        let why = format!("{path:?} is no binary file; use `content`");
        return Err(ToolError::argument("content_base64", why));
    }
    server.write(path, NewDocument::Base64(base64)).await?;
    let message = format!(
        "Successfully overwrote binary file at '{path}' with {}",
        counted(size, "byte")
    );
    let value = Overwritten {
        message: message.clone(),
        path: path.to_string(),
        content_length: size,
        edited: None,
    };
    Ok(ToolReply::told(message, value))
}

/// Waits until a document can be opened after its file was replaced. A server that has it open takes over the new content
/// when it next looks at the file, which is once a second, and nothing tells of it before.
async fn wait_until_open(call: &Call, server: &Arc<JupyterServer>, path: &DocPath, kind: RoomKind) {
    let opening = async {
        while let Err(ToolError::Pool(PoolError::Room(RoomError::Excess { .. }))) = call.room(server, path, kind).await
        {
            sleep(OPEN_AGAIN).await;
        }
    };
    let _ = timeout(OPEN_TIMEOUT, opening).await;
}

/// A notebook that was found valid, as it is put into a room.
fn set_notebook(notebook: &Value) -> Edit {
    let mut metadata = notebook["metadata"].clone();
    if let Value::Object(members) = &mut metadata {
        // Jupyter gives these to a notebook that has none when it opens it, because JupyterLab looks for them.
        members
            .entry("kernelspec")
            .or_insert_with(|| json!({ "name": "", "display_name": "" }));
        members.entry("language_info").or_insert_with(|| json!({ "name": "" }));
    }
    Edit::SetNotebook {
        metadata,
        cells: new_cells(notebook),
    }
}

fn new_cells(notebook: &Value) -> Vec<NewCell> {
    let text = |value: &Value| match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let new_cell = |cell: &Value| {
        let kind = cell["cell_type"]
            .as_str()
            .and_then(CellKind::parse)
            .unwrap_or(CellKind::Raw);
        let mut new = NewCell::new(kind, text(&cell["source"]));
        if let Some(id) = cell["id"].as_str() {
            id.clone_into(&mut new.id);
        }
        new.metadata = cell["metadata"].clone();
        new.outputs = cell["outputs"].as_array().cloned().unwrap_or_default();
        // Nobody ran it, so that JupyterLab must look through its outputs before it shows them.
        new.trusted = new.outputs.is_empty();
        new.execution_count = cell["execution_count"].as_i64();
        let has_members = |value: &&Value| value.as_object().is_some_and(|members| !members.is_empty());
        if kind != CellKind::Code {
            new.attachments = cell.get("attachments").filter(has_members).cloned();
        }
        new
    };
    notebook["cells"]
        .as_array()
        .map(|cells| cells.iter().map(new_cell).collect())
        .unwrap_or_default()
}
