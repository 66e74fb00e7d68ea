//! A copy of a notebook that is run in a kernel of its own, from the call to the file in which it may be kept. Does no I/O.

use jupyter_client::DocPath;
use serde_json::{Value, json};
use store::ExecutionStatus;

use super::{CellRun, Execution};
use crate::core::output_difference::output_difference;

/// A copy of a notebook to be run.
#[derive(Debug, Clone)]
pub struct NotebookCopy {
    /// As nbformat has it.
    pub notebook: Value,
    /// The code cells in their order.
    pub cells: Vec<CopiedCell>,
    pub kernel_name: String,
    /// File for the copy with its outputs, if it is kept.
    pub keep: Option<Keep>,
}

/// A code cell of the copy.
#[derive(Debug, Clone)]
pub struct CopiedCell {
    /// Of the cell in the original; empty where cells have none.
    pub cell_id: String,
    /// The position in the original.
    pub index: usize,
    /// The position in the copy.
    pub position: usize,
    pub source: String,
    /// True if it is expected to raise an error.
    pub may_raise: bool,
    /// The outputs that the original has, unless it was never run.
    pub expected: Option<Vec<Value>>,
}

/// File in which a copy is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    pub path: DocPath,
    /// True if another name may be used.
    pub may_be_renamed: bool,
}

/// A copy that is to be kept when it has run.
pub(crate) struct PendingCopy {
    notebook: Value,
    /// The positions of the cells in it.
    positions: Vec<usize>,
    pub(crate) keep: Keep,
}

impl NotebookCopy {
    /// The runs of its cells, and what is to be kept.
    pub(crate) fn into_runs(self, limit: usize) -> (Vec<CellRun>, Option<PendingCopy>) {
        let positions: Vec<usize> = self.cells.iter().map(|cell| cell.position).collect();
        let runs = self.cells.into_iter().map(|cell| CellRun {
            code: Some(cell.source),
            expected: cell.expected,
            may_raise: cell.may_raise,
            ..CellRun::cell(cell.cell_id, cell.index, limit)
        });
        let pending_copy = self.keep.map(|keep| PendingCopy {
            notebook: self.notebook,
            positions,
            keep,
        });
        (runs.collect(), pending_copy)
    }
}

impl CellRun {
    /// Compares the outputs of a copy's cell with those of the original.
    pub(crate) fn compare(&mut self) {
        if let Some(expected) = self.expected.take()
            && self.state.status() == ExecutionStatus::Completed
        {
            self.differs = output_difference(&expected, &self.outputs.to_json()).map(str::to_owned);
        }
    }
}

impl Execution {
    /// Returns whether a copy is still to be kept before it ends.
    pub(crate) fn has_pending_copy(&self) -> bool {
        self.lock().pending_copy.is_some()
    }

    /// Takes the copy that is to be kept, with its outputs; none if nothing of it ran.
    pub(crate) fn take_pending_copy(&self) -> Option<(Keep, Value)> {
        let mut state = self.lock();
        let PendingCopy {
            mut notebook,
            positions,
            keep,
        } = state.pending_copy.take()?;
        state.cells.iter().find(|cell| cell.msg_id.is_some())?;
        for (cell, position) in state.cells.iter().zip(positions) {
            let Some(copied) = notebook["cells"].get_mut(position) else {
                continue;
            };
            copied["outputs"] = cell.outputs.to_json().into();
            copied["execution_count"] = json!(cell.execution_count);
        }
        Some((keep, notebook))
    }

    /// Records the path of the copy.
    pub(crate) fn on_kept(&self, path: &DocPath) {
        self.lock().kept = Some(path.to_string());
    }
}
