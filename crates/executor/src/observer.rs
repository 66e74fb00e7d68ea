//! Events of executions for metrics: admitted, sent to a kernel, ended. Knows
//! neither sources nor outputs.

use std::time::Duration;

use store::{ExecutionKind, ExecutionStatus};
use tracing::Span;

/// Measures executions, and makes the span of each.
pub trait ExecutionObserver: Send + Sync {
    /// An execution was admitted, in the span of the call that asked for it. Returns the span of what is done for it
    /// until it ends, which may be long after that call.
    fn on_admitted(&self, execution: &AdmittedExecution<'_>) -> Span {
        let _ = execution;
        Span::none()
    }

    /// Its first cell was sent to the kernel.
    fn on_first_sent(&self, server: &str, waited: Duration) {
        let _ = (server, waited);
    }

    /// It is over.
    fn on_ended(&self, server: &str, status: ExecutionStatus, took: Duration) {
        let _ = (server, status, took);
    }
}

/// Measures nothing.
impl ExecutionObserver for () {}

/// An execution that was admitted.
#[derive(Debug, Clone, Copy)]
pub struct AdmittedExecution<'a> {
    pub id: &'a str,
    /// The name of the Jupyter server, the same for all that agents gave the URL of.
    pub server: &'a str,
    pub kind: ExecutionKind,
    pub cells: usize,
    /// True if an earlier process began it.
    pub is_resumed: bool,
}

/// Number of executions that have not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecutionCounts {
    pub running: usize,
    /// Behind others, for a kernel that is busy, or for an answer.
    pub waiting: usize,
    /// Age of the oldest that runs.
    pub oldest: Duration,
}
