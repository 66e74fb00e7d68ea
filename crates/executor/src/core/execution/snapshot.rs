//! The public view of an execution: as it is at one moment, or as the store has it.

use std::time::SystemTime;

use serde_json::Value;
use store::{ExecutionKind, ExecutionRecord, ExecutionStatus};

use super::{CellRun, Execution, Question};

/// An execution as it was at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub execution_id: String,
    pub server: String,
    pub path: Option<String>,
    pub kind: ExecutionKind,
    pub kernel_id: Option<String>,
    /// Of a kernel of its own.
    pub kernel_name: Option<String>,
    /// The file in which a copy was kept.
    pub kept: Option<String>,
    pub status: ExecutionStatus,
    pub reason: Option<String>,
    pub question: Option<Question>,
    pub cells: Vec<CellSnapshot>,
    pub created_at: SystemTime,
    pub started_at: Option<SystemTime>,
    pub ended_at: Option<SystemTime>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CellSnapshot {
    pub cell_id: String,
    pub index: usize,
    pub status: ExecutionStatus,
    pub execution_count: Option<i64>,
    /// As nbformat has them.
    pub outputs: Vec<Value>,
    /// Number of output characters that are not among these.
    pub missing: usize,
    /// Difference between the outputs of a copy's cell and those of the original.
    pub differs: Option<String>,
}

impl Execution {
    pub fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        let cell = |cell: &CellRun| CellSnapshot {
            cell_id: cell.cell_id.clone(),
            index: cell.index,
            status: cell.state.status(),
            execution_count: cell.execution_count,
            outputs: [cell.outputs.to_json(), cell.captured.to_json()].concat(),
            missing: cell.outputs.missing().characters() + cell.captured.missing().characters(),
            differs: cell.differs.clone(),
        };
        Snapshot {
            execution_id: self.id.clone(),
            server: self.server.to_string(),
            path: self.path().map(|path| path.to_string()),
            kind: self.kind,
            kernel_id: state.kernel_id.clone(),
            kernel_name: self.kernel_name.clone(),
            kept: state.kept.clone(),
            status: state.status,
            reason: state.reason.clone(),
            question: state.question.clone(),
            cells: state.cells.iter().map(cell).collect(),
            created_at: self.created_at,
            started_at: state.started_at,
            ended_at: state.ended_at,
        }
    }
}

impl Execution {
    /// Brings cells from its record up to date, which is not written with each of many.
    pub(crate) fn update(&self, recorded: &mut [CellSnapshot]) {
        for (recorded, cell) in recorded.iter_mut().zip(&self.lock().cells) {
            (recorded.status, recorded.execution_count) = (cell.state.status(), cell.execution_count);
        }
    }
}

impl From<ExecutionRecord> for Snapshot {
    fn from(record: ExecutionRecord) -> Self {
        let outputs = |index: usize| {
            let of_cell = record.outputs.as_ref().and_then(|all| all.get(index)?.as_array());
            of_cell.cloned().unwrap_or_default()
        };
        let cells = record.cells.iter().enumerate().map(|(position, cell)| CellSnapshot {
            cell_id: cell.cell_id.clone(),
            index: cell.index,
            status: cell.status,
            execution_count: cell.execution_count,
            outputs: outputs(position),
            missing: cell.missing,
            differs: cell.differs.clone(),
        });
        let asks = record.cells.iter().find_map(|cell| cell.asks.as_ref());
        Self {
            cells: cells.collect(),
            execution_id: record.execution_id,
            server: record.server,
            path: record.path,
            kind: record.kind,
            kernel_id: record.kernel_id,
            kernel_name: record.terms.kernel_name,
            kept: record.terms.kept,
            status: record.status,
            reason: record.reason,
            question: asks.map(Question::from),
            created_at: record.created_at,
            started_at: record.started_at,
            ended_at: record.ended_at,
        }
    }
}
