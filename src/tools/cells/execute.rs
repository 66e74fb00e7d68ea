//! `execute_nb_cells`, and the part of other tools that runs the cells they made or changed.

use std::{collections::HashSet, sync::Arc};

use executor::Execution;
use jupyter_client::{JupyterServer, counted};
use live_document::{self, Edit, Room, SourceChange, pool::Lease};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Exec, Notebook, notebook,
    select::{CellScope, Range, check_positions},
};
use crate::{
    tools::{
        Call, ToolError, changes,
        execution::{CellResult, Disconnect, FoundExecution, InputRequest, RunOptions, RunResult, resumed_execution},
        output::ToolReply,
    },
    types::Permission,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    ranges: Option<Vec<Range>>,
    /// above: all before the first of `ranges`; below: it and all after
    #[serde(default)]
    scope: CellScope,
    if_revision: Option<String>,
    /// Seconds to wait
    timeout: Option<f64>,
    #[schemars(extend("default" = true))]
    stop_on_error: Option<bool>,
    #[serde(default)]
    #[schemars(extend("x-unlisted" = true))]
    on_disconnect: Disconnect,
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Executed {
    message: String,
    executed_ranges: usize,
    executed_cells: usize,
    #[serde(flatten)]
    run: Run,
}

/// The members about a run, in the answer of every tool that ran cells.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Run {
    pub(in crate::tools) execution_id: String,
    pub(in crate::tools) status: &'static str,
    pub(in crate::tools) execution_results: Vec<CellResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::tools) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::tools) input_request: Option<InputRequest>,
    /// For get_execution: only what comes after this answer
    pub(in crate::tools) since: String,
}

impl Run {
    pub(in crate::tools) fn execution_id(&self) -> &str {
        &self.execution_id
    }

    /// Number of cells the kernel has begun with.
    pub(in crate::tools) fn executed_cells(&self) -> usize {
        self.execution_results.iter().filter(|cell| cell.has_begun()).count()
    }

    pub(in crate::tools) fn is_open(&self) -> bool {
        matches!(self.status, "queued" | "running" | "input_required")
    }

    pub(in crate::tools) fn progress(&self) -> Progress {
        match self.executed_cells() {
            _ if self.status == "completed" => Progress::Done,
            0 => Progress::NotBegun,
            _ => Progress::Begun,
        }
    }

    /// Sentence on what was done before the run, and how far the run is.
    pub(in crate::tools) fn after(&self, done: &str) -> String {
        match self.progress() {
            Progress::Done => format!("{done} and executed cells"),
            Progress::Begun if !self.is_open() => format!("{done} and began to execute cells"),
            Progress::Begun | Progress::NotBegun => done.to_owned(),
        }
    }

    /// Returns whether anything was executed, or still will be.
    pub(in crate::tools) fn is_executed(&self) -> bool {
        self.is_open() || self.executed_cells() > 0
    }

    pub(in crate::tools) fn results(&self) -> &[CellResult] {
        &self.execution_results
    }
}

/// Progress of a run.
pub(in crate::tools) enum Progress {
    Done,
    Begun,
    NotBegun,
}

/// Cells to run, and how.
pub(in crate::tools) struct RunCells {
    pub(in crate::tools) cells: Vec<String>,
    pub(in crate::tools) stop_on_error: bool,
}

pub(super) async fn execute_nb_cells(call: Call, arguments: Arguments) -> Result<ToolReply<Executed>, ToolError> {
    let options = RunOptions::new(
        &call,
        arguments.timeout,
        arguments.on_disconnect,
        arguments.max_cell_output_size,
    )?;
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: false,
    };
    let ranges = arguments.ranges.as_deref();
    let by_position = ranges.is_some_and(|ranges| ranges.iter().any(Range::is_by_position));
    let result = execute(
        &call,
        at,
        options,
        arguments.stop_on_error.unwrap_or(true),
        by_position,
        |room| room.ids(|order| arguments.scope.positions(order, ranges)),
    )
    .await?;
    let executed_ranges = ranges.map_or(1, <[Range]>::len);
    Ok(run_reply(result, |run, message| Executed {
        message: message(&match run.progress() {
            Progress::Done => format!("Successfully executed {}", counted(executed_ranges, "cell range")),
            Progress::Begun if !run.is_open() => format!("Began to execute {}", counted(executed_ranges, "cell range")),
            Progress::Begun | Progress::NotBegun => String::new(),
        }),
        executed_ranges,
        executed_cells: run.executed_cells(),
        run,
    }))
}

