//! `execute_cell`, `append_execute_code_cell`, `execute_temporary_code`.

use std::sync::Arc;

use executor::Execution;
use live_document::{Edit, EditOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{edit::CellType, output_text};
use crate::tools::{
    Call, ToolError,
    cells::{Change, Exec, Run, RunCells, change_and_run, check_positions, run_cells, run_reply},
    execution::{Disconnect, FoundExecution, RunOptions, RunResult, resumed_execution},
    named::{CellIndex, MAX_SHOWN, Notebook, blocks},
    output::ToolReply,
};

/// Seconds that a call waits for an execution when it does not say how long.
const DEFAULT_TIMEOUT: f64 = 60.0;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecuteArguments {
    notebook_name: String,
    cell_index: CellIndex,
    /// Seconds
    #[schemars(extend("default" = 60))]
    timeout: Option<f64>,
    if_revision: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AppendArguments {
    notebook_name: String,
    cell_content: String,
    #[schemars(extend("default" = "code"))]
    cell_type: Option<CellType>,
    /// Seconds
    #[schemars(extend("default" = 60))]
    timeout: Option<f64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TemporaryArguments {
    notebook_name: String,
    cell_content: String,
    /// Seconds
    #[schemars(extend("default" = 60))]
    timeout: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Executed {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_index: Option<usize>,
    #[serde(flatten)]
    run: Option<Run>,
}

pub(super) async fn execute_cell(call: Call, arguments: ExecuteArguments) -> Result<ToolReply<Executed>, ToolError> {
    let options = options(&call, arguments.timeout)?;
    let found = match resumed_execution(&call).await? {
        Some(found) => found,
        None => FoundExecution::Live(start(&call, &arguments).await?),
    };
    let result = RunResult::of(&call, found, options).await?;
    Ok(in_words(run_reply(result, |run, message| {
        let cell_index = run.results().first().map(|result| result.index);
        let index = cell_index.unwrap_or_default();
        Executed {
            message: message(&match run.is_executed() {
                true => format!("Cell index {index} was executed"),
                false => format!("Cell index {index} was not executed"),
            }),
            cell_index,
            run: Some(run),
        }
    })))
}

async fn start(call: &Call, arguments: &ExecuteArguments) -> Result<Arc<Execution>, ToolError> {
    let Notebook { server, room, .. } = Notebook::find(call, &arguments.notebook_name).await?;
    let index = &arguments.cell_index;
    let cells = vec![index.id(&room)?];
    if let Some(revision) = arguments.if_revision.as_deref() {
        check_positions(
            &room,
            index.range().is_by_position(),
            &cells,
            Some(revision),
            call.principal(),
        )?;
        room.check_unchanged(&call.principal().id, &cells, revision)?;
    }
    if !cells.iter().all(|cell| room.is_code(cell)) {
        let why = "the cell is not code; only code cells can be executed, and list_cell shows which are";
        return Err(ToolError::argument("cell_index", why));
    }
    let wanted = RunCells {
        cells,
        stop_on_error: true,
    };
    run_cells(call, &server, room, &wanted).await
}

pub(super) async fn append_execute_code_cell(
    call: Call,
    arguments: AppendArguments,
) -> Result<ToolReply<Executed>, ToolError> {
    let options = options(&call, arguments.timeout)?;
    let changes = async {
        let Notebook { server, path, room } = Notebook::find(&call, &arguments.notebook_name).await?;
        call.engine().has_room(&call.claim(), &server, &path)?;
        let kind = arguments.cell_type.unwrap_or(CellType::Code);
        let cell = kind.new_cell(arguments.cell_content);
        let cell_id = cell.id.clone();
        let edit = Edit::AppendCells { cells: vec![cell] };
        let edited = call.edit(&room, &[edit], EditOptions::default()).await?;
        let change = Change::new(&room, vec![cell_id], &[], edited);
        Ok((server, room, change))
    };
    let answered = |(done, change, run): (String, Option<Change>, Option<Run>)| {
        let of_run = |run: &Run| run.results().first().map(|result| result.index);
        let of_change = |change: Change| *change.positions.first()?;
        let cell_index = run.as_ref().and_then(of_run).or_else(|| change.and_then(of_change));
        let message = format!("Cell index {}: {done}", cell_index.unwrap_or_default());
        Executed {
            message,
            cell_index,
            run,
        }
    };
    let reply = change_and_run(
        &call,
        None,
        Exec::Wanted,
        options,
        "Successfully appended 1 cell",
        changes,
        answered,
    )
    .await?;
    Ok(in_words(reply))
}

pub(super) async fn execute_temporary_code(
    call: Call,
    arguments: TemporaryArguments,
) -> Result<ToolReply<Executed>, ToolError> {
    let options = options(&call, arguments.timeout)?;
    let found = match resumed_execution(&call).await? {
        Some(found) => found,
        None => {
            let Notebook { server, path, .. } = Notebook::find(&call, &arguments.notebook_name).await?;
            let code = arguments.cell_content;
            FoundExecution::Live(call.run_code(&server, Some(&path), None, code).await?)
        }
    };
    let result = RunResult::of(&call, found, options).await?;
    Ok(in_words(run_reply(result, |run, message| Executed {
        message: message(match run.is_executed() {
            true => "Temporary code was executed",
            false => "Temporary code was not executed",
        }),
        cell_index: None,
        run: Some(run),
    })))
}

fn options(call: &Call, timeout: Option<f64>) -> Result<RunOptions, ToolError> {
    let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
    RunOptions::new(call, Some(timeout), Disconnect::Continue, Some(MAX_SHOWN))
}

/// Adds the blocks: how it went, what came out, and what to do about an execution that goes on.
fn in_words(reply: ToolReply<Executed>) -> ToolReply<Executed> {
    let Executed { message, run, .. } = &reply.value;
    let mut texts = vec![message.clone()];
    if let Some(run) = run {
        texts.extend(run.results().iter().flat_map(|result| &result.outputs).map(output_text));
        texts.extend(reply.open.as_ref().map(|open| match &open.question {
            Some(question) => format!(
                "[INPUT: the code asks {:?}; answer with get_execution(execution_id={:?}, input=...)]",
                question.prompt,
                run.execution_id()
            ),
            None => format!(
                "[TIMEOUT: the output so far; the execution goes on as {:?}. {}get_execution waits for its end and cancel_execution ends it]",
                run.execution_id(),
                reply.value.cell_index.map_or("", |_| "read_cell shows what it puts into the notebook, "),
            ),
        }));
    }
    ToolReply {
        blocks: Some(blocks(texts)),
        ..reply
    }
}
