//! What people and agents want of what runs or waits: that it ends, or that it is answered.

use std::sync::Arc;

use store::ExecutionStatus;
use tokio::time::Instant;

use super::Worker;
use crate::{
    ExecutionError,
    actor::{Actor, Reason},
    job::Execution,
};

impl Worker {
    pub(super) fn cancel(&mut self, execution: &Arc<Execution>) {
        match &mut self.active {
            Some(active) if Arc::ptr_eq(&active.execution, execution) => {
                active.interrupted = Some(execution.owner.actor());
                // Code may swallow the interrupt, or end just before it comes; what follows must not run all the same.
                execution.is_unwanted_from_now_on();
                // A kernel that is at something else would drop that, or ignore it, and begin with this all the same.
                if active.run.begun {
                    self.interrupt();
                }
            }
            _ => {
                execution.end_rest(
                    ExecutionStatus::Cancelled,
                    Some("it was cancelled before it ran".to_owned()),
                );
                self.close_batch(execution, true);
            }
        }
    }

    /// When the code must have been answered what it asks, if it asks something.
    pub(super) fn answer_by(&self) -> Option<Instant> {
        let asked = self.active.as_ref()?.asked_at()?;
        Some(asked + self.shared.settings.input_timeout)
    }

    /// Interrupts code whose question nobody has answered in time, and says so in its cell.
    pub(super) fn give_question_up(&mut self) {
        let Some(active) = &mut self.active else { return };
        let patience = humantime::format_duration(self.shared.settings.input_timeout);
        active.say(&format!(
            "[nobody answered within {patience}, so the code was interrupted]\n"
        ));
        active.interrupted_because = Some(format!(
            "interrupted: nobody answered its question within {patience} (execution.input_timeout)"
        ));
        active.question = None;
        let execution = Arc::clone(&active.execution);
        execution.goes_on();
        self.cancel(&execution);
    }

    /// Somebody interrupts whatever the kernel is at.
    pub(super) fn was_interrupted(&mut self, actor: Actor) {
        self.last_interrupt = Some((Instant::now(), actor.clone()));
        if let Some(active) = &mut self.active {
            active.interrupted = Some(actor);
        } else if self.is_kernel_awaited()
            && let Some(execution) = self.queue.front().cloned()
        {
            let why = Reason::by(actor, "interrupted the kernel before it ran");
            execution.end_rest(ExecutionStatus::Cancelled, Some(why.told_to(&execution.owner)));
            self.close_batch(&execution, true);
        }
    }

    /// Interrupts the kernel without waiting for it; the run that ends tells.
    pub(super) fn interrupt(&self) {
        let Some(kernel) = &self.kernel else { return };
        let (server, id) = (Arc::clone(&self.server), kernel.link.kernel_id().to_owned());
        tokio::spawn(async move {
            if let Err(error) = server.interrupt_kernel(&id).await {
                tracing::warn!(%error, kernel = id, "cannot interrupt a kernel");
            }
        });
    }

    pub(super) async fn answer(
        &mut self,
        execution: &Arc<Execution>,
        value: &str,
        number: Option<usize>,
    ) -> Result<(), ExecutionError> {
        // The answer to an earlier question, sent once more, must not be taken for that to this one.
        let current = execution.question().map(|question| question.number);
        if number.is_some() && current.is_some() && number != current {
            return Ok(());
        }
        let asking = self
            .active
            .as_mut()
            .filter(|active| Arc::ptr_eq(&active.execution, execution));
        let (Some(active), Some(kernel)) = (asking, &self.kernel) else {
            return Err(ExecutionError::NoQuestion {
                id: execution.id.clone(),
            });
        };
        let Some(question) = active.question.clone() else {
            return Err(ExecutionError::NoQuestion {
                id: execution.id.clone(),
            });
        };
        kernel.link.reply_input(&question, value).await?;
        active.question = None;
        if let Some(asked) = execution.question() {
            active.answer(&asked, value);
        }
        execution.goes_on();
        self.stay_present();
        Ok(())
    }
}
