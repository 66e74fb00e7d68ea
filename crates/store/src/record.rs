//! The record of each execution, so that it can be asked for later and picked up after a restart.
//! Plain values: how they are kept is the backend's.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ExecutionKind, ExecutionStatus,
    size::{json_bytes, record_bytes},
};

/// One execution as it stands. Times are kept to the microsecond.
#[derive(Debug, Clone, PartialEq)]
pub struct ExecutionRecord {
    pub execution_id: String,
    pub tenant: String,
    pub principal: String,
    pub server: String,
    pub path: Option<String>,
    /// The server's id of the file behind the path, which a rename does not change.
    pub file_id: Option<String>,
    pub kernel_id: Option<String>,
    /// The session id of the kernel's websocket, under which Jupyter keeps messages for a gateway that
    /// comes back.
    pub kernel_session: Option<String>,
    pub kind: ExecutionKind,
    pub status: ExecutionStatus,
    pub cells: Vec<CellRecord>,
    /// Reason why it ended as it did, where that needs words.
    pub reason: Option<String>,
    /// Outputs, once it has ended; whoever records them bounds them.
    pub outputs: Option<Value>,
    pub created_at: SystemTime,
    pub started_at: Option<SystemTime>,
    pub ended_at: Option<SystemTime>,
    pub terms: Terms,
}

/// An execution whose gateway has left.
#[derive(Debug, Clone, PartialEq)]
pub struct AbandonedExecution {
    pub record: ExecutionRecord,
    /// Time when that gateway last wrote it.
    pub noted_at: Option<SystemTime>,
}

/// On which terms an execution was begun, for a process that takes it up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Display name of its owner, as collaborators see it.
    pub name: Option<String>,
    /// Of its owner's tenant.
    pub max_open_rooms: Option<usize>,
    pub max_output_bytes: Option<usize>,
    /// It goes on after a cell that failed.
    pub ignores_errors: bool,
    /// The cells before this one may have been sent to the kernel, whatever is recorded of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub sent_before: usize,
    /// Of a kernel of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// The file in which a copy was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellRecord {
    pub cell_id: String,
    pub index: usize,
    /// The kernel's request for this cell, once it was sent.
    #[serde(default)]
    pub msg_id: Option<String>,
    pub status: ExecutionStatus,
    #[serde(default)]
    pub execution_count: Option<i64>,
    /// The count that its cell showed before, by which a cell of which nothing was written yet can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<i64>,
    /// Its cell is shown as queued, which must end when it will not run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub queued: bool,
    /// Pending question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<StoredQuestion>,
    /// Difference between the outputs of a copy's cell and those of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// Number of output characters that were too many to be kept.
    #[serde(default)]
    pub missing: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

/// A question of running code, as another process needs it to pass on an answer. The answer is never stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredQuestion {
    pub prompt: String,
    pub password: bool,
    /// Of the kernel's request.
    pub header: Value,
    /// Time of the question; missing in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<SystemTime>,
}

/// Filter for the executions of one principal.
#[derive(Debug, Clone)]
pub struct ExecutionFilter {
    pub tenant: String,
    pub principal: String,
    pub server: Option<String>,
    pub path: Option<String>,
    pub status: Option<ExecutionStatus>,
    pub limit: usize,
}

impl ExecutionRecord {
    /// About what it takes.
    pub(crate) fn bytes(&self) -> usize {
        let reason = self.reason.as_ref().map_or(0, String::len);
        record_bytes([json_bytes(&self.cells), json_bytes(&self.outputs), reason])
    }

    pub(crate) fn belongs_to(&self, tenant: &str, principal: &str) -> bool {
        self.tenant == tenant && self.principal == principal
    }
}

impl ExecutionFilter {
    pub(crate) fn fits(&self, record: &ExecutionRecord) -> bool {
        record.belongs_to(&self.tenant, &self.principal)
            && self.server.as_ref().is_none_or(|server| *server == record.server)
            && self.path.as_ref().is_none_or(|path| record.path.as_ref() == Some(path))
            && self.status.is_none_or(|status| status == record.status)
    }
}
