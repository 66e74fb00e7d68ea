//! Results of executions, as answers show them.

use std::time::{Duration, SystemTime};

use executor::{CellSnapshot, Question, Snapshot};
use jupyter_client::{DocPath, counted, truncate};
use live_document::RoomKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::{ExecutionKind, ExecutionStatus};

use super::{
    FoundExecution,
    cursor::{CHANGED_NOTE, Cursor},
    run_notebook::{Difference, differences, report},
    wait::{Disconnect, wait, wait_duration},
};
use crate::tools::{
    Block, Call, OpenExecution, ToolError,
    advice::advise,
    cells::{ShownOutputs, attach_all, outputs_schema, show_outputs},
    output::JsonObject,
    text::{
        cell::CellNames,
        run::{is_long, write_run},
    },
};

pub(super) const DEFAULT_MAX_OUTPUT: usize = 2000;
/// Characters of the reason for an end in a message; the outputs have the whole of it.
const MAX_REASON: usize = 500;

/// Options of a call that runs something: how long it waits, and how much it shows.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) struct RunOptions {
    max_wait: Duration,
    disconnect: Disconnect,
    max_output: usize,
    /// Characters of all cells together.
    max_total: usize,
}

impl RunOptions {
    pub(in crate::tools) fn new(
        call: &Call,
        timeout: Option<f64>,
        disconnect: Disconnect,
        max_output: Option<usize>,
    ) -> Result<Self, ToolError> {
        Ok(Self {
            max_wait: wait_duration(call, "timeout", timeout)?,
            disconnect,
            max_output: max_output.unwrap_or(DEFAULT_MAX_OUTPUT),
            max_total: usize::MAX,
        })
    }

    /// Options with a limit for the outputs of all cells together.
    pub(in crate::tools) fn within(self, max_total: usize) -> Self {
        Self { max_total, ..self }
    }
}

/// Result of a run, in the members that every answer about it has.
pub(in crate::tools) struct RunResult {
    pub(in crate::tools) execution_id: String,
    pub(in crate::tools) status: ExecutionStatus,
    pub(in crate::tools) reason: Option<String>,
    pub(in crate::tools) results: Vec<CellResult>,
    /// Outputs and status of the run, in words for a model.
    pub(in crate::tools) text: String,
    pub(in crate::tools) images: Vec<Block>,
    pub(in crate::tools) question: Option<Question>,
    pub(in crate::tools) since: String,
}

/// One cell's part of an execution.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::tools) struct CellResult {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(in crate::tools) cell_id: String,
    pub(in crate::tools) index: usize,
    pub(in crate::tools) status: &'static str,
    execution_count: Option<i64>,
    #[schemars(schema_with = "outputs_schema")]
    pub(in crate::tools) outputs: Vec<Value>,
    truncated: bool,
    /// Characters of the outputs, without images.
    original_size: usize,
}

impl CellResult {
    /// Returns whether the kernel has begun with it.
    pub(in crate::tools) fn has_begun(&self) -> bool {
        self.execution_count.is_some() || matches!(self.status, "completed" | "running" | "input_required")
    }

    pub(in crate::tools) fn is_truncated(&self) -> bool {
        self.truncated
    }

    pub(super) fn into_outputs(self) -> (Vec<Value>, bool, usize) {
        (self.outputs, self.truncated, self.original_size)
    }
}

/// Request of an execution for the user's input.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::tools) struct InputRequest {
    prompt: String,
    password: bool,
    /// Advice on how to answer.
    hint: &'static str,
}

impl From<Question> for InputRequest {
    fn from(question: Question) -> Self {
        Self {
            prompt: question.prompt,
            password: question.password,
            hint: "answer with get_execution(execution_id, input=...)",
        }
    }
}

/// An execution by itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExecutionDetails {
    execution_id: String,
    path: Option<String>,
    server: String,
    status: &'static str,
    cells: Vec<CellResult>,
    started_at: Option<String>,
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_request: Option<InputRequest>,
    /// For get_execution: only what comes after this answer
    since: String,
    /// Reason why outputs are shown that an earlier answer had.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// The outputs of run_notebook that are not those of the notebook
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<JsonObject>>")]
    differences: Option<Vec<Difference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

