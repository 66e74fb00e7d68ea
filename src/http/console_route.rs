//! `/` and `/console`: from a request to the console's own terms, and back. Bodies are bounded, and requests of those who are
//! logged in count against the limits of their token as calls do.

use std::{net::IpAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::stream::poll_fn;
use http::{
    HeaderMap, HeaderName, Method, StatusCode,
    header::{CONTENT_TYPE, COOKIE, IF_NONE_MATCH},
    request::Parts,
};
use http_body_util::{BodyExt, Full, Limited, StreamBody as EventBody};
use hyper::body::Frame;
use tokio::time::timeout;

use super::{
    Edge,
    connections::{ClientConnection, Timeouts},
    guard::authority,
    mcp_route::{client_address, request_id},
    stream_body::StreamBody,
};
use crate::{
    audit::Origin,
    auth::oauth::PersonLogin,
    console::{Console, Content, Fields, Reply, Site, Visit, Visitor},
    limits::{Admission, Refusal, Resource},
};

/// Bytes of a form; the longest names the cells of a notebook.
const MAX_FORM: usize = 256 * 1024;
const FORM_TYPE: &str = "application/x-www-form-urlencoded";
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(super) async fn handle<H: Send + Sync + 'static>(State(edge): State<Arc<Edge<H>>>, request: Request) -> Response {
    let Some(console) = edge.console.clone() else {
        return super::stack::not_found(request.uri().clone(), false)
            .await
            .into_response();
    };
    let (mut parts, body) = request.into_parts();
    let connection = parts.extensions.remove::<Arc<ClientConnection>>();
    let mut visit = visit(&edge, &parts, connection.as_deref());
    let visitor = console.visitor(&visit).await;
    let is_live = Console::is_live(&visit.path);
    let admission = match visitor
        .as_ref()
        .map(|visitor| admit(&edge, visitor, is_live))
        .transpose()
    {
        Ok(admission) => admission,
        Err(refusal) => return limited(&edge, &visit, &refusal),
    };
    if let Some(connection) = connection.as_ref().filter(|_| visitor.is_some()) {
        connection.on_authenticated();
    }
    if parts.method == Method::POST {
        let patience = connection.map_or_else(Timeouts::default, |connection| *connection.timeouts());
        match timeout(patience.body, form(&parts.headers, body)).await {
            Ok(Ok(form)) => visit.form = Some(form),
            Ok(Err((status, message))) => return sent(Console::refusal(&visit, status, message)),
            Err(_) => {
                let message = "The form did not arrive in time. Nothing was done.";
                return sent(Console::refusal(&visit, StatusCode::REQUEST_TIMEOUT, message));
            }
        }
    }
    let principal = visitor.as_ref().map(|visitor| Arc::clone(visitor.principal()));
    let working = visit.form.is_some().then(|| edge.drain.work());
    let reply = Box::pin(console.answer(&visit, visitor)).await;
    match (principal, admission) {
        (Some(principal), Some(admission)) => {
            reply_body(reply).map(|body| Body::new(StreamBody::new(body, principal, working, admission)))
        }
        _ => sent(reply),
    }
}

/// Opens a session for a person who comes back from logging in elsewhere.
pub(super) async fn enter<H>(edge: &Edge<H>, request: Request, login: PersonLogin) -> Response {
    let Some(console) = &edge.console else {
        return super::stack::not_found(request.uri().clone(), true)
            .await
            .into_response();
    };
    let (parts, _) = request.into_parts();
    let connection = parts.extensions.get::<Arc<ClientConnection>>();
    let visit = visit(edge, &parts, connection.map(|connection| &**connection));
    sent(console.enter(&visit, login).await)
}

/// Counts a request, or the stream of a page that is open.
fn admit<H>(edge: &Edge<H>, visitor: &Visitor, is_live: bool) -> Result<Arc<Admission>, Refusal> {
    let principal = visitor.principal();
    let place = if is_live { Resource::Streams } else { Resource::Requests };
    let admitted = edge.access.limits.admit(&principal.tenant.name, &principal.id, place);
    admitted.map(Arc::new)
}

