//! The state machine behind one notebook's queue, or behind one kernel of its own: it runs one cell at a time, follows what
//! the kernel says, and sees to it that every execution ends in exactly one true state.
//!
//! Does no I/O and has no clock: [`Core::on`] takes one input and the time, and returns what is to be done. The driver owns
//! the connection, the room and the timers.
//!
//! ```text
//! commands ┐                                     ┌ to the kernel
//! kernel   ├─▶ Core::on(input, moment) ─▶ effects ┼ to the document
//! document ┘   queue, kernel, active, recent     └ to the store, to callers
//! ```

pub(crate) mod active_run;
pub(crate) mod actor;
pub(crate) mod code_gate;
mod commands;
mod completion;
pub(crate) mod execution;
mod hand_over;
pub(crate) mod input;
mod kernel;
mod kernel_events;
mod liveness;
pub(crate) mod notebook;
mod output_difference;
mod output_throttle;
mod outputs;
mod presence;
mod recording;
pub(crate) mod retained;
mod terminal;
mod widgets;
mod writing;

#[cfg(test)]
mod proptests;
#[cfg(test)]
pub(crate) mod tests;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use jupyter_client::Starter;
use store::ExecutionStatus;
use tokio::time::Instant;
use tracing::Span;

use self::{
    active_run::{ActiveRun, EndedRun},
    actor::Actor,
    completion::End,
    execution::Execution,
    input::{Code, Effect, Input, Moment, Obstacle},
    kernel::KernelState,
    liveness::DueProbe,
    retained::RetainedBytes,
};
use crate::policy::{INTERRUPT_TIMEOUT, PRESENCE_INTERVAL};

/// Settings of one core.
#[derive(Debug, Clone)]
pub(crate) struct CoreSettings {
    /// Time limit for the answer to a question of running code, which is interrupted then.
    pub(crate) input_timeout: Duration,
    /// True if a kernel that the gateway started is shut down with its connection.
    pub(crate) shuts_down_started: bool,
    /// True if the kernel serves only the gateway, so that it is shut down with its connection in any case.
    pub(crate) is_kernel_private: bool,
    /// Prefix of the ids of this core's requests, which no other core has.
    pub(crate) id: String,
}

pub(crate) struct Core {
    settings: CoreSettings,
    retained: RetainedBytes,
    queue: VecDeque<Arc<Execution>>,
    kernel: KernelState,
    active: Option<ActiveRun>,
    recent: VecDeque<EndedRun>,
    /// Number of recent runs whose end has not reached the server yet.
    unsettled: usize,
    /// The execution whose next cell is being prepared for sending.
    preparing: Option<Arc<Execution>>,
    /// Time and actor of the last interrupt through the gateway, which may hit a run that began only then.
    last_interrupt: Option<(Instant, Actor)>,
    /// Time of the last start of a kernel on the server.
    kernels_changed: Option<Instant>,
    idle_since: Instant,
    /// Time when people were last shown the agent's presence.
    presence_shown: Instant,
    /// Executions whose cells are shown as queued if they still wait at that time, the earliest first.
    unshown: VecDeque<(Instant, Arc<Execution>)>,
    /// The execution whose progress is to be recorded, and the time for that.
    unrecorded: Option<(Instant, Arc<Execution>)>,
    /// True once nothing more is begun.
    is_stopping: bool,
    now: Moment,
    requests: u64,
    effects: Vec<Effect>,
}

impl Core {
    pub(crate) fn new(settings: CoreSettings, retained: RetainedBytes, now: Moment) -> Self {
        Self {
            settings,
            retained,
            queue: VecDeque::new(),
            kernel: KernelState::None,
            active: None,
            recent: VecDeque::new(),
            unsettled: 0,
            preparing: None,
            last_interrupt: None,
            kernels_changed: None,
            idle_since: now.at,
            presence_shown: now.at,
            unshown: VecDeque::new(),
            unrecorded: None,
            is_stopping: false,
            now,
            requests: 0,
            effects: Vec::new(),
        }
    }

