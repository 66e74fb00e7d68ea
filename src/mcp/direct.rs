//! The short way for calls that run nothing. Of what rmcp makes for every request (a peer to talk back to, channels,
//! tasks) they need nothing, and it costs more than they do themselves. Only what is asked in the plainest way goes
//! here: whatever is unusual about a request, right or wrong, is rmcp's to judge.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
    request::Parts,
};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject, JsonRpcMessage,
    JsonRpcRequest, JsonRpcResponse, JsonRpcVersion2_0, MetaObject, ProtocolVersion, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;
use tracing::Instrument;

use super::{
    Answer, Caller, Reply,
    endpoint::json_reply,
    observe::{Asked, known_version},
};

/// What answers calls without a client to talk back to.
pub trait Direct: Send + Sync {
    /// Whether a caller's call can be answered so.
    fn takes(&self, params: &CallToolRequestParams, caller: &Caller) -> bool;

    /// Whether calls repeat some of their arguments as headers.
    fn has_route_headers(&self) -> bool;

    /// Whether a tool leaves nothing behind, so that a call of it may be dropped at any moment.
    fn only_reads(&self, tool: &str) -> bool;

    /// Answers a call that it takes.
    fn answer(self: Arc<Self>, call: DirectCall) -> BoxFuture<'static, Answer>;
}

pub struct DirectCall {
    pub(super) id: RequestId,
    pub(super) params: CallToolRequestParams,
    /// The HTTP request, with the caller in its extensions.
    pub(super) parts: Parts,
}

impl Asked for DirectCall {
    fn id(&self) -> &RequestId {
        &self.id
    }

    fn protocol_version(&self) -> &'static str {
        // Only the first version has no such header.
        let first = ProtocolVersion::V_2025_03_26;
        known_version(only(&self.parts.headers, "mcp-protocol-version").unwrap_or(first.as_str()))
    }

    fn meta(&self) -> Option<&MetaObject> {
        self.params.meta.as_deref()
    }

    fn parts(&self) -> Option<&Parts> {
        Some(&self.parts)
    }
}

/// A body that holds a call.
#[derive(Deserialize)]
struct Body {
    id: RequestId,
    params: CallToolRequestParams,
}

/// Answers a call of the newer era, if it is a plain one; gives the request back if not.
pub(super) async fn answer_modern(direct: &Arc<dyn Direct>, parts: Parts, body: &Bytes) -> Result<Reply, Parts> {
    let Some(Body { id, params }) = plain_modern(direct, &parts, body) else {
        return Err(parts);
    };
    let call = DirectCall {
        id: id.clone(),
        params,
        parts,
    };
    let is_droppable = direct.only_reads(&call.params.name);
    let answer = Arc::clone(direct).answer(call);
    let result = match is_droppable {
        true => answer.await,
        // A client that leaves must not leave something done by half.
        false => match tokio::spawn(answer.in_current_span()).await {
            Ok(result) => result,
            Err(failed) => match failed.try_into_panic() {
                Ok(defect) => std::panic::resume_unwind(defect),
                Err(_) => Answer::failure("the gateway is shutting down; try again when it is back"),
            },
        },
    };
    Ok(json_reply(StatusCode::OK, &response(id, result)))
}

/// A call that is being answered.
pub(super) struct Begun {
    pub(super) request: RequestId,
    pub(super) answer: BoxFuture<'static, ServerJsonRpcMessage>,
    /// Whether it may be dropped at any moment.
    pub(super) is_droppable: bool,
}

/// Begins a call of the older era, which rmcp has found to be right, with what is taken out of the message for it;
/// leaves a message that is none of these as it is.
pub(super) fn begin_legacy(direct: &Arc<dyn Direct>, message: &mut ClientJsonRpcMessage) -> Option<Begun> {
    let JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) = message else {
        return None;
    };
    let ClientRequest::CallToolRequest(CallToolRequest { params, extensions, .. }) = request else {
        return None;
    };
    // rmcp moves what stood in `_meta` beside the parameters.
    let meta = extensions.get::<RequestMetaObject>();
    let follows = meta.is_some_and(|meta| meta.get_progress_token().is_some());
    let caller = extensions.get::<Parts>()?.extensions.get()?;
    if follows || !direct.takes(params, caller) {
        return None;
    }
    let mut params = std::mem::take(params);
    params.meta = extensions.remove();
    let call = DirectCall {
        id: id.clone(),
        params,
        parts: extensions.remove()?,
    };
    let is_droppable = direct.only_reads(&call.params.name);
    let (answer, told) = (Arc::clone(direct).answer(call), id.clone());
    let answer = Box::pin(async move {
        let result = ServerResult::CallToolResult(answer.await.into_result());
        let mut response = response(told, result);
        response.result.strip_result_type_for_legacy_peer();
        JsonRpcMessage::Response(response)
    });
    Some(Begun {
        request: id.clone(),
        answer,
        is_droppable,
    })
}

fn response<T>(id: RequestId, result: T) -> JsonRpcResponse<T> {
    JsonRpcResponse {
        jsonrpc: JsonRpcVersion2_0,
        id,
        result,
    }
}

/// Reads a call that has everything the newer era requires, and nothing that asks for more than an answer.
fn plain_modern(direct: &Arc<dyn Direct>, parts: &Parts, body: &[u8]) -> Option<Body> {
    let is = |name: &str, value: &str| only(&parts.headers, name) == Some(value);
    let version = ProtocolVersion::V_2026_07_28;
    let accept = only(&parts.headers, ACCEPT.as_str())?;
    let well_formed = is(CONTENT_TYPE.as_str(), "application/json")
        && is("mcp-protocol-version", version.as_str())
        && is("mcp-method", "tools/call")
        && accept.contains("application/json")
        && accept.contains("text/event-stream");
    if !well_formed {
        return None;
    }
    let call: Body = serde_json::from_slice(body).ok()?;
    let params = &call.params;
    let meta = params.meta.as_ref()?;
    let is_plain = is("mcp-name", &params.name)
        && meta.protocol_version().as_ref() == Some(&version)
        && meta.missing_required_keys(&version).is_empty()
        && meta.get_progress_token().is_none()
        && (!direct.has_route_headers() || is_repeated(&parts.headers, params.arguments.as_ref()))
        && direct.takes(params, parts.extensions.get()?);
    is_plain.then_some(call)
}

/// Whether headers repeat, to the letter, the arguments by which an ingress may route.
fn is_repeated(headers: &HeaderMap, arguments: Option<&JsonObject>) -> bool {
    [("server", "mcp-param-server"), ("path", "mcp-param-path")]
        .into_iter()
        .all(|(argument, header)| {
            let given = arguments.and_then(|arguments| arguments.get(argument));
            match (given, only(headers, header)) {
                (Some(value), Some(repeated)) => value == repeated && !repeated.starts_with("=?"),
                (given, _) => given.is_none() && !headers.contains_key(header),
            }
        })
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
