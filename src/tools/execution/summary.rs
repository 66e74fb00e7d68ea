//! Executions as lists show them: a line each, which tells what there is and not what came out.

use std::fmt;

use executor::Snapshot;
use jupyter_client::{counted, truncate};
use schemars::JsonSchema;
use serde::Serialize;
use store::ExecutionKind;

use super::result::timestamp;

/// Characters of the reason for an end.
const MAX_REASON: usize = 200;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ExecutionSummary {
    execution_id: String,
    path: Option<String>,
    server: String,
    status: &'static str,
    /// How many
    cells: usize,
    started_at: Option<String>,
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip)]
    is_copy: bool,
}

impl From<Snapshot> for ExecutionSummary {
    fn from(snapshot: Snapshot) -> Self {
        let line = |reason: String| truncate(reason.lines().next().unwrap_or_default(), MAX_REASON).text;
        Self {
            execution_id: snapshot.execution_id,
            path: snapshot.path,
            server: snapshot.server,
            status: snapshot.status.as_str(),
            cells: snapshot.cells.len(),
            started_at: snapshot.started_at.map(timestamp),
            ended_at: snapshot.ended_at.map(timestamp),
            reason: snapshot.reason.map(line),
            is_copy: snapshot.kind == ExecutionKind::Copy,
        }
    }
}

impl fmt::Display for ExecutionSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            execution_id,
            status,
            server,
            ..
        } = self;
        write!(f, "{execution_id} {status}: ")?;
        match (&self.path, self.cells) {
            (None, _) => write!(f, "code in a kernel of its own on {server}")?,
            (Some(path), cells) if self.is_copy => {
                write!(f, "{} of a copy of {path} on {server}", counted(cells, "cell"))?;
            }
            (Some(path), cells) => write!(f, "{} of {path} on {server}", counted(cells, "cell"))?,
        }
        if let Some(started) = &self.started_at {
            write!(f, ", started {started}")?;
        }
        if let Some(ended) = &self.ended_at {
            write!(f, ", ended {ended}")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, "; {}", reason.replace('\n', " "))?;
        }
        Ok(())
    }
}
