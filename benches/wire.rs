//! A load generator's HTTP: requests made beforehand, one connection each, no more parsing than it
//! takes to find where an answer ends.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub(crate) const TOKEN: &str = "the-token-of-the-benchmark";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// `initialize`, a session, answers as event streams.
    Legacy,
    /// Stateless, answers as JSON.
    Modern,
}

impl Era {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    fn version(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

/// One kept-open connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server accepts");
        stream.set_nodelay(true).expect("TCP_NODELAY");
        Self {
            stream,
            buffer: Vec::with_capacity(16 * 1024),
        }
    }

    /// Sends a request and reads its whole answer, head and body.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> &str {
        self.stream.write_all(request).await.expect("the request is sent");
        self.buffer.clear();
        while !is_complete(&self.buffer) {
            let read = self.stream.read_buf(&mut self.buffer).await.expect("an answer");
            assert!(read > 0, "the connection ended within an answer");
        }
        std::str::from_utf8(&self.buffer).expect("text")
    }

    /// Opens a session as a client of the older protocol does, and returns its id.
    pub(crate) async fn open_session(&mut self) -> String {
        let params = json!({
            "protocolVersion": Era::Legacy.version(),
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let answer = self.exchange(&post(&initialize, &[])).await;
        let session = header(answer, "mcp-session-id").expect("a session id").to_owned();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let accepted = self.exchange(&post(&initialized, &session_headers(&session))).await;
        assert!(accepted.starts_with("HTTP/1.1 202"), "{accepted}");
        session
    }

    pub(crate) async fn close_session(&mut self, session: &str) {
        let request = request("DELETE", "/mcp", &session_headers(session), "");
        let answer = self.exchange(&request).await;
        assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    }

    /// A request that calls a tool, ready to be sent on this connection as often as one likes.
    pub(crate) async fn prepare_call(&mut self, era: Era, tool: &str, arguments: &Value) -> Vec<u8> {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": era.version(),
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
            });
        }
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let path = arguments["path"].as_str();
        match era {
            Era::Legacy => post(&call, &session_headers(&self.open_session().await)),
            Era::Modern => {
                let version = ("mcp-protocol-version", era.version());
                let mut headers = vec![version, ("mcp-method", "tools/call"), ("mcp-name", tool)];
                headers.extend(path.map(|path| ("mcp-param-path", path)));
                post(&call, &headers)
            }
        }
    }
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    request("GET", path, &[], "")
}

fn post(message: &Value, headers: &[(&str, &str)]) -> Vec<u8> {
    request("POST", "/mcp", headers, &message.to_string())
}

fn session_headers(session: &str) -> [(&'static str, &str); 2] {
    let version = ("mcp-protocol-version", Era::Legacy.version());
    [version, ("mcp-session-id", session)]
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let more: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{more}\r\n{body}"
    )
    .into_bytes()
}

/// Returns whether an answer is complete: as many bytes as announced, or the last of its chunks.
fn is_complete(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let (head, body) = answer.split_at(end + 4);
    let head = std::str::from_utf8(head).expect("a head is text");
    match header(head, "content-length") {
        Some(length) => body.len() >= length.parse().expect("a length"),
        None if header(head, "transfer-encoding").is_some() => body.ends_with(b"0\r\n\r\n"),
        None => true,
    }
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next()?;
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields
        .find(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}
