//! Executions as tasks of the protocol's extension: the same executions under the same ids, with the result that
//! the call would have had.

use std::{collections::VecDeque, num::NonZeroUsize, sync::Arc, time::SystemTime};

use executor::Snapshot;
use lru::LruCache;
use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{CallToolResult, CreateTaskResult, DetailedTask, JsonObject, Task, TaskPayload, TaskStatus},
};
use serde_json::Value;
use store::ExecutionStatus;

use super::client::input_requests;
use crate::tools::{Call, ToolError, find_execution};

/// Bytes of calls that are remembered of one principal for their results; of others the execution itself is shown.
const MAX_CALL_BYTES: usize = 1024 * 1024;
/// Principals whose calls are remembered.
const MAX_PRINCIPALS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Bytes of a text in an argument that are remembered: what is long is code, which is never run again.
const MAX_TEXT: usize = 256;
/// Poll interval suggested to clients, in milliseconds.
const POLL_MS: u64 = 500;

/// The calls that became tasks, by principal.
#[derive(Clone)]
pub(super) struct TaskCalls(Arc<Mutex<LruCache<Arc<str>, CallsOfPrincipal>>>);

/// The oldest first.
#[derive(Default)]
struct CallsOfPrincipal {
    calls: VecDeque<(String, TaskCall)>,
    bytes: usize,
}

#[derive(Clone)]
pub(super) struct TaskCall {
    pub(super) tool: &'static str,
    pub(super) arguments: JsonObject,
}

impl Default for TaskCalls {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(MAX_PRINCIPALS))))
    }
}

impl TaskCalls {
    /// Records the call behind an execution, and returns the task for it.
    pub(super) async fn begin(&self, call: &Call, id: &str, made_by: TaskCall) -> Result<CreateTaskResult, ErrorData> {
        let snapshot = find_execution(call, id).await.map_err(|error| not_found(&error))?;
        let principal = &call.principal().id;
        let mut all = self.0.lock();
        all.get_or_insert_mut(Arc::clone(principal), CallsOfPrincipal::default)
            .note(id, made_by);
        drop(all);
        Ok(CreateTaskResult::new(task(&snapshot)))
    }

    pub(super) fn of(&self, call: &Call, id: &str) -> Option<TaskCall> {
        let all = self.0.lock();
        let own = all.peek(&call.principal().id)?;
        let (_, made_by) = own.calls.iter().find(|(noted, _)| noted == id)?;
        Some(made_by.clone())
    }
}

impl CallsOfPrincipal {
    fn note(&mut self, id: &str, made_by: TaskCall) {
        self.bytes += made_by.size();
        self.calls.push_back((id.to_owned(), made_by));
        while self.bytes > MAX_CALL_BYTES
            && let Some((_, oldest)) = self.calls.pop_front()
        {
            self.bytes -= oldest.size();
        }
    }
}

impl TaskCall {
    /// A call with its arguments, but for long texts, of which the beginning stays.
    pub(super) fn new(tool: &'static str, arguments: &JsonObject) -> Self {
        let arguments = arguments.iter().map(|(name, value)| (name.clone(), shortened(value)));
        Self {
            tool,
            arguments: arguments.collect(),
        }
    }

    fn size(&self) -> usize {
        let arguments = self
            .arguments
            .iter()
            .map(|(name, value)| name.len() + size_of_value(value));
        size_of::<Self>() + arguments.sum::<usize>()
    }
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => text[..text.floor_char_boundary(MAX_TEXT)].into(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), shortened(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

fn size_of_value(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size_of_value).sum(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| name.len() + size_of_value(value))
                .sum(),
            _ => 0,
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
                Ok(Value::Object(result)) => result,
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(code: &str) -> TaskCall {
        let arguments = json!({ "code": code, "path": "a.ipynb", "cells": [{ "content": code }] });
        TaskCall::new("run_code", arguments.as_object().expect("an object"))
    }

    #[test]
    fn what_is_remembered_of_calls_is_bounded_by_its_size() {
        let large = call(&"x".repeat(3_000_000));
        assert!(
            large.size() < 2048 && large.arguments["path"] == "a.ipynb",
            "{}",
            large.size()
        );
        let mut own = CallsOfPrincipal::default();
        for id in 0..10_000 {
            own.note(&id.to_string(), call(&"é".repeat(1000)));
        }
        assert!(
            own.bytes <= MAX_CALL_BYTES && own.calls.len() > 100,
            "{}",
            own.calls.len()
        );
        assert_eq!(own.calls.back().expect("the latest").0, "9999");
    }
}
