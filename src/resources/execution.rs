//! Executions as resources: a principal's own, in the notebook they ran in.

use serde::Serialize;
use serde_json::Value;

use super::{
    Opened, ResourceError, View,
    metadata::timestamp,
    read::{Read, members, named, pretty},
    sanitize::sanitized,
};
use crate::{
    error::{ClientError, ErrorKind},
    execution::{CellSnapshot, Owner, Snapshot},
};

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
        let owner = Owner::of(&self.principal);
        let snapshot = match self.engine.live(&owner, id) {
            Some(execution) => execution.snapshot(),
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

    /// When the principal last ran something in a notebook. Not knowing is no reason to read nothing.
    pub(super) async fn last_executed(&self, opened: &Opened) -> Option<String> {
        let (server, path) = (&*opened.open.server, &opened.open.info.path);
        let owner = Owner::of(&self.principal);
        let last = self.engine.list(&owner, Some(server), Some(path), None, 1).await;
        let last = last.ok()?.into_iter().next()?;
        last.started_at.map(timestamp)
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