    /// Takes one input. Returns what is to be done, in this order.
    pub(crate) fn on(&mut self, input: Input, now: Moment) -> Vec<Effect> {
        self.now = now;
        match input {
            Input::Execute(_)
            | Input::Resume(_)
            | Input::Cancel(_)
            | Input::Answer { .. }
            | Input::AnswerSent { .. }
            | Input::Interrupted(_)
            | Input::LeaveKernel(_) => self.on_command(input),
            Input::KernelFound(found) => self.on_kernel_found(found),
            Input::Message(message) => self.on_message(&message),
            Input::ConnectionLost => self.on_connection(false),
            Input::ConnectionRestored => self.on_connection(true),
            Input::KernelGone(why) => self.on_kernel_gone(&why),
            Input::KernelsChanged(at) => self.kernels_changed = Some(at),
            Input::ServerAnswered(state) => self.on_server_answered(state),
            Input::Listeners(count) => {
                if count.is_some_and(|count| count > 1) {
                    self.mark_gap();
                }
            }
            Input::NotSent { msg_id, error } => self.on_not_sent(&msg_id, error),
            Input::Prepared {
                execution,
                unsaved,
                code,
            } => self.on_prepared(&execution, &unsaved, code),
            Input::Written(run) => self.on_written(&run),
            Input::WriteDelayed(run) => self.on_write_delayed(&run),
            Input::WriteWanted(run) => self.on_write_wanted(&run),
            Input::EndArrived { run, arrived } => self.on_end_arrived(&run, arrived),
            Input::EndRewritten { run, result } => self.on_end_rewritten(&run, result),
            Input::CopyKept(execution) => self.finish(&execution),
            Input::Stop => self.on_stop(),
            Input::Drained => self.on_drained(),
            Input::Tick => self.on_tick(),
        }
        self.start_next();
        std::mem::take(&mut self.effects)
    }

    /// The next time at which [`Input::Tick`] is expected.
    pub(crate) fn timer(&self) -> Option<Instant> {
        let writes = self.runs().filter_map(|run| run.throttle.due());
        let question = self.active.as_ref().map(|active| active.question);
        let times = [
            self.kernel.get().and_then(|kernel| kernel.liveness.probe_at()),
            self.asks_server_at(),
            (!self.is_idle()).then(|| self.presence_shown + PRESENCE_INTERVAL),
            self.unshown.front().map(|(at, _)| *at),
            self.unrecorded.as_ref().map(|(at, _)| *at),
            question.and_then(|question| question.shows_at()),
            question.and_then(|question| question.answer_by(self.settings.input_timeout)),
        ];
        writes.chain(times.into_iter().flatten()).min()
    }

