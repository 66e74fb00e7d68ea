//! `modify_nb_cells`.

use std::collections::HashSet;

use jupyter_client::counted;
use live_document::{Edit, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Notebook,
    execute::{Change, Edited, Run, change_and_run, edit_cells},
    select::Range,
    wants_exec,
};
use crate::tools::{
    Call, ToolError,
    execution::{Disconnect, RunOptions},
    output::ToolReply,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    modifications: Vec<Modification>,
    /// Refuse if others changed them since
    if_revision: Option<String>,
    /// Even over what people typed since
    #[serde(default)]
    force: bool,
    #[schemars(extend("default" = true))]
    exec: Option<bool>,
    /// Seconds to wait
    timeout: Option<f64>,
    #[serde(default)]
    on_disconnect: Disconnect,
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Modification {
    range: Range,
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Modified {
    message: String,
    modified_ranges: usize,
    executed: bool,
    cell_ids: Vec<String>,
    #[serde(flatten)]
    edited: Option<Edited>,
    #[serde(flatten)]
    run: Option<Run>,
}

pub(super) async fn modify_nb_cells(call: Call, arguments: Arguments) -> Result<ToolReply<Modified>, ToolError> {
    let options = RunOptions::new(
        &call,
        arguments.timeout,
        arguments.on_disconnect,
        arguments.max_cell_output_size,
    )?;
    let modified_ranges = arguments.modifications.len();
    let done = format!("Successfully modified {}", counted(modified_ranges, "cell range"));
    let answer = |(message, change, run): (String, Option<Change>, Option<Run>)| {
        let (cell_ids, edited) = change.map_or_else(Default::default, |change| (change.cell_ids, Some(change.edited)));
        Modified {
            message,
            modified_ranges,
            executed: run.as_ref().is_some_and(Run::is_executed),
            cell_ids,
            edited,
            run,
        }
    };
    let wanted = wants_exec(&call, arguments.exec)?;
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
    };
    let mut ranges = arguments.modifications.iter().map(|modification| &modification.range);
    let by_position = ranges.any(Range::is_by_position);
    let changes = edit_cells(&call, at, by_position, |room| edits(room, &arguments.modifications));
    change_and_run(&call, Some(at), wanted, options, &done, changes, answer).await
}

/// One edit for each cell that is meant, all chosen at the same moment.
fn edits(room: &Room, modifications: &[Modification]) -> Result<(Vec<String>, Vec<Edit>), ToolError> {
    if modifications.is_empty() {
        return Err(ToolError::argument("modifications", "name at least one"));
    }
    let mut contents = Vec::new();
    let cells = room.ids(|order| {
        let mut all = Vec::new();
        for (index, modification) in modifications.iter().enumerate() {
            let named = |why| ToolError::argument(&format!("modifications[{index}].range"), why);
            let found: Vec<usize> = modification.range.resolve(order).map_err(named)?.collect();
            contents.extend(std::iter::repeat_n((index, &modification.content), found.len()));
            all.extend(found);
        }
        Ok::<_, ToolError>(all)
    })?;
    refuse_repeated(&cells, |place| format!("modifications[{}]", contents[place].0))?;
    let edit = |(cell, (_, source)): (&String, &(usize, &String))| Edit::SetSource {
        cell: cell.clone(),
        source: (*source).clone(),
    };
    let edits = cells.iter().zip(&contents).map(edit).collect();
    Ok((cells, edits))
}

/// Refuses a cell that is meant twice, naming the argument that means it for the second time.
pub(in crate::tools) fn refuse_repeated(cells: &[String], argument: impl Fn(usize) -> String) -> Result<(), ToolError> {
    let mut seen = HashSet::new();
    match cells.iter().position(|cell| !seen.insert(cell)) {
        Some(place) => {
            let why = format!("cell {:?} is modified twice in one call", cells[place]);
            Err(ToolError::argument(&argument(place), why))
        }
        None => Ok(()),
    }
}
