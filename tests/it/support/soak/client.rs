//! The client of one agent: calls tools by either era's protocol, hangs up in the middle, takes streams up again, and connects
//! anew when its gateway or its token is gone. What happens to it without such a reason is a disturbance.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use reqwest::{Client as HttpClient, Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    super::{Agent, Era, agent::ToolAnswer, wire::Events},
    site::{Epoch, Site},
};

/// The longest that an agent waits for an answer.
const PATIENCE: Duration = Duration::from_secs(110);

pub(super) struct Client {
    site: Arc<Site>,
    /// Which of the tokens it uses.
    token: usize,
    era: Era,
    connected: Option<(Agent, Epoch)>,
}

/// Why no answer came.
enum End {
    /// The connection ended, or could not be made.
    Gone(String),
    /// This side hung up.
    Cut,
    Refused(StatusCode, String),
}

impl Client {
    pub(super) fn new(site: Arc<Site>, token: usize, era: Era) -> Self {
        Self {
            site,
            token,
            era,
            connected: None,
        }
    }

    /// Connects if it is not connected, until told to stop.
    pub(super) async fn connect(&mut self, stop: &CancellationToken) {
        while self.connected.is_none() && !stop.is_cancelled() {
            let epoch = self.site.epoch(self.token);
            let token = self.site.token(self.token);
            // A connection that waits for another request may be closed at the very moment when one is sent.
            let http = HttpClient::builder()
                .pool_max_idle_per_host(0)
                .build()
                .expect("a client");
            match Agent::try_connect(http, "test", &self.site.url(), &token, self.era, json!({})).await {
                Ok(agent) => self.connected = Some((agent, epoch)),
                Err(status) => {
                    if let Some(status) = status {
                        self.note(epoch, &format!("initialize was refused: {status}"));
                    }
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Calls a tool; nothing if no answer came. With `cut` the client hangs up after that time.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value, cut: Option<Duration>) -> Option<ToolAnswer> {
        let (agent, epoch) = self.connected.take()?;
        let params = json!({ "name": tool, "arguments": arguments });
        let began = Instant::now();
        let answered = match timeout(PATIENCE, self.answer(&agent, params, cut)).await {
            Ok(answered) => answered,
            Err(_) => Err(End::Refused(
                StatusCode::REQUEST_TIMEOUT,
                format!("no answer in {PATIENCE:?}"),
            )),
        };
        match answered {
            Ok(message) if message["result"].is_object() => {
                self.connected = Some((agent, epoch));
                return Some(ToolAnswer::of(tool, &message));
            }
            Ok(message) => self.note(epoch, &format!("{tool}: {message}")),
            Err(End::Cut) => self.connected = Some((agent, epoch)),
            Err(End::Gone(why)) => {
                self.note(
                    epoch,
                    &format!("{tool}: no answer after {:.1?}: {why}", began.elapsed()),
                );
            }
            Err(End::Refused(status, text)) => self.note(epoch, &format!("{tool}: {status} {text}")),
        }
        None
    }

    async fn answer(&self, agent: &Agent, params: Value, cut: Option<Duration>) -> Result<Value, End> {
        let id = agent.new_id();
        let start = agent.try_start(id, "tools/call", params);
        match (cut, self.era) {
            (None, _) => answer_in(accepted(start.await).await?, id).await,
            (Some(after), Era::Modern) => {
                let answer = async { answer_in(accepted(start.await).await?, id).await };
                match timeout(after, answer).await {
                    Ok(answer) => answer,
                    Err(_) => {
                        self.site.clients.lock().expect("no panic").cut += 1;
                        Err(End::Cut)
                    }
                }
            }
            (Some(after), Era::Legacy) => {
                let mut events = Events::new(accepted(start.await).await?);
                let first = events.next().await.ok_or_else(ended)?;
                if let Ok(answer) = timeout(after, message(&mut events, id)).await {
                    return answer;
                }
                drop(events);
                self.site.clients.lock().expect("no panic").cut += 1;
                let resumed = accepted(agent.try_listen(first.id.as_deref()).await).await?;
                let answer = message(&mut Events::new(resumed), id).await?;
                self.site.clients.lock().expect("no panic").resumed += 1;
                Ok(answer)
            }
        }
    }

    /// Takes down what happened, unless the gateway or the token has changed since.
    fn note(&self, epoch: Epoch, what: &str) {
        if self.site.epoch(self.token) == epoch {
            let (token, era) = (self.token, self.era);
            self.site.disturbed(format!("{era:?} with token {token}: {what}"));
        }
    }
}

fn gone(error: reqwest::Error) -> End {
    End::Gone(format!("{error:?}"))
}

fn ended() -> End {
    End::Gone("the stream ended".to_owned())
}

async fn accepted(response: reqwest::Result<Response>) -> Result<Response, End> {
    let response = response.map_err(gone)?;
    match response.status() {
        StatusCode::OK => Ok(response),
        status => Err(End::Refused(status, response.text().await.unwrap_or_default())),
    }
}

async fn answer_in(response: Response, id: i64) -> Result<Value, End> {
    let kind = response.headers().get("content-type");
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return message(&mut Events::new(response), id).await;
    }
    let body = response.text().await.map_err(gone)?;
    Ok(serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")))
}

async fn message(events: &mut Events, id: i64) -> Result<Value, End> {
    loop {
        let (_, message) = events.next_message().await.ok_or_else(ended)?;
        if message["id"] == id {
            return Ok(message);
        }
    }
}
