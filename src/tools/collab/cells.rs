//! `batch_update_notebook_cells` and `batch_insert_notebook_cells`.

use jupyter_client::counted;
use live_document::{Edit, NewCell};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{run_options, select::Selection};
use crate::tools::{
    Call, ToolError,
    cells::{
        self, Change, Notebook, Run, Wanted, cell_kind, change_and_run, edit_cells, refuse_repeated, replacing_blank,
        wants_exec,
    },
    output::ToolReply,
};

/// Answer of every tool that changes cells.
#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    pub(super) description: String,
    pub(super) results: Vec<Confirmation>,
    pub(super) executed: bool,
    #[serde(flatten)]
    pub(super) edited: Option<cells::Edited>,
    #[serde(flatten)]
    pub(super) run: Option<Run>,
}

/// One cell that was changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct Confirmation {
    success: bool,
    cell_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
}

impl Changed {
    pub(super) fn new(done: &str, change: Option<Change>, run: Option<Run>) -> Self {
        let (results, edited) = match change {
            Some(change) => (confirmations(change.cell_ids, change.positions), Some(change.edited)),
            None => (Vec::new(), None),
        };
        Self {
            description: super::edited(done, "create_notebook_session") + super::follow_up(run.as_ref()),
            results,
            executed: run.as_ref().is_some_and(Run::is_executed),
            edited,
            run,
        }
    }
}

fn confirmations(cell_ids: Vec<String>, positions: Vec<Option<usize>>) -> Vec<Confirmation> {
    let confirmation = |(cell_id, position)| Confirmation {
        success: true,
        cell_id,
        position,
    };
    cell_ids.into_iter().zip(positions).map(confirmation).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateArguments {
    path: String,
    updates: Vec<Update>,
    start_index: Option<usize>,
    /// Inclusive
    end_index: Option<usize>,
    cell_ids: Option<Vec<String>>,
    #[schemars(extend("default" = true))]
    exec: Option<bool>,
    /// Seconds to wait
    #[schemars(extend("default" = 30))]
    timeout: Option<f64>,
    /// Refuse if changed since
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Update {
    content: Option<String>,
    #[schemars(extend("enum" = ["code", "markdown", "raw"]))]
    cell_type: Option<String>,
}

pub(super) async fn batch_update_notebook_cells(
    call: Call,
    arguments: UpdateArguments,
) -> Result<ToolReply<Changed>, ToolError> {
    let options = run_options(&call, arguments.timeout)?;
    let wanted = wants_exec(&call, arguments.exec)?;
    let selection = Selection::new(
        arguments.start_index,
        arguments.end_index,
        arguments.cell_ids.as_deref(),
    )?;
    let updates = parse_updates(&arguments.updates)?;
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
    };
    let changes = edit_cells(&call, at, selection.is_by_position(), |room| {
        let ids = selection.ids(room)?;
        refuse_repeated(&ids, |place| format!("cell_ids[{place}]"))?;
        let edits = update_edits(&ids, &updates)?;
        Ok((ids, edits))
    });
    let answer = |(done, change, run): (String, Option<Change>, Option<Run>)| Changed::new(&done, change, run);
    let done = format!("Updated {} in notebook", counted(selection.count(), "cell"));
    change_and_run(&call, Some(at), wanted, options, &done, changes, answer).await
}

fn parse_updates(updates: &[Update]) -> Result<Vec<Wanted<'_>>, ToolError> {
    if updates.is_empty() {
        return Err(ToolError::argument("updates", "give at least one update"));
    }
    let updates = updates.iter().enumerate();
    updates
        .map(|(index, update)| {
            let argument = format!("updates[{index}]");
            let (kind, content) = (update.cell_type.as_deref(), update.content.as_deref());
            Wanted::new(&argument, "cell_type", kind, content)
        })
        .collect()
}

/// One update for each cell, or one for all of them.
fn update_edits(ids: &[String], updates: &[Wanted<'_>]) -> Result<Vec<Edit>, ToolError> {
    if updates.len() != 1 && updates.len() != ids.len() {
        let why = format!(
            "{} for {}; give one for each cell, or one for all",
            counted(updates.len(), "update"),
            counted(ids.len(), "cell")
        );
        return Err(ToolError::argument("updates", why));
    }
    let updates = ids.iter().zip(updates.iter().cycle());
    Ok(updates.map(|(id, wanted)| wanted.edit(id)).collect())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InsertArguments {
    path: String,
    cells: Vec<CellToInsert>,
    /// Default: the end
    start_position: Option<i64>,
    /// One for each cell
    positions: Option<Vec<i64>>,
    #[schemars(extend("default" = true))]
    exec: Option<bool>,
    /// Seconds to wait
    #[schemars(extend("default" = 30))]
    timeout: Option<f64>,
    if_revision: Option<String>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CellToInsert {
    #[serde(default)]
    content: String,
    #[schemars(extend("default" = "code", "enum" = ["code", "markdown", "raw"]))]
    cell_type: Option<String>,
}

pub(super) async fn batch_insert_notebook_cells(
    call: Call,
    arguments: InsertArguments,
) -> Result<ToolReply<Changed>, ToolError> {
    let options = run_options(&call, arguments.timeout)?;
    let wanted = wants_exec(&call, arguments.exec)?;
    let cells = new_cells(&arguments.cells)?;
    let ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
    let done = format!("Inserted {} into notebook", counted(ids.len(), "cell"));
    let edits = insert_edits(cells, arguments.start_position, arguments.positions.as_deref())?;
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: false,
    };
    let changes = edit_cells(&call, at, false, |room| Ok((ids, replacing_blank(&call, room, edits))));
    let answer = |(done, change, run): (String, Option<Change>, Option<Run>)| Changed::new(&done, change, run);
    change_and_run(&call, Some(at), wanted, options, &done, changes, answer).await
}

fn new_cells(cells: &[CellToInsert]) -> Result<Vec<NewCell>, ToolError> {
    if cells.is_empty() {
        return Err(ToolError::argument("cells", "name at least one cell to insert"));
    }
    let new_cell = |(index, cell): (usize, &CellToInsert)| {
        let named = cell.cell_type.as_deref().unwrap_or("code");
        let kind = cell_kind(&format!("cells[{index}].cell_type"), named)?;
        Ok(NewCell::new(kind, cell.content.as_str()))
    };
    cells.iter().enumerate().map(new_cell).collect()
}

fn insert_edits(
    cells: Vec<NewCell>,
    start_position: Option<i64>,
    positions: Option<&[i64]>,
) -> Result<Vec<Edit>, ToolError> {
    match (start_position, positions) {
        (Some(_), Some(_)) => Err(ToolError::argument(
            "positions",
            "give either `start_position` or `positions`",
        )),
        (start, None) => Ok(vec![insert("start_position", start.unwrap_or(-1), cells)?]),
        (None, Some(positions)) if positions.len() != cells.len() => {
            let why = format!(
                "{} for {}; give one for each",
                counted(positions.len(), "position"),
                counted(cells.len(), "cell")
            );
            Err(ToolError::argument("positions", why))
        }
        (None, Some(positions)) => {
            let places = positions.iter().enumerate().zip(cells);
            places
                .map(|((index, at), cell)| insert(&format!("positions[{index}]"), *at, vec![cell]))
                .collect()
        }
    }
}

fn insert(argument: &str, position: i64, cells: Vec<NewCell>) -> Result<Edit, ToolError> {
    Ok(match crate::tools::position::position(argument, position)? {
        Some(at) => Edit::InsertCells { at, cells },
        None => Edit::AppendCells { cells },
    })
}
