//! Kernel messages and lifecycle events, and their effect on runs.

use std::{sync::Arc, time::Duration};

use jupyter_client::{
    JupyterError, RunningKernel,
    kernel::{Channel, Message},
};
use serde_json::Value;

use super::{
    Core,
    active_run::{ActiveRun, QuestionTimes},
    actor::{Actor, Reason},
    completion::End,
    execution::{RunEvent, RunState, pages},
    input::{Effect, FoundKernel},
    kernel::{Kernel, KernelState},
    liveness::EndConfirmed,
};
use crate::ExecutionError;

const RESTARTED: &str = "restarted the kernel";
/// Reason why a run may have no result that was sent just before its kernel's process ended.
const STARTED_ANEW: &str = "the kernel restarted before the run began";

/// Kernel lifecycle event, told by a message that belongs to no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// It died; Jupyter starts it again under the same id.
    Died,
    /// It died, and Jupyter has given up starting it.
    Dead,
    Restarted,
    /// It was shut down for good.
    ShutDown,
    /// It starts, which is a restart for whoever saw it run before.
    Starting,
}

impl Lifecycle {
    fn of(message: &Message) -> Option<Self> {
        match (message.channel, message.msg_type.as_str()) {
            (Channel::Iopub, "status") if message.parent_id.is_none() => {
                match message.content.get("execution_state").and_then(Value::as_str)? {
                    "restarting" => Some(Self::Died),
                    "dead" => Some(Self::Dead),
                    "starting" => Some(Self::Starting),
                    _ => None,
                }
            }
            (Channel::Iopub | Channel::Control, "shutdown_reply") => {
                match message.content.get("restart").and_then(Value::as_bool) {
                    Some(true) => Some(Self::Restarted),
                    _ => Some(Self::ShutDown),
                }
            }
            _ => None,
        }
    }

    /// The end of what ran there, and the reason that is told to others who ran something there before.
    fn end(self) -> (End, Reason) {
        let died = |text: &str| {
            let end = End::failed("KernelDied", text.to_owned());
            (end, Reason::new("the kernel died"))
        };
        let by_person = |did: &str| {
            let reason = Reason::by(Actor::Person, did);
            (End::cancelled(reason.clone()), reason)
        };
        match self {
            Self::Died => {
                died("the kernel died while this ran, perhaps out of memory; Jupyter restarts it without its variables")
            }
            Self::Dead => {
                died("the kernel died and Jupyter could not start it again; restart it with restart_nb_kernel")
            }
            Self::ShutDown => by_person("shut the kernel down"),
            Self::Restarted | Self::Starting => by_person(RESTARTED),
        }
    }
}

impl Core {
    pub(super) fn on_message(&mut self, message: &Message) {
        self.on_contact();
        if let Some(event) = Lifecycle::of(message) {
            return self.on_lifecycle(event);
        }
        let mut nothing_more = None;
        if let Some(kernel) = self.kernel.get_mut() {
            nothing_more = kernel.liveness.on_message(message);
            if let Some(update) = kernel.widgets.on_message(message, &kernel.session) {
                self.effects.push(Effect::CommMsg(update));
            }
        }
        if message.msg_type == "update_display_data" {
            return self.update_displays(message);
        }
        let Some(parent) = &message.parent_id else { return };
        if let Some(active) = self.active.take_if(|active| active.run.msg_id == *parent) {
            self.on_active_message(active, message);
        } else if message.channel == Channel::Iopub && message.msg_type != "status" {
            self.on_late_output(parent, message);
        }
        if let Some(EndConfirmed { run, doubt }) = nothing_more {
            self.on_end_confirmed(&run, doubt);
        }
    }

    fn on_active_message(&mut self, mut active: ActiveRun, message: &Message) {
        let now = self.now.at;
        let had_begun = active.has_begun();
        pages(message).for_each(|page| active.show(&page, now));
        let event = active.run.with_cell(|cell| cell.on_message(message, self.now.time));
        match event.unwrap_or(RunEvent::Nothing) {
            RunEvent::PickedUp => {
                active.on_picked_up(now);
                self.effects.extend(message.process().map(|process| Effect::PickedUp {
                    execution: Arc::clone(&active.run.execution),
                    process: process.to_owned(),
                }));
            }
            RunEvent::Output => {
                active.question.on_output(now);
                let is_captured = self.captures(message);
                if let Some(pause) = active.run.fold(message, is_captured) {
                    active.on_change(now, pause);
                }
            }
            RunEvent::Question => {
                active.question.on_asked(now);
                let execution = Arc::clone(&active.run.execution);
                self.effects.push(Effect::Record(execution));
            }
            RunEvent::Ended(outcome) => return self.on_outcome(active, outcome),
            RunEvent::Nothing => {}
        }
        let interrupted = active.interruption.is_some().then(|| active.state());
        self.active = Some(active);
        let Some(state) = interrupted else { return };
        if state.has_begun() && !had_begun {
            self.effects.push(Effect::Interrupt);
        }
        if matches!(state, RunState::Idle { .. }) {
            // An interrupt at the very beginning can make a kernel forget to reply.
            self.probe_end("the run was interrupted, and the kernel did not say how it ended");
        }
    }

