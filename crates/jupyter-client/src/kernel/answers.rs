//! Requests whose replies go to the callers who wait for them, and to nobody else. Does no I/O.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{Channel, Message};

/// Begins the ids of such requests, so that a reply is known for one also when nobody waits for it any more.
const QUESTION: &str = "ask-";

/// Returns whether a request was made by [`KernelLink::ask`](super::KernelLink::ask), in this process or another.
pub fn is_question(msg_id: &str) -> bool {
    msg_id.starts_with(QUESTION)
}

#[derive(Default)]
pub(super) struct Answers(Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>);

/// A request that is waited for, forgotten when dropped.
pub(super) struct Question {
    msg_id: String,
    answers: Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>,
}

impl Answers {
    /// A new request and its reply.
    pub(super) fn expect(&self) -> (Question, oneshot::Receiver<Value>) {
        let msg_id = format!("{QUESTION}{}", uuid::Uuid::new_v4());
        let (sender, reply) = oneshot::channel();
        self.0.lock().insert(msg_id.clone(), sender);
        let answers = Arc::clone(&self.0);
        (Question { msg_id, answers }, reply)
    }

    /// Takes a message that replies to a request; any other is returned.
    pub(super) fn take(&self, message: Message) -> Option<Message> {
        let parent = message.parent_id.as_deref().filter(|parent| is_question(parent));
        let Some(parent) = parent.filter(|_| matches!(message.channel, Channel::Shell | Channel::Control)) else {
            return Some(message);
        };
        if let Some(waiting) = self.0.lock().remove(parent) {
            // Whoever asked may have given up just now.
            let _ = waiting.send(message.content);
        }
        None
    }
}

impl Question {
    pub(super) fn msg_id(&self) -> &str {
        &self.msg_id
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.answers.lock().remove(&self.msg_id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(channel: Channel, parent: &str) -> Message {
        let header = json!({ "msg_id": "1", "msg_type": "reply" });
        let parent = json!({ "msg_id": parent });
        Message::new(
            channel,
            header,
            &parent,
            Value::Null,
            json!({ "status": "ok" }),
            Vec::new(),
        )
        .expect("a message")
    }

    #[tokio::test]
    async fn a_reply_goes_to_who_asked_and_only_there() {
        let answers = Answers::default();
        let (question, reply) = answers.expect();
        let parent = question.msg_id().to_owned();
        assert!(
            answers.take(message(Channel::Iopub, &parent)).is_some(),
            "a status is for all"
        );
        assert!(answers.take(message(Channel::Shell, "other")).is_some());
        assert!(answers.take(message(Channel::Control, &parent)).is_none());
        assert_eq!(reply.await, Ok(json!({ "status": "ok" })));

        let (question, _reply) = answers.expect();
        let late = question.msg_id().to_owned();
        drop(question);
        assert!(answers.0.lock().is_empty());
        assert!(
            answers.take(message(Channel::Shell, &late)).is_none(),
            "a late one is for nobody"
        );
    }
}
