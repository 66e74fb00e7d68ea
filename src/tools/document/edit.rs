//! Tools that change a text, at positions or by exact match. Each answers with the smallest diff.

use jupyter_client::counted;
use live_document::{Edit, EditError, EditOptions, Edited, RoomError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{edit, text_room};
use crate::tools::{
    Call, ToolError, cells, changes,
    matches::{Replacement, explained},
    output::ToolReply,
    position::position,
};

/// Document that a call edits.
struct Target {
    path: String,
    server: Option<String>,
    if_revision: Option<String>,
    force: bool,
}

impl Target {
    async fn edit(&self, call: &Call, change: Edit) -> Result<Edited, ToolError> {
        let options = EditOptions {
            if_revision: self.if_revision.as_deref(),
            force: self.force,
            ..EditOptions::default()
        };
        edit(call, self.server.as_deref(), &self.path, &[change], options).await
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Spliced {
    message: String,
    position: usize,
    length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_length: Option<usize>,
    #[serde(flatten)]
    edited: cells::Edited,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InsertArguments {
    path: String,
    position: i64,
    text: String,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

pub(super) async fn insert_document_text(
    call: Call,
    arguments: InsertArguments,
) -> Result<ToolReply<Spliced>, ToolError> {
    let length = arguments.text.chars().count();
    let splice = splice(arguments.position, 0, arguments.text)?;
    let target = Target {
        path: arguments.path,
        server: arguments.server,
        if_revision: arguments.if_revision,
        force: arguments.force,
    };
    let edited = target.edit(&call, splice).await?;
    let position = place(arguments.position, &edited);
    let inserted = counted(length, "character");
    let message = format!("Successfully inserted {inserted} at position {position}");
    Ok(spliced(&target.path, message, (position, length, None), edited))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArguments {
    path: String,
    position: usize,
    length: usize,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

pub(super) async fn delete_document_text(
    call: Call,
    arguments: DeleteArguments,
) -> Result<ToolReply<Spliced>, ToolError> {
    let (position, length) = (arguments.position, arguments.length);
    let splice = Edit::SpliceText {
        position,
        delete: length,
        insert: String::new(),
    };
    let target = Target {
        path: arguments.path,
        server: arguments.server,
        if_revision: arguments.if_revision,
        force: arguments.force,
    };
    let edited = target.edit(&call, splice).await?;
    let deleted = counted(length, "character");
    let message = format!("Successfully deleted {deleted} from position {position}");
    Ok(spliced(&target.path, message, (position, length, None), edited))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplaceArguments {
    path: String,
    position: i64,
    length: usize,
    text: String,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

pub(super) async fn replace_document_text(
    call: Call,
    arguments: ReplaceArguments,
) -> Result<ToolReply<Spliced>, ToolError> {
    let (length, new_length) = (arguments.length, arguments.text.chars().count());
    let splice = splice(arguments.position, length, arguments.text)?;
    let target = Target {
        path: arguments.path,
        server: arguments.server,
        if_revision: arguments.if_revision,
        force: arguments.force,
    };
    let edited = target.edit(&call, splice).await?;
    let position = place(arguments.position, &edited);
    let message = format!(
        "Successfully replaced {} with {} at position {position}",
        counted(length, "character"),
        counted(new_length, "new character")
    );
    Ok(spliced(
        &target.path,
        message,
        (position, length, Some(new_length)),
        edited,
    ))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArguments {
    path: String,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct EditedText {
    path: String,
    replacements: usize,
    diff: String,
    #[serde(flatten)]
    edited: cells::Edited,
}

pub(super) async fn edit_document_text(
    call: Call,
    arguments: EditArguments,
) -> Result<ToolReply<EditedText>, ToolError> {
    let replacement = Replacement {
        old: &arguments.old_text,
        new: &arguments.new_text,
        all: arguments.replace_all,
    };
    replacement.check()?;
    let target = Target {
        path: arguments.path,
        server: arguments.server,
        if_revision: arguments.if_revision,
        force: arguments.force,
    };
    let edited = match target.edit(&call, replacement.edit(None)).await {
        Err(ToolError::Room(RoomError::Edit(EditError::Matches { .. }))) => {
            let (_, path, room) = text_room(&call, target.server.as_deref(), &target.path).await?;
            let (_, text) = room.text();
            let why = explained(path.as_str(), &text, &replacement);
            return Err(ToolError::argument("old_text", why));
        }
        edited => edited?,
    };
    let text = changes::of_text(&target.path, &edited);
    let value = EditedText {
        path: call.file(&target.path)?.to_string(),
        replacements: replacement.count(&edited.changes),
        diff: edited.changes.first().and_then(changes::difference).unwrap_or_default(),
        edited: edited.into(),
    };
    Ok(ToolReply::told(text, value))
}

/// A change at a position, of which -1 is the end.
fn splice(at: i64, delete: usize, insert: String) -> Result<Edit, ToolError> {
    match position("position", at)? {
        Some(position) => Ok(Edit::SpliceText {
            position,
            delete,
            insert,
        }),
        None if delete == 0 => Ok(Edit::AppendText { text: insert }),
        None => Err(ToolError::argument(
            "length",
            format!("{delete} is out of range; allowed: 0, since position -1 is the end"),
        )),
    }
}

/// The position of a change, of which -1 was the end.
fn place(at: i64, edited: &Edited) -> usize {
    let before = edited.changes.first().and_then(|change| change.before.as_deref());
    usize::try_from(at).unwrap_or_else(|_| before.map_or(0, |text| text.chars().count()))
}

fn spliced(
    path: &str,
    message: String,
    (position, length, new_length): (usize, usize, Option<usize>),
    edited: Edited,
) -> ToolReply<Spliced> {
    let text = changes::of_text(path, &edited);
    let value = Spliced {
        message,
        position,
        length,
        new_length,
        edited: edited.into(),
    };
    ToolReply::told(text, value)
}
