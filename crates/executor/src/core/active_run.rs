//! Runs of cells as the core follows them: the one in the kernel, and those that have ended and may still be changed by
//! it. Their states and outputs are in their executions.

use std::{sync::Arc, time::Duration};

use jupyter_client::kernel::Message;
use serde_json::{Value, json};
use store::ExecutionKind;
use tokio::time::Instant;

use super::{
    actor::{Actor, Reason},
    execution::{CellRun, Execution, Question, RunState},
    input::Written,
    output_throttle::OutputThrottle,
    retained::Retained,
};
use crate::policy::{
    END_FOLLOWS_RESULT, MAX_ATTEMPTS, MAX_REWRITES, PICK_UP_SHOWN_AFTER, QUESTION_AFTER_QUIET, QUESTION_AT_LATEST,
    RUN_SHOWN_AFTER,
};

/// A cell that was sent to the kernel, and the writing of its outputs.
pub(crate) struct RunInKernel {
    pub(crate) execution: Arc<Execution>,
    pub(crate) position: usize,
    pub(crate) msg_id: String,
    pub(crate) throttle: OutputThrottle,
    /// The count that is in the record.
    noted_count: Option<i64>,
}

/// The run in the kernel.
pub(crate) struct ActiveRun {
    pub(crate) run: RunInKernel,
    pub(crate) interruption: Option<Interruption>,
    pub(crate) origin: Origin,
    pub(crate) question: QuestionTimes,
}

/// The process that began a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Here,
    /// An earlier process of the gateway.
    Earlier {
        /// Its cell says that output may be lost.
        is_gap_told: bool,
    },
}

/// Cause of an interrupt: who asked for it, or why the gateway does so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Interruption {
    By(Actor),
    Because(String),
}

/// The times of the question that the code asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionTimes {
    None,
    /// Not shown yet: it is when there was no output for a while.
    Unshown {
        asked: Instant,
        quiet_since: Instant,
    },
    Shown {
        asked: Instant,
    },
}

/// A run that has ended.
pub(crate) struct EndedRun {
    pub(crate) run: RunInKernel,
    pub(crate) end: EndWriting,
    /// Counts the bytes that are retained for it, until it is dropped.
    pub(crate) retained: Retained,
}

/// Progress of the end of a run on its way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndWriting {
    /// The server has it, or never will have it.
    Settled,
    OnItsWay {
        /// Number of attempts to write it again...
        attempts: u32,
        /// ...and how often that was done.
        rewritten: u32,
    },
}

impl RunInKernel {
    pub(crate) fn new(execution: Arc<Execution>, position: usize, msg_id: String) -> Self {
        Self {
            execution,
            position,
            msg_id,
            throttle: OutputThrottle::default(),
            noted_count: None,
        }
    }

    /// Looks at its cell, or changes it.
    pub(crate) fn with_cell<T>(&self, use_cell: impl FnOnce(&mut CellRun) -> T) -> Option<T> {
        self.execution.with_cell(self.position, use_cell)
    }

    /// Returns whether a cell shows it.
    pub(crate) fn is_shown(&self) -> bool {
        self.execution.kind == ExecutionKind::Cells
    }

    /// The size of its outputs.
    pub(crate) fn bytes(&self) -> usize {
        self.with_cell(|cell| cell.outputs.bytes() + cell.captured.bytes())
            .unwrap_or_default()
    }

    pub(crate) fn written(&self) -> Written {
        Written {
            run: self.msg_id.clone(),
            execution: Arc::clone(&self.execution),
            position: self.position,
        }
    }

    /// Adds an output. One that a widget has captured is told but not written. Returns how soon the change is to be written.
    pub(crate) fn fold(&self, message: &Message, is_captured: bool) -> Option<Duration> {
        let changed = self.with_cell(|cell| {
            let outputs = match is_captured {
                true => &mut cell.captured,
                false => &mut cell.outputs,
            };
            outputs.apply(&message.msg_type, &message.content)
        });
        // The result of a cell is the last that it says; its end follows at once and is written with it.
        let pause = match message.msg_type.as_str() {
            "execute_result" => END_FOLLOWS_RESULT,
            _ => Duration::ZERO,
        };
        (changed == Some(true)).then_some(pause)
    }

    /// Replaces a displayed output; returns whether there was one.
    pub(crate) fn update_display(&self, message: &Message) -> bool {
        let update = |cell: &mut CellRun| {
            let captured = cell.captured.update_display(&message.content);
            cell.outputs.update_display(&message.content) || captured
        };
        self.with_cell(update) == Some(true)
    }

    /// Takes the count to be recorded for the next process, which may not be told of it again;
    /// returns whether there is one.
    pub(crate) fn take_count_to_note(&mut self) -> bool {
        let count = self.with_cell(|cell| cell.execution_count).flatten();
        std::mem::replace(&mut self.noted_count, count) != count
    }
}

impl ActiveRun {
    /// A run that begins, which people see with its first output, or soon.
    pub(crate) fn begin(execution: Arc<Execution>, position: usize, msg_id: String, now: Instant) -> Self {
        let mut run = RunInKernel::new(execution, position, msg_id);
        if run.is_shown() {
            run.throttle.set_due(now + PICK_UP_SHOWN_AFTER);
        }
        Self {
            run,
            interruption: None,
            origin: Origin::Here,
            question: QuestionTimes::None,
        }
    }

