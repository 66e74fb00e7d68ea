//! Schedule of an execution's records. Each record has all cells, so that executions of many cells which run quickly are
//! not recorded with each: the work grows with the cells, and not with their square.

use tokio::time::Instant;

use super::Execution;
use crate::policy::{RECORD_INTERVAL, RECORDS_OF_ALL_CELLS};

impl Execution {
    /// Returns whether there is a record of its progress.
    pub(crate) fn is_recorded(&self) -> bool {
        self.lock().recorded_at.is_some()
    }

    /// Marks its progress as recorded, if that is due. Returns when it will be, if it is not.
    pub(crate) fn take_record_due(&self, now: Instant) -> Option<Instant> {
        let mut state = self.lock();
        let due = state.recorded_at.map(|at| at + RECORD_INTERVAL);
        let is_large = state.cells.len() > RECORDS_OF_ALL_CELLS;
        match due.filter(|due| is_large && *due > now) {
            Some(due) => Some(due),
            None => {
                state.recorded_at = Some(now);
                None
            }
        }
    }

    /// Marks a cell as one that the record tells to be sent. Returns whether it did so before. Of many cells that follow
    /// each other quickly some are told to be sent before they are.
    pub(crate) fn mark_sending(&self, position: usize, now: Instant) -> bool {
        let mut state = self.lock();
        let is_large = state.cells.len() > RECORDS_OF_ALL_CELLS;
        let is_quick = is_large && state.recorded_at.is_some_and(|at| now < at + RECORD_INTERVAL);
        if is_quick && position < state.sent_before {
            return true;
        }
        let ahead = match is_quick {
            true => state.cells.len() / RECORDS_OF_ALL_CELLS,
            false => 0,
        };
        state.sent_before = (position + 1 + ahead).min(state.cells.len());
        state.recorded_at = Some(now);
        false
    }
}
