//! Executions as a model reads them: outputs as they are, a line for each cell of a long batch, and how to go on.

use executor::{CellSnapshot, Snapshot};
use jupyter_client::counted;
use serde_json::Value;
use store::ExecutionStatus;

use super::{
    Page,
    cell::{CellNames, cut},
    output::{output_lines, outputs_text},
};

/// Number of cells whose outputs are shown as they are; more are told of in a line each.
const MAX_IN_FULL: usize = 5;
/// Number of cells of a long batch that get a line.
const MAX_LINES: usize = 60;
/// Number of outputs that the line about a cell tells of.
const MAX_OUTPUTS: usize = 2;
/// Bytes of the line that tells of the output of a cell.
const MAX_LINE: usize = 60;
/// Bytes of what a failed cell of a long batch put out.
const MAX_FAILURE: usize = 1200;
/// Bytes of the reason for an end.
const MAX_REASON: usize = 300;

/// Reason of a cancellation that says no more than the status.
const CANCELLED: &str = "it was cancelled";

/// Returns whether a batch is so long that each of its cells gets only a line.
pub(in crate::tools) fn is_long(cells: usize) -> bool {
    cells > MAX_IN_FULL
}

/// Writes what an execution gave: its cells, how it stands, and how to go on with it. After an earlier answer, `seen` is the
/// position of the cell in which that ended: those before it that have ended were told then.
pub(in crate::tools) fn write_run(
    page: &mut Page,
    run: &Snapshot,
    since: &str,
    seen: Option<usize>,
    names: &CellNames,
    max_output: usize,
) {
    let is_new = |(position, cell): &(usize, &CellSnapshot)| seen <= Some(*position) || !cell.status.is_finished();
    let told = run.cells.iter().enumerate().filter(is_new).map(|(_, cell)| cell);
    match run.cells.as_slice() {
        [only] if run.path.is_none() || only.cell_id.is_empty() => write_code(page, run, only, max_output),
        cells if is_long(cells.len()) => {
            page.line(batch_line(cells, seen.is_some()));
            write_batch(page, told, names, max_output.min(MAX_FAILURE));
        }
        _ => told.for_each(|cell| write_cell(page, cell, names, seen.is_some(), max_output)),
    }
    if let Some(line) = standing(run, since) {
        page.line(line);
    }
}

/// Code that belongs to no cell: only what it put out.
fn write_code(page: &mut Page, run: &Snapshot, cell: &CellSnapshot, max: usize) {
    match outputs_text(&cell.outputs, max.min(page.room())) {
        text if text.text.is_empty() && is_empty(cell) => page.line("nothing to run: the code is empty"),
        text if text.text.is_empty() && cell.status == ExecutionStatus::Completed => page.line("(no output)"),
        text if text.is_cut => {
            let all = outputs_text(&cell.outputs, usize::MAX).text.len();
            let id = &run.execution_id;
            let more = format!("[more: get_execution(execution_id={id:?}, max_cell_output_size={all})]");
            page.block(&text.text).line(more)
        }
        text => page.block(&text.text),
    };
}

fn write_cell(page: &mut Page, cell: &CellSnapshot, names: &CellNames, is_rest: bool, max: usize) {
    let heading = heading(cell, names);
    let text = names.outputs(&cell.cell_id, &cell.outputs, max.min(page.room()));
    let state = match cell.status {
        ExecutionStatus::Completed if is_empty(cell) => ": empty",
        ExecutionStatus::Completed if text.is_empty() && is_rest => ": no more output",
        ExecutionStatus::Completed if text.is_empty() => ": no output",
        ExecutionStatus::Completed => "",
        status => &format!(" {}", status.as_str()),
    };
    page.line(format_args!("{heading}{state}")).block(&text);
}

