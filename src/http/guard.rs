//! Looks at every request before any route does.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use futures::{FutureExt, future::BoxFuture};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{HOST, ORIGIN},
    uri::{Authority, Scheme},
};
use tower::{Layer, Service};
use tower_http::cors::CorsLayer;
use tracing::{Instrument, Span, field};

use super::{Edge, OriginPolicy, connections::ClientConnection, cors, mcp_route::client_address, problem::Problem};
use crate::telemetry::{HttpTrace, UNTRACED};

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Path at which MCP is served.
const MCP_ROUTE: &str = "/mcp";
/// The paths that all gateways have; all others but that of MCP are asked by machines that look on.
const ROUTES: [&str; 4] = [MCP_ROUTE, "/healthz", "/readyz", "/metrics"];

type Refusal = (&'static str, Problem);

/// Checks that every request passes before any route sees it. One service for all of it, and not a layer for
/// each check, since every layer of a router costs every request a copy of all that is inside of it.
pub(super) struct Guard<H, S> {
    edge: Arc<Edge<H>>,
    cors: Arc<CorsLayer>,
    inner: S,
}

impl<H: Send + Sync + 'static, S> Guard<H, S> {
    pub(super) fn new(edge: Arc<Edge<H>>, inner: S) -> Self {
        let cors = Arc::new(cors::layer(Arc::clone(&edge)));
        Self { edge, cors, inner }
    }
}

impl<H, S: Clone> Clone for Guard<H, S> {
    fn clone(&self) -> Self {
        Self {
            edge: Arc::clone(&self.edge),
            cors: Arc::clone(&self.cors),
            inner: self.inner.clone(),
        }
    }
}

impl<H, S> Service<Request> for Guard<H, S>
where
    H: Send + Sync + 'static,
    S: Service<Request, Response = Response, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        // The one that was asked whether it is ready must be the one that is called.
        let next = self.clone();
        let ready = std::mem::replace(self, next);
        Box::pin(async move {
            // Around everything: a defect anywhere becomes a 500 and not a dropped connection.
            let answered = AssertUnwindSafe(ready.answer(request)).catch_unwind().await;
            Ok(answered.unwrap_or_else(|_| panicked()))
        })
    }
}

impl<H, S> Guard<H, S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
{
    async fn answer(self, mut request: Request) -> Response {
        let id = request_id(request.headers());
        request.headers_mut().insert(REQUEST_ID, id.clone());
        let span = span(&request, &id);
        if let Some(trace) = HttpTrace::join(&span, request.headers()) {
            request.extensions_mut().insert(trace);
        }
        if let Some(connection) = request
            .extensions()
            .get::<Arc<ClientConnection>>()
            .filter(|_| !span.is_disabled())
        {
            let address = client_address(&self.edge, connection, request.headers());
            span.record("client.address", field::display(address));
        }
        // The span is around whatever may refuse a request, so that refusals carry its id too.
        let mut response = self.admit(request).instrument(span.clone()).await;
        let status = response.status();
        span.record("http.response.status_code", status.as_u16());
        if status.is_server_error() {
            span.record("error.type", status.as_u16());
            span.record("otel.status_code", "error");
        }
        tracing::debug!(parent: &span, status = status.as_u16(), "answered");
        response.headers_mut().insert(REQUEST_ID, id);
        response
    }

    async fn admit(self, request: Request) -> Response {
        // Limits before anything reads what the client sent. The body's is enforced while it is read.
        let checked =
            check_header_size(&self.edge, &request).and_then(|()| check_origin(&self.edge.config.origins, &request));
        match checked {
            Ok(()) => self.forward(request).await,
            Err((reason, problem)) => {
                self.edge.metrics.rejected(reason);
                problem.into_response()
            }
        }
    }

    /// CORS inside the origin check: only allowed origins are told what they may do. Outside of auth,
    /// which is part of the /mcp route: browsers send preflights without credentials. Agents are no
    /// browsers and send no origin, so that its headers would be lost on them.
    async fn forward(mut self, request: Request) -> Response {
        let Ok(response) = if request.headers().contains_key(ORIGIN) || request.method() == Method::OPTIONS {
            self.cors.layer(self.inner).call(request).await
        } else {
            self.inner.call(request).await
        };
        response
    }
}

