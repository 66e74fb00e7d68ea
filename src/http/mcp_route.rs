//! `/mcp`: body, then identity, then the protocol.

use std::{net::IpAddr, sync::Arc};

use axum::{
    body::{Body, HttpBody},
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_LENGTH, WWW_AUTHENTICATE},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use rmcp::ServerHandler;
use tokio::time::timeout;

use super::{
    Edge,
    connections::{ClientConnection, Timeouts},
    guard::REQUEST_ID,
    login::{authenticate, on_failed_login, take_credentials},
    problem::Problem,
    selection::select,
    stream_body::StreamBody,
};
use crate::{
    audit::Origin,
    auth::{Principal, scope_of},
    limits::{self, Admission, Limits, Resource},
    mcp::{Caller, LackingScope},
    tools::Scope,
};

/// Bytes of a body that count as another request.
const BYTES_PER_REQUEST: usize = 256 * 1024;

pub(super) async fn handle<H: ServerHandler>(State(edge): State<Arc<Edge<H>>>, request: Request) -> Response {
    match answer(&edge, request).await {
        Ok(response) => response,
        Err((reason, problem)) => {
            edge.metrics.rejected(reason);
            problem.into_response()
        }
    }
}

/// A word for the metrics, and what the client is told.
pub(super) type Refusal = (&'static str, Problem);

async fn answer<H: ServerHandler>(edge: &Edge<H>, request: Request) -> Result<Response, Refusal> {
    let (mut parts, body) = request.into_parts();
    let connection = parts.extensions.remove::<Arc<ClientConnection>>();
    let address = connection
        .as_deref()
        .map(|connection| client_address(edge, connection, &parts.headers));
    let origin = Origin {
        address,
        request_id: request_id(&parts.headers).into(),
    };
    let authenticated = authenticate(edge, &parts.uri, &parts.headers).await;
    let principal = authenticated.map_err(|refusal| on_failed_login(edge, &origin, refusal))?;
    let admission = check_limits(&edge.access.limits, &principal, &parts.method)?;
    if let Some(connection) = &connection {
        connection.on_authenticated();
    }
    let session = parts.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    let caller = caller(edge, &parts, Arc::clone(&principal))?
        .coming_from(origin.clone())
        .in_session(session);
    let patience = connection
        .map_or_else(Timeouts::default, |connection| *connection.timeouts())
        .body;
    let body = match timeout(patience, read_body(edge, &parts.headers, body, &admission)).await {
        Ok(read) => read?,
        Err(_) => return Err(("body_timeout", stalled(parts.version))),
    };
    parts.extensions.insert(caller);
    parts.extensions.insert(Arc::clone(&admission));
    // Secrets end here: nothing behind the edge needs the token, and spans or logs could show it.
    let credentials = take_credentials(&mut parts);
    let working = (parts.method == Method::POST).then(|| edge.drain.work());
    let answer = edge.endpoint.handle(parts, &body, &principal);
    match principal.revoked().run_until_cancelled(answer).await {
        Some(mut reply) => {
            if let Some(LackingScope(permissions)) = reply.extensions_mut().remove() {
                edge.metrics.rejected("insufficient_scope");
                let scope: Vec<_> = permissions.iter().map(scope_of).collect();
                let error = Some(("insufficient_scope", Some(&*scope.join(" "))));
                let challenges = &edge.config.challenges;
                let challenge = challenges.header(error, &credentials.uri, &credentials.headers);
                reply.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
            admission.describe(reply.headers_mut());
            Ok(reply.map(|body| Body::new(StreamBody::new(body, principal, working, admission))))
        }
        // Whoever may still do something asks again.
        None => {
            let authenticated = authenticate(edge, &credentials.uri, &credentials.headers).await;
            authenticated.map_err(|refusal| on_failed_login(edge, &origin, refusal))?;
            let message = "what your token may do was changed meanwhile; send the request again";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "access_changed", message);
            Err(("access_changed", problem))
        }
    }
}

/// After authentication: what is counted is the principal's. A stream without an end is no request in flight.
fn check_limits(limits: &Limits, principal: &Principal, method: &Method) -> Result<Arc<Admission>, Refusal> {
    let place = match *method {
        Method::GET => Resource::Streams,
        _ => Resource::Requests,
    };
    let admitted = limits.admit(&principal.tenant.name, &principal.id, place);
    admitted.map(Arc::new).map_err(too_many)
}

pub(super) fn too_many(refusal: limits::Refusal) -> Refusal {
    ("limited", Problem::limited(refusal))
}

/// The address of a client, also of one behind proxies that are trusted.
pub(super) fn client_address<H>(edge: &Edge<H>, connection: &ClientConnection, headers: &HeaderMap) -> IpAddr {
    edge.config
        .trusted_proxies
        .client_address(connection.address(), headers)
}

/// The id that the guard has given the request.
pub(super) fn request_id(headers: &HeaderMap) -> &str {
    let id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    id.unwrap_or_default()
}

/// Refuses a body that does not come. What comes of it later must not be taken for another request.
fn stalled(version: http::Version) -> Problem {
    let message = "the body did not arrive in time; send the request again";
    let problem = Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", message);
    match version {
        // Where requests have streams of their own it is only this one.
        http::Version::HTTP_2 => problem,
        _ => problem.closing(),
    }
}

fn caller<H>(edge: &Edge<H>, parts: &http::request::Parts, principal: Arc<Principal>) -> Result<Caller, Refusal> {
    let bad = |message: String| {
        (
            "selection",
            Problem::new(StatusCode::BAD_REQUEST, "bad_selection", message),
        )
    };
    let selection = select(&parts.uri, &parts.headers).map_err(|error| bad(error.to_string()))?;
    let scope = Scope::new(&principal, &edge.servers, &selection.servers).map_err(|error| bad(error.to_string()))?;
    Ok(Caller::new(principal, scope, &selection))
}

/// Reading a large message keeps a processor busy as many small ones do.
fn charge_for_size(admission: &Admission, bytes: usize) -> Result<(), Refusal> {
    match u32::try_from(bytes / BYTES_PER_REQUEST).unwrap_or(u32::MAX) {
        0 => Ok(()),
        more => admission.charge(more).map_err(too_many),
    }
}

async fn read_body<H>(
    edge: &Edge<H>,
    headers: &HeaderMap,
    body: Body,
    admission: &Admission,
) -> Result<Bytes, Refusal> {
    let limit = edge.config.max_body_bytes;
    let too_large = || {
        let message = format!(
            "the body is larger than {limit} bytes; send less, or ask an operator to raise http.max_body_bytes"
        );
        (
            "body_too_large",
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message),
        )
    };
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    // What does not say how long it is may be as long as anything may.
    let expected = announced.map_or(limit, |length| usize::try_from(length).unwrap_or(limit));
    let expected = if body.is_end_stream() { 0 } else { expected };
    admission.hold_body(expected).map_err(too_many)?;
    match Limited::new(body, limit).collect().await {
        Ok(collected) => {
            let body = collected.to_bytes();
            admission.set_bytes(body.len());
            charge_for_size(admission, body.len())?;
            Ok(body)
        }
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err((
            "body_cut_off",
            Problem::new(
                StatusCode::BAD_REQUEST,
                "body_cut_off",
                "the body ended before it was complete",
            ),
        )),
    }
}
