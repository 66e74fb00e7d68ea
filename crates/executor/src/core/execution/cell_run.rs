//! The run of one cell, or of code in no notebook, from the queue to its end. Does no I/O.

use std::time::SystemTime;

use jupyter_client::kernel::{Channel, Message};
use serde_json::{Value, json};
use store::{CellRecord, ExecutionStatus, StoredQuestion};
use tracing::Span;

use super::{Question, trace::record_status};
use crate::core::outputs::Outputs;

/// A cell and its run: the only representation of a run in this process.
pub(crate) struct CellRun {
    /// Empty for code that is in no notebook.
    pub(crate) cell_id: String,
    pub(crate) index: usize,
    /// Code that is in no notebook, until it has run. The code of a cell is read just before it is sent.
    pub(crate) code: Option<String>,
    /// The kernel's request, once it was sent.
    pub(crate) msg_id: Option<String>,
    pub(crate) state: RunState,
    pub(crate) execution_count: Option<i64>,
    /// The count of the previous run, which the cell shows until something of this one is written.
    pub(crate) replaces: Option<i64>,
    /// The cell is shown as queued.
    pub(crate) is_shown_queued: bool,
    pub(crate) outputs: Outputs,
    /// Outputs that widgets captured, shown there and not in the cell.
    pub(crate) captured: Outputs,
    /// Number of times the kernel dropped the request.
    pub(crate) drops: u32,
    /// The outputs of the original of a cell of a copy, until they were compared.
    pub(crate) expected: Option<Vec<Value>>,
    /// True if it is expected to raise an error, after which the others run all the same.
    pub(crate) may_raise: bool,
    /// Difference between its outputs and those.
    pub(crate) differs: Option<String>,
    /// Span of the kernel's work on it.
    pub(crate) span: Span,
}

/// The states of a run. The kernel's reply and its being idle again can come in either order.
///
/// ```text
/// Queued ─▶ Sent ─▶ PickedUp ─▶ Running ◀─▶ AwaitingInput
///   ▲         │        │          │             │
///   │         └────────┴──────────┴─────────────┤
///   │                                           ▼
///   └── the kernel dropped it ──── Replied or Idle ─▶ Ended
/// ```
/// Every state can end: by a cancellation, or with its kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunState {
    Queued,
    /// Sent to the kernel, which has not answered yet.
    Sent,
    /// The kernel has picked it up, perhaps only to drop it.
    PickedUp,
    /// The code has begun to run.
    Running,
    /// The code asks something.
    AwaitingInput(StoredQuestion),
    /// The kernel has replied and is not idle yet.
    Replied {
        outcome: Outcome,
        begun: bool,
    },
    /// The kernel is idle again and has not replied; the reply may come at once or never.
    Idle {
        begun: bool,
    },
    Ended {
        status: ExecutionStatus,
        /// The cell was gone or no longer code, which does not concern the others.
        skipped: bool,
    },
}

/// The kernel's verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Completed,
    Failed {
        ename: String,
        evalue: String,
    },
    /// The kernel dropped the request because another one failed before it.
    Aborted,
}

/// Meaning of a kernel message for the run that it belongs to.
#[derive(Debug, PartialEq)]
pub(crate) enum RunEvent {
    /// The kernel has picked the run up.
    PickedUp,
    /// An output, to be folded into the others.
    Output,
    /// The code asks something.
    Question,
    /// Both halves of the end have been seen.
    Ended(Outcome),
    Nothing,
}

impl RunState {
    pub(crate) fn status(&self) -> ExecutionStatus {
        match self {
            Self::Queued => ExecutionStatus::Queued,
            Self::Ended { status, .. } => *status,
            _ => ExecutionStatus::Running,
        }
    }

    /// Returns whether the code has been seen to run.
    pub(crate) fn has_begun(&self) -> bool {
        match self {
            Self::Running | Self::AwaitingInput(_) => true,
            Self::Replied { begun, .. } | Self::Idle { begun } => *begun,
            _ => false,
        }
    }

    /// Returns whether the kernel has sent nothing about it.
    pub(crate) fn is_untouched(&self) -> bool {
        matches!(self, Self::Sent)
    }
}

