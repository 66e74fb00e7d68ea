//! The vocabulary of jupyter-collaboration-mcp, so that agents written for it work here: other names, parameters and
//! answers for what the tools beside this module do. `list_documents` is shared with them.

mod cells;
mod delete;
mod document;
mod execute;
mod notebooks;
mod read;
mod select;
mod session;

use super::{
    Call, Effect, ToolDefinition, ToolError,
    cells::Run,
    execution::{Disconnect, RunOptions},
};
use crate::types::Toolset;

/// Seconds that a call waits for an execution when it does not say how long.
const DEFAULT_TIMEOUT: f64 = 30.0;
/// Number of results a listing shows when a call does not say how many.
const DEFAULT_MAX_RESULTS: usize = 50;
/// Number of characters a reading shows when a call does not say how many.
const DEFAULT_MAX_CONTENT_LENGTH: usize = 100_000;

pub(super) fn tools() -> Vec<ToolDefinition> {
    use Effect::{Add, Change, ChangeAndExecute, Execute, Read};
    let collab = Toolset::Collab;
    vec![
        ToolDefinition::new(
            collab,
            "list_notebooks",
            "Lists the notebooks whose path begins with `path_prefix`, and whether each is open for collaboration.",
            Read,
            notebooks::list_notebooks,
        ),
        ToolDefinition::new(
            collab,
            "get_notebook",
            "Gets a notebook's cells as they stand now, with ids and outputs, and who works in it.",
            Read,
            read::get_notebook,
        ),
        ToolDefinition::new(
            collab,
            "create_notebook_session",
            "Creates or retrieves the collaboration session of a notebook.",
            Read,
            session::create_notebook_session,
        ),
        ToolDefinition::new(
            collab,
            "batch_update_notebook_cells",
            "Updates cells by range or id, all or none, and executes them (`exec`). One update for each cell, or one for all.",
            ChangeAndExecute,
            cells::batch_update_notebook_cells,
        ),
        ToolDefinition::new(
            collab,
            "batch_insert_notebook_cells",
            "Inserts cells from `start_position` on, or each at its own of `positions` (in the notebook before the call; -1 appends), and executes them (`exec`).",
            ChangeAndExecute,
            cells::batch_insert_notebook_cells,
        ),
        ToolDefinition::new(
            collab,
            "batch_delete_notebook_cells",
            "Deletes cells by range or id, after executing them (`exec`).",
            ChangeAndExecute,
            delete::batch_delete_notebook_cells,
        ),
        ToolDefinition::new(
            collab,
            "execute_notebook_cell",
            "Executes a cell; collaborators see its outputs appear. After `timeout` it answers `running` and goes on; get_execution shows the rest.",
            Execute,
            execute::execute_notebook_cell,
        ),
        ToolDefinition::new(
            collab,
            "batch_execute_notebook_cells",
            "Executes cells by range or id, in order; an error stops the rest.",
            Execute,
            execute::batch_execute_notebook_cells,
        ),
        ToolDefinition::new(
            collab,
            "get_document",
            "Gets a text document as it stands now, and who works in it.",
            Read,
            read::get_document,
        ),
        ToolDefinition::new(
            collab,
            "create_document_session",
            "Creates or retrieves the collaboration session of a text document.",
            Read,
            session::create_document_session,
        ),
        ToolDefinition::new(
            collab,
            "batch_update_document",
            "Replaces, inserts and appends text, all or none. Positions count characters of the text before the call.",
            Change,
            document::batch_update_document,
        ),
        ToolDefinition::new(
            collab,
            "batch_insert_text",
            "Inserts texts, all or none. Positions count characters of the text before the call; -1 appends.",
            Add,
            document::batch_insert_text,
        ),
        ToolDefinition::new(
            collab,
            "batch_delete_text",
            "Deletes pieces of text, all or none. Positions count characters of the text before the call.",
            Change,
            document::batch_delete_text,
        ),
    ]
}

fn run_options(call: &Call, timeout: Option<f64>) -> Result<RunOptions, ToolError> {
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
    let options = RunOptions::new(
        call,
        Some(timeout),
        Disconnect::default(),
        Some(DEFAULT_MAX_CONTENT_LENGTH),
    )?;
    Ok(options.within(DEFAULT_MAX_CONTENT_LENGTH))
}

/// Advice on how to go on with an execution that is not over.
fn follow_up(run: Option<&Run>) -> &'static str {
    match run.is_some_and(Run::is_open) {
        true => {
            " get_execution waits for its end and cancel_execution ends it; get_notebook shows the outputs as they come."
        }
        false => "",
    }
}

/// Sentence on what was done, with the reminder of where it can be seen that this vocabulary gives after every edit.
fn edited(done: &str, create_session: &str) -> String {
    format!(
        "{done}. Changes are synchronized with all collaborators; {create_session} returns their collaboration session."
    )
}
