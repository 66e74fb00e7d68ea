//! The routes and the stack of layers around them, each with the reason for its place.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use http::{StatusCode, header::CONTENT_TYPE};
use rmcp::ServerHandler;
use tower::layer::layer_fn;

use super::{
    Edge, OriginPolicy,
    guard::{Guard, check_origin},
    health, mcp_route, metadata,
    problem::Problem,
};
use crate::telemetry::Metrics;

/// Builds the service.
pub fn router<H: ServerHandler>(edge: Arc<Edge<H>>) -> Router {
    let mut routes = Router::new()
        .route("/mcp", any(mcp_route::handle::<H>))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz::<H>))
        .route(
            "/.well-known/oauth-protected-resource",
            get(metadata::protected_resource::<H>),
        )
        .route(
            "/.well-known/oauth-protected-resource/mcp",
            get(metadata::protected_resource::<H>),
        )
        .fallback(not_found);
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
        .fallback(not_found)
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

async fn not_found() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "nothing here; MCP is served at /mcp",
    )
}