    fn on_late_output(&mut self, parent: &str, message: &Message) {
        let Some(at) = self.recent.iter().position(|ended| ended.run.msg_id == parent) else {
            return;
        };
        let is_captured = self.captures(message);
        if let Some(pause) = self.recent[at].run.fold(message, is_captured) {
            self.recent[at].on_change(self.now.at, pause);
        }
    }

    /// Gives an output to the widget that captures it; returns whether one does.
    fn captures(&mut self, message: &Message) -> bool {
        let kernel = self.kernel.get_mut();
        kernel.is_some_and(|kernel| kernel.widgets.capture(message))
    }

    fn update_displays(&mut self, message: &Message) {
        let now = self.now.at;
        if let Some(active) = self.active.as_mut().filter(|active| active.run.update_display(message)) {
            active.on_change(now, Duration::ZERO);
        }
        for ended in self.recent.iter_mut().filter(|ended| ended.run.update_display(message)) {
            ended.on_change(now, Duration::ZERO);
        }
    }

    /// Ends a run after which the kernel has answered a probe: everything about the run has come, if it ever will.
    fn on_end_confirmed(&mut self, run: &str, doubt: &'static str) {
        let Some(active) = self.active.take_if(|active| active.run.msg_id == run) else {
            return;
        };
        match active.state() {
            RunState::Replied { outcome, .. } => {
                // Its end was not seen, so some of its messages were not received.
                self.active = Some(active);
                self.mark_gap();
                if let Some(active) = self.active.take() {
                    self.on_outcome(active, outcome);
                }
            }
            RunState::Idle { .. } if active.interruption.is_some() => {
                let reason = active.interruption();
                self.end(active, End::cancelled(reason));
            }
            _ => self.end(active, End::lost(doubt.to_owned())),
        }
    }

    fn on_lifecycle(&mut self, event: Lifecycle) {
        // What the process that ended had not picked up may wait in Jupyter for the next one, which then runs it.
        let is_untouched = self.active.as_ref().is_some_and(|active| active.state().is_untouched());
        let is_new = self.kernel.get().is_some_and(|kernel| kernel.is_new(self.now.at));
        if event == Lifecycle::Starting && (self.active.is_none() || is_untouched || is_new) {
            // A kernel that was just started says so too; whether it was restarted since shows in what comes of the run.
            return self.probe_end(STARTED_ANEW);
        }
        let (end, reason) = event.end();
        self.forget_settled();
        self.note_kernel_ended(&reason);
        let (now, is_awaited) = (self.now.at, self.kernel.is_awaited());
        if is_untouched && matches!(event, Lifecycle::Died | Lifecycle::Restarted) {
            // On another connection it could be overtaken by the probe whether anything comes of it.
            if let Some(kernel) = self.kernel.get_mut() {
                kernel.on_new_process(now);
            }
            return self.probe_end(STARTED_ANEW);
        }
        if event == Lifecycle::ShutDown {
            self.kernel.on_gone();
            self.effects.push(Effect::DropKernel);
        } else if let Some(kernel) = self.kernel.get_mut() {
            kernel.on_new_process(now);
            // Jupyter put another process in the place of one that died, perhaps where this connection does not lead.
            if matches!(event, Lifecycle::Died | Lifecycle::Dead) {
                self.effects.push(Effect::RenewConnection);
            }
        }
        self.end_running_or_awaiting(end, is_awaited);
    }

    pub(super) fn on_connection(&mut self, is_connected: bool) {
        self.on_contact();
        let Some(kernel) = self.kernel.get_mut() else { return };
        kernel.is_connected = is_connected;
        if !is_connected {
            return;
        }
        kernel.liveness.reset_free_probe();
        let Some(active) = &self.active else { return };
        // The interrupt may have been lost with the connection. One of a run that was not seen to begin would hit what
        // somebody else runs.
        if active.run.execution.is_cancelled() && active.has_begun() {
            self.effects.push(Effect::Interrupt);
        }
        // Jupyter keeps what a kernel says only while nobody else listens to it, so that there may be a gap.
        self.effects.push(Effect::AskListeners);
        self.probe_end("the connection to the kernel was lost, so it is unknown how the run ended");
    }

    /// Ends what ran in a kernel that is gone as lost, and what waited for it; later executions get another kernel.
    pub(super) fn on_kernel_gone(&mut self, why: &str) {
        let is_awaited = self.kernel.is_awaited();
        self.kernel.on_gone();
        self.effects.push(Effect::DropKernel);
        let end = End::lost(format!("the kernel is gone: {why}"));
        self.end_running_or_awaiting(end, is_awaited);
    }