impl CellRun {
    pub(crate) fn cell(cell_id: String, index: usize, limit: usize) -> Self {
        Self {
            cell_id,
            index,
            code: None,
            msg_id: None,
            state: RunState::Queued,
            execution_count: None,
            replaces: None,
            is_shown_queued: false,
            outputs: Outputs::new(limit),
            captured: Outputs::new(limit),
            drops: 0,
            expected: None,
            may_raise: false,
            differs: None,
            span: Span::none(),
        }
    }

    pub(crate) fn code(code: String, limit: usize) -> Self {
        Self {
            code: Some(code),
            ..Self::cell(String::new(), 0, limit)
        }
    }

    /// A cell as an earlier process recorded it.
    pub(crate) fn recorded(cell: CellRecord, outputs: Option<&Value>, limit: usize) -> Self {
        let mut run = Self::cell(cell.cell_id, cell.index, limit);
        run.state = match (cell.status, cell.asks) {
            (status, _) if status.is_finished() => RunState::Ended { status, skipped: false },
            _ if cell.msg_id.is_none() => RunState::Queued,
            (_, Some(question)) => RunState::AwaitingInput(question),
            (_, None) => RunState::Running,
        };
        (run.msg_id, run.execution_count) = (cell.msg_id, cell.execution_count);
        (run.replaces, run.is_shown_queued) = (cell.replaces, cell.queued);
        run.differs = cell.differs;
        if let Some(outputs) = outputs.and_then(Value::as_array) {
            run.outputs.adopt(outputs);
        }
        run
    }

    pub(crate) fn record(&self, missing: usize) -> CellRecord {
        CellRecord {
            cell_id: self.cell_id.clone(),
            index: self.index,
            msg_id: self.msg_id.clone(),
            status: self.state.status(),
            execution_count: self.execution_count,
            replaces: self.replaces,
            queued: self.is_shown_queued,
            asks: self.question().cloned(),
            differs: self.differs.clone(),
            missing,
        }
    }

    /// The question that the code asks at this moment.
    pub(crate) fn question(&self) -> Option<&StoredQuestion> {
        match &self.state {
            RunState::AwaitingInput(question) => Some(question),
            _ => None,
        }
    }

    pub(crate) fn is_queued(&self) -> bool {
        self.state == RunState::Queued
    }

    /// Marks the question as answered, or as one that nobody will answer.
    pub(crate) fn on_answered(&mut self) {
        if self.question().is_some() {
            self.state = RunState::Running;
        }
    }

    /// Ends the run, unless it has ended. Its code is not needed any more, and may be large.
    pub(crate) fn end(&mut self, status: ExecutionStatus, skipped: bool) {
        self.code = None;
        record_status(&std::mem::replace(&mut self.span, Span::none()), status);
        if !matches!(self.state, RunState::Ended { .. }) {
            self.state = RunState::Ended { status, skipped };
        }
    }

    /// Moves on by a message whose parent is this run's request.
    pub(crate) fn on_message(&mut self, message: &Message, time: SystemTime) -> RunEvent {
        let content = &message.content;
        match (message.channel, message.msg_type.as_str()) {
            (Channel::Shell, "execute_reply") => {
                self.execution_count = count(content).or(self.execution_count);
                self.on_reply(outcome(content))
            }
            (Channel::Iopub, "status") => match content.get("execution_state").and_then(Value::as_str) {
                Some("idle") => self.on_idle(),
                Some("busy") if self.state == RunState::Sent => {
                    self.state = RunState::PickedUp;
                    RunEvent::PickedUp
                }
                _ => RunEvent::Nothing,
            },
            (Channel::Iopub, "execute_input") => {
                self.execution_count = count(content).or(self.execution_count);
                self.mark_begun();
                RunEvent::Nothing
            }
            (Channel::Stdin, "input_request") if !self.is_ending() => {
                self.state = RunState::AwaitingInput(StoredQuestion {
                    prompt: text(content, "prompt"),
                    password: content.get("password").and_then(Value::as_bool).unwrap_or(false),
                    header: message.header.clone(),
                    asked_at: Some(time),
                });
                RunEvent::Question
            }
            (Channel::Iopub, _) => {
                self.mark_begun();
                RunEvent::Output
            }
            _ => RunEvent::Nothing,
        }
    }

