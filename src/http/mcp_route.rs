//! `/mcp`: body, then identity, then the protocol.

use std::{sync::Arc, time::Instant};

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_LENGTH},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use rmcp::ServerHandler;
use tokio::time::timeout;

use super::{
    Edge,
    connections::{ClientConnection, Timeouts},
    guard::REQUEST_ID,
    problem::Problem,
    selection::select,
    stream_body::StreamBody,
};
use crate::{
    audit::Origin,
    auth::{AuthError, Credentials, Principal},
    limits::{Decision, LimitKey, Limiter},
    mcp::Caller,
    tools::Scope,
};

/// Cost of a request against the limits.
const REQUEST_COST: u32 = 1;
/// The challenge to a client whose token does not hold.
const INVALID_TOKEN: &str = "Bearer error=\"invalid_token\"";

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
    let principal = authenticate(edge, &parts.headers).await?;
    check_rate(&*edge.access.limiter, &principal)?;
    let connection = parts.extensions.remove::<Arc<ClientConnection>>();
    if let Some(connection) = &connection {
        connection.on_authenticated();
    }
    let origin = Origin {
        address: connection.as_ref().map(|connection| connection.address()),
        request_id: request_id(&parts.headers).into(),
    };
    let session = parts.headers.get("mcp-session-id").and_then(|id| id.to_str().ok());
    let caller = caller(edge, &parts, Arc::clone(&principal))?
        .coming_from(origin)
        .in_session(session);
    let patience = connection
        .map_or_else(Timeouts::default, |connection| *connection.timeouts())
        .body;
    let body = match timeout(patience, read_body(edge, &parts.headers, body)).await {
        Ok(read) => read?,
        Err(_) => return Err(("body_timeout", stalled(parts.version))),
    };
    parts.extensions.insert(caller);
    // Secrets end here: nothing behind the edge needs the token, and spans or logs could show it.
    let authorization = parts.headers.remove(AUTHORIZATION);
    let working = (parts.method == Method::POST).then(|| edge.drain.work());
    let answer = edge.endpoint.handle(parts, &body, &principal);
    match principal.revoked().run_until_cancelled(answer).await {
        Some(reply) => Ok(reply.map(|body| Body::new(StreamBody::new(body, principal.revoked(), working)))),
        // Whoever may still do something asks again.
        None => authenticate_with(edge, authorization.as_ref()).await.and_then(|_| {
            let message = "what your token may do was changed meanwhile; send the request again";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "access_changed", message);
            Err(("access_changed", problem))
        }),
    }
}

/// The principal of a request's credentials.
pub(super) async fn authenticate<H>(edge: &Edge<H>, headers: &HeaderMap) -> Result<Arc<Principal>, Refusal> {
    authenticate_with(edge, headers.get(AUTHORIZATION)).await
}

async fn authenticate_with<H>(edge: &Edge<H>, authorization: Option<&HeaderValue>) -> Result<Arc<Principal>, Refusal> {
    let bearer = authorization.and_then(bearer).unwrap_or_default();
    let found = edge.access.authenticator.authenticate(Credentials { bearer }).await;
    found.map_err(|error| match error {
        AuthError::Missing => {
            let message = "no token was sent; configure the client to send the header `Authorization: Bearer <token>` \
                           with the token that the gateway printed at start or that its operator gave you";
            ("token_missing", Problem::unauthorized(message, "Bearer"))
        }
        AuthError::Unknown => {
            let message = "unknown token; check the `Authorization: Bearer <token>` header of the client, \
                           or ask an operator for a new token";
            ("token_unknown", Problem::unauthorized(message, INVALID_TOKEN))
        }
        AuthError::Rejected(_) => {
            let message = format!("{error}; get a new one");
            ("token_rejected", Problem::unauthorized(&message, INVALID_TOKEN))
        }
        AuthError::Unavailable => {
            let problem = Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "auth_unavailable",
                "whether the token holds cannot be told at this moment; try again later",
            );
            ("auth_unavailable", problem)
        }
    })
}

/// After authentication: what is counted is the principal's.
fn check_rate(limiter: &dyn Limiter, principal: &Principal) -> Result<(), Refusal> {
    let key = LimitKey {
        tenant: &principal.tenant.name,
        principal: &principal.id,
    };
    match limiter.check(key, REQUEST_COST, Instant::now()) {
        Decision::Allowed => Ok(()),
        Decision::Denied { retry_after } => {
            let message = "too many requests; send fewer, or try again later";
            let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
            Err(("rate_limited", problem.retrying_after(retry_after)))
        }
    }
}

/// The id that the guard has given the request.
fn request_id(headers: &HeaderMap) -> &str {
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

/// The credential of `Authorization: Bearer T`, or of Jupyter's spelling `token T`.
fn bearer(authorization: &HeaderValue) -> Option<&str> {
    let (scheme, token) = authorization.to_str().ok()?.split_once(' ')?;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        auth::{PathRules, Tenant},
        limits::Unlimited,
        types::PermissionSet,
    };

    fn rules() -> PathRules {
        PathRules::new(&[]).expect("no rules")
    }

    struct Full;

    impl Limiter for Full {
        fn check(&self, key: LimitKey<'_>, cost: u32, _: Instant) -> Decision {
            assert_eq!((key.tenant, key.principal, cost), ("research", "token:ana", 1));
            Decision::Denied {
                retry_after: Duration::from_millis(1500),
            }
        }
    }

    #[test]
    fn who_asks_too_much_is_told_when_to_try_again() {
        let tenant = Tenant {
            name: "research".into(),
            servers: Vec::new(),
            connect_urls: Vec::new(),
            permissions: PermissionSet::default(),
            paths: rules(),
            toolsets: Vec::new(),
            max_open_rooms: 1,
            max_concurrent_executions: 1,
            review_required: false,
        };
        let (permissions, paths) = (PermissionSet::default(), rules());
        let principal = Principal::new("token:ana", "Ana", Arc::new(tenant), permissions, paths);
        assert!(check_rate(&Unlimited, &principal).is_ok());
        let (reason, problem) = check_rate(&Full, &principal).expect_err("refused");
        let response = problem.into_response();
        assert_eq!(
            (reason, response.status()),
            ("rate_limited", StatusCode::TOO_MANY_REQUESTS)
        );
        assert_eq!(response.headers()["retry-after"], "2");
    }
}
