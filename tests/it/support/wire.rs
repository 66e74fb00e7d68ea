//! Raw HTTP against a gateway, for what a well-behaved client would never send.

use reqwest::{Client, RequestBuilder, Response, StatusCode, header::HeaderMap};
use serde_json::{Value, json};

use super::{Gateway, TIMEOUT, TOKEN, within};

pub const LEGACY_VERSION: &str = "2025-11-25";
pub const MODERN_VERSION: &str = "2026-07-28";

/// A POST of a JSON-RPC message as a legacy client sends it, the token included.
pub fn post(gateway: &Gateway, body: impl Into<reqwest::Body>) -> RequestBuilder {
    post_without_token(gateway, body).bearer_auth(TOKEN)
}

pub fn post_without_token(gateway: &Gateway, body: impl Into<reqwest::Body>) -> RequestBuilder {
    Client::new()
        .post(gateway.url("/mcp"))
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(body)
}

pub fn initialize() -> String {
    initialize_with(&json!({})).to_string()
}

/// `initialize` of a client that can do these things.
pub fn initialize_with(capabilities: &Value) -> Value {
    initialize_as("test", capabilities)
}

/// `initialize` of a client of this name.
pub fn initialize_as(client: &str, capabilities: &Value) -> Value {
    let params = json!({ "protocolVersion": LEGACY_VERSION, "capabilities": capabilities, "clientInfo": { "name": client, "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

pub async fn send(request: RequestBuilder) -> Answer {
    within(TIMEOUT, "an answer", async {
        read(request.send().await.expect("an answer")).await
    })
    .await
}

pub async fn get(gateway: &Gateway, path: &str) -> Answer {
    send(Client::new().get(gateway.url(path))).await
}

async fn read(response: Response) -> Answer {
    let (status, headers) = (response.status(), response.headers().clone());
    Answer {
        status,
        headers,
        text: response.text().await.expect("a body"),
    }
}

/// One server-sent event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    pub id: Option<String>,
    pub data: String,
}

impl Event {
    pub fn message(&self) -> Option<Value> {
        serde_json::from_str(&self.data).ok()
    }
}

/// Reads server-sent events from a response as they come.
pub struct Events {
    response: Response,
    buffer: String,
}

impl Events {
    pub fn new(response: Response) -> Self {
        Self {
            response,
            buffer: String::new(),
        }
    }

    /// The next event, or none when the stream has ended. Comments (keep-alives) are skipped.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let block: String = self.buffer.drain(..end + 2).collect();
                match parse(&block) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let chunk = within(TIMEOUT, "an event of a stream", self.response.chunk()).await;
            let chunk = chunk.ok().flatten()?;
            self.buffer.push_str(&String::from_utf8_lossy(&chunk));
        }
    }

    /// The next event that carries a message.
    pub async fn next_message(&mut self) -> Option<(Event, Value)> {
        while let Some(event) = self.next().await {
            if let Some(message) = event.message() {
                return Some((event, message));
            }
        }
        None
    }
}

fn parse(block: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut any = false;
    for line in block.lines() {
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = Some(value.to_owned()),
            "data" => event.data.push_str(value),
            "retry" => {}
            _ => continue,
        }
        any = true;
    }
    any.then_some(event)
}
