//! What people see of what waits and runs: `[*]` in front of cells that wait for their turn, and who they belong to.

use std::sync::Arc;

use live_document::Activity;
use store::ExecutionStatus;
use tokio::time::Instant;

use super::Worker;
use crate::job::Execution;

impl Worker {
    /// Shows cells that wait as queued. They keep their outputs and their counts, since they may never run.
    pub(super) fn show_queue(&mut self) {
        self.queue_shown_at = None;
        let waiting = self.queue.iter().map(|execution| (execution, execution.unmarked()));
        let waiting: Vec<_> = waiting.filter(|(_, cells)| !cells.is_empty()).collect();
        if waiting.is_empty() {
            return;
        }
        let Some(room) = self.room() else { return };
        for (execution, cells) in waiting {
            let owner = &execution.owner;
            match room.mark_queued(&owner.principal, &cells) {
                Ok(marked) => execution.mark_queued(&marked),
                Err(error) => tracing::debug!(%error, "cells that wait cannot be shown so"),
            }
            self.shared.note(execution);
        }
        self.stay_present();
    }

    /// Shows cells of an execution that were queued and will not run as they were before, or all that were queued.
    pub(super) fn unshow_queue(&self, execution: &Execution, all: bool) {
        let cells = execution.take_queued(all);
        if cells.is_empty() {
            return;
        }
        let shown = self
            .room()
            .map(|room| room.unmark_queued(&execution.owner.principal, &cells));
        if let Some(Err(error)) = shown {
            tracing::debug!(%error, "cells that did not run may still look as if they were to");
        }
    }

    /// Ends an execution, and what people see of it.
    pub(super) fn finish(&self, execution: &Arc<Execution>) {
        self.unshow_queue(execution, false);
        self.shared.finish(execution);
        let owner = &execution.owner.principal;
        let is_other = |queued: &&Arc<Execution>| !Arc::ptr_eq(queued, execution) && queued.owner.principal == *owner;
        if self.queue.iter().find(is_other).is_none()
            && let Some(room) = self.room()
        {
            room.rests(owner);
        }
    }

    /// Shows people whose cells run and wait, although nothing is written.
    pub(super) fn stay_present(&mut self) {
        self.shown_at = Instant::now();
        if let Some(active) = &self.active {
            // So that the next process knows until when this one was there.
            self.shared.note(&active.execution);
        }
        let Some(room) = self.room() else { return };
        let mut shown = Vec::new();
        for execution in self.active.iter().map(|active| &active.execution).chain(&self.queue) {
            let owner = &execution.owner;
            if shown.contains(&&owner.principal) {
                continue;
            }
            let is_active = self
                .active
                .as_ref()
                .is_some_and(|active| Arc::ptr_eq(&active.execution, execution));
            let activity = match execution.status() {
                ExecutionStatus::InputRequired => Activity::AwaitingInput,
                _ if is_active => Activity::Running,
                _ => Activity::Queued,
            };
            room.shows(&owner.principal, &owner.name, activity);
            shown.push(&owner.principal);
        }
    }
}
