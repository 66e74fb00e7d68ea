//! The routes and the stack of layers around them, each with the reason for its place.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use http::{StatusCode, Uri, header::CONTENT_TYPE};
use rmcp::ServerHandler;
use tower::layer::layer_fn;

use super::{
    Edge, OriginPolicy,
    challenge::{self, nothing_to_log_in_to},
    console_route,
    guard::{Guard, check_origin},
    health, mcp_route, oauth,
    problem::Problem,
};
use crate::telemetry::Metrics;

/// Builds the service.
pub fn router<H: ServerHandler>(edge: Arc<Edge<H>>) -> Router {
    let mut routes = Router::new()
        .route("/mcp", any(mcp_route::handle::<H>))
        .route("/mcp/", any(mcp_route::handle::<H>))
        .route(challenge::METADATA, any(challenge::metadata::<H>))
        .route(&format!("{}/mcp", challenge::METADATA), any(challenge::metadata::<H>))
        // Whoever sends to `/` has forgotten the path of MCP, and is told.
        .route(
            "/",
            get(console_route::handle::<H>).fallback(|uri: Uri| not_found(uri, false)),
        )
        .route("/console", get(console_route::handle::<H>))
        .route("/console/", get(console_route::handle::<H>))
        .route(
            "/console/{*page}",
            get(console_route::handle::<H>).post(console_route::handle::<H>),
        )
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz::<H>));
    if let Some(oauth) = &edge.access.oauth {
        routes = routes.merge(oauth::routes(oauth, &edge));
    }
    let has_logins = edge.access.oauth.is_some();
    routes = routes.fallback(move |uri: Uri| not_found(uri, has_logins));
    if edge.config.serve_metrics {
        let metrics = edge.metrics.clone();
        routes = routes.route("/metrics", get(render_metrics).with_state(metrics));
    }
    let guarded = Arc::clone(&edge);
    routes
        .layer(layer_fn(move |inner| Guard::new(Arc::clone(&guarded), inner)))
        .with_state(edge)
}

/// Only the metrics, for an address that the public cannot reach but a page in an operator's browser may. Scrapers
/// ask by address, and no name can be rebound to stand for one.
pub fn metrics_router(metrics: Metrics, origins: OriginPolicy) -> Router {
    let origins = Arc::new(origins.with_addresses());
    let rejections = metrics.clone();
    let check = move |request: Request, next: Next| {
        let checked = check_origin(&origins, &request);
        let rejections = rejections.clone();
        async move {
            match checked {
                Ok(()) => next.run(request).await,
                Err((reason, problem)) => {
                    rejections.rejected(reason);
                    problem.into_response()
                }
            }
        }
    };
    Router::new()
        .route("/metrics", get(render_metrics))
        .fallback(|uri: Uri| not_found(uri, false))
        .layer(from_fn(check))
        .with_state(metrics)
}

async fn render_metrics(State(metrics): State<Metrics>) -> Response {
    match metrics.render() {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be rendered");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Paths at which clients look for an authorization server, below the root or below `/mcp`, and its endpoints.
const OAUTH_DOCUMENTS: [&str; 3] = [
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
    "/.well-known/openid-configuration",
];
const OAUTH_ENDPOINTS: [&str; 3] = ["/register", "/authorize", "/token"];

/// Clients that are refused look for a way to log in, and show people what they are told there.
fn is_oauth(path: &str) -> bool {
    let path = path.strip_prefix("/mcp").unwrap_or(path).trim_end_matches('/');
    let is_below = |document: &&str| {
        let rest = path.strip_prefix(*document);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    OAUTH_ENDPOINTS.contains(&path) || OAUTH_DOCUMENTS.iter().any(is_below)
}

pub(super) async fn not_found(uri: Uri, has_logins: bool) -> Problem {
    if is_oauth(uri.path()) && has_logins {
        return Problem::oauth(
            "nothing here; where and how to log in is told at /.well-known/oauth-authorization-server",
        );
    }
    if is_oauth(uri.path()) {
        return nothing_to_log_in_to();
    }
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "nothing here; MCP is served at /mcp",
    )
}
