//! Writing of outputs to the notebook and the store; the end of a run is written until the server has it.

use std::sync::Arc;

use super::{
    Core,
    active_run::{EndWriting, EndedRun, RunInKernel},
    input::{Effect, Rewritten},
};

impl Core {
    /// The runs whose outputs may change.
    pub(super) fn runs(&self) -> impl Iterator<Item = &RunInKernel> {
        let active = self.active.iter().map(|active| &active.run);
        active.chain(self.recent.iter().map(|ended| &ended.run))
    }

    fn runs_mut(&mut self) -> impl Iterator<Item = &mut RunInKernel> {
        let active = self.active.iter_mut().map(|active| &mut active.run);
        active.chain(self.recent.iter_mut().map(|ended| &mut ended.run))
    }

    fn run_mut(&mut self, id: &str) -> Option<&mut RunInKernel> {
        self.runs_mut().find(|run| run.msg_id == id)
    }

    fn ended_mut(&mut self, id: &str) -> Option<&mut EndedRun> {
        self.recent.iter_mut().find(|ended| ended.run.msg_id == id)
    }

    /// Writes the outputs that are due.
    pub(super) fn write_due(&mut self) {
        let now = self.now.at;
        self.write_where(true, |run| run.throttle.take_due(now));
    }

    /// Writes all outputs that are not written yet, due or not.
    pub(super) fn write_rest(&mut self) {
        self.write_where(false, |run| run.throttle.take());
    }

    fn write_where(&mut self, can_wait: bool, take: impl Fn(&mut RunInKernel) -> bool) {
        let writes: Vec<_> = self
            .runs_mut()
            .filter_map(|run| take(run).then(|| run.written()))
            .collect();
        let writes = writes.into_iter().map(|run| Effect::Write { run, can_wait });
        self.effects.extend(writes);
    }

    pub(super) fn on_written(&mut self, id: &str) {
        let now = self.now.at;
        let is_active = self.active.as_ref().is_some_and(|active| active.run.msg_id == id);
        let Some(run) = self.run_mut(id) else { return };
        run.throttle.on_written(now);
        let execution = Arc::clone(&run.execution);
        execution.changed();
        // What comes after the end is missing in the record that was stored then.
        if !is_active || !run.is_shown() && run.throttle.take_store(now, run.bytes()) {
            self.effects.push(Effect::RecordOutputs(execution));
        } else if run.take_count_to_note() {
            self.record_progress(&execution);
        }
    }

    pub(super) fn on_write_delayed(&mut self, id: &str) {
        let now = self.now.at;
        if let Some(run) = self.run_mut(id) {
            run.throttle.on_delayed(now);
            run.execution.changed();
        }
    }

    pub(super) fn on_write_wanted(&mut self, id: &str) {
        let now = self.now.at;
        if let Some(run) = self.run_mut(id) {
            run.throttle.set_due(now);
        }
    }

    /// The end of a run is with the server, or was lost with its document and is written again.
    pub(super) fn on_end_arrived(&mut self, id: &str, arrived: bool) {
        if arrived {
            return self.settle(id);
        }
        if let Some(ended) = self.ended_mut(id) {
            let run = ended.run.written();
            self.effects.push(Effect::RewriteEnd(run));
        }
    }

    pub(super) fn on_end_rewritten(&mut self, id: &str, result: Rewritten) {
        let Some(ended) = self.ended_mut(id) else { return };
        let again = ended.end.on_attempt(result == Rewritten::Written);
        match again.filter(|_| result != Rewritten::Never) {
            Some(attempts) => {
                let run = id.to_owned();
                self.effects.push(Effect::AwaitEnd { run, attempts });
            }
            None => {
                tracing::warn!(path = ?ended.run.execution.path(), "cannot write the outputs of a cell to its notebook");
                self.settle(id);
            }
        }
    }

    /// Records that the end of a run is with the server, or never will be.
    fn settle(&mut self, id: &str) {
        let Some(ended) = self.ended_mut(id).filter(|ended| !ended.is_settled()) else {
            return;
        };
        ended.end = EndWriting::Settled;
        let owner = Arc::clone(&ended.run.execution.owner.principal);
        self.unsettled -= 1;
        self.forget_excess(&owner);
    }
}
