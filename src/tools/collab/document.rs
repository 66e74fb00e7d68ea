//! Batches of text edits.

use live_document::{Edit, EditOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::text::{Describe, Page};
use crate::tools::{Call, ToolError, document::edit, position::position};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments<T> {
    path: String,
    operations: Vec<T>,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateOperation {
    #[serde(default)]
    content: String,
    /// -1 appends
    #[schemars(extend("default" = -1))]
    position: Option<i64>,
    /// Characters to replace
    #[schemars(extend("default" = 0))]
    length: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InsertOperation {
    text: String,
    position: i64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteOperation {
    position: usize,
    length: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    description: String,
    path: String,
    results: Vec<Confirmation>,
    revision: String,
    acknowledged: bool,
}

impl Describe for Changed {
    fn describe(&self, page: &mut Page) {
        page.line(format_args!("{} revision {}", self.description, self.revision));
    }
}

/// One operation that was done; the position is that in the text before all of them, -1 its end.
#[derive(Serialize, JsonSchema)]
struct Confirmation {
    success: bool,
    position: i64,
    length: usize,
    new_length: usize,
}

pub(super) async fn batch_update_document(
    call: Call,
    arguments: Arguments<UpdateOperation>,
) -> Result<Changed, ToolError> {
    let splice = |index: usize, operation: UpdateOperation| {
        let UpdateOperation {
            content,
            position,
            length,
        } = operation;
        if content.is_empty() && length.unwrap_or(0) == 0 {
            let why = "give `content`, or the `length` of what to remove";
            return Err(ToolError::argument(&format!("operations[{index}]"), why));
        }
        splice(index, position.unwrap_or(-1), length.unwrap_or(0), content)
    };
    change(call, arguments, "Performed", "update operations on document", splice).await
}

pub(super) async fn batch_insert_text(call: Call, arguments: Arguments<InsertOperation>) -> Result<Changed, ToolError> {
    let splice = |index: usize, InsertOperation { text, position }: InsertOperation| match text.is_empty() {
        true => Err(ToolError::argument(
            &format!("operations[{index}].text"),
            "give some text",
        )),
        false => splice(index, position, 0, text),
    };
    change(call, arguments, "Inserted", "text segments into document", splice).await
}

pub(super) async fn batch_delete_text(call: Call, arguments: Arguments<DeleteOperation>) -> Result<Changed, ToolError> {
    let splice = |index: usize, DeleteOperation { position, length }: DeleteOperation| match length {
        0 => {
            let why = "0 is out of range; allowed: 1 and more";
            Err(ToolError::argument(&format!("operations[{index}].length"), why))
        }
        delete => Ok(Edit::SpliceText {
            position,
            delete,
            insert: String::new(),
        }),
    };
    change(call, arguments, "Deleted", "text segments from document", splice).await
}

async fn change<T>(
    call: Call,
    arguments: Arguments<T>,
    did: &str,
    what: &str,
    splice: impl Fn(usize, T) -> Result<Edit, ToolError>,
) -> Result<Changed, ToolError> {
    if arguments.operations.is_empty() {
        return Err(ToolError::argument("operations", "give at least one operation"));
    }
    let operations = arguments.operations.into_iter().enumerate();
    let edits: Vec<Edit> = operations
        .map(|(index, operation)| splice(index, operation))
        .collect::<Result<_, _>>()?;
    let options = EditOptions {
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
        ..EditOptions::default()
    };
    let server = arguments.server.as_deref();
    let edited = edit(&call, server, &arguments.path, &edits, options).await?;
    Ok(Changed {
        description: super::edited(&format!("{did} {} {what}", edits.len()), "create_document_session"),
        path: call.file(&arguments.path)?.to_string(),
        results: edits.iter().map(confirmation).collect(),
        revision: edited.revision,
        acknowledged: edited.acknowledged,
    })
}

fn confirmation(edit: &Edit) -> Confirmation {
    let (position, length, new) = match edit {
        Edit::SpliceText {
            position,
            delete,
            insert,
        } => (i64::try_from(*position).unwrap_or(i64::MAX), *delete, insert.as_str()),
        Edit::AppendText { text } => (-1, 0, text.as_str()),
        _ => (-1, 0, ""),
    };
    Confirmation {
        success: true,
        position,
        length,
        new_length: new.chars().count(),
    }
}

fn splice(index: usize, at: i64, delete: usize, insert: String) -> Result<Edit, ToolError> {
    match position(&format!("operations[{index}].position"), at)? {
        Some(position) => Ok(Edit::SpliceText {
            position,
            delete,
            insert,
        }),
        None if delete == 0 => Ok(Edit::AppendText { text: insert }),
        None => Err(ToolError::argument(
            &format!("operations[{index}].length"),
            format!("{delete} is out of range; allowed: 0, since position -1 appends"),
        )),
    }
}
