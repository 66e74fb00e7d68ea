//! Somebody who waits for change notices, in the way of either era.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::task::AbortOnDropHandle;

use super::{Agent, Era, wire::Events};

/// The id of the request whose answer is the stream of a modern watcher.
const LISTENING: i64 = 7000;

/// Dropping it closes the stream from this side.
pub struct Watcher {
    /// Notices that the server agreed to send, where it says so.
    pub accepted: Value,
    notices: mpsc::UnboundedReceiver<Value>,
    task: AbortOnDropHandle<()>,
}

impl Watcher {
    /// Watches resources, and which resources there are.
    pub async fn start(agent: &Agent, era: Era, uris: &[&str]) -> Self {
        let response = match era {
            Era::Legacy => {
                for uri in uris {
                    let answer = agent.request("resources/subscribe", json!({ "uri": uri })).await;
                    assert!(answer["error"].is_null(), "{answer}");
                }
                agent.listen(None).await
            }
            Era::Modern => {
                let wanted = json!({ "resourcesListChanged": true, "resourceSubscriptions": uris });
                agent
                    .start(LISTENING, "subscriptions/listen", json!({ "notifications": wanted }))
                    .await
            }
        };
        assert_eq!(response.status(), 200);
        let (out, notices) = mpsc::unbounded_channel();
        let (mut events, mut accepted) = (Events::new(response), Value::Null);
        if era == Era::Modern {
            let (_, acknowledged) = events.next_message().await.expect("an acknowledgement");
            assert_eq!(
                acknowledged["method"], "notifications/subscriptions/acknowledged",
                "{acknowledged}"
            );
            accepted = acknowledged["params"]["notifications"].clone();
        }
        let task = tokio::spawn(async move {
            while let Some((_, message)) = events.next_message().await {
                let _ = out.send(message);
            }
        });
        Self {
            accepted,
            notices,
            task: AbortOnDropHandle::new(task),
        }
    }

    /// The next notice, or none if all is quiet for a while.
    pub async fn next(&mut self) -> Option<Value> {
        timeout(Duration::from_secs(2), self.notices.recv())
            .await
            .ok()
            .flatten()
    }

    /// Waits for a notice that a resource was updated; others are passed over.
    pub async fn updated(&mut self, uri: &str) {
        self.wait_for(uri, |notice| {
            notice["method"] == "notifications/resources/updated" && notice["params"]["uri"] == uri
        })
        .await;
    }

    pub async fn list_changed(&mut self) {
        self.wait_for("the list", |notice| {
            notice["method"] == "notifications/resources/list_changed"
        })
        .await;
    }

    async fn wait_for(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) {
        let waiting = async {
            while let Some(notice) = self.notices.recv().await {
                if is_it(&notice) {
                    return;
                }
            }
            panic!("the stream ended without a notice of {what}");
        };
        timeout(Duration::from_secs(20), waiting)
            .await
            .unwrap_or_else(|_| panic!("no notice of {what}"));
    }

    /// Number of notices of a resource that come until it is quiet.
    pub async fn count(&mut self, uri: &str) -> usize {
        let mut count = 0;
        while let Some(notice) = self.next().await {
            count += usize::from(notice["params"]["uri"] == uri);
        }
        count
    }

    /// Returns whether the server has ended the stream.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until the server ends the stream.
    pub async fn ended(self) {
        timeout(Duration::from_secs(20), self.task)
            .await
            .expect("the stream ends")
            .expect("no panic");
    }
}
