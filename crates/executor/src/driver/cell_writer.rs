//! The cell of the shared document that shows a run, and the writing of the run's outputs into it.

use live_document::{Acknowledgement, CellWrite, Room, RunEnd};

use crate::core::{execution::RunState, input::Written};

/// Writer of one cell, which knows what the document has of its run.
pub(super) struct CellWriter {
    id: String,
    /// The document that has what was written so far, if one does. Another one gets everything.
    written_to: Option<u64>,
    /// Yjs id of the cell, which tells it from another one with the same cell id.
    made: Option<(u64, u32)>,
    /// True if outputs that an earlier process wrote there are still to be adopted.
    must_adopt: bool,
    /// The end of the run is with the server, or will never be.
    is_settled: bool,
    /// The end that was written and has not arrived.
    pub(super) end: Option<Acknowledgement>,
}

/// Result of taking over what an earlier process wrote.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Adopted {
    /// There was nothing to be taken over.
    Nothing,
    /// The cell shows the run.
    Shown,
    /// The cell shows what was there before the run.
    NotShown,
}

impl CellWriter {
    pub(super) fn new(run: &Written) -> Self {
        let id = run.execution.with_cell(run.position, |cell| cell.cell_id.clone());
        Self {
            id: id.unwrap_or_default(),
            written_to: None,
            made: None,
            must_adopt: run.execution.is_resumed,
            is_settled: false,
            end: None,
        }
    }

    /// Returns whether the document is not the one that was written to.
    pub(super) fn is_behind(&self, room: &Room) -> bool {
        self.written_to != Some(room.incarnation())
    }

    /// The document was lost and has nothing of the run.
    pub(super) fn forget_written(&mut self) {
        self.written_to = None;
    }

    pub(super) fn settle(&mut self) {
        self.is_settled = true;
    }

    /// Takes over what an earlier process wrote, once the notebook can be seen: it stays and comes before what is new, but
    /// what was there before the run does not.
    pub(super) fn adopt(&mut self, run: &Written, room: &Room) -> Adopted {
        if !std::mem::take(&mut self.must_adopt) {
            return Adopted::Nothing;
        }
        let count = room.execution_count_of(&self.id);
        let mut state = run.execution.lock();
        let replaces = state.cells.get(run.position).and_then(|cell| cell.replaces);
        let is_shown = count.is_none() || replaces != count;
        for (position, cell) in state.cells.iter_mut().enumerate() {
            if cell.msg_id.is_none() || !is_shown && position == run.position {
                continue;
            }
            if let Some(outputs) = room.outputs_of(&cell.cell_id) {
                cell.outputs.adopt(&outputs);
            }
        }
        if is_shown {
            self.written_to = Some(room.incarnation());
            Adopted::Shown
        } else {
            Adopted::NotShown
        }
    }

    /// Brings the document up to the outputs, and to the end of the run if it has ended. A document that does not have what
    /// was written before gets all. Returns whether the cell is still there, and how to know that the write has arrived.
    pub(super) fn write(&mut self, run: &Written, room: &Room) -> (bool, Option<Acknowledgement>) {
        self.adopt(run, room);
        let mut state = run.execution.lock();
        let Some(cell) = state.cells.get_mut(run.position) else {
            return (false, None);
        };
        let incarnation = room.incarnation();
        // JupyterLab moves a cell by making another one of what it shows, which may lack what was just written, and does
        // not say that it runs.
        let made = room.made(&self.id);
        let was_moved = !self.is_settled && self.made.is_some() && made.is_some() && self.made != made;
        let begin = self.written_to != Some(incarnation) || was_moved;
        if begin {
            cell.outputs.forget_written();
        }
        let has_ended = matches!(cell.state, RunState::Ended { .. });
        let execution_count = cell.execution_count;
        let write = CellWrite {
            begin,
            outputs: cell.outputs.take_change(),
            end: has_ended.then_some(RunEnd { execution_count }),
        };
        if write == CellWrite::default() {
            return (true, None);
        }
        let owner = &run.execution.owner;
        match room.write_cell(&owner.principal, &owner.name, &self.id, &write) {
            Ok(Some(written)) => {
                (self.written_to, self.made) = (Some(incarnation), made);
                if let (Some(change), Some(done)) = (&write.outputs, written.outputs)
                    && done.detached
                {
                    cell.outputs.detached(change, done.length);
                }
                (true, Some(written.acknowledgement))
            }
            Ok(None) => {
                // The cell was deleted: the outputs are still told to whoever asks for the execution. Somebody may undo it
                // while the code runs, and then it gets them all.
                self.written_to = None;
                (!has_ended, None)
            }
            Err(error) => {
                tracing::debug!(%error, "outputs could not be written yet");
                self.written_to = None;
                (true, None)
            }
        }
    }
}
