//! Whose turn it is in a kernel that people use too. A request cannot be taken back once it is in the kernel's queue,
//! so while the kernel is at something else a question waits there in its place, which harms nobody if it is not
//! wanted any more. Does no I/O.

use std::collections::VecDeque;

use jupyter_client::kernel::{Channel, Message};

/// Begins the ids of questions.
const TURN: &str = "turn-";
/// Requests that a kernel says to be at. It is at one or two; one that never says that it is done must not make this
/// grow.
const MAX_OPEN: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The requests that the kernel has begun with and not ended, whoever sent them.
    open: VecDeque<String>,
    /// It was at something before it was listened to.
    busy_before: bool,
    turn: Turn,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Turn {
    /// Nobody needs one.
    #[default]
    Free,
    /// The question that waits in the kernel's queue.
    Asked(String),
    /// The kernel has come to it.
    Come,
}

impl Turns {
    /// Those of a kernel that may be busy when it is connected to.
    pub(super) fn new(busy_before: bool) -> Self {
        Self {
            busy_before,
            ..Self::default()
        }
    }

    /// Takes note of what the kernel is at.
    pub(super) fn hear(&mut self, message: &Message) {
        let Some(parent) = &message.parent_id else { return };
        if self.turn == Turn::Asked(parent.clone()) && message.channel == Channel::Shell {
            self.turn = Turn::Come;
            self.busy_before = false;
            self.open.clear();
        }
        if message.channel != Channel::Iopub || message.msg_type != "status" || parent.starts_with(TURN) {
            return;
        }
        let is = |state: &str| message.content.get("execution_state").is_some_and(|said| said == state);
        if is("busy") {
            if self.open.len() == MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back(parent.clone());
        } else if is("idle") {
            self.open.retain(|open| open != parent);
        }
    }

    /// Whether a request would be begun with at once, as far as is known.
    pub(super) fn is_free(&self) -> bool {
        self.turn == Turn::Come || self.open.is_empty() && !self.busy_before && self.turn == Turn::Free
    }

    /// Whether something waits for its turn.
    pub(super) fn is_awaited(&self) -> bool {
        matches!(self.turn, Turn::Asked(_))
    }

    /// The question to be put, if none is.
    pub(super) fn ask(&mut self) -> Option<String> {
        if self.turn != Turn::Free {
            return None;
        }
        let question = format!("{TURN}{}", uuid::Uuid::new_v4());
        self.turn = Turn::Asked(question.clone());
        Some(question)
    }

    /// The turn was taken, or the question may have been lost.
    pub(super) fn is_over(&mut self) {
        self.turn = Turn::Free;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(channel: Channel, parent: &str, state: &str) -> Message {
        Message {
            channel,
            msg_id: "m".to_owned(),
            msg_type: if channel == Channel::Iopub {
                "status"
            } else {
                "kernel_info_reply"
            }
            .to_owned(),
            parent_id: Some(parent.to_owned()),
            parent_session: None,
            header: Value::Null,
            content: json!({ "execution_state": state }),
            metadata: Value::Null,
            buffers: Vec::new(),
        }
    }

    #[test]
    fn an_idle_kernel_is_asked_nothing() {
        let mut turns = Turns::new(false);
        assert!(turns.is_free());
        turns.hear(&message(Channel::Iopub, "theirs", "busy"));
        turns.hear(&message(Channel::Iopub, "control", "busy"));
        turns.hear(&message(Channel::Iopub, "control", "idle"));
        assert!(!turns.is_free(), "it is still at the first");
        turns.hear(&message(Channel::Iopub, "theirs", "idle"));
        assert!(turns.is_free());
    }

    #[test]
    fn a_question_has_its_turn_behind_all_that_was_queued() {
        let mut turns = Turns::new(true);
        let question = turns.ask().expect("a question");
        assert_eq!(turns.ask(), None, "one is enough");
        turns.hear(&message(Channel::Iopub, "theirs", "busy"));
        turns.hear(&message(Channel::Iopub, "theirs", "idle"));
        assert!(
            !turns.is_free() && turns.is_awaited(),
            "more of theirs may be in the queue"
        );
        turns.hear(&message(Channel::Shell, &question, ""));
        assert!(turns.is_free() && !turns.is_awaited());
        turns.is_over();
        turns.hear(&message(Channel::Iopub, &question, "busy"));
        assert!(turns.is_free(), "what was only a question keeps nobody waiting");
    }

    #[test]
    fn a_kernel_that_is_never_idle_is_asked_each_time() {
        let mut turns = Turns::default();
        for n in 0..100 {
            turns.hear(&message(Channel::Iopub, &n.to_string(), "busy"));
        }
        assert_eq!(turns.open.len(), MAX_OPEN);
        let question = turns.ask().expect("a question");
        turns.hear(&message(Channel::Shell, &question, ""));
        assert!(turns.is_free());
    }
}
