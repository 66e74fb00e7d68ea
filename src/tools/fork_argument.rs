//! `fork_id`, which every tool takes that reads, edits or runs one document. It is taken out of the arguments in one place, and
//! the call then works in the fork. Its schema is not listed with each of them, since every byte is in a model's context:
//! `fork_document` tells of it.

use serde_json::{Map, Value, json};

use super::{Arguments, ToolError};

const NAME: &str = "fork_id";

/// The tools that work in one document.
const TOOLS: &[&str] = &[
    "get_nb_stat",
    "read_nb_cells",
    "modify_nb_cells",
    "edit_nb_cell",
    "insert_nb_cells",
    "delete_nb_cells",
    "move_nb_cells",
    "clear_nb_outputs",
    "execute_nb_cells",
    "get_document_content",
    "insert_document_text",
    "delete_document_text",
    "replace_document_text",
    "edit_document_text",
    "overwrite_document",
    "copy_document",
    "get_document_info",
    "search_documents",
    "get_document_history",
    "restore_document_version",
    "undo_changes",
    "get_notebook",
    "batch_update_notebook_cells",
    "batch_insert_notebook_cells",
    "batch_delete_notebook_cells",
    "execute_notebook_cell",
    "batch_execute_notebook_cells",
    "get_document",
    "batch_update_document",
    "batch_insert_text",
    "batch_delete_text",
    "read_notebook",
    "list_cell",
    "read_cell",
    "delete_cell",
    "insert_cell",
    "execute_cell",
    "overwrite_cell",
    "append_execute_code_cell",
    "insert_execute_code_cell",
    "overwrite_cell_source",
    "edit_cell_source",
    "move_cell",
    "clear_cell_output",
];

/// Returns whether a tool works in one document.
pub(super) fn takes_fork(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// Adds the argument to the schema of a tool that takes it.
pub(super) fn with_fork(tool: &str, mut schema: Map<String, Value>) -> Map<String, Value> {
    if takes_fork(tool)
        && let Some(Value::Object(members)) = schema.get_mut("properties")
    {
        members.insert(NAME.to_owned(), json!({ "type": "string", "x-unlisted": true }));
    }
    schema
}

/// Takes the argument out of those of a call.
pub(super) fn take_fork(tool: &str, arguments: &mut Arguments) -> Result<Option<String>, ToolError> {
    if !takes_fork(tool) {
        return Ok(None);
    }
    match arguments.take(NAME) {
        None => Ok(None),
        Some(Value::String(fork_id)) if fork_id.trim().is_empty() => Ok(None),
        Some(Value::String(fork_id)) => Ok(Some(fork_id.trim().to_owned())),
        Some(_) => Err(ToolError::argument(
            NAME,
            "expected a string, as fork_document returned it",
        )),
    }
}
