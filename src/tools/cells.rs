//! Tools about the cells of a notebook, in the same room as the people who have it open.

mod delete;
mod insert;
mod modify;
mod read;
mod render;
mod select;
mod stat;

use std::sync::Arc;

use super::{Call, Effect, ToolDefinition, ToolError, notebook::require_notebook_name};
use crate::{
    jupyter::{JupyterServer, room::RoomKind},
    pool::Lease,
    types::{DocPath, Toolset},
};

pub(super) fn tools() -> Vec<ToolDefinition> {
    use Effect::{Add, Change, Read, Set};
    let notebook = Toolset::Notebook;
    vec![
        ToolDefinition::new(
            notebook,
            "get_nb_stat",
            "Returns a notebook's cell count, kernel and its state. Starts nothing.",
            Read,
            stat::get_nb_stat,
        ),
        ToolDefinition::new(
            notebook,
            "read_nb_cells",
            "Reads cells with sources and outputs as they stand now: all, or by range or id. `end` is exclusive.",
            Read,
            read::read_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "modify_nb_cells",
            "Sets the source of cells, all in one change that merges with what people type.",
            Set,
            modify::modify_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "insert_nb_cells",
            "Inserts cells before a position.",
            Add,
            insert::insert_nb_cells,
        ),
        ToolDefinition::new(
            notebook,
            "delete_nb_cells",
            "Deletes cells by range or id.",
            Change,
            delete::delete_nb_cells,
        ),
    ]
}

/// The room of a notebook that a call names.
async fn notebook(
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

/// Running cells is not there yet; saying so beats pretending.
fn refuse_exec(exec: Option<bool>) -> Result<(), ToolError> {
    if exec == Some(true) {
        return Err(ToolError::argument(
            "exec",
            "this version cannot execute cells; leave it out or send false",
        ));
    }
    Ok(())
}
