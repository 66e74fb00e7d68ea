//! `create_document`: a notebook, a text file or a directory where nothing was.

use std::collections::HashSet;

use base64::{Engine, prelude::BASE64_STANDARD};
use jupyter_client::{DocPath, JupyterServer, MAX_NESTING, NewDocument, is_shallow_json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::{
    Call, ToolError,
    notebook::{empty_notebook, require_notebook_name},
};

use super::untrusted::{Disarmed, disarm};
use crate::tools::text::described_by;

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum NewKind {
    Notebook,
    File,
    Markdown,
    Directory,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// Default: by the path's ending
    #[serde(rename = "type")]
    kind: Option<NewKind>,
    /// Text or nbformat JSON
    content: Option<String>,
    /// Bytes of a binary file instead
    content_base64: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Created {
    message: String,
    path: String,
    #[serde(rename = "type")]
    kind: NewKind,
}

described_by!(message: Created);

pub(super) async fn create_document(call: Call, arguments: Arguments) -> Result<Created, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    let kind = arguments.kind.unwrap_or_else(|| kind_of(&path));
    let (document, left_out) = match arguments.content_base64 {
        Some(given) => {
            // As bytes, a notebook could contain active content that nobody checked.
            if arguments.content.is_some() || kind != NewKind::File || path.is_notebook() {
                let why = "bytes are for files of type=\"file\" that are no notebooks, without `content`";
                return Err(ToolError::argument("content_base64", why));
            }
            (NewDocument::Base64(bytes(&given)?.0), Disarmed::default())
        }
        None => new_document(server, &path, kind, arguments.content).await?,
    };
    server.create(&path, document).await?;
    let named = serde_json::to_value(kind)
        .ok()
        .and_then(|kind| kind.as_str().map(str::to_owned))
        .unwrap_or_default();
    Ok(Created {
        message: format!("Successfully created {named} at '{path}'{}", left_out.sentence()),
        path: path.to_string(),
        kind,
    })
}

/// A path that does not end with .ipynb cannot hold the notebook that a missing `type` would mean.
fn kind_of(path: &DocPath) -> NewKind {
    match path.as_str() {
        _ if path.is_notebook() => NewKind::Notebook,
        path if path.ends_with(".md") => NewKind::Markdown,
        _ => NewKind::File,
    }
}

async fn new_document(
    server: &JupyterServer,
    path: &DocPath,
    kind: NewKind,
    content: Option<String>,
) -> Result<(NewDocument, Disarmed), ToolError> {
    let document = match (kind, content) {
        (NewKind::Notebook, content) => {
            require_notebook_name("path", path)?;
            let (notebook, left_out) = match content {
                Some(content) => parse_notebook(&content)?,
                None => (empty_notebook(server, None).await?, Disarmed::default()),
            };
            return Ok((NewDocument::Notebook(notebook), left_out));
        }
        (NewKind::File | NewKind::Markdown, content) => {
            if path.is_notebook() {
                return Err(ToolError::argument(
                    "type",
                    "a path that ends with .ipynb must be a notebook; use type=\"notebook\"",
                ));
            }
            NewDocument::Text(content.unwrap_or_default())
        }
        (NewKind::Directory, None) => NewDocument::Directory,
        (NewKind::Directory, Some(_)) => {
            let why = "a directory has no content; leave it out";
            return Err(ToolError::argument("content", why));
        }
    };
    Ok((document, Disarmed::default()))
}

/// Bytes as a caller gives them, in one line of base64, and how many they are.
pub(super) fn bytes(given: &str) -> Result<(String, usize), ToolError> {
    let line: String = given.split_ascii_whitespace().collect();
    match BASE64_STANDARD.decode(&line) {
        Ok(bytes) => Ok((line, bytes.len())),
        Err(why) => Err(ToolError::argument("content_base64", format!("not base64: {why}"))),
    }
}

/// Reads the content of a notebook. The server stores whatever it gets, so what is no notebook
/// must be refused here or nobody could open the file. What would run where it is shown is left out.
pub(super) fn parse_notebook(content: &str) -> Result<(Value, Disarmed), ToolError> {
    let invalid = |why: &str| {
        ToolError::argument(
            "content",
            format!(
                "not a notebook: {why}; expected nbformat JSON with `cells`, `metadata`, `nbformat`, `nbformat_minor`"
            ),
        )
    };
    if !is_shallow_json(content.as_bytes()) {
        return Err(invalid(&format!("it is nested more than {MAX_NESTING} levels deep")));
    }
    let mut notebook: Value = serde_json::from_str(content).map_err(|error| invalid(&error.to_string()))?;
    let cells = notebook
        .get("cells")
        .and_then(Value::as_array)
        .ok_or_else(|| invalid("`cells` is missing"))?;
    if notebook.get("nbformat").and_then(Value::as_u64) != Some(4) {
        return Err(invalid("`nbformat` must be 4"));
    }
    if !notebook.get("metadata").is_some_and(Value::is_object) {
        return Err(invalid("`metadata` is missing"));
    }
    if !notebook.get("nbformat_minor").is_some_and(Value::is_u64) {
        return Err(invalid("`nbformat_minor` is missing"));
    }
    let mut ids = HashSet::new();
    for (index, cell) in cells.iter().enumerate() {
        check_cell(cell).map_err(|why| invalid(&format!("cells[{index}]: {why}")))?;
        if cell.get("id").is_some_and(|id| !ids.insert(id.as_str())) {
            return Err(invalid(&format!("cells[{index}]: another cell has the same `id`")));
        }
    }
    let left_out = disarm(&mut notebook);
    Ok((notebook, left_out))
}

fn check_cell(cell: &Value) -> Result<(), &'static str> {
    let is_text =
        |value: &Value| value.is_string() || value.as_array().is_some_and(|lines| lines.iter().all(Value::is_string));
    match cell.get("cell_type").and_then(Value::as_str) {
        Some("code") if !cell.get("outputs").is_some_and(Value::is_array) => return Err("a code cell needs `outputs`"),
        Some("code") if !cell.get("execution_count").is_some_and(is_count) => {
            return Err("a code cell needs `execution_count`, a whole number or null");
        }
        Some("code") if !outputs(cell).all(is_output) => return Err("an output is not one that nbformat has"),
        Some("code" | "markdown" | "raw") => {}
        _ => return Err("`cell_type` must be code, markdown or raw"),
    }
    if !cell.get("source").is_some_and(is_text) {
        return Err("`source` must be text");
    }
    if !cell.get("metadata").is_some_and(Value::is_object) {
        return Err("`metadata` is missing");
    }
    if cell.get("id").is_some_and(|id| !id.as_str().is_some_and(is_cell_id)) {
        return Err("`id` must be 1 to 64 letters, digits, `-` or `_`");
    }
    Ok(())
}

fn is_count(value: &Value) -> bool {
    value.is_null() || value.is_u64()
}

fn outputs(cell: &Value) -> impl Iterator<Item = &Value> {
    cell.get("outputs").and_then(Value::as_array).into_iter().flatten()
}

/// Returns whether an output has the members that nbformat requires of its type.
fn is_output(output: &Value) -> bool {
    let has = |member: &str, is: fn(&Value) -> bool| output.get(member).is_some_and(is);
    let is_text = |value: &Value| value.is_string() || value.is_array();
    let displays = has("data", Value::is_object) && has("metadata", Value::is_object);
    match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => has("name", Value::is_string) && has("text", is_text),
        Some("display_data") => displays,
        Some("execute_result") => displays && has("execution_count", is_count),
        Some("error") => {
            has("ename", Value::is_string) && has("evalue", Value::is_string) && has("traceback", Value::is_array)
        }
        _ => false,
    }
}

/// Returns whether nbformat allows the id. Jupyter writes any to the file, which other programs then refuse.
fn is_cell_id(id: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    (1..=64).contains(&id.len()) && id.chars().all(allowed)
}
