//! The record of an execution: what the store keeps of it, and how another process takes it up.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use store::{AbandonedExecution, ExecutionKind, ExecutionRecord, ExecutionStatus, Terms};
use tokio::sync::watch;

use super::{CellRun, Execution, Owner, State, trace::Trace};
use crate::{core::notebook::Notebook, policy::MAX_STORED_OUTPUT_BYTES};

impl Execution {
    /// An execution that an earlier process of the gateway began and did not see the end of.
    pub(crate) fn resumed(left: AbandonedExecution, notebook: Option<Arc<Notebook>>, limit: usize) -> Self {
        let AbandonedExecution { record, noted_at } = left;
        let (outputs, terms) = (record.outputs.unwrap_or_default(), record.terms);
        let limit = terms.max_output_bytes.unwrap_or(limit);
        let cells = record.cells.into_iter().enumerate();
        let cells = cells.map(|(position, cell)| CellRun::recorded(cell, outputs.get(position), limit));
        Self {
            id: record.execution_id,
            owner: Owner {
                name: terms.name.unwrap_or_else(|| record.principal.clone()),
                tenant: record.tenant.into(),
                principal: record.principal.into(),
                max_open_rooms: terms.max_open_rooms.unwrap_or(usize::MAX),
            },
            server: Arc::from(record.server),
            notebook,
            kind: record.kind,
            // Cells that were not sent by then are not sent any more.
            gate: None,
            stop_on_error: !terms.ignores_errors,
            max_output_bytes: limit,
            last_noted: noted_at,
            kernel_name: terms.kernel_name,
            is_resumed: true,
            created_at: record.created_at,
            trace: Trace::default(),
            state: Mutex::new(State {
                status: match record.status {
                    // It is asked again when the answer can be passed on.
                    ExecutionStatus::InputRequired => ExecutionStatus::Running,
                    status => status,
                },
                kernel_id: record.kernel_id,
                kernel_session: record.kernel_session,
                started_at: record.started_at,
                sent_before: terms.sent_before,
                ..State::new(cells.collect())
            }),
            changes: watch::Sender::new(0),
        }
    }

    /// The record of the present state, with outputs once it has ended, or if no notebook has them.
    pub(crate) fn record(&self) -> ExecutionRecord {
        let state = self.lock();
        self.record_of(&state, state.status.is_finished() || self.kind != ExecutionKind::Cells)
    }

    pub(crate) fn record_with_outputs(&self) -> ExecutionRecord {
        self.record_of(&self.lock(), true)
    }

    fn record_of(&self, state: &State, with_outputs: bool) -> ExecutionRecord {
        let (outputs, missing) = match with_outputs {
            true => {
                let (outputs, missing) = state.stored_outputs();
                (Some(outputs), missing)
            }
            false => (None, Vec::new()),
        };
        let missing = missing.into_iter().chain(std::iter::repeat(0));
        let cells = state.cells.iter().zip(missing);
        ExecutionRecord {
            execution_id: self.id.clone(),
            tenant: self.owner.tenant.to_string(),
            principal: self.owner.principal.to_string(),
            server: self.server.to_string(),
            path: self.path().map(|path| path.to_string()),
            file_id: self
                .notebook
                .as_ref()
                .and_then(|notebook| Some(notebook.file_id()?.to_string())),
            kernel_id: state.kernel_id.clone(),
            kernel_session: state.kernel_session.clone(),
            kind: self.kind,
            status: state.status,
            cells: cells.map(|(cell, missing)| cell.record(missing)).collect(),
            reason: state.reason.clone(),
            outputs,
            created_at: self.created_at,
            started_at: state.started_at,
            ended_at: state.ended_at,
            terms: Terms {
                name: Some(self.owner.name.clone()),
                max_open_rooms: Some(self.owner.max_open_rooms),
                max_output_bytes: Some(self.max_output_bytes),
                ignores_errors: !self.stop_on_error,
                sent_before: state.sent_before,
                kernel_name: self.kernel_name.clone(),
                kept: state.kept.clone(),
            },
        }
    }
}

impl State {
    /// The outputs of each cell, and how many characters of them are missing; where they are too large for the store, what
    /// is missing says so.
    fn stored_outputs(&self) -> (Value, Vec<usize>) {
        let mut left = MAX_STORED_OUTPUT_BYTES;
        let of_cell = |cell: &CellRun| {
            let (mut kept, mut lost) = (Vec::new(), 0);
            for outputs in [&cell.outputs, &cell.captured] {
                let (within, missing) = outputs.to_json_within(left);
                kept.extend(within);
                lost += missing.characters();
                left = left.saturating_sub(outputs.bytes());
            }
            (Value::Array(kept), lost)
        };
        let (outputs, missing): (Vec<_>, _) = self.cells.iter().map(of_cell).unzip();
        (Value::Array(outputs), missing)
    }
}
