//! Requests that bring all that they need with them: each is answered by itself, as JSON, or as a stream of events if
//! there is something to tell before the answer.

use futures::{StreamExt, stream};
use http::{StatusCode, request::Parts};
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        ClientCapabilities, ClientJsonRpcMessage, ErrorCode, GetMeta, Implementation, InitializeRequestParams,
        JsonRpcMessage, ProtocolVersion, RequestMetaObject, ServerJsonRpcMessage,
    },
    service::serve_directly_with_ct,
    transport::{OneshotTransport, streamable_http_server::session::ServerSseMessage},
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::{Endpoint, headers};
use crate::mcp::{
    Begun, Caller, PlainRequest, Reply,
    reply::{INTERNAL_ERROR, INVALID_REQUEST, Rejection, empty, event_reply, id_value, json_reply, result_reply},
};

impl<H: ServerHandler> Endpoint<H> {
    pub(super) async fn answer_by_itself(
        &self,
        mut parts: Parts,
        message: ClientJsonRpcMessage,
    ) -> Result<Reply, Rejection> {
        if let (JsonRpcMessage::Request(request), Some(caller)) = (&message, parts.extensions.get_mut::<Caller>()) {
            let name = client_name(request.request.get_meta());
            caller.set_content_only(name.is_some_and(|name| self.is_content_only(name)));
        }
        match message {
            JsonRpcMessage::Request(request) => match self.begin(request, parts) {
                Ok(begun) => self.finish(begun).await,
                Err(request) => self.serve(*request).await,
            },
            JsonRpcMessage::Notification(_) => Ok(empty(StatusCode::ACCEPTED)),
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                let why = "nothing was asked here, so that there is nothing to answer";
                Err(Rejection::new(Value::Null, INVALID_REQUEST, why))
            }
        }
    }

    async fn finish(&self, begun: Begun) -> Result<Reply, Rejection> {
        let Begun {
            id,
            answer,
            is_droppable,
        } = begun;
        let result = match is_droppable {
            true => answer.await,
            // A client that leaves must not leave something done by half.
            false => match self.tasks.spawn(answer.in_current_span()).await {
                Ok(result) => result,
                Err(failed) => match failed.try_into_panic() {
                    Ok(defect) => std::panic::resume_unwind(defect),
                    Err(_) => return Err(shutting_down(&id_value(&id))),
                },
            },
        };
        Ok(result_reply(&id, &result))
    }

    /// Has a handler of its own answer a request, which can talk to the client meanwhile.
    async fn serve(&self, request: PlainRequest) -> Result<Reply, Rejection> {
        let id = id_value(&request.id);
        let lacks_meta = !headers::is_self_contained(request.request.get_meta());
        let handler = match request.parts.extensions.get::<Caller>().cloned() {
            Some(caller) => caller.while_current(&self.factory),
            None => (self.factory)(),
        };
        let client = client_of(&request.parts);
        let (transport, mut messages) = OneshotTransport::<RoleServer>::new(request.into_message());
        let wanted = CancellationToken::new();
        let service = serve_directly_with_ct(handler, transport, Some(client), wanted.clone());
        self.tasks.spawn(service.waiting());
        // Who leaves before the first message wants nothing any more.
        let leaving = wanted.clone().drop_guard();
        let first = self.stop.run_until_cancelled(messages.recv()).await;
        let first = first.ok_or_else(|| shutting_down(&id))?;
        let first = first.ok_or_else(|| unanswered(&id))?;
        let is_last = matches!(&first, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        if is_last {
            return Ok(json_reply(status_of(&first, lacks_meta), &first));
        }
        leaving.disarm();
        Ok(self.stream_answer(first, messages, wanted))
    }

    fn stream_answer(
        &self,
        first: ServerJsonRpcMessage,
        messages: mpsc::Receiver<ServerJsonRpcMessage>,
        wanted: CancellationToken,
    ) -> Reply {
        // Who leaves the stream wants nothing any more; once all is told that changes nothing.
        let reading = (messages, wanted.drop_guard());
        let rest = stream::unfold(reading, |(mut messages, wanted)| async move {
            Some((messages.recv().await?, (messages, wanted)))
        });
        let events = stream::iter([first]).chain(rest).map(ServerSseMessage::from_message);
        event_reply(events, self.stop.clone())
    }
}

/// The name that a client introduces itself with in a request of its own.
fn client_name(meta: &RequestMetaObject) -> Option<&str> {
    meta.get("io.modelcontextprotocol/clientInfo")?.get("name")?.as_str()
}

/// The introduction that rmcp needs of a client that has sent none.
fn client_of(parts: &Parts) -> InitializeRequestParams {
    let version = headers::text(&parts.headers, "mcp-protocol-version");
    let version = version.and_then(|version| serde_json::from_value(version.into()).ok());
    InitializeRequestParams::new(ClientCapabilities::default(), Implementation::default())
        .with_protocol_version(version.unwrap_or(ProtocolVersion::V_2025_03_26))
}

/// The status of an answer. Parameters that are wrong are an answer like any other, unless it is what the protocol
/// itself needs of a request that is missing.
fn status_of(message: &ServerJsonRpcMessage, lacks_meta: bool) -> StatusCode {
    let JsonRpcMessage::Error(error) = message else {
        return StatusCode::OK;
    };
    match error.error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::INVALID_PARAMS if lacks_meta => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

fn shutting_down(id: &Value) -> Rejection {
    let message = "the gateway is shutting down; try again when it is back";
    Rejection::new(id.clone(), INTERNAL_ERROR, message)
}

pub(super) fn unanswered(id: &Value) -> Rejection {
    tracing::warn!("cannot answer a message");
    let message = "the gateway failed to answer; try again, or report this as a bug";
    Rejection::new(id.clone(), INTERNAL_ERROR, message)
}
