//! Layers that look at every request before any route does.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{HOST, ORIGIN},
};
use tracing::Instrument;

use super::{Edge, problem::Problem};

const REQUEST_ID: &str = "x-request-id";

/// Gives each request an id, the client's own where it is sane, and a span that carries it.
pub(super) async fn request_span(mut request: Request, next: Next) -> Response {
    let id = match request.headers().get(REQUEST_ID).filter(|id| is_sane(id)) {
        Some(id) => id.clone(),
        None => fresh_id(),
    };
    request.headers_mut().insert(REQUEST_ID, id.clone());
    let span = tracing::info_span!(
        "http",
        otel.kind = "internal",
        http.request.method = %request.method(),
        url.path = request.uri().path(),
        request_id = id.to_str().unwrap_or_default(),
    );
    let mut response = next.run(request).instrument(span.clone()).await;
    span.in_scope(|| tracing::debug!(status = response.status().as_u16(), "answered"));
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Refuses headers that are larger in all than the limit.
pub(super) async fn header_size<H>(State(edge): State<Arc<Edge<H>>>, request: Request, next: Next) -> Response {
    let size: usize = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let limit = edge.config.max_header_bytes;
    if size + request.uri().path_and_query().map_or(0, |target| target.as_str().len()) > limit {
        edge.metrics.rejected("headers_too_large");
        let message = format!("the request's headers are larger than {limit} bytes");
        return Problem::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "headers_too_large",
            message,
        )
        .into_response();
    }
    next.run(request).await
}

/// Refuses hosts and origins that are not the gateway's own or allowed ones.
pub(super) async fn host_and_origin<H>(State(edge): State<Arc<Edge<H>>>, request: Request, next: Next) -> Response {
    match check_origin(&edge, &request) {
        Ok(()) => next.run(request).await,
        Err((reason, problem)) => {
            edge.metrics.rejected(reason);
            problem.into_response()
        }
    }
}

fn check_origin<H>(edge: &Edge<H>, request: &Request) -> Result<(), (&'static str, Problem)> {
    let policy = &edge.config.origins;
    let authority = authority(request.headers(), request.uri()).unwrap_or_default();
    if !policy.allows_host(authority) {
        let message = "this Host is not allowed; add it to http.allowed_hosts or set http.public_url";
        return Err(("host", Problem::new(StatusCode::FORBIDDEN, "host_not_allowed", message)));
    }
    let Some(origin) = request.headers().get(ORIGIN) else {
        return Ok(());
    };
    if !origin
        .to_str()
        .is_ok_and(|origin| policy.allows_origin(origin, authority))
    {
        let message = "this Origin is not allowed; add it to http.allowed_origins";
        return Err((
            "origin",
            Problem::new(StatusCode::FORBIDDEN, "origin_not_allowed", message),
        ));
    }
    Ok(())
}

/// The host a request is addressed to: HTTP/2 puts it into the target.
pub(super) fn authority<'a>(headers: &'a HeaderMap, uri: &'a http::Uri) -> Option<&'a str> {
    let from_header = headers.get(HOST).and_then(|host| host.to_str().ok());
    from_header.or_else(|| uri.authority().map(http::uri::Authority::as_str))
}

fn is_sane(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=64).contains(&bytes.len())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn fresh_id() -> HeaderValue {
    let id = uuid::Uuid::new_v4().simple().to_string();
    HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
}