impl ExecutionDetails {
    /// An execution with its outputs, or those that came after an earlier answer.
    pub(super) async fn new(
        call: &Call,
        mut snapshot: Snapshot,
        max_output: usize,
        since: Option<Cursor>,
    ) -> Result<(Self, String, Vec<Block>), ToolError> {
        place(call, &mut snapshot);
        let end = Cursor::of(&snapshot.cells);
        let is_same = since.is_none_or(|since| since.skip_shown(&mut snapshot.cells));
        let seen = since.filter(|_| is_same).map(|since| since.cell());
        let (text, images) = match snapshot.kind {
            ExecutionKind::Copy => (report(call, &snapshot), Vec::new()),
            _ => in_words(call, &mut snapshot, &end.to_string(), seen, max_output).await?,
        };
        let differences = (snapshot.kind == ExecutionKind::Copy).then(|| differences(&snapshot.cells));
        let cells = results(std::mem::take(&mut snapshot.cells), max_output, usize::MAX);
        let shown = Self {
            execution_id: snapshot.execution_id,
            path: snapshot.path,
            server: snapshot.server,
            status: snapshot.status.as_str(),
            cells,
            started_at: snapshot.started_at.map(timestamp),
            ended_at: snapshot.ended_at.map(timestamp),
            kernel_id: snapshot.kernel_id,
            reason: snapshot.reason.map(|reason| advise(call, &reason)),
            input_request: snapshot.question.map(InputRequest::from),
            since: end.to_string(),
            note: (!is_same).then_some(CHANGED_NOTE),
            differences,
            kept: snapshot.kept,
        };
        Ok((shown, text, images))
    }
}

impl RunResult {
    /// Waits for an execution as the call wants, and shows what there is of it then.
    pub(in crate::tools) async fn of(
        call: &Call,
        found: FoundExecution,
        options: RunOptions,
    ) -> Result<Self, ToolError> {
        let mut snapshot = match found {
            FoundExecution::Live(execution) => {
                if !call.only_shows_execution() {
                    wait(call, &execution, options.max_wait, options.disconnect).await;
                }
                call.add_notices_of(&execution);
                call.engine().snapshot(&call.owner(), &execution)
            }
            FoundExecution::Recorded(snapshot) => *snapshot,
        };
        place(call, &mut snapshot);
        let since = Cursor::of(&snapshot.cells).to_string();
        let (text, images) = in_words(call, &mut snapshot, &since, None, options.max_output).await?;
        let results = results(snapshot.cells, options.max_output, options.max_total);
        Ok(Self {
            text,
            execution_id: snapshot.execution_id,
            status: snapshot.status,
            reason: snapshot.reason.map(|reason| advise(call, &reason)),
            results,
            images,
            question: snapshot.question,
            since,
        })
    }

    pub(in crate::tools) fn is_failure(&self) -> bool {
        is_failure(self.status)
    }

    /// Returns whether all of it has run to an end, be it by an error of its own.
    pub(in crate::tools) fn has_run(&self) -> bool {
        let over = matches!(self.status, ExecutionStatus::Completed | ExecutionStatus::Failed);
        over && self.results.iter().all(CellResult::has_begun)
    }

    pub(in crate::tools) fn input_request(&self) -> Option<InputRequest> {
        self.question.clone().map(InputRequest::from)
    }

    pub(in crate::tools) fn open(&self) -> Option<OpenExecution> {
        (!self.status.is_finished()).then(|| OpenExecution {
            id: self.execution_id.clone(),
            question: self.question.clone(),
        })
    }

    /// A sentence on how it went, after what was done so far, if anything was.
    pub(in crate::tools) fn message(&self, done: &str) -> String {
        let known = self.reason.as_deref().map(|reason| truncate(reason, MAX_REASON).text);
        let reason = known.as_deref().unwrap_or("no reason is known");
        let all = self.results.len();
        let ran = self.results.iter().filter(|cell| cell.has_begun()).count();
        let how = match self.status {
            ExecutionStatus::Completed if ran < all => {
                return format!("{done}; {ran} of {} ran: {reason}", counted(all, "cell"));
            }
            ExecutionStatus::Completed => {
                return known.map_or_else(|| done.to_owned(), |reason| format!("{done}; {reason}"));
            }
            ExecutionStatus::Queued => {
                let behind = known.map(|why| format!(": {why}")).unwrap_or_default();
                return continued(done, &format!("queued{behind}; get_execution follows it"));
            }
            ExecutionStatus::Running => {
                let why = known.map(|why| format!("; {why}")).unwrap_or_default();
                return continued(done, &format!("{}{why}", self.progress()));
            }
            ExecutionStatus::InputRequired => return continued(done, "the code asks for input"),
            ExecutionStatus::Failed => format!("failed: {reason}"),
            ExecutionStatus::Cancelled => format!("was cancelled: {reason}"),
            ExecutionStatus::Lost => format!("ended in a way that is not known: {reason}"),
        };
        let told = match (done, ran) {
            ("", _) => format!("The execution {how}"),
            (done, 0) => format!("{done}, but the execution {how}"),
            (done, _) => format!("{done}, but it {how}"),
        };
        match ran < all && all > 1 {
            true => format!("{told}; {ran} of {all} cells ran"),
            false => told,
        }
    }

