//! `execute_cell`, `insert_execute_code_cell`, `execute_code`.

use std::sync::Arc;

use executor::Execution;
use live_document::{CellKind, NewCell};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answer::{OutputsAnswer, Source, output_blocks, outputs},
    edit::insert,
    kernels::path_of_kernel,
    target::{Target, current_server, find, place},
};
use crate::tools::{
    Block, Call, ToolError,
    cells::{RunCells, run_cells},
    execution::{Disconnect, FoundExecution, RunOptions, RunResult, resumed_execution},
    named::{MAX_SHOWN, Notebook},
    output::ToolReply,
};

/// Seconds that a call waits for code when it does not say how long.
const CODE_TIMEOUT: f64 = 30.0;

// `stream` and `progress_interval` are accepted and ignored: outputs are reported as progress anyway.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CellArguments {
    cell_index: Option<usize>,
    /// Seconds; 0 means the gateway's default
    #[serde(default)]
    timeout: f64,
    #[serde(rename = "stream")]
    #[schemars(extend("default" = true))]
    _stream: Option<bool>,
    #[serde(rename = "progress_interval")]
    #[schemars(extend("default" = 5))]
    _progress_interval: Option<f64>,
    cell_id: Option<String>,
}

pub(super) async fn execute_cell(call: Call, arguments: CellArguments) -> Result<ToolReply<OutputsAnswer>, ToolError> {
    let target = Target::new(arguments.cell_index, arguments.cell_id)?;
    let wait = Wait::new(&call, arguments.timeout)?;
    let start = async {
        let Notebook { server, room, .. } = find(&call, None).await?;
        let cells = vec![target.id(&room)?];
        if !cells.iter().all(|cell| room.is_code(cell)) {
            let why = "the cell is not code; only code cells can be executed";
            return Err(ToolError::argument("cell_index", why));
        }
        let wanted = RunCells {
            cells,
            stop_on_error: true,
        };
        run_cells(&call, &server, room, &wanted).await
    };
    Box::pin(run(&call, "cell.execute", wait, start)).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InsertArguments {
    /// -1 means the end
    cell_index: i64,
    cell_source: String,
    /// Seconds; 0 means the gateway's default
    #[serde(default)]
    timeout: f64,
    #[serde(rename = "stream")]
    #[schemars(extend("default" = true))]
    _stream: Option<bool>,
    #[serde(rename = "progress_interval")]
    #[schemars(extend("default" = 5))]
    _progress_interval: Option<f64>,
}

pub(super) async fn insert_execute_code_cell(
    call: Call,
    arguments: InsertArguments,
) -> Result<ToolReply<OutputsAnswer>, ToolError> {
    let wait = Wait::new(&call, arguments.timeout)?;
    let start = async {
        let Notebook { server, path, room } = find(&call, None).await?;
        // Refused before anything is changed, so that whoever tries again does not change it twice.
        call.engine().has_room(&call.claim(), &server, &path)?;
        let cell = NewCell::new(CellKind::Code, arguments.cell_source);
        let cells = vec![cell.id.clone()];
        call.set_runs_edits();
        insert(&call, &room, arguments.cell_index, cell, None).await?;
        let wanted = RunCells {
            cells,
            stop_on_error: true,
        };
        run_cells(&call, &server, room, &wanted).await
    };
    Box::pin(run(&call, "cell.insert_execute", wait, start)).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CodeArguments {
    code: String,
    /// Seconds; 0 means the gateway's default
    #[schemars(extend("default" = 30))]
    timeout: Option<f64>,
    /// Of list_kernels (default: the active notebook's)
    kernel_id: Option<String>,
    #[serde(rename = "progress_interval")]
    #[schemars(extend("default" = 5))]
    _progress_interval: Option<f64>,
}

pub(super) async fn execute_code(call: Call, arguments: CodeArguments) -> Result<ToolReply<OutputsAnswer>, ToolError> {
    let wait = Wait::new(&call, arguments.timeout.unwrap_or(CODE_TIMEOUT))?;
    let start = async {
        let kernel_id = arguments.kernel_id.as_deref().filter(|id| !id.trim().is_empty());
        let (server, path) = match (kernel_id, place(&call).active()) {
            (Some(id), _) => {
                let server = current_server(&call)?;
                let path = path_of_kernel(&call, &server, id).await?;
                (server, Some(path))
            }
            (None, Some(_)) => {
                let Notebook { server, path, .. } = find(&call, None).await?;
                (server, Some(path))
            }
            (None, None) => (current_server(&call)?, None),
        };
        call.run_code(&server, path.as_ref(), None, arguments.code).await
    };
    Box::pin(run(&call, "code.execute", wait, start)).await
}

/// Waiting time of a call.
struct Wait {
    options: RunOptions,
    /// Seconds, if the call says so.
    timeout: Option<f64>,
}

impl Wait {
    fn new(call: &Call, timeout: f64) -> Result<Self, ToolError> {
        let timeout = Some(timeout).filter(|timeout| *timeout != 0.0);
        Ok(Self {
            options: RunOptions::new(call, timeout, Disconnect::Continue, Some(MAX_SHOWN))?,
            timeout,
        })
    }
}

/// Starts an execution, unless the call takes one up, and answers with its outputs. One that goes on is told of in the words
/// that clients of the original look for.
async fn run(
    call: &Call,
    kind: &'static str,
    wait: Wait,
    start: impl Future<Output = Result<Arc<Execution>, ToolError>>,
) -> Result<ToolReply<OutputsAnswer>, ToolError> {
    let found = match resumed_execution(call).await? {
        Some(found) => found,
        None => FoundExecution::Live(start.await?),
    };
    let result = RunResult::of(call, found, wait.options).await?;
    let cell = result.results.first();
    let mut blocks = cell.map_or_else(Vec::new, |cell| output_blocks(&cell.outputs, &result.images));
    blocks.extend(standing(&result, wait.timeout).map(Block::Text));
    let source = Source {
        cell_id: cell.map(|cell| cell.cell_id.clone()).filter(|id| !id.is_empty()),
        execution_id: Some(result.execution_id.clone()),
        status: Some(result.status.as_str()),
    };
    Ok(ToolReply {
        is_failure: result.is_failure(),
        open: result.open(),
        ..outputs(kind, blocks, source)
    })
}

/// Remark on an execution beside its outputs.
fn standing(result: &RunResult, timeout: Option<f64>) -> Option<String> {
    let id = &result.execution_id;
    match (result.open(), &result.question) {
        (Some(_), Some(question)) => Some(format!(
            "[INPUT: the code asks {:?}; answer with get_execution(execution_id={id:?}, input=...)]",
            question.prompt
        )),
        (Some(_), None) => {
            let limit = timeout.map_or_else(String::new, |timeout| format!(" after {timeout} seconds"));
            let why = result.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            Some(format!(
                "[TIMEOUT ERROR: not finished{limit}{why}; it is not interrupted and goes on as execution {id:?}; \
                 get_execution(execution_id={id:?}, wait=60) waits for its end, cancel_execution ends it]"
            ))
        }
        // The error itself is among the outputs.
        (None, _) if result.status == store::ExecutionStatus::Failed && has_outputs(result) => None,
        (None, _) if result.is_failure() => Some(format!("[ERROR: {}]", result.message(""))),
        (None, _) => None,
    }
}

fn has_outputs(result: &RunResult) -> bool {
    result.results.iter().any(|cell| !cell.outputs.is_empty())
}
