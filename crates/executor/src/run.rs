//! One request to a kernel, from its being sent to its end, as told by the kernel's messages. Does no I/O.

use jupyter_client::kernel::{Channel, Message};
use serde_json::{Value, json};

use super::job::Question;

/// What a message means for the run that it belongs to.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Something to be folded into the outputs.
    Output,
    Asks(Question),
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
    /// The kernel's count for this run.
    pub(super) count: Option<i64>,
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
            count: None,
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
                self.count = count(content).or(self.count);
                match self.idle {
                    true => self.ended(),
                    false => Said::Nothing,
                }
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
                self.count = count(content).or(self.count);
                Said::Nothing
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

/// What a kernel has a person page through, such as the help for `len?`: it comes with the reply, and is shown among the
/// outputs as JupyterLab does.
pub(super) fn pages(message: &Message) -> impl Iterator<Item = Value> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(channel: Channel, msg_type: &str, content: Value) -> Message {
        Message {
            channel,
            msg_id: "m".to_owned(),
            msg_type: msg_type.to_owned(),
            parent_id: Some("run".to_owned()),
            parent_session: None,
            header: Value::Null,
            content,
            metadata: Value::Null,
            buffers: Vec::new(),
        }
    }

    #[test]
    fn a_run_ends_with_its_count_whichever_half_of_the_end_comes_first() {
        let reply = message(
            Channel::Shell,
            "execute_reply",
            json!({ "status": "ok", "execution_count": 7 }),
        );
        let idle = message(Channel::Iopub, "status", json!({ "execution_state": "idle" }));
        for (first, second) in [(&reply, &idle), (&idle, &reply)] {
            let mut run = Run::new("run".to_owned());
            assert_eq!(run.take(first), Said::Nothing);
            assert_eq!(run.take(second), Said::Ended(Outcome::Completed));
            assert_eq!(run.count, Some(7));
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
            json!({ "status": "ok", "payload": payload }),
        );
        assert_eq!(
            pages(&reply).collect::<Vec<_>>(),
            [json!({ "data": data, "metadata": {} })]
        );
        assert_eq!(pages(&message(Channel::Iopub, "stream", json!({}))).count(), 0);
    }

    #[test]
    fn a_kernel_that_is_started_again_is_told_from_one_that_is_not() {
        let state = |state: &str| Message {
            parent_id: None,
            ..message(Channel::Iopub, "status", json!({ "execution_state": state }))
        };
        assert_eq!(fate(&state("restarting")), Some(Fate::Died));
        assert_eq!(fate(&state("dead")), Some(Fate::Dead));
        assert_eq!(fate(&state("idle")), None);
    }
}