/// The line of facts about a long batch.
fn batch_line(cells: &[CellSnapshot], is_rest: bool) -> String {
    let ran = cells.iter().filter(|cell| cell.execution_count.is_some()).count();
    let with_output = cells.iter().filter(|cell| !cell.outputs.is_empty()).count();
    let empty = cells.iter().filter(|cell| is_empty(cell)).count();
    let all = counted(cells.len() - empty, "cell");
    let new = if is_rest { "new " } else { "" };
    let empty = Some(format!(", {empty} empty")).filter(|_| empty > 0);
    format!(
        "{ran} of {all} ran, {with_output} with {new}output{}",
        empty.unwrap_or_default()
    )
}

fn write_batch<'a>(page: &mut Page, cells: impl Iterator<Item = &'a CellSnapshot>, names: &CellNames, max: usize) {
    let mut lines = 0;
    for cell in cells {
        match cell.status {
            ExecutionStatus::Completed | ExecutionStatus::Queued if cell.outputs.is_empty() => {}
            ExecutionStatus::Completed if lines < MAX_LINES => {
                lines += 1;
                let told = output_lines(&cell.outputs, MAX_OUTPUTS, MAX_LINE);
                page.line(format_args!("{}: {}", heading(cell, names), told.join("; ")));
            }
            ExecutionStatus::Completed => lines += 1,
            ExecutionStatus::Cancelled if cell.execution_count.is_none() => {}
            _ => write_cell(page, cell, names, false, max),
        }
    }
    if lines > MAX_LINES {
        let more = lines - MAX_LINES;
        page.line(format_args!(
            "[{more} more with output: read_nb_cells(view=\"outline\")]"
        ));
    }
}

/// Returns whether a cell was empty when it was to run; such cells are not sent to kernels.
pub(in crate::tools) fn is_empty(cell: &CellSnapshot) -> bool {
    cell.status == ExecutionStatus::Completed && cell.execution_count.is_none()
}

fn heading(cell: &CellSnapshot, names: &CellNames) -> String {
    let count = match cell.execution_count {
        Some(count) => format!("[{count}]"),
        None if cell.status.is_finished() => "[ ]".to_owned(),
        None => "[*]".to_owned(),
    };
    format!("[{}] {} {count}", cell.index, names.short(&cell.cell_id))
}

/// Status line of an execution, unless it simply ended well, with the call that follows it.
fn standing(run: &Snapshot, since: &str) -> Option<String> {
    let reason = run.reason.as_deref().filter(|reason| *reason != CANCELLED);
    let reason = reason.map(|reason| cut(reason, MAX_REASON));
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let id = &run.execution_id;
    let has_not_run = |cell: &&CellSnapshot| cell.execution_count.is_none() && !is_empty(cell);
    let rest = run.cells.iter().filter(has_not_run).count();
    let is_told = run.cells.iter().any(|cell| cell.outputs.iter().any(is_error));
    match run.status {
        ExecutionStatus::Completed | ExecutionStatus::Failed if rest == 0 && (is_told || because.is_empty()) => None,
        ExecutionStatus::Completed if rest == 0 => Some(format!("completed{because}")),
        ExecutionStatus::Completed => Some(format!("{} not run{because}", counted(rest, "cell"))),
        // The error itself is told by its cell.
        ExecutionStatus::Failed if is_told => Some(format!("failed; {} not run", counted(rest, "cell"))),
        ExecutionStatus::Failed => Some(format!("failed{because}")),
        ExecutionStatus::Cancelled => Some(format!("cancelled{because}")),
        ExecutionStatus::Lost => Some(format!("lost, its end was not seen{because}")),
        ExecutionStatus::Queued => Some(format!(
            "queued{because}; get_execution(execution_id={id:?}, wait=60) follows it"
        )),
        ExecutionStatus::Running => Some(format!(
            "running{because}; get_execution(execution_id={id:?}, wait=60, since={since:?}) follows it"
        )),
        ExecutionStatus::InputRequired => {
            let prompt = run
                .question
                .as_ref()
                .map(|question| question.prompt.trim())
                .unwrap_or_default();
            Some(format!(
                "the code asks for input: {prompt:?}; answer with get_execution(execution_id={id:?}, input=...)"
            ))
        }
    }
}

fn is_error(output: &Value) -> bool {
    output["output_type"] == "error"
}
