//! `get_execution`, `list_executions`, `cancel_execution`.

use std::{sync::Arc, time::Duration};

use executor::Snapshot as ExecutionSnapshot;
use futures::future::join_all;
use jupyter_client::DocPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::ExecutionStatus;
use tokio::time::Instant;

use super::{
    FoundExecution, answer_execution,
    cursor::Cursor,
    find::is_readable,
    find_execution,
    result::{DEFAULT_MAX_OUTPUT, ExecutionDetails, is_failure},
    summary::ExecutionSummary,
    wait::{Disconnect, wait, wait_duration},
};
use crate::tools::text::described_by;
use crate::tools::{Block, Call, Input, ToolError, advice::advise, output::ToolReply};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 200;
/// Time that cancelling waits for the kernel to stop.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GetArguments {
    execution_id: String,
    wait: Option<f64>,
    input: Option<String>,
    /// From an earlier answer
    since: Option<String>,
    max_cell_output_size: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    path: Option<String>,
    /// queued, running, input_required, completed, failed, cancelled or lost
    status: Option<String>,
    #[schemars(extend("default" = 20))]
    limit: Option<usize>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelArguments {
    execution_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Executions {
    executions: Vec<ExecutionSummary>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Cancelled {
    execution_id: String,
    status: &'static str,
    message: String,
}

described_by!(message: Cancelled);

pub(super) async fn get_execution(
    call: Call,
    arguments: GetArguments,
) -> Result<ToolReply<ExecutionDetails>, ToolError> {
    let waits = wait_duration(&call, "wait", arguments.wait.or(Some(0.0)))?;
    let since: Option<Cursor> = match &arguments.since {
        Some(since) => {
            let why = "it is not from an answer about this execution; leave it out to see all outputs";
            Some(since.parse().map_err(|()| ToolError::argument("since", why))?)
        }
        None => None,
    };
    let id = arguments.execution_id.as_str();
    if let Some(input) = arguments.input {
        // A debugger or a shell takes it for code.
        approve_input(&call, id, &input).await?;
        let answer = Input::Answer {
            value: input,
            number: None,
        };
        answer_execution(&call, id, answer).await?;
    }
    let deadline = Instant::now() + waits;
    let found = FoundExecution::find(&call, id).await?;
    let snapshot = match found.wait_if_elsewhere(&call, id, deadline).await? {
        FoundExecution::Live(execution) => {
            let left = deadline.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                wait(&call, &execution, left, Disconnect::Continue).await;
            }
            call.add_notices_of(&execution);
            call.engine().snapshot(&call.owner(), &execution)
        }
        FoundExecution::Recorded(snapshot) => *snapshot,
    };
    // It may have been moved while it was waited for.
    if !is_readable(&call, snapshot.path.as_deref()) {
        return Err(ToolError::MovedAway { id: id.to_owned() });
    }
    let is_failure = is_failure(snapshot.status);
    let max_output = arguments.max_cell_output_size.unwrap_or(DEFAULT_MAX_OUTPUT);
    let (value, text, images) = ExecutionDetails::new(&call, snapshot, max_output, since).await?;
    // No open execution is named: whoever asks for one by its id knows how to go on with it.
    Ok(ToolReply {
        images,
        is_failure,
        ..ToolReply::told(text, value)
    })
}

async fn approve_input(call: &Call, id: &str, input: &str) -> Result<(), ToolError> {
    if !call.has_rules() {
        return Ok(());
    }
    let snapshot = find_execution(call, id).await?;
    let path = snapshot.path.as_deref().and_then(|path| DocPath::parse_file(path).ok());
    let server = call.server(Some(&snapshot.server)).or_else(|_| call.server(None))?;
    let input = [("the input".to_owned(), input.to_owned())];
    Box::pin(call.approve_code(&Arc::clone(server), path.as_ref(), &input)).await
}

pub(super) async fn list_executions(call: Call, arguments: ListArguments) -> Result<ToolReply<Executions>, ToolError> {
    let status: Option<ExecutionStatus> = match &arguments.status {
        Some(name) => Some(
            name.parse()
                .map_err(|error: store::ExecutionWordError| ToolError::argument("status", error.to_string()))?,
        ),
        None => None,
    };
    let path = arguments.path.as_deref().map(|path| call.file(path)).transpose()?;
    let server = match arguments.server.as_deref() {
        Some(name) => Some(call.server(Some(name))?),
        None => None,
    };
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let why = format!("{limit} is out of range; allowed: 1 to {MAX_LIMIT}");
        return Err(ToolError::argument("limit", why));
    }
    let engine = call.engine();
    if let Some(path) = &path {
        let servers = server.map_or(call.servers(), std::slice::from_ref);
        join_all(servers.iter().map(|server| engine.refresh_records(server, path))).await;
    }
    let server = server.map(|server| server.name());
    let found = engine.list(&call.owner(), server, path.as_ref(), status, limit).await?;
    let readable = found
        .into_iter()
        .filter(|snapshot| is_readable(&call, snapshot.path.as_deref()));
    let tells_server = call.servers().len() > 1;
    let executions: Vec<ExecutionSummary> = readable
        .map(|snapshot| ExecutionSummary::new(snapshot, tells_server))
        .collect();
    let lines: Vec<String> = executions.iter().map(ToString::to_string).collect();
    let text = match lines.is_empty() {
        true => "No executions.".to_owned(),
        false => lines.join("\n"),
    };
    Ok(ToolReply::in_blocks(vec![Block::Text(text)], Executions { executions }))
}

pub(super) async fn cancel_execution(call: Call, arguments: CancelArguments) -> Result<Cancelled, ToolError> {
    let id = arguments.execution_id.as_str();
    super::cancel_execution(&call, id).await?;
    if let FoundExecution::Live(execution) = FoundExecution::find_anywhere(&call, id).await? {
        execution.ended(CANCEL_WAIT).await;
    }
    let ExecutionSnapshot { status, cells, .. } = FoundExecution::find_anywhere(&call, id).await?.snapshot(&call);
    let has_begun = cells.iter().any(|cell| cell.execution_count.is_some());
    let message = match status {
        ExecutionStatus::Cancelled => "The execution was cancelled".to_owned(),
        ended if ended.is_finished() => format!("The execution had ended already: {}", ended.as_str()),
        _ if has_begun => {
            let message = "The kernel was interrupted but the code goes on; restart_nb_kernel ends it by force";
            advise(&call, message)
        }
        _ => "The kernel is busy with something else or out of reach; the execution ends as soon as it comes to it"
            .to_owned(),
    };
    Ok(Cancelled {
        execution_id: arguments.execution_id,
        status: status.as_str(),
        message,
    })
}