    /// A kernel that is not busy has ended the run or never had it; it answers a probe after whatever it may still say of
    /// it.
    pub(super) fn on_server_answered(&mut self, answer: Result<Option<RunningKernel>, JupyterError>) {
        let now = self.now.at;
        let Some(kernel) = self.kernel.get_mut() else { return };
        kernel.liveness.on_server_answered(now);
        match answer {
            Ok(Some(running)) if running.execution_state != "busy" => {
                let active = self.active.as_ref();
                let is_probed = active.is_none_or(|active| kernel.liveness.is_end_probed(&active.run.msg_id));
                if is_probed && kernel.liveness.is_server_misled() {
                    // It may well be busy, and the probe is answered when it is done.
                } else if is_probed {
                    // It did not answer on this connection; on a new one it is probed again.
                    self.effects.push(Effect::RenewConnection);
                } else {
                    self.probe_end("the kernel is no longer running this, and how it ended is unknown");
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => self.on_kernel_gone("it no longer exists"),
            // If the server cannot be reached, the connection to the kernel will be lost too.
            Err(error) => tracing::debug!(%error, "a silent kernel could not be asked about"),
        }
    }

    pub(super) fn on_kernel_found(&mut self, found: Result<FoundKernel, ExecutionError>) {
        let now = self.now.at;
        match found {
            Ok(FoundKernel::Same) => self.kernel.on_same(now),
            Ok(FoundKernel::Other(info)) => {
                self.note_kernel_ended(&Reason::by(Actor::Person, "gave the notebook another kernel"));
                let earlier = std::mem::replace(&mut self.kernel, KernelState::Connected(Kernel::new(info, now)));
                self.forget_settled();
                if let Some(earlier) = earlier.get() {
                    let kernel_id = earlier.id.clone();
                    self.effects.push(Effect::RetireKernel { kernel_id });
                }
            }
            Ok(FoundKernel::Earlier(info)) => {
                self.kernel = KernelState::Connected(Kernel::new(info, now));
                self.on_returned();
            }
            Err(error) => {
                self.kernel = KernelState::None;
                self.effects.push(Effect::DropKernel);
                self.end_all(match &self.active {
                    Some(_) if matches!(error, ExecutionError::Document(_)) => End::lost(format!(
                        "the gateway restarted and cannot open the notebook again: {error}"
                    )),
                    Some(_) => End::lost(format!(
                        "the gateway restarted and could not reconnect to the kernel: {error}"
                    )),
                    None => End::failed("NoKernel", format!("nothing ran, because there is no kernel: {error}")),
                });
            }
        }
    }

    /// Sends a probe that the kernel answers after everything about the run, of which it is doubtful that more will be
    /// received.
    pub(super) fn probe_end(&mut self, doubt: &'static str) {
        let id = self.next_id();
        let (Some(kernel), Some(active)) = (self.kernel.get_mut(), &self.active) else {
            return;
        };
        let msg_id = kernel.liveness.probe_end_of(&id, &active.run.msg_id, doubt);
        self.effects.push(Effect::KernelInfo { msg_id });
    }

    /// Records that the kernel, or its process, has ended, for those who ran something there.
    pub(super) fn note_kernel_ended(&mut self, reason: &Reason) {
        if let Some(kernel) = self.kernel.get() {
            self.effects.push(Effect::KernelEnded {
                kernel_id: kernel.id.clone(),
                reason: reason.clone(),
            });
        }
    }

    fn on_contact(&mut self) {
        let now = self.now.at;
        if let Some(kernel) = self.kernel.get_mut() {
            kernel.liveness.on_contact(now);
        }
    }

    /// Asks again the question that an earlier process received, now that the answer can be passed on.
    pub(super) fn resume_question(&mut self) {
        let Some(active) = &mut self.active else { return };
        let asked_at = active.run.with_cell(|cell| cell.question()?.asked_at).flatten();
        if !active.run.with_cell(|cell| cell.question().is_some()).unwrap_or(false) {
            return;
        }
        let ago = asked_at.and_then(|time| self.now.time.duration_since(time).ok());
        let asked = self.now.at.checked_sub(ago.unwrap_or_default()).unwrap_or(self.now.at);
        active.question = QuestionTimes::Shown { asked };
        active.run.execution.show_question(active.run.position);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tests::message;

    #[test]
    fn a_kernel_that_is_started_again_is_told_from_one_that_is_not() {
        let state = |state: &str| Message {
            parent_id: None,
            ..message(Channel::Iopub, "status", "", json!({ "execution_state": state }))
        };
        assert_eq!(Lifecycle::of(&state("restarting")), Some(Lifecycle::Died));
        assert_eq!(Lifecycle::of(&state("dead")), Some(Lifecycle::Dead));
        assert_eq!(Lifecycle::of(&state("idle")), None);
    }
}
