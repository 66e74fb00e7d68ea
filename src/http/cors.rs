//! Cross-origin access for browser clients from allowed origins.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue, Method, header, request::Parts};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::{Edge, guard::authority};

const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(3600);

pub(super) fn layer<H: Send + Sync + 'static>(edge: Arc<Edge<H>>) -> CorsLayer {
    let allowed = move |origin: &HeaderValue, parts: &Parts| {
        let host = authority(&parts.headers, &parts.uri).unwrap_or_default();
        origin
            .to_str()
            .is_ok_and(|origin| edge.config.origins.allows_origin(origin, host))
    };
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(allowed))
        .allow_methods([Method::GET, Method::POST, Method::DELETE, Method::OPTIONS])
        // MCP adds headers by tool parameter, so no fixed list is complete; the origin is the gate.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("x-request-id"),
            header::WWW_AUTHENTICATE,
            header::RETRY_AFTER,
        ])
        .max_age(PREFLIGHT_MAX_AGE)
}
