//! Commands: to run, to cancel, and to answer a question.

use std::sync::Arc;

use store::ExecutionStatus;

use super::{
    Core,
    active_run::{Interruption, QuestionTimes},
    actor::{Actor, Reason},
    completion::End,
    execution::Execution,
    input::{Effect, Input, Reply},
    kernel::KernelState,
};
use crate::{ExecutionError, policy::QUEUED_SHOWN_AFTER};

impl Core {
    pub(super) fn on_command(&mut self, command: Input) {
        self.idle_since = self.now.at;
        match command {
            // It may have been cancelled before it came.
            Input::Execute(execution) if execution.status().is_finished() => {}
            Input::Execute(execution) => {
                let shown_at = self.now.at + QUEUED_SHOWN_AFTER;
                self.unshown.push_back((shown_at, Arc::clone(&execution)));
                self.queue.push_back(execution);
            }
            Input::Resume(execution) => self.resume(execution),
            Input::Cancel(execution) => self.cancel(&execution),
            Input::Answer {
                execution,
                value,
                number,
                reply,
            } => self.answer(execution, value, number, reply),
            Input::AnswerSent {
                execution,
                value,
                reply,
            } => {
                self.on_answer_sent(&execution, &value);
                self.effects.push(Effect::Answered(reply, Ok(())));
            }
            Input::Interrupted(actor) => self.on_interrupted(actor),
            Input::LeaveKernel(why) => {
                self.note_kernel_ended(&why);
                self.end_all(End::cancelled(why));
                self.kernel = KernelState::None;
                self.effects.extend([Effect::DropKernel, Effect::AbandonLookup]);
            }
            _ => {}
        }
    }

    fn cancel(&mut self, execution: &Arc<Execution>) {
        match self.active.as_mut().filter(|active| active.is_of(execution)) {
            Some(active) => {
                active
                    .interruption
                    .get_or_insert_with(|| Interruption::By(execution.owner.actor()));
                // Code may swallow the interrupt, or end just before it comes; what follows must not run all the same.
                execution.mark_cancelled();
                // A kernel that is at something else would drop that, or ignore it, and begin with this all the same.
                if active.has_begun() {
                    self.effects.push(Effect::Interrupt);
                }
            }
            // One that has ended meanwhile has nothing left to be cancelled.
            None if execution.status().is_finished() => {}
            None => self.cancel_queued(execution, "it was cancelled before it ran".to_owned()),
        }
    }

    fn cancel_queued(&mut self, execution: &Arc<Execution>, why: String) {
        execution.end_rest(ExecutionStatus::Cancelled, Some(why));
        self.close_batch(execution, true);
    }

    /// Records that somebody interrupts the current work of the kernel.
    fn on_interrupted(&mut self, actor: Actor) {
        self.last_interrupt = Some((self.now.at, actor.clone()));
        if let Some(active) = &mut self.active {
            if !matches!(active.interruption, Some(Interruption::Because(_))) {
                active.interruption = Some(Interruption::By(actor));
            }
        } else if self.kernel.is_awaited()
            && let Some(execution) = self.queue.front().cloned()
        {
            let why = Reason::by(actor, "interrupted the kernel before it ran");
            self.cancel_queued(&execution, why.told_to(&execution.owner));
        }
    }

    fn answer(&mut self, execution: Arc<Execution>, value: String, number: Option<usize>, reply: Reply) {
        // The answer to an earlier question, sent once more, must not be taken for that to this one.
        let current = execution.question().map(|question| question.number);
        if number.is_some() && current.is_some() && number != current {
            return self.effects.push(Effect::Answered(reply, Ok(())));
        }
        let active = self.active.as_ref().filter(|active| active.is_of(&execution));
        let header = active.and_then(|active| {
            let header = |question: &store::StoredQuestion| question.header.clone();
            active.run.with_cell(|cell| cell.question().map(header)).flatten()
        });
        match header.filter(|_| self.kernel.get().is_some()) {
            Some(header) => self.effects.push(Effect::SendAnswer {
                execution,
                header,
                value,
                reply,
            }),
            None => {
                let id = execution.id.clone();
                let refusal = Err(ExecutionError::NoQuestion { id });
                self.effects.push(Effect::Answered(reply, refusal));
            }
        }
    }

    fn on_answer_sent(&mut self, execution: &Arc<Execution>, value: &str) {
        let now = self.now.at;
        let Some(active) = self.active.as_mut().filter(|active| active.is_of(execution)) else {
            return;
        };
        active.question = QuestionTimes::None;
        if let Some(question) = execution.question() {
            active.show_answer(&question, value, now);
        }
        execution.on_answered();
        self.show_presence();
    }

    /// Shows callers and people what the code asks.
    pub(super) fn show_question(&mut self) {
        let now = self.now.at;
        let Some(active) = &mut self.active else { return };
        active.question.on_shown();
        let execution = Arc::clone(&active.run.execution);
        if let Some(question) = execution.show_question(active.run.position) {
            active.show_prompt(&question.prompt, now);
            self.effects.push(Effect::Record(execution));
            self.show_presence();
        } else {
            active.question = QuestionTimes::None;
        }
    }

    /// Interrupts code whose question nobody has answered in time, and says so in its cell.
    pub(super) fn expire_question(&mut self) {
        let now = self.now.at;
        let Some(active) = &mut self.active else { return };
        let patience = humantime::format_duration(self.settings.input_timeout);
        active.say(
            &format!("[nobody answered within {patience}, so the code was interrupted]\n"),
            now,
        );
        active.interruption = Some(Interruption::Because(format!(
            "interrupted: nobody answered its question within {patience} (execution.input_timeout)"
        )));
        active.question = QuestionTimes::None;
        let execution = Arc::clone(&active.run.execution);
        execution.on_answered();
        self.cancel(&execution);
    }
}