/// Executes the cells that are chosen, or takes up the execution that an earlier call began.
pub(in crate::tools) async fn execute(
    call: &Call,
    at: Notebook<'_>,
    options: RunOptions,
    stop_on_error: bool,
    by_position: bool,
    choose: impl FnOnce(&Room) -> Result<Vec<String>, ToolError>,
) -> Result<RunResult, ToolError> {
    let found = match resumed_execution(call).await? {
        Some(found) => found,
        None => {
            let (server, room, cells) = choose_unchanged(call, at, by_position, choose).await?;
            let wanted = RunCells { cells, stop_on_error };
            FoundExecution::Live(run_cells(call, &server, room, &wanted).await?)
        }
    };
    RunResult::of(call, found, options).await
}

/// The cells that are chosen in a notebook, if nobody else changed them since the revision that the call names.
pub(super) async fn choose_unchanged(
    call: &Call,
    at: Notebook<'_>,
    by_position: bool,
    choose: impl FnOnce(&Room) -> Result<Vec<String>, ToolError>,
) -> Result<(Arc<JupyterServer>, Lease, Vec<String>), ToolError> {
    let (server, _, room) = notebook(call, at.server, at.path).await?;
    let cells = choose(&room)?;
    if let Some(revision) = at.if_revision {
        check_positions(&room, by_position, &cells, Some(revision), call.principal())?;
        room.check_unchanged(&call.principal().id, &cells, revision)?;
    }
    Ok((server, room, cells))
}

/// Changes that a tool made before it runs anything.
pub(in crate::tools) struct Change {
    pub(in crate::tools) cell_ids: Vec<String>,
    /// Position of each of them, as far as they are still there.
    pub(in crate::tools) positions: Vec<Option<usize>>,
    pub(in crate::tools) edited: Edited,
    /// Changes of sources.
    pub(in crate::tools) sources: Vec<SourceChange>,
    /// The same in words for a model.
    pub(in crate::tools) text: String,
}

/// The members about an edit, in the answer of every tool that edits.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct Edited {
    pub(in crate::tools) revision: String,
    pub(in crate::tools) acknowledged: bool,
}

impl From<&live_document::Edited> for Edited {
    fn from(edited: &live_document::Edited) -> Self {
        edited.clone().into()
    }
}

impl From<live_document::Edited> for Edited {
    fn from(edited: live_document::Edited) -> Self {
        Self {
            revision: edited.revision,
            acknowledged: edited.acknowledged,
        }
    }
}

impl Change {
    /// `moved` are those of them that are in new places.
    pub(in crate::tools) fn new(
        room: &Room,
        cell_ids: Vec<String>,
        moved: &[String],
        edited: live_document::Edited,
    ) -> Self {
        Self {
            positions: cell_ids.iter().map(|id| room.position_of(id)).collect(),
            text: changes::of_cells(room, &edited, moved),
            cell_ids,
            sources: edited.changes.clone(),
            edited: edited.into(),
        }
    }
}

/// Edits a notebook, whole or not at all. What is made of the room names the cells it is about, and the edits.
pub(in crate::tools) async fn edit_cells(
    call: &Call,
    at: Notebook<'_>,
    by_position: bool,
    make: impl FnOnce(&Room) -> Result<(Vec<String>, Vec<Edit>), ToolError>,
) -> Result<(Arc<JupyterServer>, Lease, Change), ToolError> {
    let (server, _, room) = notebook(call, at.server, at.path).await?;
    let (cell_ids, edits) = make(&room)?;
    check_positions(&room, by_position, &cell_ids, at.if_revision, call.principal())?;
    let edited = call.edit(&room, &edits, at.options()).await?;
    let moved = edits.iter().find_map(|edit| match edit {
        Edit::MoveCells { cells, .. } => Some(cells.as_slice()),
        _ => None,
    });
    let change = Change::new(&room, cell_ids, moved.unwrap_or_default(), edited);
    Ok((server, room, change))
}

