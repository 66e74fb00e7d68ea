//! The vocabulary of datalayer's jupyter-mcp-server 2.2.4: notebooks are used under a name, one of them is the active one, cells are
//! known by index or id, and answers are text. Faces over the operations of the other tools, with words of their own.

mod answer;
mod arrange;
mod cite;
mod edit;
mod execute;
mod kernels;
mod notebooks;
mod read;
mod servers;
mod target;

pub use cite::cite;
pub use target::open_named;

use super::{Effect, ToolDefinition};
use crate::types::{Permission, Toolset};

pub(super) fn tools() -> Vec<ToolDefinition> {
    [notebook_tools(), cell_tools(), server_tools()]
        .into_iter()
        .flatten()
        .collect()
}

fn notebook_tools() -> Vec<ToolDefinition> {
    let datalayer = Toolset::Datalayer;
    vec![
        ToolDefinition::new(
            datalayer,
            "use_notebook",
            "Uses a notebook under a name and activates it: cell tools work in the active notebook. Call it first.",
            Effect::Open,
            notebooks::use_notebook,
        ),
        ToolDefinition::new(
            datalayer,
            "unuse_notebook",
            "Gives up a notebook's name. Its kernel goes on.",
            Effect::Open,
            notebooks::unuse_notebook,
        ),
        ToolDefinition::new(
            datalayer,
            "list_notebooks",
            "Lists the notebooks in use and marks the active one.",
            Effect::Read,
            notebooks::list_notebooks,
        ),
        ToolDefinition::new(
            datalayer,
            "restart_notebook",
            "Restarts a notebook's kernel: variables are gone, cells and outputs stay.",
            Effect::Execute,
            notebooks::restart_notebook,
        ),
        ToolDefinition::new(
            datalayer,
            "read_notebook",
            "Reads a notebook: brief for index, type and first line of cells, detailed for whole sources.",
            Effect::Read,
            read::read_notebook,
        ),
    ]
}

fn cell_tools() -> Vec<ToolDefinition> {
    use Effect::{Add, Change, Execute, Read, Set};
    let datalayer = Toolset::Datalayer;
    vec![
        ToolDefinition::new(
            datalayer,
            "read_cell",
            "Reads a cell: source and outputs.",
            Read,
            read::read_cell,
        ),
        ToolDefinition::new(datalayer, "insert_cell", "Inserts a cell.", Add, edit::insert_cell),
        ToolDefinition::new(
            datalayer,
            "insert_execute_code_cell",
            "Inserts a code cell, executes it and returns its outputs.",
            Execute,
            execute::insert_execute_code_cell,
        )
        .also_needs(Permission::Write),
        ToolDefinition::new(
            datalayer,
            "execute_cell",
            "Executes a code cell and returns its outputs. After `timeout` it returns what there is; the execution goes on.",
            Execute,
            execute::execute_cell,
        ),
        ToolDefinition::new(
            datalayer,
            "overwrite_cell_source",
            "Replaces the whole source of a cell and returns the diff. For small changes use edit_cell_source.",
            Set,
            edit::overwrite_cell_source,
        ),
        ToolDefinition::new(
            datalayer,
            "edit_cell_source",
            "Replaces a literal text in a cell's source and returns the diff. It must occur once, unless replace_all.",
            Change,
            edit::edit_cell_source,
        ),
        ToolDefinition::new(
            datalayer,
            "move_cell",
            "Moves a cell, with its outputs, to where it is at target_index afterwards.",
            Change,
            arrange::move_cell,
        ),
        ToolDefinition::new(
            datalayer,
            "delete_cell",
            "Deletes cells and returns their sources.",
            Change,
            arrange::delete_cell,
        ),
        ToolDefinition::new(
            datalayer,
            "clear_cell_output",
            "Clears the outputs and the execution count of a code cell.",
            Set,
            arrange::clear_cell_output,
        ),
        ToolDefinition::new(
            datalayer,
            "execute_code",
            "Executes code, magics (%) and shell commands (!) in the active notebook's kernel, or another, without storing it.",
            Execute,
            execute::execute_code,
        ),
    ]
}

fn server_tools() -> Vec<ToolDefinition> {
    let datalayer = Toolset::Datalayer;
    vec![
        ToolDefinition::new(
            datalayer,
            "list_kernels",
            "Lists the kernels that run on the Jupyter server.",
            Effect::Read,
            kernels::list_kernels,
        ),
        ToolDefinition::new(
            datalayer,
            "list_files",
            "Lists files and directories of the Jupyter server.",
            Effect::Read,
            servers::list_files,
        ),
        ToolDefinition::new(
            datalayer,
            "connect_to_jupyter",
            "Works on another Jupyter server from now on, by its name or URL.",
            Effect::Open,
            servers::connect_to_jupyter,
        ),
    ]
}
