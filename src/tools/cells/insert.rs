//! `insert_nb_cells`.

use jupyter_client::counted;
use live_document::{CellKind, Edit, NewCell, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Notebook,
    blank::replacing_blank,
    execute::{Change, Edited, Run, change_and_run, edit_cells},
    select::cell_named,
    wants_exec,
};
use crate::tools::{
    Call, ToolError,
    execution::{Disconnect, RunOptions},
    output::ToolReply,
    position::position as index_to_insert_at,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// Index (-1: the end), or the cell to insert before
    position: Option<Position>,
    /// Cell id, instead of `position`
    after: Option<String>,
    cells: Vec<CellToInsert>,
    if_revision: Option<String>,
    #[schemars(extend("default" = true))]
    exec: Option<bool>,
    timeout: Option<f64>,
    #[serde(default)]
    #[schemars(extend("x-unlisted" = true))]
    on_disconnect: Disconnect,
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected an index, -1 for the end, or an id as in {\"cell_id\": \"...\"}"
)]
enum Position {
    Index(i64),
    Before { cell_id: String },
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CellToInsert {
    #[serde(rename = "type")]
    #[schemars(extend("default" = "code", "enum" = ["code", "markdown", "raw"]))]
    kind: Option<String>,
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Inserted {
    message: String,
    executed: bool,
    cell_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    #[serde(flatten)]
    edited: Option<Edited>,
    #[serde(flatten)]
    run: Option<Run>,
}

pub(super) async fn insert_nb_cells(call: Call, arguments: Arguments) -> Result<ToolReply<Inserted>, ToolError> {
    let options = RunOptions::new(
        &call,
        arguments.timeout,
        arguments.on_disconnect,
        arguments.max_cell_output_size,
    )?;
    let cells = new_cells(&arguments.cells)?;
    let done = format!("Successfully inserted {}", counted(cells.len(), "cell"));
    let answer = |(message, change, run): (String, Option<Change>, Option<Run>)| {
        let position = change.as_ref().and_then(|change| *change.positions.first()?);
        let (cell_ids, edited) = change.map_or_else(Default::default, |change| (change.cell_ids, Some(change.edited)));
        Inserted {
            message,
            executed: run.as_ref().is_some_and(Run::is_executed),
            cell_ids,
            position,
            edited,
            run,
        }
    };
    let wanted = wants_exec(&call, arguments.exec)?;
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: false,
    };
    let changes = edit_cells(&call, at, false, |room| {
        let cell_ids = cells.iter().map(|cell| cell.id.clone()).collect();
        let edits = vec![edit(
            room,
            arguments.position.as_ref(),
            arguments.after.as_deref(),
            cells,
        )?];
        Ok((cell_ids, replacing_blank(&call, room, edits)))
    });
    change_and_run(&call, Some(at), wanted, options, &done, changes, answer).await
}

fn new_cells(cells: &[CellToInsert]) -> Result<Vec<NewCell>, ToolError> {
    if cells.is_empty() {
        return Err(ToolError::argument("cells", "name at least one cell to insert"));
    }
    let new_cell = |(index, cell): (usize, &CellToInsert)| {
        let named = cell.kind.as_deref().unwrap_or("code");
        let kind = cell_kind(&format!("cells[{index}].type"), named)?;
        Ok(NewCell::new(kind, cell.content.as_str()))
    };
    cells.iter().enumerate().map(new_cell).collect()
}

pub(in crate::tools) fn cell_kind(argument: &str, named: &str) -> Result<CellKind, ToolError> {
    CellKind::parse(named).ok_or_else(|| {
        let why = format!("{named:?} is no cell type; allowed: code, markdown, raw");
        ToolError::argument(argument, why)
    })
}

fn edit(room: &Room, position: Option<&Position>, after: Option<&str>, cells: Vec<NewCell>) -> Result<Edit, ToolError> {
    match (position, after) {
        (Some(Position::Index(index)), None) => {
            let count = room.cell_count();
            match index_to_insert_at("position", *index)? {
                None => Ok(Edit::AppendCells { cells }),
                Some(at) if at <= count => Ok(Edit::InsertCells { at, cells }),
                Some(_) => Err(ToolError::argument(
                    "position",
                    format!("{index} is out of range; allowed: 0 to {count}, or -1 for the end"),
                )),
            }
        }
        (Some(Position::Before { cell_id }), None) => Ok(Edit::InsertBefore {
            cell: cell_named(room, "position", cell_id)?,
            cells,
        }),
        (None, Some(cell_id)) => Ok(Edit::InsertAfter {
            cell: cell_named(room, "after", cell_id)?,
            cells,
        }),
        (Some(_), Some(_)) | (None, None) => Err(ToolError::argument(
            "position",
            "give either `position` (an index, or -1 for the end) or `after` (a cell id)",
        )),
    }
}
