//! `delete_nb_cells`.

use std::collections::HashSet;

use jupyter_client::counted;
use live_document::{Edit, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Notebook,
    execute::{Change, Edited, RunCells, choose_unchanged, edit_cells, run_cells},
    select::{Range, positions},
};
use crate::tools::{
    Call, ToolError,
    execution::{FoundExecution, RunOptions, RunResult, resumed_execution},
    output::ToolReply,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    ranges: Vec<Range>,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    message: String,
    deleted_cells: usize,
    cell_ids: Vec<String>,
    #[serde(flatten)]
    edited: Edited,
}

pub(super) async fn delete_nb_cells(call: Call, arguments: Arguments) -> Result<ToolReply<Deleted>, ToolError> {
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
    };
    let by_position = arguments.ranges.iter().any(Range::is_by_position);
    let choose = |room: &Room| room.ids(|order| positions(order, &arguments.ranges, "ranges"));
    let change = delete_cells(&call, at, by_position, choose).await?;
    let deleted = Deleted {
        message: format!("Successfully deleted {}", counted(change.cell_ids.len(), "cell")),
        deleted_cells: change.cell_ids.len(),
        cell_ids: change.cell_ids,
        edited: change.edited,
    };
    Ok(ToolReply::told(change.text, deleted))
}

/// Deletes the cells that are chosen, each once.
pub(in crate::tools) async fn delete_cells(
    call: &Call,
    at: Notebook<'_>,
    by_position: bool,
    choose: impl FnOnce(&Room) -> Result<Vec<String>, ToolError>,
) -> Result<Change, ToolError> {
    let (_, _, change) = edit_cells(call, at, by_position, |room| {
        let mut seen = HashSet::new();
        let mut cells = choose(room)?;
        cells.retain(|cell| seen.insert(cell.clone()));
        cells.sort_by_key(|cell| room.position_of(cell));
        Ok((cells.clone(), vec![Edit::DeleteCells { cells }]))
    })
    .await?;
    Ok(change)
}

/// Executes the code among the cells that are chosen and deletes them once all of it has run, be it with
/// errors. Nothing is deleted before, nor if some of it did not run. A call that takes up an execution deletes the
/// cells that were executed in it.
pub(in crate::tools) async fn execute_and_delete(
    call: &Call,
    at: Notebook<'_>,
    options: RunOptions,
    by_position: bool,
    choose: impl FnOnce(&Room) -> Result<Vec<String>, ToolError>,
) -> Result<(Option<RunResult>, Option<Change>), ToolError> {
    // Chosen once: the cells' places may change while they run, but the choice must not.
    let (found, chosen) = match resumed_execution(call).await? {
        Some(found) => (Some(found), None),
        None => {
            let (server, room, cells) = choose_unchanged(call, at, by_position, choose).await?;
            // Refused before anything runs.
            room.check_deletable(&call.principal().id, &cells, at.options())?;
            let found = match cells.iter().any(|cell| room.is_code(cell)) {
                true => {
                    let wanted = RunCells {
                        cells: cells.clone(),
                        // A failure in one of them must not keep another from being deleted.
                        stop_on_error: false,
                    };
                    Some(FoundExecution::Live(run_cells(call, &server, room, &wanted).await?))
                }
                false => None,
            };
            (found, Some(cells))
        }
    };
    let result = match found {
        Some(found) => Some(RunResult::of(call, found, options).await?),
        None => None,
    };
    let ran = result.as_ref().is_none_or(RunResult::has_run);
    if !ran || call.only_shows_execution() {
        return Ok((result, None));
    }
    let executed = || result.iter().flat_map(|result| &result.results);
    let mut cells = chosen.unwrap_or_else(|| executed().map(|cell| cell.cell_id.clone()).collect());
    let at = Notebook {
        if_revision: None,
        ..at
    };
    let change = delete_cells(call, at, false, |room| {
        // Somebody may have deleted some of them while they ran, which is as good.
        cells.retain(|cell| room.position_of(cell).is_some());
        Ok(cells)
    })
    .await?;
    Ok((result, Some(change)))
}
