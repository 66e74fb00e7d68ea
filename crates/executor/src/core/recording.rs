//! Records of executions: at once what must be on record before something is done; their progress as often as
//! their size allows.

use std::sync::Arc;

use super::{Core, execution::Execution, input::Effect};

impl Core {
    /// Records the progress of an execution, now or soon.
    pub(super) fn record_progress(&mut self, execution: &Arc<Execution>) {
        match execution.take_record_due(self.now.at) {
            None => self.effects.push(Effect::Record(Arc::clone(execution))),
            Some(due) => self.unrecorded = Some((due, Arc::clone(execution))),
        }
    }

    pub(super) fn record_due(&mut self) {
        let now = self.now.at;
        if let Some((_, execution)) = self.unrecorded.take_if(|(due, _)| *due <= now)
            && !execution.status().is_finished()
        {
            self.record_progress(&execution);
        }
    }

    /// Marks a cell as sent in the record, and returns whether that is on record before it is. Code of which nobody would know
    /// that it ran must not be sent.
    pub(super) fn record_sending(&mut self, execution: &Arc<Execution>, position: usize) -> bool {
        let is_recorded = execution.mark_sending(position, self.now.at);
        if is_recorded {
            self.record_progress(execution);
        }
        is_recorded
    }
}
