//! Completion of a run, and its effect on the runs behind it.

use std::sync::Arc;

use store::ExecutionStatus;

use super::{
    Core,
    active_run::{ActiveRun, EndWriting, EndedRun, Interruption, Origin},
    actor::{Actor, Reason},
    execution::{CellRun, Execution, Outcome},
    input::Effect,
};
use crate::policy::{MAX_RECENT, MAX_RECENT_BYTES, MAX_REPEATS};

/// Exception by which Python reports an interrupt of the kernel.
const INTERRUPT: &str = "KeyboardInterrupt";

/// The end of a run.
#[derive(Debug, Clone)]
pub(super) struct End {
    status: ExecutionStatus,
    reason: Option<Reason>,
    /// Output that the notebook shows for it, where the kernel could send none.
    output: Option<(&'static str, String)>,
}

impl End {
    pub(super) fn completed() -> Self {
        Self {
            status: ExecutionStatus::Completed,
            reason: None,
            output: None,
        }
    }

    pub(super) fn failed(ename: &'static str, reason: String) -> Self {
        Self {
            status: ExecutionStatus::Failed,
            reason: Some(Reason::new(reason.as_str())),
            output: Some((ename, reason)),
        }
    }

    pub(super) fn cancelled(reason: Reason) -> Self {
        Self {
            status: ExecutionStatus::Cancelled,
            reason: Some(reason),
            output: None,
        }
    }

    pub(super) fn lost(reason: String) -> Self {
        Self {
            status: ExecutionStatus::Lost,
            reason: Some(Reason::new(reason.as_str())),
            output: Some(("ExecutionLost", reason)),
        }
    }
}

impl Core {
    /// Ends the run as the kernel says, or queues it again if the kernel dropped it.
    pub(super) fn on_outcome(&mut self, mut active: ActiveRun, outcome: Outcome) {
        let recent_interrupt = self.take_recent_interrupt();
        // What has begun must not run twice.
        let did_not_run = outcome == Outcome::Aborted && !active.has_begun();
        let was_dropped = did_not_run && active.interruption.is_none();
        if was_dropped {
            let run = &active.run;
            if run
                .execution
                .requeue(run.position, run.is_shown() && run.throttle.has_written())
                <= MAX_REPEATS
            {
                return self.effects.push(Effect::Forget(active.run.msg_id));
            }
        }
        let end = match outcome {
            Outcome::Completed => End::completed(),
            Outcome::Failed { ename, evalue } => {
                let actor = recent_interrupt.filter(|_| ename == INTERRUPT);
                active.interruption = active.interruption.take().or(actor.map(Interruption::By));
                match active.run.with_cell(|cell| cell.may_raise) {
                    Some(true) if ename != INTERRUPT => End::completed(),
                    _ => failure(&active, &ename, &evalue),
                }
            }
            Outcome::Aborted if was_dropped => End::cancelled(Reason::new(
                "the kernel skipped this because something before it failed",
            )),
            Outcome::Aborted => End::cancelled(active.interruption()),
        };
        self.end(active, end);
    }

    /// Ends a run: its outputs are written out, its record is kept, and what follows of its batch is decided.
    pub(super) fn end(&mut self, active: ActiveRun, end: End) {
        self.idle_since = self.now.at;
        let ActiveRun { run, origin, .. } = active;
        if let Some((ename, evalue)) = &end.output {
            run.with_cell(|cell| cell.outputs.push_end(ename, evalue));
        }
        let execution = Arc::clone(&run.execution);
        let reason = end.reason.map(|reason| reason.told_to(&execution.owner));
        execution.end_cell(run.position, end.status, reason);
        run.with_cell(CellRun::compare);
        if run.is_shown() {
            self.effects.push(Effect::WriteEnd {
                run: run.written(),
                attempts: 0,
            });
        }
        let goes_on = match end.status {
            ExecutionStatus::Completed => true,
            ExecutionStatus::Failed => !execution.stop_on_error,
            _ => false,
        };
        if origin != Origin::Here && (goes_on || end.status != ExecutionStatus::Failed) {
            // What an earlier process queued behind it is not begun by this one.
            execution.end_left_behind("the gateway restarted before the remaining cells ran");
        }
        if execution.is_cancelled() {
            execution.end_rest(ExecutionStatus::Cancelled, Some("it was cancelled".to_owned()));
        }
        self.remember(run);
        self.close_batch(&execution, !goes_on);
    }

    /// Ends the run in the kernel, and with it the runs that wait for the same kernel.
    pub(super) fn end_all(&mut self, end: End) {
        if let Some(kernel) = self.kernel.get_mut() {
            kernel.liveness.forget_end_probe();
        }
        match self.active.take() {
            Some(active) => {
                self.end(active, end.clone());
                self.end_awaiting(&end);
            }
            None => self.end_queue(end.status, "", end.reason.as_ref()),
        }
    }

    /// Ends the run in a kernel, or the runs that wait for it.
    pub(super) fn end_running_or_awaiting(&mut self, end: End, is_awaited: bool) {
        if self.active.is_some() {
            self.end_all(end);
        } else if is_awaited {
            self.end_awaiting(&end);
        }
    }

