//! `insert_nb_cells`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{notebook, refuse_exec};
use crate::{
    jupyter::room::{CellKind, Edit, NewCell, Room},
    tools::{Call, ToolError},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// Index to insert at, or the id of the cell to insert before
    position: Position,
    cells: Vec<CellToInsert>,
    if_revision: Option<String>,
    exec: Option<bool>,
    #[serde(alias = "maxCellOutputSize")]
    #[expect(
        dead_code,
        reason = "accepted because callers send it; it matters once cells can be executed"
    )]
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Position {
    Index(usize),
    Before { cell_id: String },
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CellToInsert {
    /// code (default), markdown or raw
    #[serde(rename = "type")]
    kind: Option<String>,
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Inserted {
    message: String,
    executed: bool,
    cell_ids: Vec<String>,
    position: usize,
    revision: String,
    acknowledged: bool,
}

pub(super) async fn insert_nb_cells(call: Call, arguments: Arguments) -> Result<Inserted, ToolError> {
    refuse_exec(arguments.exec)?;
    let cells = new_cells(&arguments.cells)?;
    let (_, _, room) = notebook(&call, arguments.server.as_deref(), &arguments.path).await?;
    let cell_ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
    let count = cells.len();
    let principal = call.principal();
    let edits = [edit(&room, arguments.position, cells)?];
    let edited = room
        .edit(&principal.id, &principal.name, &edits, arguments.if_revision.as_deref())
        .await?;
    Ok(Inserted {
        message: format!("Successfully inserted {count} cells"),
        executed: false,
        position: cell_ids.first().and_then(|id| room.position_of(id)).unwrap_or_default(),
        cell_ids,
        revision: edited.revision,
        acknowledged: edited.acknowledged,
    })
}

fn new_cells(cells: &[CellToInsert]) -> Result<Vec<NewCell>, ToolError> {
    if cells.is_empty() {
        return Err(ToolError::argument("cells", "name at least one cell to insert"));
    }
    let new_cell = |(index, cell): (usize, &CellToInsert)| {
        let named = cell.kind.as_deref().unwrap_or("code");
        let kind = CellKind::parse(named).ok_or_else(|| {
            ToolError::argument(
                &format!("cells[{index}].type"),
                format!("{named:?} is no cell type; allowed: code, markdown, raw"),
            )
        })?;
        Ok(NewCell::new(kind, cell.content.as_str()))
    };
    cells.iter().enumerate().map(new_cell).collect()
}

fn edit(room: &Room, position: Position, cells: Vec<NewCell>) -> Result<Edit, ToolError> {
    let count = room.cell_count();
    match position {
        Position::Index(at) if at <= count => Ok(Edit::InsertCells { at, cells }),
        Position::Index(index) => Err(ToolError::argument(
            "position",
            format!("{index} is out of range; allowed: 0 to {count}"),
        )),
        Position::Before { cell_id } => Ok(Edit::InsertBefore { cell: cell_id, cells }),
    }
}
