//! How what runs comes to its end, and what that means for what waits behind it.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use store::ExecutionStatus;
use tokio::time::Instant;

use super::{Worker, writing::settle};
use crate::{
    actor::{Actor, Reason},
    job::Execution,
    piece::Piece,
    run::{Fate, Outcome},
};

/// Cells that ran and may still be changed by the kernel: displays that are updated, threads that print.
const MAX_RECENT: usize = 1024;
const MAX_RECENT_BYTES: usize = 32 * 1024 * 1024;
/// A request that the kernel drops because another client's failed is sent again, but not for ever.
const MAX_REPEATS: u32 = 5;
const RESTARTED: &str = "restarted the kernel";
/// How long it may take from somebody's asking for an interrupt until what it hits has ended.
const INTERRUPTS_WITHIN: Duration = Duration::from_secs(10);
/// What an interrupt of the kernel is to Python.
const INTERRUPT: &str = "KeyboardInterrupt";
/// Why nothing may come of a run that was sent just before its kernel's process ended.
const STARTED_ANEW: &str = "the kernel restarted before the run began";

impl Worker {
    pub(super) fn ended(&mut self, outcome: Outcome) {
        let Some(mut active) = self.active.take() else { return };
        let last_interrupt = self.last_interrupt.take();
        let last_interrupt = last_interrupt.filter(|(at, _)| at.elapsed() < INTERRUPTS_WITHIN);
        // What has begun must not run twice.
        let did_not_run = outcome == Outcome::Aborted && !active.run.begun;
        let is_written = active.is_written();
        if did_not_run
            && active.interrupted.is_none()
            && active.execution.requeue(active.step, is_written) <= MAX_REPEATS
        {
            return;
        }
        let ending = match outcome {
            Outcome::Completed => Ending::completed(),
            Outcome::Failed { ename, evalue } => {
                let actor = last_interrupt.map(|(_, actor)| actor).filter(|_| ename == INTERRUPT);
                active.interrupted = active.interrupted.take().or(actor);
                failure(&active, &ename, &evalue)
            }
            Outcome::Aborted if did_not_run && active.interrupted.is_none() => Ending::cancelled(Reason::new(
                "the kernel skipped this because something before it failed",
            )),
            Outcome::Aborted => Ending::cancelled(interruption(&active)),
        };
        self.end(active, ending);
    }

    pub(super) async fn befell(&mut self, fate: Fate) {
        // What the process that ended had not taken up may wait in Jupyter for the next one, which then runs it.
        let is_at_stake = self.active.as_ref().is_some_and(|active| !active.run.busy);
        let ending = match fate {
            Fate::Died => Ending::failed(
                "KernelDied",
                "the kernel died while this ran, perhaps out of memory; Jupyter restarts it without its variables"
                    .to_owned(),
            ),
            Fate::Dead => Ending::failed(
                "KernelDied",
                "the kernel died and Jupyter could not start it again; restart it with restart_nb_kernel".to_owned(),
            ),
            Fate::Restarted => Ending::cancelled(Reason::by(Actor::Person, RESTARTED)),
            Fate::ShutDown => Ending::cancelled(Reason::by(Actor::Person, "shut the kernel down")),
            Fate::Starting if self.active.is_some() && !is_at_stake => {
                Ending::cancelled(Reason::by(Actor::Person, RESTARTED))
            }
            // A kernel that was just started says so too.
            Fate::Starting => return self.raise_barrier(STARTED_ANEW).await,
        };
        self.forget_recent();
        self.note_ended(&match fate {
            Fate::Died | Fate::Dead => Reason::new("the kernel died"),
            _ => ending
                .reason
                .clone()
                .unwrap_or_else(|| Reason::by(Actor::Person, RESTARTED)),
        });
        let is_awaited = self.is_kernel_awaited();
        if is_at_stake && matches!(fate, Fate::Died | Fate::Restarted) {
            // On another line it could be overtaken by the question whether anything comes of it.
            if let Some(kernel) = &mut self.kernel {
                kernel.is_new_process();
            }
            return self.raise_barrier(STARTED_ANEW).await;
        }
        match &mut self.kernel {
            Some(_) if fate == Fate::ShutDown => self.kernel = None,
            Some(kernel) if matches!(fate, Fate::Died | Fate::Dead) => kernel.was_replaced(),
            Some(kernel) => kernel.is_new_process(),
            None => {}
        }
        if self.active.is_some() {
            self.end_all(ending);
        } else if is_awaited {
            self.end_waiting(&ending);
        }
    }

    /// Ends what runs, and with it what waits behind it and counted on the same kernel.
    pub(super) fn end_all(&mut self, ending: Ending) {
        self.barrier = None;
        match self.active.take() {
            Some(active) => {
                self.end(active, ending.clone());
                self.end_waiting(&ending);
            }
            None => self.end_queue(ending.status, "", ending.reason.as_ref()),
        }
    }

    /// Ends what counted on a kernel and did not come to its turn there.
    pub(super) fn end_waiting(&mut self, ending: &Ending) {
        let gone = Reason::new("the kernel is gone");
        let why = ending.reason.as_ref().unwrap_or(&gone);
        self.end_queue(ExecutionStatus::Cancelled, "not run: ", Some(why));
    }