    /// Returns whether nothing runs, waits or is on its way into a document.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_none() && self.queue.is_empty() && self.unsettled == 0
    }

    pub(crate) fn idle_since(&self) -> Instant {
        self.idle_since
    }

    /// The owner for whom a kernel is started.
    pub(crate) fn next_owner(&self) -> Starter {
        let owner = self.queue.front().map(|execution| &execution.owner);
        Starter {
            id: owner.map(|owner| Arc::clone(&owner.principal)).unwrap_or_default(),
            name: owner.map(|owner| owner.name.clone()).unwrap_or_default(),
        }
    }

    /// The span of the next execution in the queue.
    pub(crate) fn next_span(&self) -> Span {
        self.queue.front().map_or_else(Span::none, |execution| execution.span())
    }

    fn on_tick(&mut self) {
        let now = self.now.at;
        let id = self.next_id();
        if let Some(kernel) = self.kernel.get_mut()
            && let Some(probe) = kernel.liveness.take_due_probe(&id, now, kernel.is_connected)
        {
            let (DueProbe::Send(msg_id) | DueProbe::RenewAndSend(msg_id)) = &probe;
            let msg_id = msg_id.clone();
            if matches!(probe, DueProbe::RenewAndSend(_)) {
                self.effects.push(Effect::RenewConnection);
            }
            self.effects.push(Effect::KernelInfo { msg_id });
        }
        if self.asks_server_at().is_some_and(|at| at <= now)
            && let Some(kernel) = self.kernel.get_mut()
        {
            kernel.liveness.on_server_asked();
            self.effects.push(Effect::AskServer);
        }
        let question = self.active.as_ref().map(|active| active.question);
        if question
            .and_then(|question| question.shows_at())
            .is_some_and(|at| at <= now)
        {
            self.show_question();
        }
        let answer_by = question.and_then(|question| question.answer_by(self.settings.input_timeout));
        if answer_by.is_some_and(|at| at <= now) {
            self.expire_question();
        }
        self.show_queued();
        if !self.is_idle() && self.presence_shown + PRESENCE_INTERVAL <= now {
            self.show_presence();
        }
        self.record_due();
        // Last, since a question is shown among the outputs.
        self.write_due();
    }

    /// The time at which the server is asked about the kernel, if something runs there or waits for it.
    fn asks_server_at(&self) -> Option<Instant> {
        let kernel = self.kernel.get().filter(|kernel| kernel.is_connected)?;
        let is_expected = self.active.is_some() || kernel.liveness.is_free_awaited();
        kernel.liveness.asks_server_at().filter(|_| is_expected)
    }

    /// Begins the next run, if there is a kernel for it.
    fn start_next(&mut self) {
        self.preparing
            .take_if(|preparing| !self.queue.front().is_some_and(|next| Arc::ptr_eq(next, preparing)));
        while self.active.is_none() && !self.kernel.is_looked_for() && self.preparing.is_none() && !self.is_stopping {
            let Some(execution) = self.queue.front().cloned() else {
                return;
            };
            let Some(position) = execution.next_cell() else {
                self.queue.pop_front();
                self.finish(&execution);
                continue;
            };
            if self.kernel.is_used_by_others(self.now.at, self.kernels_changed) {
                execution.mark_awaiting_kernel();
                return self.probe_free();
            }
            if execution.mark_started(self.now.time) {
                execution.changed();
            }
            match self.kernel.get() {
                Some(kernel) if !kernel.is_connected || !kernel.liveness.is_heard() => return,
                Some(kernel) if !kernel.is_doubtful(self.now.at, self.kernels_changed) => {
                    self.preparing = Some(Arc::clone(&execution));
                    self.effects.push(Effect::Prepare { execution, position });
                }
                _ => self.find_kernel(),
            }
        }
    }

    fn find_kernel(&mut self) {
        self.kernel.begin_lookup();
        self.effects.push(Effect::FindKernel);
    }

    /// Asks to be told when the kernel is free: it runs what somebody else sent, and what is sent now could not be taken
    /// back.
    fn probe_free(&mut self) {
        let (id, now) = (self.next_id(), self.now.at);
        let Some(kernel) = self.kernel.get_mut() else { return };
        if let Some(msg_id) = kernel.liveness.probe_free(&id, now) {
            self.effects.push(Effect::KernelInfo { msg_id });
        }
    }

    fn on_prepared(&mut self, execution: &Arc<Execution>, unsaved: &[String], code: Result<Code, Obstacle>) {
        let is_awaited = |preparing: &mut Arc<Execution>| Arc::ptr_eq(preparing, execution);
        if self.preparing.take_if(is_awaited).is_none() {
            return;
        }
        if !unsaved.is_empty() {
            execution.add_remark(format!(
                "your edits of {} could not be saved before this ran, so the code may have read older files",
                unsaved.join(", ")
            ));
        }
        if !self.kernel.get().is_some_and(kernel::Kernel::is_ready) || self.active.is_some() {
            return;
        }
        let Some(position) = execution.next_cell() else { return };
        match code {
            Ok(code) => self.begin(execution, position, code),
            Err(obstacle) => self.skip(execution, position, obstacle),
        }
    }

    fn begin(&mut self, execution: &Arc<Execution>, position: usize, code: Code) {
        let (id, now) = (self.next_id(), self.now.at);
        let msg_id = format!("run-{id}");
        let active = ActiveRun::begin(Arc::clone(execution), position, msg_id.clone(), now);
        if active.run.is_shown() {
            active.run.with_cell(|cell| cell.replaces = code.replaces);
        }
        if code.source.trim().is_empty() {
            // As in JupyterLab, empty code is not sent: the kernel would not give it a count of its own.
            return self.end(active, End::completed());
        }
        let Some(kernel) = self.kernel.get_mut() else { return };
        kernel.liveness.reset_free_probe();
        kernel.liveness.on_contact(now);
        execution.mark_sent(position, &msg_id, &kernel.id, &kernel.session);
        self.active = Some(active);
        let is_recorded = self.record_sending(execution, position);
        self.effects.push(Effect::Execute {
            execution: Arc::clone(execution),
            msg_id,
            code: code.source,
            is_recorded,
        });
    }

    fn on_not_sent(&mut self, msg_id: &str, error: String) {
        if let Some(active) = self.active.take_if(|active| active.run.msg_id == msg_id) {
            self.end(active, End::failed("NotSent", error));
        }
    }

    /// Skips a cell that can no longer run, and all that follow if its notebook is gone.
    fn skip(&mut self, execution: &Arc<Execution>, position: usize, obstacle: Obstacle) {
        match obstacle {
            Obstacle::NotebookGone => execution.end_rest(
                ExecutionStatus::Cancelled,
                Some("the notebook was deleted or closed before this ran".to_owned()),
            ),
            Obstacle::CellGone => execution.skip_cell(position, "the cell was deleted before it ran"),
            Obstacle::NotCode => execution.skip_cell(position, "the cell was changed from code to text before it ran"),
            Obstacle::NotAllowed => execution.skip_cell(
                position,
                "a person must allow this code and has not: what was allowed was changed before it ran",
            ),
        }
        self.close_batch(execution, obstacle == Obstacle::NotebookGone);
    }

    /// The actor who interrupted the kernel just now, if somebody did.
    fn take_recent_interrupt(&mut self) -> Option<Actor> {
        let (at, actor) = self.last_interrupt.take()?;
        (self.now.at - at < INTERRUPT_TIMEOUT).then_some(actor)
    }

    fn next_id(&mut self) -> String {
        self.requests += 1;
        format!("{}-{}", self.settings.id, self.requests)
    }
}
