//! One URL, two eras of the protocol: chooses the service, guards sessions, answers what is malformed.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Caller, Direct, SessionLimits, Sessions, direct,
    envelope::{self, Envelope, INVALID_REQUEST, PARSE_ERROR, malformed},
};
use crate::{
    auth::Principal,
    events::{EventLimits, MemoryEvents},
    telemetry::Metrics,
};

pub type Reply = Response<BoxBody<Bytes, Infallible>>;

/// The first protocol version without sessions. Versions are dates, so they compare as text.
const FIRST_MODERN_VERSION: &str = "2026-07-28";
/// How often idle sessions and old events are looked for, at least.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(15);
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(100);
/// How the library begins to say that it cannot read a message.
const UNREADABLE: &str = "fail to deserialize";
const INTERNAL_ERROR: i32 = -32603;

#[derive(Debug, Clone, Copy)]
pub struct EndpointConfig {
    pub max_body_bytes: usize,
    pub max_json_depth: usize,
    pub sessions: SessionLimits,
    pub events: EventLimits,
}

/// The MCP endpoint, for any handler: tests mount the conformance suite's on the same stack.
pub struct Endpoint<H> {
    modern: StreamableHttpService<H, NeverSessionManager>,
    legacy: StreamableHttpService<H, Sessions>,
    sessions: Arc<Sessions>,
    direct: Option<Arc<dyn Direct>>,
    max_json_depth: usize,
    sweep_interval: Duration,
}

impl<H: ServerHandler> Endpoint<H> {
    /// Builds both services around a factory, which makes a handler per session and per stateless
    /// request; what `direct` takes is answered without one. Cancelling `stop` ends every stream.
    pub fn new(
        config: EndpointConfig,
        factory: impl Fn() -> H + Clone + Send + Sync + 'static,
        direct: Option<Arc<dyn Direct>>,
        metrics: Metrics,
        stop: &CancellationToken,
    ) -> Self {
        let events = Arc::new(MemoryEvents::new(config.events));
        let sessions = Sessions::new(config.sessions, events, direct.clone(), metrics);
        let sessions = Arc::new(sessions);
        let factory = move || Ok(factory());
        // Hosts and origins are checked at the edge, on every route; checking twice could only differ.
        let common = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(config.max_body_bytes)
            .with_cancellation_token(stop.clone());
        let modern = common.clone().with_legacy_session_mode(false).with_json_response(true);
        // The service's own priming events all carry the id "0", which names no event; the session
        // layer's carry real ones.
        let legacy = common.with_sse_retry(None);
        Self {
            modern: StreamableHttpService::new(factory.clone(), Arc::default(), modern),
            legacy: StreamableHttpService::new(factory, Arc::clone(&sessions), legacy),
            sessions,
            direct,
            max_json_depth: config.max_json_depth,
            sweep_interval: (config.sessions.idle_timeout / 2).clamp(MIN_SWEEP_INTERVAL, MAX_SWEEP_INTERVAL),
        }
    }

    /// Closes idle sessions until `stop` is cancelled, and revoked ones as soon as principals were `replaced`.
    pub async fn sweep(&self, mut replaced: watch::Receiver<()>, stop: CancellationToken) {
        let mut interval = tokio::time::interval(self.sweep_interval);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = interval.tick() => {}
                Ok(()) = replaced.changed() => {}
            }
            self.sessions.sweep().await;
        }
    }

    /// Answers one request of an authenticated principal.
    pub async fn handle(&self, mut request: Request<Full<Bytes>>, body: &Bytes, principal: &Arc<Principal>) -> Reply {
        spell_out_accept(&mut request);
        let is_modern = is_modern(request.headers());
        let envelope = match *request.method() {
            Method::POST => match envelope::inspect(body, self.max_json_depth, is_modern) {
                Ok(envelope) => Some(envelope),
                Err(malformed) => return json_reply(StatusCode::BAD_REQUEST, &malformed.to_json()),
            },
            _ => None,
        };
        // `initialize` exists only in the older versions, whatever version it names.
        if is_modern && envelope != Some(Envelope::Initialize) {
            let (mut parts, full) = request.into_parts();
            if let (Some(direct), Some(Envelope::Call)) = (&self.direct, envelope) {
                parts = match direct::answer_modern(direct, parts, body).await {
                    Ok(reply) => return reply,
                    Err(parts) => parts,
                };
            }
            let caller = parts.extensions.get::<Caller>().cloned();
            let request = Request::from_parts(parts, full);
            // Boxed, as below: the library's futures are large, and would be moved once for every caller.
            let answer = Box::pin(self.modern.handle(request));
            let reply = match caller {
                Some(caller) => caller.scope(answer).await,
                None => answer.await,
            };
            return answered(reply, body).await;
        }
        answered(self.handle_legacy(request, envelope, principal).await, body).await
    }

    async fn handle_legacy(
        &self,
        request: Request<Full<Bytes>>,
        envelope: Option<Envelope>,
        principal: &Arc<Principal>,
    ) -> Reply {
        let session = header(request.headers(), "mcp-session-id").map(str::to_owned);
        if let Some(session) = &session {
            if !self.sessions.is_owner(session, &principal.id) {
                return not_found("Session not found");
            }
            // An empty stream would make clients ask for the same event forever.
            let resumed = header(request.headers(), "last-event-id").filter(|_| request.method() == Method::GET);
            if let Some(event) = resumed
                && !self.sessions.can_resume(session, event).await
            {
                return not_found("Event not found");
            }
        }
        if request.method() == Method::DELETE {
            return closed(self.legacy.handle(request).await);
        }
        if session.is_some() || envelope != Some(Envelope::Initialize) {
            return Box::pin(self.legacy.handle(request)).await;
        }
        match Box::pin(self.sessions.admit(principal, self.legacy.handle(request))).await {
            Ok(reply) => reply,
            Err(refused) => too_many_sessions(&refused.to_string()),
        }
    }
}