    fn end_queue(&mut self, status: ExecutionStatus, prefix: &str, reason: Option<&Reason>) {
        for execution in std::mem::take(&mut self.queue) {
            let told = reason.map(|reason| format!("{prefix}{}", reason.told_to(&execution.owner)));
            execution.end_rest(status, told);
            self.finish(&execution);
        }
    }

    /// Ends a piece: its outputs are written out, its record is kept, and what follows of its batch is decided.
    pub(super) fn end(&mut self, mut piece: Piece, ending: Ending) {
        self.idle_since = Instant::now();
        if let Some((ename, evalue)) = &ending.output {
            piece.with_step(|step| step.outputs.push_end(ename, evalue));
        }
        let room = self.room();
        let acknowledgement = piece.finish(room.as_ref());
        if piece.is_shown() {
            self.settling
                .push(settle(piece.run.msg_id.clone(), acknowledgement, piece.pause()).boxed());
        }
        let execution = Arc::clone(&piece.execution);
        let reason = ending.reason.map(|reason| reason.told_to(&execution.owner));
        execution.end_step(piece.step, ending.status, reason);
        let stops = match ending.status {
            // What an earlier process queued behind it is not begun by this one.
            ExecutionStatus::Completed | ExecutionStatus::Failed
                if piece.resumed
                    && (ending.status == ExecutionStatus::Completed || !execution.stop_on_error)
                    && execution.next_step().is_some() =>
            {
                let why = "the gateway restarted before the remaining cells ran";
                execution.end_rest(ExecutionStatus::Cancelled, Some(why.to_owned()));
                true
            }
            ExecutionStatus::Completed => false,
            ExecutionStatus::Failed => execution.stop_on_error,
            _ => true,
        };
        let is_unwanted = execution.is_unwanted();
        if is_unwanted {
            execution.end_rest(ExecutionStatus::Cancelled, Some("it was cancelled".to_owned()));
        }
        let stops = stops || is_unwanted;
        self.remember(piece);
        self.close_batch(&execution, stops);
    }

    /// Keeps a piece that has ended, and forgets the oldest where there are too many.
    fn remember(&mut self, mut piece: Piece) {
        piece.kept = Some(self.shared.kept.keep(&piece.execution.owner.principal, piece.bytes()));
        self.recent.push_back(piece);
        let mut bytes: usize = self.recent.iter().map(Piece::bytes).sum();
        while self.recent.len() > MAX_RECENT || bytes > MAX_RECENT_BYTES && self.recent.len() > 1 {
            bytes -= self.recent.pop_front().as_ref().map_or(0, Piece::bytes);
        }
        self.forget_excess();
    }

    /// Forgets the oldest of a principal of whom too much is kept in all notebooks together. Those whose end is not yet
    /// with the server stay until it is.
    pub(super) fn forget_excess(&mut self) {
        let kept = &self.shared.kept;
        let is_excess = |piece: &Piece| piece.settled && kept.is_too_much_of(&piece.execution.owner.principal);
        // One after the other, since each that goes makes room.
        while let Some(at) = self.recent.iter().position(is_excess) {
            self.recent.remove(at);
        }
    }

    /// The kernel's process has ended and will say nothing more of them. Those whose end is not yet with the server
    /// stay until it is.
    pub(super) fn forget_recent(&mut self) {
        self.recent.retain(|piece| !piece.settled);
    }

    /// Ends an execution whose steps have all ended, or are not to run.
    pub(super) fn close_batch(&mut self, execution: &Arc<Execution>, stops: bool) {
        if stops {
            execution.end_rest(ExecutionStatus::Cancelled, None);
        }
        if execution.next_step().is_none() {
            self.queue.retain(|queued| !Arc::ptr_eq(queued, execution));
            self.finish(execution);
        } else {
            self.shared.note(execution);
            execution.changed();
        }
    }
}

/// How a run ends that failed as the kernel says, which it also does when it is interrupted.
fn failure(active: &Piece, ename: &str, evalue: &str) -> Ending {
    let is_interrupt = ename == INTERRUPT;
    if is_interrupt && active.interrupted.is_some() {
        return Ending::cancelled(interruption(active));
    }
    let was_raised = active
        .with_step(|step| step.outputs.was_raised(INTERRUPT))
        .unwrap_or(false);
    let reason = match is_interrupt && !was_raised {
        true => Reason::by(Actor::Person, format!("interrupted the kernel ({ename})")),
        false => Reason::new(format!("{ename}: {evalue}")),
    };
    Ending {
        status: ExecutionStatus::Failed,
        reason: Some(reason),
        output: None,
    }
}

/// Who interrupted a run, and how.
pub(super) fn interruption(active: &Piece) -> Reason {
    if let Some(because) = &active.interrupted_because {
        return Reason::new(because);
    }
    match &active.interrupted {
        Some(_) if active.execution.is_unwanted() => Reason::new("it was cancelled"),
        Some(actor) => Reason::by(actor.clone(), "interrupted the kernel"),
        None => Reason::new("it was interrupted"),
    }
}

/// How a piece ends.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    status: ExecutionStatus,
    reason: Option<Reason>,
    /// What the notebook says of it, where the kernel could not.
    output: Option<(&'static str, String)>,
}

impl Ending {
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
