//! A person's own connection to a kernel, as a browser tab has it.

use std::{collections::HashMap, sync::Arc};

use jupyter_client::{
    JupyterServer, Secret, ServerOptions,
    kernel::{Channel, ExecuteRequest, KernelEvent, KernelLink, Message},
};
use serde_json::json;
use tokio::sync::mpsc::Receiver;

use super::{TIMEOUT, jupyter::install_tls, lab, within};

pub struct Tab {
    link: KernelLink,
    events: Receiver<KernelEvent>,
    requests: HashMap<String, Progress>,
}

/// Messages of the kernel about one request so far.
#[derive(Debug, Default)]
struct Progress {
    printed: String,
    replied: bool,
    idle: bool,
}

impl Tab {
    pub async fn open(kernel: &str) -> Self {
        install_tls();
        let url = lab().url().parse().expect("a url");
        let options = ServerOptions::new("lab", url, Secret::new(lab().token()));
        let server = JupyterServer::new(&options, Arc::new(())).expect("a server");
        let session = uuid::Uuid::new_v4().to_string();
        let (link, events) = KernelLink::connect(Arc::new(server), kernel, &session)
            .await
            .expect("a connection");
        Self {
            link,
            events,
            requests: HashMap::new(),
        }
    }

    pub async fn send(&self, code: &str) -> String {
        let id = uuid::Uuid::new_v4().to_string();
        let request = ExecuteRequest {
            code: code.to_owned(),
            silent: false,
            store_history: true,
            allow_stdin: false,
            stop_on_error: true,
        };
        self.link.execute(&id, &request).await.expect("sent");
        id
    }

    /// Waits until a request prints something.
    pub async fn prints(&mut self, id: &str) {
        self.wait_for(id, "the kernel prints", |progress| !progress.printed.is_empty())
            .await;
    }

    /// The text that a request printed, once it was replied to and the kernel is idle again.
    pub async fn printed(&mut self, id: &str) -> String {
        self.wait_for(id, "the kernel ends a request", |progress| {
            progress.replied && progress.idle
        })
        .await;
        self.requests.remove(id).unwrap_or_default().printed
    }

    async fn wait_for(&mut self, id: &str, what: &str, is_reached: impl Fn(&Progress) -> bool) {
        while !self.requests.get(id).is_some_and(&is_reached) {
            let event = within(TIMEOUT, what, self.events.recv()).await;
            if let KernelEvent::Message(message) = event.expect("a connection") {
                note(&mut self.requests, &message);
            }
        }
    }
}

/// Records a message with the request it is about. Replies and outputs come on two channels, so what a later
/// request prints, and even its end, may arrive before the reply to an earlier one.
fn note(requests: &mut HashMap<String, Progress>, message: &Message) {
    let Some(parent) = &message.parent_id else { return };
    let progress = requests.entry(parent.clone()).or_default();
    progress.replied |= message.msg_type == "execute_reply";
    progress.idle |= message.content["execution_state"] == "idle";
    progress.printed += message.content["text"].as_str().unwrap_or_default();
}

#[test]
fn a_later_request_that_ends_before_an_earlier_reply_is_kept() {
    let message = |channel, msg_type: &str, parent: &str, content| Message {
        channel,
        msg_id: String::new(),
        msg_type: msg_type.to_owned(),
        parent_id: Some(parent.to_owned()),
        parent_session: None,
        header: json!({}),
        content,
        metadata: json!({}),
        buffers: Vec::new(),
    };
    let idle = || json!({ "execution_state": "idle" });
    let mut requests = HashMap::new();
    for message in [
        message(Channel::Iopub, "status", "first", idle()),
        message(Channel::Iopub, "stream", "second", json!({ "text": "behind" })),
        message(Channel::Iopub, "status", "second", idle()),
        message(Channel::Shell, "execute_reply", "first", json!({})),
        message(Channel::Shell, "execute_reply", "second", json!({})),
    ] {
        note(&mut requests, &message);
    }
    let second = &requests["second"];
    assert!(
        second.replied && second.idle && second.printed == "behind",
        "{second:?}"
    );
}
