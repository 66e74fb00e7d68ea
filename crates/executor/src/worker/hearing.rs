//! What the kernel says, and what it means for what runs there.

use std::time::{Duration, SystemTime};

use jupyter_client::kernel::{Channel, KernelEvent, Message};
use tokio::time::{Instant, timeout};

use super::{Ending, Worker, endings::interruption};
use crate::{
    kernel::Kernel,
    piece::Piece,
    run::{Said, fate, pages},
};

/// How long Jupyter may take to say who else hears a kernel; what that says waits meanwhile.
const TELLS_WITHIN: Duration = Duration::from_secs(2);

/// A question to the kernel whose answer comes after all that it had to say of the run before.
pub(super) struct Barrier {
    msg_id: String,
    pub(super) behind: String,
    /// Why it may be that nothing more comes of that run.
    doubt: &'static str,
    replied: bool,
    idle: bool,
}

impl Worker {
    pub(super) async fn kernel_event(&mut self, event: KernelEvent) {
        self.heard_at = Instant::now();
        match event {
            KernelEvent::Message(message) => self.hear(message).await,
            KernelEvent::Disconnected => {}
            KernelEvent::Reconnected => {
                if let Some(kernel) = &mut self.kernel {
                    kernel.turns.is_over();
                }
                // The interrupt may have been lost with the line. One of a run that was not seen to begin would hit
                // what somebody else runs.
                if self
                    .active
                    .as_ref()
                    .is_some_and(|active| active.execution.is_unwanted() && active.run.begun)
                {
                    self.interrupt();
                }
                self.doubt_outputs().await;
                self.raise_barrier("the connection to the kernel was lost, so it is unknown how the run ended")
                    .await;
            }
            KernelEvent::Gone(error) => self.kernel_is_gone(&error.to_string()),
        }
    }

    /// After a time in which the kernel was not heard: Jupyter keeps what it says only while nobody else hears it, so
    /// that there may be a gap where somebody does.
    pub(super) async fn doubt_outputs(&mut self) {
        let (Some(_), Some(kernel)) = (&self.active, &self.kernel) else {
            return;
        };
        let asked = timeout(TELLS_WITHIN, self.server.kernel(kernel.link.kernel_id())).await;
        let listeners = asked
            .ok()
            .and_then(Result::ok)
            .flatten()
            .and_then(|kernel| kernel.connections);
        if listeners.is_some_and(|listeners| listeners > 1) {
            self.mark_gap();
        }
    }

    /// What ran there is lost, and what waited for its turn there does not run; the rest can run in another.
    pub(super) fn kernel_is_gone(&mut self, why: &str) {
        let is_awaited = self.is_kernel_awaited();
        self.kernel = None;
        let ending = Ending::lost(format!("the kernel is gone: {why}"));
        if self.active.is_some() {
            self.end_all(ending);
        } else if is_awaited {
            self.end_waiting(&ending);
        }
    }

    /// Asks something that the kernel answers only when it is done with the run before, of which it is doubtful
    /// that more will be heard.
    pub(super) async fn raise_barrier(&mut self, doubt: &'static str) {
        let (Some(kernel), Some(active)) = (&self.kernel, &self.active) else {
            return;
        };
        let barrier = Barrier {
            msg_id: uuid::Uuid::new_v4().to_string(),
            behind: active.run.msg_id.clone(),
            doubt,
            replied: false,
            idle: false,
        };
        // If the line is cut again this comes again.
        if kernel.link.kernel_info(&barrier.msg_id).await.is_ok() {
            self.barrier = Some(barrier);
        }
    }

    pub(super) async fn hear(&mut self, message: Message) {
        if let Some(fate) = fate(&message) {
            return self.befell(fate).await;
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.hears(&message).await;
        }
        if message.msg_type == "update_display_data" {
            for piece in self.active.iter_mut().chain(&mut self.recent) {
                piece.update_display(&message);
            }
            return;
        }
        let Some(parent) = &message.parent_id else { return };
        let fold = |piece: &mut Piece, kernel: &mut Option<Kernel>| {
            let captured = kernel.as_mut().is_some_and(|kernel| kernel.widgets.capture(&message));
            piece.fold(&message, captured);
        };
        if let Some(active) = self.active.as_mut().filter(|active| active.run.msg_id == *parent) {
            let (had_begun, was_busy, counted) = (active.run.begun, active.run.busy, active.run.count);
            pages(&message).for_each(|page| active.show(&page));
            let said = active.run.take(&message);
            if active.run.count != counted {
                active.with_step(|step| step.execution_count = active.run.count);
            }
            if active.run.busy && !was_busy {
                active.is_taken_up();
                let process = message.process();
                let (history, owner) = (&self.shared.history, &active.execution.owner);
                let told = process.and_then(|id| history.on_taken_up(self.server.name(), &self.place, owner, id));
                if let Some(notice) = told {
                    active.execution.notify(notice);
                }
            }
            let is_interrupted = active.interrupted.is_some();
            let is_unwanted = is_interrupted && active.run.begun && !had_begun;
            let is_silent = is_interrupted && active.run.is_unanswered();
            match said {
                Said::Output => fold(active, &mut self.kernel),
                Said::Asks(question) => {
                    active.ask(&question.prompt);
                    let asked_at = SystemTime::now();
                    active.execution.asks(active.step, question, &message.header, asked_at);
                    active.set_question(message.header, asked_at);
                    self.shared.note(&active.execution);
                    self.stay_present();
                }
                Said::Ended(outcome) => self.ended(outcome),
                Said::Nothing => {}
            }
            if is_unwanted {
                self.interrupt();
            }
            if is_silent {
                // An interrupt at the very beginning can make a kernel forget to reply.
                self.raise_barrier("the run was interrupted, and the kernel did not say how it ended")
                    .await;
            }
        } else if let Some(late) = self.recent.iter_mut().find(|piece| piece.run.msg_id == *parent) {
            if message.channel == Channel::Iopub && message.msg_type != "status" {
                fold(late, &mut self.kernel);
            }
        } else {
            self.pass_barrier(&message);
        }
    }

    /// When the kernel has answered and is idle, all that it said of the run before has come, if it ever will.
    pub(super) fn pass_barrier(&mut self, message: &Message) {
        let Some(barrier) = self
            .barrier
            .as_mut()
            .filter(|barrier| message.parent_id.as_ref() == Some(&barrier.msg_id))
        else {
            return;
        };
        let is = |state: &str| message.content.get("execution_state").is_some_and(|said| said == state);
        barrier.replied |= message.channel == Channel::Shell;
        barrier.idle |= message.channel == Channel::Iopub && is("idle");
        if !(barrier.replied && barrier.idle) {
            return;
        }
        let (behind, doubt) = (std::mem::take(&mut barrier.behind), barrier.doubt);
        self.barrier = None;
        if let Some(active) = self.active.take_if(|active| active.run.msg_id == behind) {
            match active.run.reply() {
                Some(outcome) => {
                    // It was not seen to be done, so something of what it said was not heard.
                    self.active = Some(active);
                    self.mark_gap();
                    self.ended(outcome);
                }
                None if active.interrupted.is_some() && active.run.is_unanswered() => {
                    let reason = interruption(&active);
                    self.end(active, Ending::cancelled(reason));
                }
                None => self.end(active, Ending::lost(doubt.to_owned())),
            }
        }
    }
}
