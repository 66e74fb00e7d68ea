//! Replies to HTTP requests: JSON, streams of events, and JSON-RPC errors with their status.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt, stream};
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE},
};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody, combinators::BoxBody};
use rmcp::{
    model::{
        CustomResult, JsonRpcMessage, JsonRpcResponse, JsonRpcVersion2_0, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::streamable_http_server::session::ServerSseMessage,
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{StepUp, Written};
use crate::{limits::Refusal, types::PermissionSet};

pub type Reply = Response<BoxBody<Bytes, Infallible>>;

/// Proxies close what is silent; 15 s is below the limits of all that are common.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// So much of what is ready is sent at once.
const BATCH_BYTES: usize = 64 * 1024;

/// The code for "too many requests".
pub(super) const TOO_MANY: i32 = -32000;
/// The code for "forbidden".
const FORBIDDEN: i32 = -32003;
pub(super) const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
pub(super) const INVALID_PARAMS: i32 = -32602;
pub(super) const INTERNAL_ERROR: i32 = -32603;
pub(super) const HEADER_MISMATCH: i32 = -32020;

/// A request that is refused before anything is done.
#[derive(Debug, Clone)]
pub(super) struct Rejection {
    pub(super) status: StatusCode,
    pub(super) id: Value,
    pub(super) code: i32,
    pub(super) message: String,
    /// For what may succeed later.
    limited: Option<Box<Refusal>>,
    /// For what would succeed after another login.
    lacks: Option<LackingScope>,
}

/// Marks a reply to a caller who can log in again for these permissions; the edge says how.
#[derive(Debug, Clone, Copy)]
pub struct LackingScope(pub PermissionSet);

impl Rejection {
    pub(super) fn new(id: Value, code: i32, message: impl Into<String>) -> Self {
        let status = match code {
            INTERNAL_ERROR => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        Self {
            status,
            id,
            code,
            message: message.into(),
            limited: None,
            lacks: None,
        }
    }

    /// Refuses what is too much at this moment.
    pub(super) fn limited(id: Value, refusal: Refusal) -> Self {
        let refused = Self::new(id, TOO_MANY, refusal.to_string()).with_status(StatusCode::TOO_MANY_REQUESTS);
        Self {
            limited: Some(Box::new(refusal)),
            ..refused
        }
    }

    /// Refuses what the caller's credentials lack a scope for.
    pub(super) fn lacking_scope(id: Value, step_up: StepUp) -> Self {
        Self {
            lacks: Some(LackingScope(step_up.permissions)),
            ..Self::new(id, FORBIDDEN, step_up.message).with_status(StatusCode::FORBIDDEN)
        }
    }

    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(super) fn reply(&self) -> Reply {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(refusal) = &self.limited {
            let seconds = refusal.retry_after().as_secs_f64();
            error["data"] = json!({ "limit": refusal.limit(), "retry_after": seconds });
        }
        let body = json!({ "jsonrpc": "2.0", "id": self.id, "error": error });
        let mut reply = json_reply(self.status, &body);
        if let Some(refusal) = &self.limited {
            refusal.describe(reply.headers_mut());
        }
        if let Some(lacks) = self.lacks {
            reply.extensions_mut().insert(lacks);
        }
        reply
    }
}

/// The id of a request as it stands in an error.
pub(super) fn id_value(id: &RequestId) -> Value {
    id.clone().into_json_value()
}

pub(super) fn json_reply(status: StatusCode, body: &impl Serialize) -> Reply {
    // What is answered here always serialises.
    json_bytes(status, serde_json::to_vec(body).unwrap_or_default())
}

/// The response to a request, whose result is written already.
pub(super) fn result_reply(id: &RequestId, result: &Written) -> Reply {
    let mut body = Vec::with_capacity(result.size_hint() + 64);
    write_response(&mut body, id, |body| result.write(body));
    json_bytes(StatusCode::OK, body)
}

fn json_bytes(status: StatusCode, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)).boxed());
    *reply.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, json);
    reply
}

