//! An MCP client of either era, as thin as the protocol allows.

use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::{
    Gateway, TIMEOUT, TOKEN,
    jupyter::install_tls,
    wire::{Events, LEGACY_VERSION, MODERN_VERSION, initialize_as},
    within,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

pub const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

pub struct Agent {
    http: Client,
    url: String,
    token: String,
    era: Era,
    pub session: Option<String>,
    next_id: AtomicI64,
    /// Whether cells that it edits are executed, which is what a call that does not say so means.
    pub(super) executes: bool,
    capabilities: Value,
    initialized: Value,
    /// Name with which it introduces itself.
    client: &'static str,
}

/// Answer of a tool.
#[derive(Debug)]
pub struct ToolAnswer {
    pub is_error: bool,
    pub texts: Vec<String>,
    pub structured: Value,
}

impl ToolAnswer {
    pub fn text(&self) -> &str {
        self.texts.first().map(String::as_str).unwrap_or_default()
    }

    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(!self.is_error, "the tool failed: {}", self.text());
        self.structured
    }

    #[track_caller]
    pub fn error(self) -> String {
        assert!(self.is_error, "the tool should have failed: {}", self.structured);
        self.text().to_owned()
    }
}

impl Agent {
    pub async fn connect(gateway: &Gateway, era: Era) -> Self {
        Self::connect_to(&gateway.url("/mcp"), TOKEN, era).await
    }

    pub async fn with_token(gateway: &Gateway, token: &str, era: Era) -> Self {
        Self::connect_to(&gateway.url("/mcp"), token, era).await
    }

    /// Connects to a URL that may carry a selection.
    pub async fn connect_to(url: &str, token: &str, era: Era) -> Self {
        Self::connect_with(url, token, era, json!({})).await
    }

    /// Connects as a client that can do more than call tools.
    pub async fn capable(gateway: &Gateway, era: Era, capabilities: Value) -> Self {
        Self::connect_with(&gateway.url("/mcp"), TOKEN, era, capabilities).await
    }

    /// Connects an agent with these capabilities to a gateway at a URL.
    pub async fn able_to(capabilities: Value, url: &str, token: &str, era: Era) -> Self {
        Self::connect_with(url, token, era, capabilities).await
    }

    /// Connects a client of this name to a URL.
    pub async fn introduced_as(client: &'static str, url: &str, era: Era) -> Self {
        Self::connect_client(client, url, TOKEN, era, json!({})).await
    }

    async fn connect_with(url: &str, token: &str, era: Era, capabilities: Value) -> Self {
        Self::connect_client("test", url, token, era, capabilities).await
    }

    async fn connect_client(client: &'static str, url: &str, token: &str, era: Era, capabilities: Value) -> Self {
        install_tls();
        let mut agent = Self {
            http: Client::new(),
            url: url.to_owned(),
            token: token.to_owned(),
            era,
            session: None,
            // Beyond the ids that tests choose themselves: of two requests with one id the second gets what
            // answers the first.
            next_id: AtomicI64::new(1000),
            executes: false,
            capabilities,
            initialized: Value::Null,
            client,
        };
        if era == Era::Legacy {
            assert_eq!(agent.begin().await, StatusCode::ACCEPTED);
        }
        agent
    }

    /// Begins a session, of the protocol that has them; the status with which it was confirmed.
    pub async fn begin(&mut self) -> StatusCode {
        self.session = None;
        let response = self.send(initialize_as(self.client, &self.capabilities)).await;
        let status = response.status();
        assert!(
            status == StatusCode::OK,
            "initialize: {status} {}",
            response.text().await.expect("text")
        );
        let session = response.headers().get("mcp-session-id").expect("a session id");
        self.session = Some(session.to_str().expect("text").to_owned());
        let message = Events::new(response).next_message().await;
        self.initialized = message.expect("the answer").1["result"].take();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(initialized).await.status()
    }

    /// An agent whose edits are executed, as they are for anybody who does not say otherwise.
    pub async fn executing(gateway: &Gateway, era: Era) -> Self {
        Self {
            executes: true,
            ..Self::connect(gateway, era).await
        }
    }

    /// What the gateway tells of itself: capabilities and instructions.
    pub async fn introduction(&self) -> Value {
        match self.era {
            Era::Legacy => self.initialized.clone(),
            Era::Modern => self.request("server/discover", json!({})).await["result"].take(),
        }
    }