fn limited<H>(edge: &Edge<H>, visit: &Visit, refusal: &Refusal) -> Response {
    edge.metrics.rejected("limited");
    let message = "Too much at once from your token or its tenant. Wait a moment, then load the page again.";
    let mut reply = Console::refusal(visit, StatusCode::TOO_MANY_REQUESTS, message);
    refusal.describe(reply.headers_mut());
    sent(reply)
}

fn visit<H>(edge: &Edge<H>, parts: &Parts, connection: Option<&ClientConnection>) -> Visit {
    let text = |name: &HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let cookies = parts
        .headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    Visit {
        path: parts.uri.path().trim_start_matches('/').to_owned(),
        query: Fields::parse(parts.uri.query().unwrap_or_default().as_bytes()),
        form: None,
        // HTTP/2 may send each by itself.
        cookies: cookies.collect::<Vec<_>>().join("; "),
        fetch_site: text(&SEC_FETCH_SITE).map(str::to_owned),
        known_tag: parts.headers.get(IF_NONE_MATCH).cloned(),
        site: site(edge, parts, connection.map(ClientConnection::address)),
        origin: Origin {
            address: connection.map(|connection| client_address(edge, connection, &parts.headers)),
            request_id: request_id(&parts.headers).into(),
        },
    }
}

/// The gateway's address as the visitor has it: the public one if it is configured, else that of the request.
fn site<H>(edge: &Edge<H>, parts: &Parts, peer: Option<IpAddr>) -> Site {
    let host = authority(&parts.headers, &parts.uri).unwrap_or_default();
    let parsed: Option<http::uri::Authority> = host.parse().ok();
    let (name, port) = parsed
        .as_ref()
        .map_or(("", None), |host| (host.host(), host.port_u16()));
    let public = edge.config.challenges.public_url.as_ref();
    let is_public = public.is_some_and(|url| url.host_str().is_some_and(|public| public.eq_ignore_ascii_case(name)));
    let is_forwarded = peer.is_some_and(|peer| edge.config.trusted_proxies.contains(peer));
    let forwarded = parts.headers.get(&X_FORWARDED_PROTO).filter(|_| is_forwarded);
    let is_secure = edge.config.challenges.scheme == "https"
        || forwarded.is_some_and(|scheme| scheme.as_bytes().eq_ignore_ascii_case(b"https"))
        || is_public && public.is_some_and(|url| url.scheme() == "https");
    let scheme = if is_secure { "https" } else { "http" };
    Site {
        url: public.map_or_else(|| format!("{scheme}://{host}/"), ToString::to_string),
        is_secure,
        port,
    }
}

async fn form(headers: &HeaderMap, body: Body) -> Result<Fields, (StatusCode, &'static str)> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with(FORM_TYPE)) {
        let message = "Only forms of these pages can be sent here. MCP is served at /mcp.";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    match Limited::new(body, MAX_FORM).collect().await {
        Ok(collected) => Ok(Fields::parse(&collected.to_bytes())),
        Err(_) => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            "The form is too large or was cut off. Nothing was done.",
        )),
    }
}

/// An answer that nobody's limits count.
fn sent(reply: Reply) -> Response {
    reply_body(reply).map(Body::new)
}

type ReplyBody = http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>;

fn reply_body(reply: Reply) -> Response<ReplyBody> {
    reply.map(|content| match content {
        Content::Whole(bytes) => Full::new(bytes).boxed(),
        Content::Live(mut events) => {
            let frames = poll_fn(move |context| {
                events
                    .poll_recv(context)
                    .map(|event| event.map(|event| Ok(Frame::data(event))))
            });
            EventBody::new(frames).boxed()
        }
    })
}