fn is_modern(headers: &HeaderMap) -> bool {
    header(headers, "mcp-protocol-version").is_some_and(|version| version >= FIRST_MODERN_VERSION)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The library wants to see by name what it answers with; a client that takes anything means that too.
fn spell_out_accept(request: &mut Request<Full<Bytes>>) {
    let (wildcards, meant): (&[&str], &'static str) = match *request.method() {
        Method::POST => (&["*/*", "application/*"], "application/json, text/event-stream"),
        Method::GET => (&["*/*", "text/*"], "text/event-stream"),
        _ => return,
    };
    let mut accepted = request.headers().get_all(ACCEPT).iter().peekable();
    let is_open = accepted.peek().is_none()
        || accepted.any(|value| {
            let ranges = value.to_str().unwrap_or_default().split(',');
            let mut ranges = ranges.map(|range| range.split(';').next().unwrap_or_default().trim());
            ranges.any(|range| wildcards.contains(&range))
        });
    if is_open {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static(meant));
    }
}

/// The library says "accepted" where clients expect to hear that it is done.
fn closed(mut reply: Reply) -> Reply {
    if reply.status() == StatusCode::ACCEPTED {
        *reply.status_mut() = StatusCode::NO_CONTENT;
    }
    reply
}

/// The library refuses in plain text what it cannot read or does not accept; who sends JSON-RPC reads JSON-RPC.
async fn answered(reply: Reply, body: &Bytes) -> Reply {
    let status = reply.status();
    let is_readable = reply.headers().get(CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.as_bytes();
        kind.starts_with(b"application/json") || kind.starts_with(b"text/event-stream")
    });
    if is_readable || !status.is_client_error() && !status.is_server_error() {
        return reply;
    }
    let (mut parts, said) = reply.into_parts();
    let Ok(said) = said.collect().await;
    let said = String::from_utf8_lossy(&said.to_bytes()).into_owned();
    let (code, message) = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE if said.starts_with(UNREADABLE) => {
            parts.status = StatusCode::BAD_REQUEST;
            (PARSE_ERROR, "the body is not a valid JSON-RPC message".to_owned())
        }
        _ if status.is_client_error() => (INVALID_REQUEST, said),
        _ => {
            tracing::warn!(%status, said, "cannot answer a message");
            (
                INTERNAL_ERROR,
                "the gateway failed to answer; try again, or report this as a bug".to_owned(),
            )
        }
    };
    let error = malformed(envelope::id_of(body), code, message);
    let mut json = json_reply(parts.status, &error.to_json());
    // What else is said, such as which methods there are, stays.
    for (name, value) in &parts.headers {
        if name != CONTENT_TYPE && name != CONTENT_LENGTH {
            json.headers_mut().insert(name, value.clone());
        }
    }
    json
}

fn not_found(message: &str) -> Reply {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32001, "message": message } });
    json_reply(StatusCode::NOT_FOUND, &error)
}

fn too_many_sessions(message: &str) -> Reply {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32000, "message": message } });
    let mut reply = json_reply(StatusCode::TOO_MANY_REQUESTS, &error);
    reply
        .headers_mut()
        .insert(http::header::RETRY_AFTER, HeaderValue::from_static("60"));
    reply
}

pub(super) fn json_reply(status: StatusCode, body: &impl serde::Serialize) -> Reply {
    // What is answered here always serialises.
    let body = serde_json::to_vec(body).unwrap_or_default();
    let mut reply = Response::new(Full::new(Bytes::from(body)).boxed());
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}
