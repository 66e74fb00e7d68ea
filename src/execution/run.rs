//! One request to a kernel, from its being sent to its end, as told by the kernel's messages. Does no I/O.

use serde_json::Value;

use super::job::Question;
use crate::jupyter::kernel::{Channel, Message};

/// What a message means for the run that it belongs to.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Something to be folded into the outputs.
    Output,
    Asks(Question),
    /// The kernel's count for this run.
    Counted(i64),
    /// Both halves of the end have been seen.
    Ended(Outcome),
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Completed,
    Failed {
        ename: String,
        evalue: String,
    },
    /// The kernel dropped the request because another one failed before it; it did not run.
    Aborted,
}

pub(super) struct Run {
    pub(super) msg_id: String,
    reply: Option<Outcome>,
    idle: bool,
    /// The kernel has taken it up, be it only to drop it.
    pub(super) busy: bool,
    /// The code has begun to run.
    pub(super) begun: bool,
}

impl Run {
    pub(super) fn new(msg_id: String) -> Self {
        Self {
            msg_id,
            reply: None,
            idle: false,
            busy: false,
            begun: false,
        }
    }

    /// Takes a message whose parent is this run's request. A run has ended when the kernel has replied and is
    /// idle again, whichever comes first.
    pub(super) fn take(&mut self, message: &Message) -> Said {
        let content = &message.content;
        match (message.channel, message.msg_type.as_str()) {
            (Channel::Shell, "execute_reply") => {
                self.reply = Some(outcome(content));
                if self.idle {
                    return self.ended();
                }
                count(content).map_or(Said::Nothing, Said::Counted)
            }
            (Channel::Iopub, "status") => match content.get("execution_state").and_then(Value::as_str) {
                Some("idle") => {
                    self.idle = true;
                    self.ended()
                }
                Some("busy") => {
                    self.busy = true;
                    Said::Nothing
                }
                _ => Said::Nothing,
            },
            (Channel::Iopub, "execute_input") => {
                self.begun = true;
                count(content).map_or(Said::Nothing, Said::Counted)
            }
            (Channel::Stdin, "input_request") => Said::Asks(Question {
                prompt: text(content, "prompt"),
                password: content.get("password").and_then(Value::as_bool).unwrap_or(false),
                number: 0,
            }),
            (Channel::Iopub, _) => {
                self.begun = true;
                Said::Output
            }
            _ => Said::Nothing,
        }
    }

    /// The kernel is done with it but has not replied, which may come at once or never.
    pub(super) fn is_unanswered(&self) -> bool {
        self.idle && self.reply.is_none()
    }

    /// How the kernel said that it ended, if it did.
    pub(super) fn reply(&self) -> Option<Outcome> {
        self.reply.clone()
    }

    fn ended(&self) -> Said {
        match &self.reply {
            Some(outcome) => Said::Ended(outcome.clone()),
            None => Said::Nothing,
        }
    }
}

/// What has befallen a kernel, by a message that belongs to no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
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

/// Reads the fate of the kernel from a message.
pub(super) fn fate(message: &Message) -> Option<Fate> {
    match (message.channel, message.msg_type.as_str()) {
        (Channel::Iopub, "status") if message.parent_id.is_none() => {
            match message.content.get("execution_state").and_then(Value::as_str)? {
                "restarting" => Some(Fate::Died),
                "dead" => Some(Fate::Dead),
                "starting" => Some(Fate::Starting),
                _ => None,
            }
        }
        (Channel::Iopub | Channel::Control, "shutdown_reply") => {
            match message.content.get("restart").and_then(Value::as_bool) {
                Some(true) => Some(Fate::Restarted),
                _ => Some(Fate::ShutDown),
            }
        }
        _ => None,
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
