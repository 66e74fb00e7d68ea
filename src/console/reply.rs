//! Answers to browsers, with the headers that keep pages from doing anything but what they are made for.

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION, REFERRER_POLICY, SET_COOKIE,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use maud::Markup;
use tokio::sync::mpsc;

/// An answer, whose body the edge sends.
pub type Reply = Response<Content>;

/// Body of an answer.
pub enum Content {
    Whole(Bytes),
    /// Events for a page that is open.
    Live(mpsc::Receiver<Bytes>),
}

/// Pages load nothing but their own script, style and pictures, talk to nobody else and are in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// A page.
pub(super) fn page(status: StatusCode, markup: Markup) -> Reply {
    let mut reply = reply(
        status,
        "text/html; charset=utf-8",
        Content::Whole(markup.into_string().into()),
    );
    reply
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Events as they come.
pub(super) fn live(events: mpsc::Receiver<Bytes>) -> Reply {
    let mut reply = reply(StatusCode::OK, "text/event-stream", Content::Live(events));
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx gathers what is not marked so.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

/// A file of the page, which browsers ask about again, since the next version of the gateway has another one.
pub(super) fn asset(kind: &'static str, content: &'static [u8], tag: &str, known: Option<&HeaderValue>) -> Reply {
    let is_known = known.is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let (status, content) = match is_known {
        true => (StatusCode::NOT_MODIFIED, Bytes::new()),
        false => (StatusCode::OK, Bytes::from_static(content)),
    };
    let mut reply = reply(status, kind, Content::Whole(content));
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    reply
}

/// Sends the browser to another page, whatever it sent.
pub(super) fn see_other(location: &str) -> Reply {
    let mut reply = reply(StatusCode::SEE_OTHER, "text/plain", Content::Whole(Bytes::new()));
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(location) = HeaderValue::try_from(location) {
        headers.insert(LOCATION, location);
    }
    reply
}

/// The same with a cookie.
pub(super) fn with_cookie(mut reply: Reply, cookie: &str) -> Reply {
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        reply.headers_mut().append(SET_COOKIE, cookie);
    }
    reply
}

fn reply(status: StatusCode, kind: &'static str, content: Content) -> Reply {
    let mut reply = Response::new(content);
    *reply.status_mut() = status;
    let fixed = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // Not `no-referrer`, with which forms would come from nowhere and be refused.
        (REFERRER_POLICY, "same-origin"),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
        (
            PERMISSIONS_POLICY,
            "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        ),
    ];
    let headers = fixed.map(|(name, value)| (name, HeaderValue::from_static(value)));
    reply.headers_mut().extend(headers);
    reply
}
