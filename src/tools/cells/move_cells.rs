//! `move_nb_cells`.

use std::collections::HashSet;

use jupyter_client::counted;
use live_document::{Edit, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Notebook,
    execute::{Edited, edit_cells},
    select::{Range, check_positions, positions},
};
use crate::tools::{Call, ToolError, output::ToolReply, position::position};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    ranges: Vec<Range>,
    /// Index before the move; -1: the end
    position: i64,
    if_revision: Option<String>,
    /// Even if people are in them
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Moved {
    message: String,
    moved_cells: usize,
    cell_ids: Vec<String>,
    /// Index of the first of them now
    position: Option<usize>,
    #[serde(flatten)]
    edited: Edited,
}

pub(super) async fn move_nb_cells(call: Call, arguments: Arguments) -> Result<ToolReply<Moved>, ToolError> {
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
    };
    let by_position = arguments.ranges.iter().any(Range::is_by_position);
    let (_, _, change) = edit_cells(&call, at, by_position, |room| {
        let (cells, before) = target(room, &arguments)?;
        // The place is named by its position, whatever names the cells.
        let anchor: Vec<String> = before.iter().cloned().collect();
        check_positions(room, true, &anchor, at.if_revision, call.principal())?;
        let edit = Edit::MoveCells {
            cells: cells.clone(),
            before,
        };
        Ok((cells, vec![edit]))
    })
    .await?;
    let moved = Moved {
        message: format!("Successfully moved {}", counted(change.cell_ids.len(), "cell")),
        moved_cells: change.cell_ids.len(),
        position: change.positions.first().copied().flatten(),
        cell_ids: change.cell_ids,
        edited: change.edited,
    };
    Ok(ToolReply::told(change.text, moved))
}

/// The cells that are meant, each once, and the first cell from the position on that is none of them.
fn target(room: &Room, arguments: &Arguments) -> Result<(Vec<String>, Option<String>), ToolError> {
    let all = room.ids(|order| Ok::<_, ToolError>((0..order.count()).collect()))?;
    let mut cells = room.ids(|order| positions(order, &arguments.ranges, "ranges"))?;
    let mut seen = HashSet::new();
    cells.retain(|cell| seen.insert(cell.clone()));
    let to = position("position", arguments.position)?.unwrap_or(all.len());
    if to > all.len() {
        let why = format!("{to} is out of range; allowed: 0 to {}, or -1 for the end", all.len());
        return Err(ToolError::argument("position", why));
    }
    let before = all.into_iter().skip(to).find(|cell| !seen.contains(cell));
    Ok((cells, before))
}