    fn progress(&self) -> String {
        let all = self.results.len();
        let is_done = |cell: &&CellResult| !matches!(cell.status, "queued" | "running" | "input_required");
        match self.results.iter().filter(is_done).count() {
            _ if all == 1 => "running; get_execution follows it".to_owned(),
            ended => format!("running; {ended} of {all} cells done; get_execution follows it"),
        }
    }
}

/// A sentence that goes on after what was done, or begins by itself.
fn continued(done: &str, sentence: &str) -> String {
    if !done.is_empty() {
        return format!("{done}; {sentence}");
    }
    let mut rest = sentence.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).collect()
}

pub(super) fn is_failure(status: ExecutionStatus) -> bool {
    status.is_finished() && status != ExecutionStatus::Completed
}

/// Sets where the cells are now, as far as that can be seen: people may have inserted others before them.
pub(super) fn place(call: &Call, snapshot: &mut Snapshot) {
    let path = snapshot.path.as_deref().and_then(|path| DocPath::parse(path).ok());
    let Some(room) = path.and_then(|path| call.present_room(&snapshot.server, &path, RoomKind::Notebook)) else {
        return;
    };
    for cell in &mut snapshot.cells {
        cell.index = room.position_of(&cell.cell_id).unwrap_or(cell.index);
    }
}

/// An execution in words for a model, and its images. Those of a long batch are left in the notebook.
async fn in_words(
    call: &Call,
    snapshot: &mut Snapshot,
    since: &str,
    seen: Option<usize>,
    max_output: usize,
) -> Result<(String, Vec<Block>), ToolError> {
    let images = match is_long(snapshot.cells.len()) {
        true => Vec::new(),
        false => {
            let outputs = snapshot.cells.iter_mut().map(|cell| &mut cell.outputs).collect();
            attach_all(outputs, &call.illustrator(true)).await?
        }
    };
    let names = cell_names(call, snapshot);
    let mut page = call.page();
    write_run(&mut page, snapshot, since, seen, &names, max_output);
    Ok((advise(call, &page.into_text()), images))
}

/// The names of a run's cells in their notebook.
pub(super) fn cell_names(call: &Call, snapshot: &Snapshot) -> CellNames {
    let ids: Vec<&str> = snapshot.cells.iter().map(|cell| cell.cell_id.as_str()).collect();
    let path = snapshot.path.as_deref().and_then(|path| DocPath::parse(path).ok());
    let open = path.and_then(|path| call.present_room(&snapshot.server, &path, RoomKind::Notebook));
    match open {
        Some(room) => CellNames::of(&room, &ids),
        None => CellNames::of_closed(&ids),
    }
}

pub(super) fn results(mut cells: Vec<CellSnapshot>, max_output: usize, max_total: usize) -> Vec<CellResult> {
    let outputs = cells.iter_mut().map(|cell| std::mem::take(&mut cell.outputs)).collect();
    let hint = |size: usize| format!("get_execution(execution_id, max_cell_output_size={size}) shows all");
    let shown = show_outputs(outputs, max_output, max_total, hint);
    let result = |(cell, shown): (CellSnapshot, ShownOutputs)| CellResult {
        cell_id: cell.cell_id,
        index: cell.index,
        status: cell.status.as_str(),
        execution_count: cell.execution_count,
        truncated: shown.is_truncated() || cell.missing > 0,
        original_size: shown.original_size + cell.missing,
        outputs: shown.outputs,
    };
    cells.into_iter().zip(shown).map(result).collect()
}

pub(in crate::tools) fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
