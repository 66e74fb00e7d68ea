//! Deleting, renaming, copying and overwriting documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::create::parse_notebook;
use crate::{
    jupyter::{DocumentKind, NewDocument},
    tools::{Call, ToolError},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArguments {
    path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    message: String,
    path: String,
}

pub(super) async fn delete_document(call: Call, arguments: DeleteArguments) -> Result<Deleted, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    server.delete(&path).await?;
    Ok(Deleted {
        message: format!("Successfully deleted document at '{path}'"),
        path: path.to_string(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenameArguments {
    path: String,
    #[serde(rename = "newPath", alias = "new_path")]
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
    let server = call.server(arguments.server.as_deref())?;
    let old = call.file(&arguments.path)?;
    let new = call.file(&arguments.new_path)?;
    if old != new {
        server.rename(&old, &new).await?;
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
    #[serde(rename = "copyPath", alias = "copy_path")]
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
    server.copy(&original, &copy).await?;
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
    /// Text, or nbformat JSON for a notebook
    content: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Overwritten {
    message: String,
    path: String,
    content_length: usize,
}

pub(super) async fn overwrite_document(call: Call, arguments: OverwriteArguments) -> Result<Overwritten, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    let content_length = arguments.content.chars().count();
    let document = match server.document(&path).await?.kind {
        DocumentKind::Notebook => NewDocument::Notebook(parse_notebook(&arguments.content)?),
        DocumentKind::File => NewDocument::Text(arguments.content),
        DocumentKind::Directory => {
            return Err(ToolError::argument(
                "path",
                format!("{path:?} is a directory and has no content"),
            ));
        }
    };
    server.overwrite(&path, document).await?;
    Ok(Overwritten {
        message: format!("Successfully overwrote document at '{path}'"),
        path: path.to_string(),
        content_length,
    })
}
