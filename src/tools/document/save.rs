//! `save_document`.

use std::sync::Arc;

use jupyter_client::RoomKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{Block, Call, ToolError, output::ToolReply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Saved {
    message: String,
    /// Whether the file was written
    saved: bool,
    revision: String,
}

pub(super) async fn save_document(call: Call, arguments: Arguments) -> Result<ToolReply<Saved>, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let path = call.file(&arguments.path)?;
    let kind = RoomKind::of(&path);
    let was_open = call.pool().find(server.name(), &path, kind).is_some();
    // People may have it open with what they have not saved, which only the document itself tells.
    let room = call.original_room(&server, &path, kind).await?;
    let saved = was_open || room.is_dirty();
    let revision = room.revision();
    if saved {
        room.save().await?;
    }
    let message = match saved {
        true => format!("Saved '{path}'"),
        false => format!("'{path}' was not open and has nothing unsaved; there is nothing to save"),
    };
    let text = vec![Block::Text(message.clone())];
    Ok(ToolReply::in_blocks(
        text,
        Saved {
            message,
            saved,
            revision,
        },
    ))
}