    fn is_ending(&self) -> bool {
        matches!(self.state, RunState::Replied { .. } | RunState::Idle { .. })
    }

    fn mark_begun(&mut self) {
        match &mut self.state {
            RunState::Sent | RunState::PickedUp => self.state = RunState::Running,
            RunState::Replied { begun, .. } | RunState::Idle { begun } => *begun = true,
            _ => {}
        }
    }

    fn on_reply(&mut self, outcome: Outcome) -> RunEvent {
        if let RunState::Idle { .. } = self.state {
            return RunEvent::Ended(outcome);
        }
        let begun = self.state.has_begun();
        self.state = RunState::Replied { outcome, begun };
        RunEvent::Nothing
    }

    fn on_idle(&mut self) -> RunEvent {
        if let RunState::Replied { outcome, .. } = &self.state {
            return RunEvent::Ended(outcome.clone());
        }
        let begun = self.state.has_begun();
        self.state = RunState::Idle { begun };
        RunEvent::Nothing
    }
}

/// Pages that a kernel has a person look through, such as the help for `len?`: they come with the reply, and are shown
/// among the outputs as JupyterLab does.
pub(crate) fn pages(message: &Message) -> impl Iterator<Item = Value> {
    let payloads = match (message.channel, message.msg_type.as_str()) {
        (Channel::Shell, "execute_reply") => message.content.get("payload").and_then(Value::as_array),
        _ => None,
    };
    let pages = payloads
        .into_iter()
        .flatten()
        .filter(|payload| text(payload, "source") == "page");
    pages.map(|page| json!({ "data": page.get("data"), "metadata": {} }))
}

impl From<&StoredQuestion> for Question {
    fn from(question: &StoredQuestion) -> Self {
        Self {
            prompt: question.prompt.clone(),
            password: question.password,
            number: 0,
        }
    }
}

fn outcome(reply: &Value) -> Outcome {
    match reply.get("status").and_then(Value::as_str) {
        Some("ok") => Outcome::Completed,
        Some("aborted" | "abort") => Outcome::Aborted,
        _ => Outcome::Failed {
            ename: text(reply, "ename"),
            evalue: text(reply, "evalue"),
        },
    }
}

fn count(content: &Value) -> Option<i64> {
    content.get("execution_count").and_then(Value::as_i64)
}

fn text(content: &Value, key: &str) -> String {
    content.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::tests::message;

    #[test]
    fn a_run_ends_with_its_count_whichever_half_of_the_end_comes_first() {
        let reply = message(
            Channel::Shell,
            "execute_reply",
            "run",
            json!({ "status": "ok", "execution_count": 7 }),
        );
        let idle = message(Channel::Iopub, "status", "run", json!({ "execution_state": "idle" }));
        for (first, second) in [(&reply, &idle), (&idle, &reply)] {
            let mut run = CellRun::cell("a".to_owned(), 0, 100);
            run.state = RunState::Sent;
            assert!(!matches!(run.on_message(first, SystemTime::now()), RunEvent::Ended(_)));
            assert_eq!(
                run.on_message(second, SystemTime::now()),
                RunEvent::Ended(Outcome::Completed)
            );
            assert_eq!(run.execution_count, Some(7));
        }
    }

    #[test]
    fn what_is_to_be_paged_through_is_shown() {
        let data = json!({ "text/plain": "Docstring: Return the number of items" });
        let payload = json!([
            { "source": "set_next_input", "text": "x", "replace": false },
            { "source": "page", "data": data, "start": 0 },
        ]);
        let reply = message(
            Channel::Shell,
            "execute_reply",
            "run",
            json!({ "status": "ok", "payload": payload }),
        );
        assert_eq!(
            pages(&reply).collect::<Vec<_>>(),
            [json!({ "data": data, "metadata": {} })]
        );
        assert_eq!(pages(&message(Channel::Iopub, "stream", "run", json!({}))).count(), 0);
    }
}
