//! Messages to and from a kernel, as values. Does no I/O.

use std::{fmt, time::SystemTime};

use bytes::Bytes;
use serde_json::{Value, json};

/// The version of the messaging protocol that is spoken.
const PROTOCOL_VERSION: &str = "5.3";

/// Channel of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    Shell,
    Iopub,
    Stdin,
    Control,
}

impl Channel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Iopub => "iopub",
            Self::Stdin => "stdin",
            Self::Control => "control",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Shell, Self::Iopub, Self::Stdin, Self::Control]
            .into_iter()
            .find(|channel| channel.as_str() == name)
    }
}

/// Message of a kernel.
#[derive(Clone, PartialEq)]
pub struct Message {
    pub channel: Channel,
    pub msg_id: String,
    pub msg_type: String,
    /// The request that this is about; status messages of the server itself have none.
    pub parent_id: Option<String>,
    /// The WebSocket session that made that request.
    pub parent_session: Option<String>,
    /// The whole header, which an answer names as its parent.
    pub header: Value,
    pub content: Value,
    pub metadata: Value,
    pub buffers: Vec<Bytes>,
}

impl Message {
    /// `None` if the headers lack what every message has.
    pub(super) fn new(
        channel: Channel,
        header: Value,
        parent: &Value,
        metadata: Value,
        content: Value,
        buffers: Vec<Bytes>,
    ) -> Option<Self> {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            channel,
            msg_id: text(&header, "msg_id")?,
            msg_type: text(&header, "msg_type")?,
            parent_id: text(parent, "msg_id"),
            parent_session: text(parent, "session"),
            header,
            content,
            metadata,
            buffers,
        })
    }

    /// The kernel's process as it names itself. The messaging protocol wants another session for each process of a kernel;
    /// of kernels that repeat the session of who asked nothing is known.
    pub fn process(&self) -> Option<&str> {
        let session = self.header.get("session").and_then(Value::as_str);
        session.filter(|session| !session.is_empty() && self.parent_session.as_deref() != Some(*session))
    }

    /// Returns whether the kernel's process has ended, so that its pending replies never come. A successor's
    /// "starting" is often sent before the server listens to it, so the old process's reply to a shutdown counts too;
    /// one end may be reported several times.
    pub fn tells_end_of_process(&self) -> bool {
        let state = self.content.get("execution_state").and_then(Value::as_str);
        match (self.channel, self.msg_type.as_str()) {
            (Channel::Iopub, "shutdown_reply") => true,
            (Channel::Iopub, "status") => {
                self.parent_id.is_none() && matches!(state, Some("restarting" | "starting" | "dead"))
            }
            _ => false,
        }
    }
}

/// Outputs and passwords belong in no log, so the content is not shown.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("channel", &self.channel)
            .field("msg_type", &self.msg_type)
            .field("msg_id", &self.msg_id)
            .field("parent_id", &self.parent_id)
            .finish_non_exhaustive()
    }
}

/// Code to run and how.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "these are the protocol's own switches")]
pub struct ExecuteRequest {
    pub code: String,
    /// Leaves no trace: no `execute_input`, no history, no execution count.
    pub silent: bool,
    pub store_history: bool,
    /// True if `input()` may ask; otherwise it raises an error.
    pub allow_stdin: bool,
    /// True if an error aborts the requests queued behind this one.
    pub stop_on_error: bool,
}

impl ExecuteRequest {
    fn content(&self) -> Value {
        json!({
            "code": self.code,
            "silent": self.silent,
            "store_history": self.store_history,
            "user_expressions": {},
            "allow_stdin": self.allow_stdin,
            "stop_on_error": self.stop_on_error,
        })
    }
}

/// Code belongs in no log.
impl fmt::Debug for ExecuteRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecuteRequest").finish_non_exhaustive()
    }
}

/// A message to a kernel, its parts as JSON. It has no `Debug`: it may hold a password.
pub(super) struct Outgoing {
    pub(super) channel: Channel,
    pub(super) header: String,
    pub(super) parent: String,
    pub(super) content: String,
}

impl Outgoing {
    pub(super) fn execute(session: &str, msg_id: &str, request: &ExecuteRequest) -> Self {
        Self::new(Channel::Shell, session, msg_id, "execute_request", request.content())
    }

    pub(super) fn kernel_info(session: &str, msg_id: &str) -> Self {
        Self::new(Channel::Shell, session, msg_id, "kernel_info_request", json!({}))
    }

    pub(super) fn comm_msg(session: &str, msg_id: &str, content: Value) -> Self {
        Self::new(Channel::Shell, session, msg_id, "comm_msg", content)
    }

    pub(super) fn input_reply(session: &str, msg_id: &str, request: &Value, value: &str) -> Self {
        let content = json!({ "status": "ok", "value": value });
        Self {
            parent: request.to_string(),
            ..Self::new(Channel::Stdin, session, msg_id, "input_reply", content)
        }
    }

    pub(super) fn new(channel: Channel, session: &str, msg_id: &str, msg_type: &str, content: Value) -> Self {
        let header = json!({
            "msg_id": msg_id,
            "msg_type": msg_type,
            "username": "",
            "session": session,
            "date": humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
            "version": PROTOCOL_VERSION,
        });
        Self {
            channel,
            header: header.to_string(),
            parent: "{}".to_owned(),
            content: content.to_string(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.header.len() + self.parent.len() + self.content.len()
    }
}
