//! Presence of queued and running cells: the `[*]` in front of them, and the agent that they belong to.

use std::sync::Arc;

use live_document::Activity;
use store::ExecutionStatus;

use super::{Core, input::Effect};

impl Core {
    /// Shows cells as queued that have waited for a while. They keep their outputs and their counts, since they may never
    /// run.
    pub(super) fn show_queued(&mut self) {
        let (mut any, now) = (false, self.now.at);
        while let Some((_, execution)) = self.unshown.pop_front_if(|(at, _)| *at <= now) {
            let cells = execution.unmarked();
            if !cells.is_empty() {
                self.effects.push(Effect::MarkQueued(execution, cells));
                any = true;
            }
        }
        if any {
            self.show_presence();
        }
    }

    /// Shows people whose cells run and wait, although nothing is written.
    pub(super) fn show_presence(&mut self) {
        self.presence_shown = self.now.at;
        let active = self.active.as_ref().map(|active| &active.run.execution);
        if let Some(execution) = active {
            // So that the next process knows until when this one was there.
            self.effects.push(Effect::Record(Arc::clone(execution)));
        }
        let mut shown: Vec<(Arc<_>, Activity)> = Vec::new();
        for execution in active.into_iter().chain(&self.queue) {
            let is_shown =
                |(other, _): &(Arc<super::Execution>, Activity)| other.owner.principal == execution.owner.principal;
            if shown.iter().any(is_shown) {
                continue;
            }
            let is_active = active.is_some_and(|active| Arc::ptr_eq(active, execution));
            let activity = match execution.status() {
                ExecutionStatus::InputRequired => Activity::AwaitingInput,
                _ if is_active => Activity::Running,
                _ => Activity::Queued,
            };
            shown.push((Arc::clone(execution), activity));
        }
        self.effects.push(Effect::ShowPresence(shown));
    }
}
