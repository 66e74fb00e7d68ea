//! The empty cell that a new notebook has because Jupyter shows none without one. What an agent inserts takes its place, as
//! long as nobody else is there who may be about to type in it. Where cells are known by index and were shown with it
//! (`classic`), it stays.

use live_document::{CellsRead, Edit, Room};

use crate::tools::{Call, ToolError};

/// Adds to what is inserted that the notebook's only cell goes, if that is empty and was never used.
pub(in crate::tools) fn replacing_blank(call: &Call, room: &Room, mut edits: Vec<Edit>) -> Vec<Edit> {
    if room.cell_count() == 1 && is_alone(call, room) {
        edits.extend(blank(room).map(|cell| Edit::DeleteBlank { cell }));
    }
    edits
}

/// The one cell of a notebook, if nothing was ever done with it.
fn blank(room: &Room) -> Option<String> {
    let CellsRead { cells, .. } = room
        .cells(|order| Ok::<_, ToolError>((0..order.count()).collect()))
        .ok()?;
    let [(_, cell)] = <[_; 1]>::try_from(cells).ok()?;
    let is_blank = cell.cell_type == "code"
        && cell.source.is_empty()
        && cell.outputs.is_empty()
        && cell.execution_count.is_null()
        && !matches!(cell.execution_state.as_str(), "running");
    is_blank.then_some(cell.id)
}

/// Returns whether nobody but the caller is known to be in the room.
fn is_alone(call: &Call, room: &Room) -> bool {
    let own = call.principal().name.as_str();
    room.present().iter().all(|name| name.starts_with(own))
}
