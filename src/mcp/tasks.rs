//! Executions as tasks of the protocol's extension: the same executions under the same ids, with the result that
//! the call would have had.

use std::{sync::Arc, time::SystemTime};

use dashmap::DashMap;
use rmcp::{
    ErrorData,
    model::{CallToolResult, CreateTaskResult, DetailedTask, JsonObject, Task, TaskPayload, TaskStatus},
};

use super::client::input_requests;
use crate::{
    execution::Snapshot,
    tools::{Call, ToolError, find_execution},
    types::ExecutionStatus,
};

/// Calls that are remembered for their results; of others the execution itself is shown.
const MAX_CALLS: usize = 4096;
/// How often a client should ask.
const POLL_MS: u64 = 500;

/// The calls that became tasks.
#[derive(Clone, Default)]
pub(super) struct TaskCalls(Arc<DashMap<String, TaskCall>>);

#[derive(Clone)]
pub(super) struct TaskCall {
    pub(super) tool: &'static str,
    pub(super) arguments: JsonObject,
}

impl TaskCalls {
    /// Notes the call behind an execution, and returns the task for it.
    pub(super) async fn begin(&self, call: &Call, id: &str, made_by: TaskCall) -> Result<CreateTaskResult, ErrorData> {
        let snapshot = find_execution(call, id).await.map_err(|error| not_found(&error))?;
        if self.0.len() >= MAX_CALLS {
            self.0.clear();
        }
        self.0.insert(id.to_owned(), made_by);
        Ok(CreateTaskResult::new(task(&snapshot)))
    }

    pub(super) fn of(&self, id: &str) -> Option<TaskCall> {
        self.0.get(id).map(|call| call.clone())
    }
}

/// A task as it is now; `result` is what the call would have answered.
pub(super) async fn detailed<F>(call: &Call, id: &str, result: F) -> Result<DetailedTask, ErrorData>
where
    F: Future<Output = CallToolResult>,
{
    let snapshot = find_execution(call, id).await.map_err(|error| not_found(&error))?;
    let payload = match (&snapshot.status, &snapshot.question) {
        (ExecutionStatus::Cancelled, _) => TaskPayload::Cancelled,
        (status, _) if status.is_finished() => TaskPayload::Completed {
            result: match serde_json::to_value(result.await) {
                Ok(serde_json::Value::Object(result)) => result,
                _ => JsonObject::new(),
            },
        },
        (_, Some(question)) => TaskPayload::InputRequired {
            input_requests: input_requests(question),
        },
        _ => TaskPayload::Working,
    };
    Ok(DetailedTask::new(task(&snapshot), payload))
}

/// A task that is not there, or not this caller's.
pub(super) fn not_found(error: &ToolError) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}

fn task(snapshot: &Snapshot) -> Task {
    let status = match snapshot.status {
        ExecutionStatus::Queued | ExecutionStatus::Running => TaskStatus::Working,
        ExecutionStatus::InputRequired => TaskStatus::InputRequired,
        ExecutionStatus::Cancelled => TaskStatus::Cancelled,
        ExecutionStatus::Completed | ExecutionStatus::Failed | ExecutionStatus::Lost => TaskStatus::Completed,
    };
    let updated = snapshot.ended_at.unwrap_or_else(SystemTime::now);
    let task = Task::new(
        snapshot.execution_id.clone(),
        status,
        timestamp(snapshot.created_at),
        timestamp(updated),
    )
    .with_poll_interval_ms(POLL_MS);
    match &snapshot.reason {
        Some(reason) => task.with_status_message(reason.clone()),
        None => task,
    }
}

fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