    /// A run that an earlier process of the gateway began.
    pub(crate) fn resume(execution: Arc<Execution>, position: usize, msg_id: String) -> Self {
        Self {
            run: RunInKernel::new(execution, position, msg_id),
            interruption: None,
            origin: Origin::Earlier { is_gap_told: false },
            question: QuestionTimes::None,
        }
    }

    pub(crate) fn is_of(&self, execution: &Arc<Execution>) -> bool {
        Arc::ptr_eq(&self.run.execution, execution)
    }

    pub(crate) fn state(&self) -> RunState {
        self.run.with_cell(|cell| cell.state.clone()).unwrap_or(RunState::Sent)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.run.with_cell(|cell| cell.state.has_begun()).unwrap_or(false)
    }

    pub(crate) fn on_change(&mut self, now: Instant, pause: Duration) {
        self.run.throttle.on_change(now, pause, None);
    }

    /// Records that the kernel has picked it up, so that it ends in a moment or runs for a while.
    pub(crate) fn on_picked_up(&mut self, now: Instant) {
        if self.run.is_shown() && !self.run.throttle.has_written() {
            self.run.throttle.set_due(now + RUN_SHOWN_AFTER);
        }
    }

    /// Shows people what the code asks.
    pub(crate) fn show_prompt(&mut self, prompt: &str, now: Instant) {
        if self.run.is_shown() && self.run.with_cell(|cell| cell.outputs.ask(prompt)) == Some(true) {
            self.on_change(now, Duration::ZERO);
        }
    }

    /// Shows people the answer behind the question, unless it is a password.
    pub(crate) fn show_answer(&mut self, question: &Question, answer: &str, now: Instant) {
        if self.run.is_shown() {
            let answer = (!question.password).then_some(answer);
            self.run.with_cell(|cell| cell.outputs.answer(&question.prompt, answer));
            self.on_change(now, Duration::ZERO);
        }
    }

    /// Adds a message to the outputs.
    pub(crate) fn say(&mut self, line: &str, now: Instant) {
        let stream = json!({ "name": "stderr", "text": line });
        self.run.with_cell(|cell| cell.outputs.apply("stream", &stream));
        self.on_change(now, Duration::ZERO);
    }

    /// Shows an output that the kernel did not make by itself.
    pub(crate) fn show(&mut self, content: &Value, now: Instant) {
        self.run.with_cell(|cell| cell.outputs.apply("display_data", content));
        self.on_change(now, END_FOLLOWS_RESULT);
    }

    /// The reason that is told if the run ends by an interrupt.
    pub(crate) fn interruption(&self) -> Reason {
        match &self.interruption {
            Some(Interruption::Because(why)) => Reason::new(why),
            Some(Interruption::By(_)) if self.run.execution.is_cancelled() => Reason::new("it was cancelled"),
            Some(Interruption::By(actor)) => Reason::by(actor.clone(), "interrupted the kernel"),
            None => Reason::new("it was interrupted"),
        }
    }
}

impl QuestionTimes {
    pub(crate) fn on_asked(&mut self, now: Instant) {
        *self = Self::Unshown {
            asked: now,
            quiet_since: now,
        };
    }

    /// Records an output, which is to be read before the question.
    pub(crate) fn on_output(&mut self, now: Instant) {
        if let Self::Unshown { quiet_since, .. } = self {
            *quiet_since = now;
        }
    }

    /// The time at which the question is shown.
    pub(crate) fn shows_at(&self) -> Option<Instant> {
        match self {
            Self::Unshown { asked, quiet_since } => {
                Some((*quiet_since + QUESTION_AFTER_QUIET).min(*asked + QUESTION_AT_LATEST))
            }
            _ => None,
        }
    }

    /// The time at which the question is given up.
    pub(crate) fn answer_by(&self, patience: Duration) -> Option<Instant> {
        match self {
            Self::None => None,
            Self::Unshown { asked, .. } | Self::Shown { asked } => asked.checked_add(patience),
        }
    }

    pub(crate) fn on_shown(&mut self) {
        if let Self::Unshown { asked, .. } = *self {
            *self = Self::Shown { asked };
        }
    }
}

impl EndedRun {
    pub(crate) fn is_settled(&self) -> bool {
        self.end == EndWriting::Settled
    }

    pub(crate) fn on_change(&mut self, now: Instant, pause: Duration) {
        let bytes = self.run.bytes();
        self.run.throttle.on_change(now, pause, Some(bytes));
    }
}

impl EndWriting {
    /// Counts an attempt to write the end again. Returns how many there were, if there may be another one.
    pub(crate) fn on_attempt(&mut self, was_written: bool) -> Option<u32> {
        let Self::OnItsWay { attempts, rewritten } = self else {
            return None;
        };
        *attempts += 1;
        *rewritten += u32::from(was_written);
        (*rewritten < MAX_REWRITES && *attempts < MAX_ATTEMPTS).then_some(*attempts)
    }
}
