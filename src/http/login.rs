//! Authentication of requests, and the answers to clients whose credentials are missing, wrong or not enough.

use std::sync::Arc;

use http::{HeaderMap, StatusCode, Uri, header::AUTHORIZATION, request::Parts};

use super::{
    Edge,
    mcp_route::{Refusal, too_many},
    problem::Problem,
};
use crate::{
    audit::{Origin, record_failed_login},
    auth::{AuthError, Credentials, Principal, Rejection},
};

/// Finds the principal of a request.
pub(super) async fn authenticate<H>(edge: &Edge<H>, uri: &Uri, headers: &HeaderMap) -> Result<Arc<Principal>, Refusal> {
    let challenge = |error| edge.config.challenges.header(error, uri, headers);
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let authorization = sent.next();
    if sent.next().is_some() {
        // A proxy may have let in the other one.
        let message = "more than one `Authorization` header was sent; send one";
        let problem = Problem::unauthorized(message, challenge(Some(("invalid_request", None))));
        return Err(("token_ambiguous", problem));
    }
    let bearer = authorization.and_then(|value| bearer(value.to_str().ok()?));
    let credentials = Credentials::new(bearer.unwrap_or_default());
    let found = edge.access.authenticator.authenticate(credentials).await;
    found.map_err(|error| match error {
        AuthError::Missing => {
            let message = match edge.config.challenges.names_servers() {
                true => {
                    "no token was sent; log in with your client, or configure it to send the header \
                     `Authorization: Bearer <token>` with a token that an operator gave you"
                }
                false => {
                    "no token was sent; configure the client to send the header `Authorization: Bearer <token>` with the \
                     token that the gateway printed at start or that its operator gave you"
                }
            };
            ("token_missing", Problem::unauthorized(message, challenge(None)))
        }
        AuthError::Unknown => {
            let message = "unknown token; check the `Authorization: Bearer <token>` header of the client, \
                           or ask an operator for a new token";
            let challenge = challenge(Some(("invalid_token", None)));
            ("token_unknown", Problem::unauthorized(message, challenge))
        }
        AuthError::Rejected(Rejection::Invalid(_)) => {
            let message = format!("{error}; get a new one");
            let challenge = challenge(Some(("invalid_token", None)));
            ("token_rejected", Problem::unauthorized(&message, challenge))
        }
        AuthError::Rejected(Rejection::Forbidden(sentence)) => {
            ("token_forbidden", Problem::forbidden(&sentence, None))
        }
        AuthError::Rejected(Rejection::InsufficientScope(scope)) => {
            let message = format!("{error}, without which nothing can be done here; log in again and allow it");
            let challenge = challenge(Some(("insufficient_scope", Some(scope))));
            ("insufficient_scope", Problem::forbidden(&message, Some(challenge)))
        }
        AuthError::Unavailable => {
            let message = "whether the token holds cannot be told at this moment; try again later";
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "auth_unavailable", message);
            ("auth_unavailable", problem.retry_after(RETRY_SECONDS))
        }
    })
}

/// Time after which a login service may answer again.
const RETRY_SECONDS: u32 = 5;

/// Credentials of a request, kept to authenticate its sender again later.
pub(super) struct SentCredentials {
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
}

/// Takes the credentials out of a request.
pub(super) fn take_credentials(parts: &mut Parts) -> SentCredentials {
    let authorization = parts.headers.remove(AUTHORIZATION);
    let named = authorization.map(|value| (AUTHORIZATION, value));
    let host = parts.headers.get(http::header::HOST).cloned();
    let host = host.map(|value| (http::header::HOST, value));
    SentCredentials {
        uri: parts.uri.clone(),
        headers: named.into_iter().chain(host).collect(),
    }
}

/// Records a login that failed, and counts it. Whoever sent no token did not try one.
pub(super) fn on_failed_login<H>(edge: &Edge<H>, origin: &Origin, refusal: Refusal) -> Refusal {
    let (reason, problem) = &refusal;
    record_failed_login(&*edge.access.audit, origin, reason);
    if problem.status() != StatusCode::UNAUTHORIZED || *reason == "token_missing" {
        return refusal;
    }
    let counted = origin
        .address
        .map(|address| edge.access.limits.on_failed_login(address));
    match counted {
        Some(Err(limited)) => too_many(limited),
        Some(Ok(())) | None => refusal,
    }
}

/// The credential of `Authorization: Bearer T`, or of Jupyter's spelling `token T`.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    let known = scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("token");
    known.then(|| token.trim())
}
