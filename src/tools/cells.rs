//! Tools about the cells of a notebook, in the same room as the people who have it open.

mod blank;
mod clear;
mod delete;
mod edit;
mod execute;
mod insert;
mod modify;
mod move_cells;
mod read;
mod render;
mod select;
mod stat;

use std::sync::Arc;

pub(super) use blank::replacing_blank;
pub(super) use delete::{delete_cells, execute_and_delete};
pub(super) use edit::explain_replacement;
pub(super) use execute::{
    Change, Edited, Run, RunCells, approve_cells, change_and_run, edit_cells, execute, run_cells, run_reply,
};
pub(super) use insert::cell_kind;
pub(super) use modify::{Wanted, refuse_repeated};
pub(super) use render::{
    Limit, ShownCell, ShownOutputs, attach_all, drop_beyond, outputs_schema, show_all, show_outputs, text_length,
};
pub(super) use select::{Range, cell_named, check_positions, positions};
pub(super) use stat::Kernel;

use jupyter_client::{DocPath, JupyterServer};
use live_document::{EditOptions, RoomKind, pool::Lease};

use super::{Call, Effect, ToolDefinition, ToolError, notebook::require_notebook_name};
use crate::types::{Permission, Toolset};

pub(super) fn tools() -> Vec<ToolDefinition> {
    use Effect::{Change, ChangeAndExecute, Execute, Read, Set};
    let notebook = Toolset::Notebook;
    vec![
        ToolDefinition::new(
            notebook,
            "get_nb_stat",
            "Overview of a notebook: sections, errors, stale and running cells, kernel, people. Cheap; starts nothing.",
            Read,
            stat::get_nb_stat,
        ),
        ToolDefinition::new(
            notebook,
            "read_nb_cells",
            "Reads cells as they stand now: all, or by range or id. Whole notebooks are large: view=outline first.",
            Read,
            read::read_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "modify_nb_cells",
            "Rewrites whole cells, merged with what people type, and executes them (`exec`). For small changes: edit_nb_cell.",
            ChangeAndExecute,
            modify::modify_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "edit_nb_cell",
            "Replaces text that a cell has exactly once (`replace_all`: every occurrence) and answers the diff. Cheapest way to change a cell.",
            ChangeAndExecute,
            edit::edit_nb_cell,
        ),
        ToolDefinition::new(
            notebook,
            "insert_nb_cells",
            "Inserts cells at a position or after a cell, and executes them (`exec`).",
            ChangeAndExecute,
            insert::insert_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "delete_nb_cells",
            "Deletes cells by range or id.",
            Change,
            delete::delete_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "move_nb_cells",
            "Moves cells, in the order given, with outputs and all.",
            Change,
            move_cells::move_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "clear_nb_outputs",
            "Clears outputs and execution counts, except of running cells.",
            Set,
            clear::clear_nb_outputs,
        ),
        ToolDefinition::new(
            notebook,
            "execute_nb_cells",
            "Executes cells by range or id, or all. After `timeout` it answers `running` and goes on; get_execution shows the rest.",
            Execute,
            execute::execute_nb_cells,
        ),
    ]
}

/// A notebook as a call names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notebook<'a> {
    pub(super) server: Option<&'a str>,
    pub(super) path: &'a str,
    pub(super) if_revision: Option<&'a str>,
    pub(super) force: bool,
}

impl<'a> Notebook<'a> {
    pub(super) fn options(&self) -> EditOptions<'a> {
        EditOptions {
            if_revision: self.if_revision,
            force: self.force,
            ..EditOptions::default()
        }
    }
}

/// The room of a notebook that a call names.
pub(super) async fn notebook(
    call: &Call,
    server: Option<&str>,
    path: &str,
) -> Result<(Arc<JupyterServer>, DocPath, Lease), ToolError> {
    let server = Arc::clone(call.server(server)?);
    let path = call.file(path)?;
    require_notebook_name("path", &path)?;
    let room = call.room(&server, &path, RoomKind::Notebook).await?;
    Ok((server, path, room))
}

/// Decision whether changed cells are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exec {
    Wanted,
    Unwanted,
    /// True if it is left out only for lack of the permission.
    Forbidden,
}

impl Exec {
    /// Message of a call that did not execute what it changed, though it was not told so.
    pub(super) const FORBIDDEN: &str = "not executed, since the permission `execute` is missing";
}

/// Decides whether changed cells are executed. Without the permission to execute, a call that does not say so means
/// only the change.
pub(super) fn wants_exec(call: &Call, exec: Option<bool>) -> Result<Exec, ToolError> {
    let may = call.principal().require(Permission::Execute);
    match (exec, may) {
        (Some(false), _) => Ok(Exec::Unwanted),
        (_, Ok(())) => Ok(Exec::Wanted),
        (None, Err(_)) => Ok(Exec::Forbidden),
        (Some(true), Err(why)) => Err(ToolError::NoExec(why)),
    }
}