    /// The names of all tools.
    pub async fn tools(&self) -> Vec<String> {
        let listed = self.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{listed}"))
            .clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> ToolAnswer {
        let answer = self.attempt(tool, arguments).await;
        answer.unwrap_or_else(|| panic!("an answer of {tool}"))
    }

    /// Calls a tool of a gateway that may die meanwhile: nothing if no answer came.
    pub async fn attempt(&self, tool: &str, mut arguments: Value) -> Option<ToolAnswer> {
        let edits = ["insert_nb_cells", "modify_nb_cells"].contains(&tool);
        if edits && !self.executes && arguments["exec"].is_null() {
            arguments["exec"] = false.into();
        }
        let answer = self
            .try_request("tools/call", json!({ "name": tool, "arguments": arguments }))
            .await?;
        let result = answer
            .get("result")
            .unwrap_or_else(|| panic!("a result of {tool}: {answer}"));
        let blocks = result["content"].as_array().expect("content");
        super::schema::check(tool, &result["structuredContent"]);
        Some(ToolAnswer {
            is_error: result["isError"] == true,
            texts: blocks
                .iter()
                .filter_map(|block| block["text"].as_str().map(str::to_owned))
                .collect(),
            structured: result["structuredContent"].clone(),
        })
    }

    /// The one content of a resource.
    pub async fn read(&self, uri: &str) -> Value {
        let answer = self.request("resources/read", json!({ "uri": uri })).await;
        let contents = answer["result"]["contents"].as_array();
        let contents = contents.unwrap_or_else(|| panic!("the contents of {uri}: {answer}"));
        assert_eq!((contents.len(), &contents[0]["uri"]), (1, &json!(uri)), "{answer}");
        contents[0].clone()
    }

    /// The code and the message with which a resource cannot be read.
    pub async fn cannot_read(&self, uri: &str) -> (i64, String) {
        let answer = self.request("resources/read", json!({ "uri": uri })).await;
        let error = &answer["error"];
        let code = error["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("no error for {uri}: {answer}"));
        assert_eq!(error["data"]["uri"], uri, "{answer}");
        (code, error["message"].as_str().unwrap_or_default().to_owned())
    }

    /// The addresses of all resources, from as many pages as there are.
    pub async fn resources(&self) -> Vec<Value> {
        let (mut found, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = if cursor.is_null() {
                json!({})
            } else {
                json!({ "cursor": cursor })
            };
            let page = self.request("resources/list", params).await;
            found.extend(
                page["result"]["resources"]
                    .as_array()
                    .unwrap_or_else(|| panic!("{page}"))
                    .clone(),
            );
            cursor = page["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return found;
            }
        }
    }

    /// Completions of an argument of a prompt or of an address.
    pub async fn complete(&self, reference: Value, argument: &str, beginning: &str, known: Value) -> Vec<String> {
        let params = json!({
            "ref": reference,
            "argument": { "name": argument, "value": beginning },
            "context": { "arguments": known },
        });
        let answer = self.request("completion/complete", params).await;
        let values = answer["result"]["completion"]["values"].as_array();
        let values = values.unwrap_or_else(|| panic!("{answer}"));
        values
            .iter()
            .map(|value| value.as_str().expect("text").to_owned())
            .collect()
    }

    /// Sends a request and returns the JSON-RPC message that answers it.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        let answer = self.try_request(method, params).await;
        answer.unwrap_or_else(|| panic!("an answer to {method} before the stream ends"))
    }

    async fn try_request(&self, method: &str, params: Value) -> Option<Value> {
        let named = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default();
        let what = format!("the answer to {method} {named}");
        within(TIMEOUT, &what, self.answer(method, params)).await
    }

    /// Nothing if the gateway is gone before it has answered.
    async fn answer(&self, method: &str, params: Value) -> Option<Value> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let response = self.try_start(id, method, params).await.ok()?;
        let is_stream = response
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !is_stream {
            let body = response.text().await.ok()?;
            return Some(serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}")));
        }
        let mut events = Events::new(response);
        loop {
            let (_, message) = events.next_message().await?;
            if message["id"] == id {
                return Some(message);
            }
        }
    }

    /// Sends a request and returns the response before its body is read.
    pub async fn start(&self, id: i64, method: &str, params: Value) -> Response {
        self.try_start(id, method, params).await.expect("an answer")
    }

    async fn try_start(&self, id: i64, method: &str, mut params: Value) -> reqwest::Result<Response> {
        if self.era == Era::Modern {
            let meta = params["_meta"].take();
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                "io.modelcontextprotocol/clientInfo": { "name": self.client, "version": "1" },
            });
            for (key, value) in meta.as_object().into_iter().flatten() {
                params["_meta"][key] = value.clone();
            }
        }
        self.try_send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await
    }

    /// Follows what the server says unasked, or resumes a stream after an event.
    pub async fn listen(&self, last_event_id: Option<&str>) -> Response {
        let mut request = self
            .http
            .get(&self.url)
            .bearer_auth(&self.token)
            .header("accept", "text/event-stream");
        request = request.header("mcp-protocol-version", LEGACY_VERSION);
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        request.send().await.expect("an answer")
    }

    pub async fn close(&self) -> StatusCode {
        let session = self.session.as_deref().expect("a session");
        let request = self
            .http
            .delete(&self.url)
            .bearer_auth(&self.token)
            .header("mcp-session-id", session);
        request.send().await.expect("an answer").status()
    }

    pub async fn send(&self, message: Value) -> Response {
        self.try_send(message).await.expect("an answer")
    }

    async fn try_send(&self, message: Value) -> reqwest::Result<Response> {
        let mut request = self
            .http
            .post(&self.url)
            .bearer_auth(&self.token)
            .header("accept", "application/json, text/event-stream")
            .json(&message);
        if let Some(session) = &self.session {
            request = request
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", LEGACY_VERSION);
        }
        if self.era == Era::Modern {
            let params = &message["params"];
            request = request.header("mcp-protocol-version", MODERN_VERSION);
            request = request.header("mcp-method", message["method"].as_str().unwrap_or_default());
            let named = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str());
            if let Some(name) = named {
                request = request.header("mcp-name", encoded(name));
            }
        }
        request.send().await
    }
}

/// Header values that are not plain ASCII travel as base64.
fn encoded(value: &str) -> String {
    if value.bytes().all(|byte| (0x21..0x7f).contains(&byte)) || value.is_empty() {
        return value.to_owned();
    }
    format!("=?base64?{}?=", base64(value.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let index = (group >> (18 - 6 * place)) & 63;
            text.push(if place <= chunk.len() {
                char::from(ALPHABET[index as usize])
            } else {
                '='
            });
        }
    }
    text
}
