//! Executions as lists show them: a line each, which tells what there is and not what came out.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use executor::Snapshot;
use jupyter_client::counted;
use schemars::JsonSchema;
use serde::Serialize;
use store::ExecutionKind;

use super::result::timestamp;
use crate::tools::text::cell::cut;

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
    kind: ExecutionKind,
    /// True if the reader has several servers, so that this one is worth naming.
    #[serde(skip)]
    tells_server: bool,
    #[serde(skip)]
    began: Option<SystemTime>,
    #[serde(skip)]
    took: Option<Duration>,
}

impl ExecutionSummary {
    pub(super) fn new(snapshot: Snapshot, tells_server: bool) -> Self {
        let line = |reason: String| cut(reason.lines().next().unwrap_or_default(), MAX_REASON);
        let times = snapshot.started_at.zip(snapshot.ended_at);
        Self {
            execution_id: snapshot.execution_id,
            path: snapshot.path,
            server: snapshot.server,
            status: snapshot.status.as_str(),
            cells: snapshot.cells.len(),
            started_at: snapshot.started_at.map(timestamp),
            ended_at: snapshot.ended_at.map(timestamp),
            reason: snapshot.reason.map(line),
            kind: snapshot.kind,
            tells_server,
            began: snapshot.started_at,
            took: times.and_then(|(from, to)| to.duration_since(from).ok()),
        }
    }
}

impl fmt::Display for ExecutionSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.execution_id, self.status)?;
        match (&self.path, self.kind) {
            (None, _) => f.write_str("code in a kernel of its own")?,
            (Some(path), ExecutionKind::Code) => write!(f, "code in {path}")?,
            (Some(path), ExecutionKind::Copy) => write!(f, "{} of a copy of {path}", counted(self.cells, "cell"))?,
            (Some(path), ExecutionKind::Cells) => write!(f, "{} of {path}", counted(self.cells, "cell"))?,
        }
        if self.tells_server {
            write!(f, " on {}", self.server)?;
        }
        if let Some(began) = self.began {
            write!(f, ", {}", humantime::format_rfc3339_seconds(began))?;
        }
        if let Some(took) = self.took {
            write!(f, ", {:.1} s", took.as_secs_f64())?;
        }
        match &self.reason {
            Some(reason) => write!(f, "; {reason}"),
            None => Ok(()),
        }
    }
}