/// The span of a request. Probes and scrapes come every few seconds for ever, and are traced by nobody.
fn span(request: &Request, id: &HeaderValue) -> Span {
    let (method, path) = (request.method(), request.uri().path());
    let id = id.to_str().unwrap_or_default();
    let route = ROUTES.iter().find(|route| **route == path);
    match route {
        Some(_) if path != MCP_ROUTE => {
            tracing::debug_span!(target: UNTRACED, "http", %method, path, request_id = id, client.address = field::Empty)
        }
        _ => tracing::debug_span!(
            "http",
            // Whoever asks for other paths makes them up.
            otel.name = route.map_or_else(|| method.to_string(), |route| format!("{method} {route}")),
            otel.kind = "server",
            otel.status_code = field::Empty,
            http.request.method = %method,
            http.route = route,
            http.response.status_code = field::Empty,
            url.path = path,
            url.scheme = request.uri().scheme_str(),
            request_id = id,
            client.address = field::Empty,
            error.type = field::Empty,
        ),
    }
}

/// The answer after a panic. What went wrong is for the log; the client learns only that it was not its fault.
fn panicked() -> Response {
    tracing::error!("a request handler panicked");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the gateway failed because of a bug; report it with the x-request-id of this response",
    )
    .into_response()
}

/// Refuses headers that are larger in all than the limit.
fn check_header_size<H>(edge: &Edge<H>, request: &Request) -> Result<(), Refusal> {
    let size: usize = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    let limit = edge.config.max_header_bytes;
    if size + target <= limit {
        return Ok(());
    }
    let message = format!("the headers are larger than {limit} bytes; send fewer or shorter ones");
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Err(("headers_too_large", Problem::new(status, "headers_too_large", message)))
}

/// Refuses hosts and origins that are not the gateway's own or allowed ones. On every route, health and
/// metrics included: a rebound name reaches them all.
pub(super) fn check_origin(policy: &OriginPolicy, request: &Request) -> Result<(), Refusal> {
    check_ambiguity(request)?;
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

/// Refuses requests that name two hosts or two origins, of which a proxy may believe the other one.
fn check_ambiguity(request: &Request) -> Result<(), Refusal> {
    let (headers, uri) = (request.headers(), request.uri());
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    let is_other = |authority: &Authority| host.is_some_and(|host| !is_same_host(host, authority, uri));
    if hosts.next().is_some() || uri.authority().is_some_and(is_other) {
        let message = "the request names more than one host; send one Host header, equal to that of the target";
        return Err(("host", Problem::new(StatusCode::BAD_REQUEST, "ambiguous_host", message)));
    }
    if headers.get_all(ORIGIN).iter().nth(1).is_some() {
        let message = "the request has more than one Origin; send one";
        return Err((
            "origin",
            Problem::new(StatusCode::BAD_REQUEST, "ambiguous_origin", message),
        ));
    }
    Ok(())
}

fn is_same_host(host: &HeaderValue, authority: &Authority, uri: &http::Uri) -> bool {
    let Ok(host) = Authority::try_from(host.as_bytes()) else {
        return false;
    };
    let default = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(default);
    host.host().eq_ignore_ascii_case(authority.host()) && port(&host) == port(authority)
}

/// The host a request is addressed to: HTTP/2 puts it into the target.
pub(super) fn authority<'a>(headers: &'a HeaderMap, uri: &'a http::Uri) -> Option<&'a str> {
    let from_header = headers.get(HOST).and_then(|host| host.to_str().ok());
    from_header.or_else(|| uri.authority().map(Authority::as_str))
}

/// The client's own id where it is sane.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    match headers.get(REQUEST_ID).filter(|id| is_sane(id)) {
        Some(id) => id.clone(),
        None => fresh_id(),
    }
}

fn is_sane(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=64).contains(&bytes.len())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

/// Ids need to differ and not to be secret: what is random in them is drawn once.
fn fresh_id() -> HeaderValue {
    static FIRST: LazyLock<u128> = LazyLock::new(|| uuid::Uuid::new_v4().as_u128());
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = FIRST.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed).into());
    let id = uuid::Uuid::from_u128(id).simple().to_string();
    HeaderValue::try_from(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
}
