//! `clear_nb_outputs`.

use jupyter_client::counted;
use live_document::{Cell, CellsRead, Edit, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Notebook,
    execute::{Edited, edit_cells},
    select::{Range, positions},
};
use crate::tools::{Call, ToolError, changes, output::ToolReply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// Default: all
    ranges: Option<Vec<Range>>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Cleared {
    message: String,
    cleared_cells: usize,
    cell_ids: Vec<String>,
    /// Cells that run or wait to, which keep their outputs
    running: Vec<String>,
    #[serde(flatten)]
    edited: Edited,
}

pub(super) async fn clear_nb_outputs(call: Call, arguments: Arguments) -> Result<ToolReply<Cleared>, ToolError> {
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: None,
        force: false,
    };
    let mut running = Vec::new();
    let (_, room, change) = edit_cells(&call, at, false, |room| {
        let cells;
        (cells, running) = clearable(room, arguments.ranges.as_deref())?;
        Ok((cells.clone(), vec![Edit::ClearOutputs { cells }]))
    })
    .await?;
    let cleared = change.cell_ids.len();
    let mut message = format!("Cleared outputs of {}", counted(cleared, "cell"));
    let mut text = format!("{message}; {}", changes::revision(&change.edited));
    if !running.is_empty() {
        let short = room.short_ids();
        let names: Vec<&str> = running.iter().map(|id| short.get(id)).collect();
        let kept = format!("; still running or queued, so not cleared: {}", names.join(", "));
        message.push_str(&kept);
        text.push_str(&kept);
    }
    let cleared = Cleared {
        message,
        cleared_cells: cleared,
        cell_ids: change.cell_ids,
        running,
        edited: change.edited,
    };
    Ok(ToolReply::told(text, cleared))
}

/// The code cells among those meant that have outputs or a count, and those of them that run.
fn clearable(room: &Room, ranges: Option<&[Range]>) -> Result<(Vec<String>, Vec<String>), ToolError> {
    let CellsRead { cells, .. } = room.cells(|order| match ranges {
        Some(ranges) => positions(order, ranges, "ranges"),
        None => Ok((0..order.count()).collect()),
    })?;
    let has_run = |cell: &Cell| !cell.outputs.is_empty() || !cell.execution_count.is_null();
    let is_running = |cell: &Cell| cell.execution_state == "running";
    let cells = cells.into_iter().map(|(_, cell)| cell);
    let meant = cells.filter(|cell| cell.cell_type == "code" && (has_run(cell) || is_running(cell)));
    let (running, idle): (Vec<Cell>, Vec<Cell>) = meant.partition(is_running);
    let ids = |cells: Vec<Cell>| {
        let mut ids: Vec<String> = cells.into_iter().map(|cell| cell.id).collect();
        ids.dedup();
        ids
    };
    Ok((ids(idle), ids(running)))
}
