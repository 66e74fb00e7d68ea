//! Requests of sessions: every answer is a stream of events, which can be resumed after a lost connection.

use std::sync::Arc;

use futures::stream;
use http::{HeaderValue, StatusCode, header::RETRY_AFTER, request::Parts};
use rmcp::{
    ServerHandler,
    model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, JsonRpcMessage, JsonRpcRequest},
    transport::streamable_http_server::session::{ServerSseMessage, SessionId},
};
use serde_json::Value;

use super::{Endpoint, headers, modern::unanswered};
use crate::{
    auth::Principal,
    limits::Admission,
    mcp::{
        Caller, PlainRequest, Reply,
        reply::{INVALID_REQUEST, Rejection, TOO_MANY, empty, event_reply, id_value},
        sessions::BeginError,
    },
};

const NOT_FOUND: i32 = -32001;

impl<H: ServerHandler> Endpoint<H> {
    pub(super) async fn answer_in_session(
        &self,
        mut parts: Parts,
        message: ClientJsonRpcMessage,
        principal: &Arc<Principal>,
    ) -> Result<Reply, Rejection> {
        let session = self.session_of(&parts, principal)?;
        if let (Some(session), Some(caller)) = (&session, parts.extensions.get_mut::<Caller>()) {
            caller.set_content_only(self.sessions.is_content_only(session));
        }
        match (session, message) {
            (Some(session), JsonRpcMessage::Request(request)) => {
                let id = id_value(&request.id);
                let events = match self.begin(request, parts) {
                    Ok(begun) => self.sessions.follow(&session, begun).await,
                    Err(request) => Box::pin(self.sessions.send_request(&session, request.into_message())).await,
                };
                let events = events.map_err(|error| failed(&error, &id))?;
                Ok(event_reply(events, self.stop.clone()))
            }
            (Some(session), mut message) => {
                if let JsonRpcMessage::Notification(notification) = &mut message {
                    notification.notification.extensions_mut().insert(parts);
                }
                let accepted = self.sessions.accept_message(&session, message).await;
                accepted.map_err(|error| failed(&error, &Value::Null))?;
                Ok(empty(StatusCode::ACCEPTED))
            }
            (None, JsonRpcMessage::Request(request))
                if matches!(&request.request, ClientRequest::InitializeRequest(_)) =>
            {
                self.begin_session(request, parts, principal).await
            }
            (None, message) => Err(session_needed(&message)),
        }
    }

    async fn begin_session(
        &self,
        request: JsonRpcRequest<ClientRequest>,
        mut parts: Parts,
        principal: &Arc<Principal>,
    ) -> Result<Reply, Rejection> {
        let JsonRpcRequest { id, request, .. } = request;
        // What the request holds ends with its answer, whatever the session keeps of it.
        let admission = parts.extensions.remove::<Arc<Admission>>();
        let is_content_only = match &request {
            ClientRequest::InitializeRequest(request) => self.is_content_only(&request.params.client_info.name),
            _ => false,
        };
        let (handler, message) = (
            (self.factory)(),
            PlainRequest {
                id: id.clone(),
                request,
                parts,
            }
            .into_message(),
        );
        let id = id_value(&id);
        let begun = Box::pin(self.sessions.begin(principal, admission.as_deref(), handler, message)).await;
        let (session, answer) = match begun {
            Ok((session, answer)) => {
                self.sessions.set_content_only(&session, is_content_only);
                (session, answer)
            }
            Err(BeginError::TooMany(error)) => {
                let refused = Rejection::new(Value::Null, TOO_MANY, error.to_string());
                let mut reply = refused.with_status(StatusCode::TOO_MANY_REQUESTS).reply();
                reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("60"));
                return Ok(reply);
            }
            Err(BeginError::Limited(refusal)) => return Err(Rejection::limited(id, refusal)),
            Err(BeginError::Failed(error)) => return Err(failed(&error, &id)),
        };
        let events = stream::iter([ServerSseMessage::from_message(answer)]);
        let mut reply = event_reply(events, self.stop.clone());
        let session = HeaderValue::from_str(&session).map_err(|_| unanswered(&id))?;
        reply.headers_mut().insert("mcp-session-id", session);
        Ok(reply)
    }

    /// The stream of what a session is told unasked, or the rest of one that was lost.
    pub(super) async fn stream(&self, parts: &Parts, principal: &Arc<Principal>) -> Result<Reply, Rejection> {
        let session = self.session_of(parts, principal)?;
        let last_event = headers::text(&parts.headers, "last-event-id");
        // An empty stream would make clients ask for the same event forever.
        if let (Some(session), Some(event)) = (&session, last_event)
            && !self.sessions.can_resume(session, event).await
        {
            return Err(not_found("Event not found"));
        }
        headers::check_media(&parts.method, &parts.headers)?;
        headers::check_version(&parts.headers, None)?;
        let session = session.ok_or_else(no_session)?;
        let events = match last_event {
            Some(event) => self.sessions.resume(&session, event).await,
            None => self.sessions.common_stream(&session).await,
        };
        Ok(event_reply(events, self.stop.clone()))
    }

    pub(super) async fn end_session(&self, parts: &Parts, principal: &Arc<Principal>) -> Result<Reply, Rejection> {
        let session = self.session_of(parts, principal)?;
        headers::check_version(&parts.headers, None)?;
        let session = session.ok_or_else(no_session)?;
        let closed = self.sessions.close(&session).await;
        closed.map_err(|error| failed(&error, &Value::Null))?;
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// The session that a request names. That of somebody else looks like none, as does a revoked one.
    fn session_of(&self, parts: &Parts, principal: &Arc<Principal>) -> Result<Option<SessionId>, Rejection> {
        match headers::text(&parts.headers, "mcp-session-id") {
            Some(session) if !self.sessions.is_owner(session, principal) => Err(not_found("Session not found")),
            session => Ok(session.map(SessionId::from)),
        }
    }
}

fn not_found(message: &str) -> Rejection {
    Rejection::new(Value::Null, NOT_FOUND, message).with_status(StatusCode::NOT_FOUND)
}

fn no_session() -> Rejection {
    Rejection::new(Value::Null, INVALID_REQUEST, "Bad Request: Session ID is required")
}

fn session_needed(message: &ClientJsonRpcMessage) -> Rejection {
    let mut refused = no_session();
    if let JsonRpcMessage::Request(request) = message {
        refused.id = id_value(&request.id);
    }
    refused
}

fn failed(error: &dyn std::error::Error, id: &Value) -> Rejection {
    tracing::debug!(%error, "a session failed");
    unanswered(id)
}