/// The reply to what is taken and not answered.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Empty::new().boxed());
    *reply.status_mut() = status;
    reply
}

pub(super) fn method_not_allowed(allowed: &'static str) -> Reply {
    let refused = Rejection::new(Value::Null, INVALID_REQUEST, "Method Not Allowed");
    let mut reply = refused.with_status(StatusCode::METHOD_NOT_ALLOWED).reply();
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

/// A stream of events, until it ends or `stop` is cancelled.
pub(super) fn event_reply(
    events: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    stop: CancellationToken,
) -> Reply {
    let events = Box::pin(events.fuse());
    let frames = stream::unfold((events, stop), |(mut events, stop)| async move {
        let next = timeout(KEEP_ALIVE, events.next());
        let bytes = match stop.run_until_cancelled(next).await? {
            Ok(first) => {
                let mut bytes = Vec::new();
                write_event(&mut bytes, &first?);
                // What is there already goes with it.
                while bytes.len() < BATCH_BYTES
                    && let Some(Some(event)) = events.next().now_or_never()
                {
                    write_event(&mut bytes, &event);
                }
                Bytes::from(bytes)
            }
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok(Frame::data(bytes)), (events, stop)))
    });
    let mut reply = Response::new(BodyExt::boxed(StreamBody::new(frames)));
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in headers {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}

/// A response with a result that is written already, as the event store keeps it: no other result is a text.
pub(super) fn stored_response(id: RequestId, result: &Written) -> ServerJsonRpcMessage {
    let mut text = Vec::with_capacity(result.size_hint());
    result.write(&mut text);
    let text = String::from_utf8(text).unwrap_or_default();
    JsonRpcMessage::Response(JsonRpcResponse {
        jsonrpc: JsonRpcVersion2_0,
        id,
        result: ServerResult::CustomResult(CustomResult::new(Value::String(text))),
    })
}

fn write_event(out: &mut Vec<u8>, event: &ServerSseMessage) {
    if let Some(id) = &event.event_id {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(id.as_bytes());
        out.push(b'\n');
    }
    if let Some(retry) = event.retry {
        out.extend_from_slice(format!("retry: {}\n", retry.as_millis()).as_bytes());
    }
    out.extend_from_slice(b"data: ");
    if let Some(message) = &event.message {
        write_message(out, message);
    }
    out.extend_from_slice(b"\n\n");
}

fn write_message(out: &mut Vec<u8>, message: &ServerJsonRpcMessage) {
    match message {
        JsonRpcMessage::Response(JsonRpcResponse {
            id,
            result: ServerResult::CustomResult(CustomResult(Value::String(text))),
            ..
        }) => write_response(out, id, |out| out.extend_from_slice(text.as_bytes())),
        // A vector takes everything, and messages always serialise.
        message => drop(serde_json::to_writer(out, message)),
    }
}

fn write_response(out: &mut Vec<u8>, id: &RequestId, write_result: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    let _ = serde_json::to_writer(&mut *out, id);
    out.extend_from_slice(br#","result":"#);
    write_result(out);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_already_is_sent_as_it_is() {
        let message = stored_response(RequestId::Number(7), &Written::Shared(r#"{"a":"\"\n"}"#.into()));
        let mut event = ServerSseMessage::from_message(message);
        event.event_id = Some("x-1".to_owned());
        let mut out = Vec::new();
        write_event(&mut out, &event);
        let sent = "id: x-1\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"\\\"\\n\"}}\n\n";
        assert_eq!(String::from_utf8(out).expect("text"), sent);
        let mut priming = ServerSseMessage::retry(Duration::from_secs(3));
        priming.event_id = Some("x-0".to_owned());
        let mut out = Vec::new();
        write_event(&mut out, &priming);
        assert_eq!(out, b"id: x-0\nretry: 3000\ndata: \n\n");
    }
}
