//! The report of a copy's run: how far it came, what failed, and which outputs are not those of the notebook.

use std::time::Duration;

use executor::{CellSnapshot, Snapshot};
use jupyter_client::counted;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::ExecutionStatus;

use super::parameters::INJECTED;
use crate::tools::{
    Call,
    advice::advise,
    cells::outputs_schema,
    execution::{
        InputRequest,
        cursor::Cursor,
        result::{DEFAULT_MAX_OUTPUT, cell_names, results},
    },
    text::{
        Page,
        cell::{CellNames, cut},
        output::outputs_text,
        run::is_empty,
    },
};

/// Bytes of what a failed cell put out.
const MAX_FAILURE: usize = 2000;
/// Bytes of the reason for an end.
const MAX_REASON: usize = 300;
/// Number of differences that the text names.
const MAX_DIFFERENCES: usize = 50;

#[derive(Serialize, JsonSchema)]
pub(in crate::tools::execution) struct NotebookRun {
    execution_id: String,
    status: &'static str,
    kernel_name: Option<String>,
    cells_run: usize,
    cells_total: usize,
    /// Null if none failed
    failed_cell: Option<FailedCell>,
    differences: Vec<Difference>,
    /// The path of the copy, if it was kept
    kept: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_request: Option<InputRequest>,
    since: String,
}

#[derive(Serialize, JsonSchema)]
struct FailedCell {
    /// In the notebook; null for the cell with the parameters
    index: Option<usize>,
    cell_id: String,
    ename: String,
    evalue: String,
    #[schemars(schema_with = "outputs_schema")]
    outputs: Vec<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::tools::execution) struct Difference {
    index: usize,
    cell_id: String,
    what: String,
}

/// The report of a run in words.
pub(in crate::tools::execution) fn report(call: &Call, snapshot: &Snapshot) -> String {
    let mut page = call.page();
    write(&mut page, snapshot, &cell_names(call, snapshot));
    advise(call, &page.into_text())
}

/// The cells whose outputs are not those of the notebook.
pub(in crate::tools::execution) fn differences(cells: &[CellSnapshot]) -> Vec<Difference> {
    let differs = |cell: &CellSnapshot| {
        Some(Difference {
            index: cell.index,
            cell_id: cell.cell_id.clone(),
            what: cell.differs.clone()?,
        })
    };
    cells.iter().filter_map(differs).collect()
}

/// The members by which a run is told of.
pub(super) fn members(call: &Call, snapshot: Snapshot) -> NotebookRun {
    let cells = &snapshot.cells;
    NotebookRun {
        cells_run: cells.iter().filter(|cell| has_run(cell)).count(),
        cells_total: cells.len(),
        failed_cell: failed(cells).map(FailedCell::new),
        differences: differences(cells),
        since: Cursor::of(cells).to_string(),
        status: snapshot.status.as_str(),
        execution_id: snapshot.execution_id,
        kernel_name: snapshot.kernel_name,
        kept: snapshot.kept,
        reason: snapshot.reason.map(|reason| advise(call, &reason)),
        input_request: snapshot.question.map(InputRequest::from),
    }
}

fn write(page: &mut Page, run: &Snapshot, names: &CellNames) {
    let (cells, path) = (&run.cells, run.path.as_deref().unwrap_or_default());
    let ran = cells.iter().filter(|cell| has_run(cell) && !is_empty(cell)).count();
    let empty = cells.iter().filter(|cell| is_empty(cell)).count();
    let kernel = run.kernel_name.as_deref().unwrap_or("new");
    let time = run
        .started_at
        .zip(run.ended_at)
        .and_then(|(from, to)| to.duration_since(from).ok());
    let time = time.map(|time| format!(" in {}", seconds(time))).unwrap_or_default();
    let progress = format!(
        "{path}: {ran} of {} ran{time} in a fresh {kernel} kernel",
        counted(cells.len() - empty, "code cell")
    );
    let reason = run.reason.as_deref().map(|reason| cut(reason, MAX_REASON));
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let id = &run.execution_id;
    match run.status {
        ExecutionStatus::Completed => {
            page.line(format_args!("{progress}; {}", compared(cells, names)));
            // What could not be done beside.
            page.block(because.trim_start_matches(": "));
        }
        ExecutionStatus::Failed => {
            page.line(progress);
            match failed(cells) {
                Some(cell) => {
                    page.line(format_args!("failed: {}", name(cell, names)));
                    let text = outputs_text(&cell.outputs, MAX_FAILURE.min(page.room())).text;
                    page.block(&text);
                }
                None => {
                    page.line(format_args!("failed{because}"));
                }
            }
        }
        ExecutionStatus::Cancelled => {
            page.line(format_args!("{progress}; cancelled{because}"));
        }
        ExecutionStatus::Lost => {
            page.line(format_args!("{progress}; lost, its end was not seen{because}"));
        }
        ExecutionStatus::Queued | ExecutionStatus::Running => {
            page.line(format_args!(
                "{progress} so far{because}; get_execution(execution_id={id:?}, wait=60) follows it"
            ));
        }
        ExecutionStatus::InputRequired => {
            let prompt = run.question.as_ref().map(|question| question.prompt.trim());
            let prompt = prompt.unwrap_or_default();
            page.line(format_args!(
                "{progress} so far; the code asks for input: {prompt:?}; answer with get_execution(execution_id={id:?}, input=...)"
            ));
        }
    }
    if let Some(kept) = &run.kept {
        page.line(format_args!("kept as {kept}"));
    }
}

fn compared(cells: &[CellSnapshot], names: &CellNames) -> String {
    let different = cells.iter().filter(|cell| cell.differs.is_some());
    let mut told: Vec<String> = different
        .map(|cell| {
            format!(
                "{} ({})",
                name(cell, names),
                cell.differs.as_deref().unwrap_or_default()
            )
        })
        .collect();
    let more = told.len().saturating_sub(MAX_DIFFERENCES);
    told.truncate(MAX_DIFFERENCES);
    match (told.is_empty(), more) {
        (true, _) => "no output differs from those in the notebook".to_owned(),
        (false, 0) => format!("outputs differ from the notebook in {}", told.join(", ")),
        (false, more) => format!(
            "outputs differ from the notebook in {} and {more} more",
            told.join(", ")
        ),
    }
}

fn name(cell: &CellSnapshot, names: &CellNames) -> String {
    match cell.cell_id.as_str() {
        INJECTED => "the cell with the parameters".to_owned(),
        "" => format!("[{}]", cell.index),
        id => format!("[{}] {}", cell.index, names.short(id)),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Returns whether a cell completed or failed.
fn has_run(cell: &CellSnapshot) -> bool {
    matches!(cell.status, ExecutionStatus::Completed | ExecutionStatus::Failed)
}

fn failed(cells: &[CellSnapshot]) -> Option<&CellSnapshot> {
    cells.iter().find(|cell| cell.status == ExecutionStatus::Failed)
}

impl FailedCell {
    fn new(cell: &CellSnapshot) -> Self {
        let error = cell
            .outputs
            .iter()
            .rev()
            .find(|output| output["output_type"] == "error");
        let text = |part: &str| {
            let text = error.and_then(|error| error[part].as_str());
            text.unwrap_or_default().to_owned()
        };
        let mut shown = results(vec![cell.clone()], DEFAULT_MAX_OUTPUT, usize::MAX);
        Self {
            index: (cell.cell_id != INJECTED).then_some(cell.index),
            cell_id: cell.cell_id.clone(),
            ename: text("ename"),
            evalue: text("evalue"),
            outputs: shown.pop().map(|cell| cell.outputs).unwrap_or_default(),
        }
    }
}