    /// Ends the runs that needed a kernel and did not run there.
    fn end_awaiting(&mut self, end: &End) {
        let gone = Reason::new("the kernel is gone");
        let why = end.reason.as_ref().unwrap_or(&gone);
        self.end_queue(ExecutionStatus::Cancelled, "not run: ", Some(why));
    }

    fn end_queue(&mut self, status: ExecutionStatus, prefix: &str, reason: Option<&Reason>) {
        for execution in std::mem::take(&mut self.queue) {
            let told = reason.map(|reason| format!("{prefix}{}", reason.told_to(&execution.owner)));
            execution.end_rest(status, told);
            self.finish(&execution);
        }
    }

    /// Ends an execution whose cells have all ended, or are not to run.
    pub(super) fn close_batch(&mut self, execution: &Arc<Execution>, stops: bool) {
        if stops {
            execution.end_rest(ExecutionStatus::Cancelled, None);
        }
        if execution.next_cell().is_none() {
            self.queue.retain(|queued| !Arc::ptr_eq(queued, execution));
            self.finish(execution);
        } else {
            self.record_progress(execution);
            execution.changed();
        }
    }

    /// Ends an execution, and what people see of it.
    pub(super) fn finish(&mut self, execution: &Arc<Execution>) {
        if execution.status().is_finished() {
            return;
        }
        if execution.has_pending_copy() {
            // The copy is there before anybody sees the end.
            return self.effects.push(Effect::KeepCopy(Arc::clone(execution)));
        }
        execution.end(self.now.time);
        self.effects.push(Effect::UnmarkQueued {
            execution: Arc::clone(execution),
            all: false,
        });
        self.effects.push(Effect::Finish(Arc::clone(execution)));
        let owner = &execution.owner.principal;
        let is_other = |queued: &Arc<Execution>| !Arc::ptr_eq(queued, execution) && queued.owner.principal == *owner;
        if !self.queue.iter().any(is_other) {
            self.effects.push(Effect::HidePresence(Arc::clone(owner)));
        }
    }

    /// Keeps a run that has ended, and forgets the oldest where there are too many.
    fn remember(&mut self, mut run: super::active_run::RunInKernel) {
        run.throttle.take();
        let end = match run.is_shown() {
            true => EndWriting::OnItsWay {
                attempts: 0,
                rewritten: 0,
            },
            false => EndWriting::Settled,
        };
        self.unsettled += usize::from(run.is_shown());
        let owner = Arc::clone(&run.execution.owner.principal);
        let retained = self.retained.retain(&owner, run.bytes());
        self.recent.push_back(EndedRun { run, end, retained });
        let mut bytes: usize = self.recent.iter().map(|ended| ended.retained.bytes()).sum();
        while self.recent.len() > MAX_RECENT || bytes > MAX_RECENT_BYTES && self.recent.len() > 1 {
            let Some(oldest) = self.recent.pop_front() else { break };
            bytes -= oldest.retained.bytes();
            self.unsettled -= usize::from(!oldest.is_settled());
            self.effects.push(Effect::Forget(oldest.run.msg_id));
        }
        self.forget_excess(&owner);
    }

    /// Forgets the oldest of a principal if too much of theirs is retained in all notebooks together. Those whose end is not
    /// yet with the server stay until it is.
    pub(super) fn forget_excess(&mut self, owner: &Arc<str>) {
        let is_theirs = |ended: &EndedRun| ended.is_settled() && ended.run.execution.owner.principal == *owner;
        // One after the other, since each that goes makes room.
        while self.retained.is_too_much_of(owner)
            && let Some(at) = self.recent.iter().position(is_theirs)
        {
            if let Some(ended) = self.recent.remove(at) {
                self.effects.push(Effect::Forget(ended.run.msg_id));
            }
        }
    }

    /// The kernel's process has ended and will say nothing more of what ran there. What is not yet with the server stays
    /// until it is.
    pub(super) fn forget_settled(&mut self) {
        let effects = &mut self.effects;
        self.recent.retain(|ended| {
            if ended.is_settled() {
                effects.push(Effect::Forget(ended.run.msg_id.clone()));
            }
            !ended.is_settled()
        });
    }
}

/// The end of a run that failed as the kernel says, which it also does when it is interrupted.
fn failure(active: &ActiveRun, ename: &str, evalue: &str) -> End {
    let is_interrupt = ename == INTERRUPT;
    if is_interrupt && active.interruption.is_some() {
        return End::cancelled(active.interruption());
    }
    let was_raised = active.run.with_cell(|cell| cell.outputs.was_raised(INTERRUPT));
    let reason = match is_interrupt && !was_raised.unwrap_or(false) {
        true => Reason::by(Actor::Person, format!("interrupted the kernel ({ename})")),
        false => Reason::new(format!("{ename}: {evalue}")),
    };
    End {
        status: ExecutionStatus::Failed,
        reason: Some(reason),
        output: None,
    }
}
