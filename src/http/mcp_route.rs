//! `/mcp`: body, then identity, then the protocol.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_LENGTH},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use rmcp::ServerHandler;
use tokio::time::timeout;

use super::{
    Edge,
    connections::{ClientConnection, Timeouts},
    problem::Problem,
    selection::select,
};
use crate::{
    auth::{AuthError, Principal},
    mcp::Caller,
    tools::Scope,
};

pub(super) async fn handle<H: ServerHandler>(State(edge): State<Arc<Edge<H>>>, request: Request) -> Response {
    match answer(&edge, request).await {
        Ok(response) => response,
        Err((reason, problem)) => {
            edge.metrics.rejected(reason);
            problem.into_response()
        }
    }
}

type Refusal = (&'static str, Problem);

async fn answer<H: ServerHandler>(edge: &Edge<H>, request: Request) -> Result<Response, Refusal> {
    let (mut parts, body) = request.into_parts();
    let principal = authenticate(edge, &parts.headers)?;
    let connection = parts.extensions.remove::<Arc<ClientConnection>>();
    if let Some(connection) = &connection {
        connection.on_authenticated();
    }
    let caller = caller(edge, &parts, Arc::clone(&principal))?;
    let patience = connection
        .map_or_else(Timeouts::default, |connection| *connection.timeouts())
        .body;
    let body = match timeout(patience, read_body(edge, &parts.headers, body)).await {
        Ok(read) => read?,
        Err(_) => return Err(("body_timeout", stalled(parts.version))),
    };
    parts.extensions.insert(caller);
    // Secrets end here: nothing behind the edge needs the token, and spans or logs could show it.
    parts.headers.remove(AUTHORIZATION);
    let working = (parts.method == Method::POST).then(|| edge.drain.work());
    let reply = edge.endpoint.handle(parts, &body, &principal.id).await;
    // A stream is being worked on until its last byte is sent.
    Ok(reply.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _ = &working;
            frame
        }))
    }))
}

/// The principal of a request's token.
pub(super) fn authenticate<H>(edge: &Edge<H>, headers: &HeaderMap) -> Result<Arc<Principal>, Refusal> {
    let token = bearer(headers).unwrap_or_default();
    edge.authenticator.authenticate(token).map_err(|error| match error {
        AuthError::Missing => {
            let message = "no token was sent; configure the client to send the header `Authorization: Bearer <token>` \
                           with a token of this gateway, as it prints it at start or as its operator gave it to you";
            ("token_missing", Problem::unauthorized(message, "Bearer"))
        }
        AuthError::Unknown => {
            let message = "the token is not known here; check the `Authorization: Bearer <token>` header of the client, \
                           or ask an operator for a new token";
            (
                "token_unknown",
                Problem::unauthorized(message, "Bearer error=\"invalid_token\""),
            )
        }
    })
}

/// Refuses a body that does not come. What comes of it later must not be taken for another request.
fn stalled(version: http::Version) -> Problem {
    let message = "the body did not come in time; send the request again";
    let problem = Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", message);
    match version {
        // Where requests have streams of their own it is only this one.
        http::Version::HTTP_2 => problem,
        _ => problem.closing(),
    }
}

/// The credential of `Authorization: Bearer T`, or of Jupyter's spelling `token T`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let known = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
    known.then(|| token.trim())
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

async fn read_body<H>(edge: &Edge<H>, headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let limit = edge.config.max_body_bytes;
    let too_large = || {
        let message = format!("the body is larger than {limit} bytes; send less, or have http.max_body_bytes raised");
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
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
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