/// Changes a notebook and runs what was changed, if that is wanted. A call that repeats an earlier one
/// changes nothing again. Without `at` it is left to `changes` to refuse what could not be run.
pub(in crate::tools) async fn change_and_run<T>(
    call: &Call,
    at: Option<Notebook<'_>>,
    exec: Exec,
    options: RunOptions,
    done: &str,
    changes: impl Future<Output = Result<(Arc<JupyterServer>, Lease, Change), ToolError>>,
    answered: impl FnOnce((String, Option<Change>, Option<Run>)) -> T,
) -> Result<ToolReply<T>, ToolError> {
    let (found, change) = match resumed_execution(call).await? {
        Some(found) => (found, None),
        None => {
            let wanted = exec == Exec::Wanted;
            if let Some(at) = at.filter(|_| wanted) {
                // Refused before anything is changed, so that whoever tries again does not change it twice.
                let (server, path) = (call.server(at.server)?, call.file(at.path)?);
                call.engine().has_room(&call.claim(), server, &path)?;
            }
            if wanted {
                call.set_runs_edits();
            }
            let (server, room, change) = changes.await?;
            let wanted = RunCells {
                cells: change.cell_ids.iter().filter(|_| wanted).cloned().collect(),
                stop_on_error: true,
            };
            if code_cells(&room, &wanted.cells).is_empty() {
                let forbidden = exec == Exec::Forbidden && !code_cells(&room, &change.cell_ids).is_empty();
                let mut text = change.text.clone();
                let done = match forbidden {
                    true => {
                        text = format!("{text}\n{}", Exec::FORBIDDEN);
                        format!("{done}, {}", Exec::FORBIDDEN)
                    }
                    false => done.to_owned(),
                };
                return Ok(ToolReply::told(text, answered((done, Some(change), None))));
            }
            (
                FoundExecution::Live(run_cells(call, &server, room, &wanted).await?),
                Some(change),
            )
        }
    };
    let result = RunResult::of(call, found, options).await?;
    let text = change.as_ref().map(|change| change.text.clone());
    let reply = run_reply(result, |run, message| {
        answered((message(&run.after(done)), change, Some(run)))
    });
    Ok(reply.after(text))
}

/// Queues the code cells among those named, each once.
pub(in crate::tools) async fn run_cells(
    call: &Call,
    server: &Arc<JupyterServer>,
    room: Lease,
    wanted: &RunCells,
) -> Result<Arc<Execution>, ToolError> {
    call.principal().require(Permission::Execute)?;
    approve_cells(call, server, &room, &wanted.cells).await?;
    let cells = code_cells(&room, &wanted.cells);
    Ok(call
        .engine()
        .run_cells(&call.claim(), server, room, cells, wanted.stop_on_error)
        .await?)
}

/// Has a person allow the code cells among those named, if a rule demands it.
pub(in crate::tools) async fn approve_cells(
    call: &Call,
    server: &Arc<JupyterServer>,
    room: &Room,
    cells: &[String],
) -> Result<(), ToolError> {
    if !call.has_rules() {
        return Ok(());
    }
    let code = code_cells(room, cells).into_iter();
    let code = code.filter_map(|(position, id)| Some((format!("cell {position}"), room.source_of(&id)?)));
    let code: Vec<_> = code.collect();
    Box::pin(call.approve_code(server, Some(&room.info().path), &code)).await
}

/// The positions and ids of the code cells among `cells`.
fn code_cells(room: &Room, cells: &[String]) -> Vec<(usize, String)> {
    let mut seen = HashSet::new();
    cells
        .iter()
        .filter(|id| seen.insert(id.as_str()))
        .filter(|id| room.is_code(id))
        .filter_map(|id| Some((room.position_of(id)?, id.clone())))
        .collect()
}

/// An answer with a run.
pub(in crate::tools) fn run_reply<T>(
    result: RunResult,
    answer: impl FnOnce(Run, &dyn Fn(&str) -> String) -> T,
) -> ToolReply<T> {
    let (is_failure, open, input_request) = (result.is_failure(), result.open(), result.input_request());
    let run = Run {
        execution_id: result.execution_id.clone(),
        status: result.status.as_str(),
        execution_results: result.results.clone(),
        reason: result.reason.clone(),
        input_request,
        since: result.since.clone(),
    };
    let value = answer(run, &|done| result.message(done));
    ToolReply {
        images: result.images,
        is_failure,
        open,
        ..ToolReply::told(result.text, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ran_is_not_called_executed() {
        let did = |status| {
            let run = Run {
                execution_id: "e".to_owned(),
                status,
                execution_results: Vec::new(),
                reason: None,
                input_request: None,
                since: String::new(),
            };
            run.after("Inserted")
        };
        for status in ["failed", "cancelled", "queued"] {
            assert_eq!(did(status), "Inserted");
        }
    }
}
