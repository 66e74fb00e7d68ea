//! Executions as resources: a principal's own, in the notebook they ran in.

use std::time::Duration;

use executor::{CellSnapshot, RunsByNotebook, Snapshot};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    Opened, ResourceError, View,
    metadata::timestamp,
    read::{Read, members, named, pretty},
    sanitize::sanitized,
};
use crate::error::{ClientError, ErrorKind};

/// Time that a list waits for the records of what was run before it does without.
const RECORDS_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExecutionMetadata {
    execution_id: String,
    status: &'static str,
    started_at: Option<String>,
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Results {
    #[serde(flatten)]
    execution: ExecutionMetadata,
    cells: Vec<CellResult>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CellResult {
    cell_id: String,
    status: &'static str,
    execution_count: Option<i64>,
    outputs: Vec<Value>,
}

impl View {
    /// An execution as it is now. One of another notebook, or of somebody else, is not there.
    pub(super) async fn read_execution(&self, opened: &Opened, id: &str) -> Result<Read, ResourceError> {
        let owner = self.principal.owner();
        let snapshot = match self.engine.live(&owner, id) {
            Some(execution) => self.engine.snapshot(&owner, &execution),
            None => match self.engine.ended(&owner, id).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(ResourceError::EXECUTION),
                found => found?,
            },
        };
        let (server, path) = (&*opened.open.server, opened.open.info.path.as_str());
        if snapshot.server != server || snapshot.path.as_deref() != Some(path) {
            return Err(ResourceError::EXECUTION);
        }
        let results = Results {
            execution: ExecutionMetadata::of(&snapshot),
            cells: snapshot.cells.into_iter().map(CellResult::from).collect(),
        };
        let description = format!("{} in {path}", results.execution.status);
        let name = format!("Execution of {} cells", results.cells.len());
        let metadata = named(&name, &description, members(&results.execution));
        Ok(("application/json", pretty(&results), metadata))
    }

    /// Runs in all notebooks at once. Not knowing them is no reason to read nothing, nor to wait.
    pub(super) async fn runs_by_notebook(&self) -> Option<RunsByNotebook> {
        let found = timeout(RECORDS_TIMEOUT, self.engine.runs_by_notebook()).await;
        found.ok()?.ok()
    }
}

impl ExecutionMetadata {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            execution_id: snapshot.execution_id.clone(),
            status: snapshot.status.as_str(),
            started_at: snapshot.started_at.map(timestamp),
            ended_at: snapshot.ended_at.map(timestamp),
            reason: snapshot.reason.clone(),
        }
    }
}

impl From<CellSnapshot> for CellResult {
    fn from(cell: CellSnapshot) -> Self {
        Self {
            cell_id: cell.cell_id,
            status: cell.status.as_str(),
            execution_count: cell.execution_count,
            outputs: cell.outputs.into_iter().map(sanitized).collect(),
        }
    }
}
