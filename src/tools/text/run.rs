//! Executions as a model reads them: outputs as they are, a line for each cell of a long batch, and how to go on.

use executor::{CellSnapshot, Snapshot};
use jupyter_client::counted;
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

/// Whether a batch is so long that its cells are told of in a line each.
pub(in crate::tools) fn is_long(cells: usize) -> bool {
    cells > MAX_IN_FULL
}

/// Writes what an execution gave: its cells, how it stands, and how to go on with it.
pub(in crate::tools) fn write_run(page: &mut Page, run: &Snapshot, since: &str, names: &CellNames, max_output: usize) {
    match run.cells.as_slice() {
        [only] if run.path.is_none() || only.cell_id.is_empty() => write_code(page, only, max_output),
        cells if is_long(cells.len()) => write_batch(page, cells, names, max_output.min(MAX_FAILURE)),
        cells => cells.iter().for_each(|cell| write_cell(page, cell, names, max_output)),
    }
    if let Some(line) = standing(run, since) {
        page.line(line);
    }
}

/// Code that belongs to no cell: only what it put out.
fn write_code(page: &mut Page, cell: &CellSnapshot, max: usize) {
    match outputs_text(&cell.outputs, max.min(page.room())) {
        text if text.text.is_empty() && cell.status == ExecutionStatus::Completed => page.line("(no output)"),
        text => page.block(&text.text),
    };
}

fn write_cell(page: &mut Page, cell: &CellSnapshot, names: &CellNames, max: usize) {
    let heading = heading(cell, names);
    let text = names.outputs(&cell.cell_id, &cell.outputs, max.min(page.room()));
    let state = match cell.status {
        ExecutionStatus::Completed if text.is_empty() => ": no output",
        ExecutionStatus::Completed => "",
        status => &format!(" {}", status.as_str()),
    };
    page.line(format_args!("{heading}{state}")).block(&text);
}

fn write_batch(page: &mut Page, cells: &[CellSnapshot], names: &CellNames, max: usize) {
    let ran = cells.iter().filter(|cell| cell.execution_count.is_some()).count();
    let with_output = cells.iter().filter(|cell| !cell.outputs.is_empty()).count();
    page.line(format_args!(
        "{ran} of {} ran, {with_output} with output",
        counted(cells.len(), "cell")
    ));
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
            _ => write_cell(page, cell, names, max),
        }
    }
    if lines > MAX_LINES {
        let more = lines - MAX_LINES;
        page.line(format_args!(
            "[{more} more with output: read_nb_cells(view=\"outline\")]"
        ));
    }
}

fn heading(cell: &CellSnapshot, names: &CellNames) -> String {
    let count = match cell.execution_count {
        Some(count) => format!("[{count}]"),
        None if cell.status.is_finished() => "[ ]".to_owned(),
        None => "[*]".to_owned(),
    };
    format!("[{}] {} {count}", cell.index, names.short(&cell.cell_id))
}

/// How an execution stands that did not just end well, and the call that goes on with it.
fn standing(run: &Snapshot, since: &str) -> Option<String> {
    let reason = run.reason.as_deref().map(|reason| cut(reason, MAX_REASON));
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let id = &run.execution_id;
    let rest = run.cells.iter().filter(|cell| cell.execution_count.is_none()).count();
    match run.status {
        ExecutionStatus::Completed if rest == 0 => None,
        ExecutionStatus::Completed => Some(format!("{} not run{because}", counted(rest, "cell"))),
        // The error itself is told by its cell.
        ExecutionStatus::Failed if rest == 0 => None,
        ExecutionStatus::Failed => Some(format!("failed; {} not run", counted(rest, "cell"))),
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
