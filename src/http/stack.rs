//! The routes and the stack of layers around them, each with the reason for its place.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    middleware::{from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use http::{StatusCode, header::CONTENT_TYPE};
use rmcp::ServerHandler;
use tower_http::catch_panic::CatchPanicLayer;

use super::{Edge, cors, guard, health, mcp_route, metadata, problem::Problem};
use crate::telemetry::Metrics;

/// Builds the service. Layers are listed from the routes outwards: the last one sees a request first.
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
    routes
        // CORS inside the origin check: only allowed origins are told what they may do. Outside of
        // auth, which is part of the /mcp route: browsers send preflights without credentials.
        .layer(cors::layer(Arc::clone(&edge)))
        // Host and Origin on every route, health and metrics included: a rebound name reaches them all.
        .layer(from_fn_with_state(Arc::clone(&edge), guard::host_and_origin))
        // Limits before anything reads what the client sent. The body's is enforced while it is read.
        .layer(from_fn_with_state(Arc::clone(&edge), guard::header_size))
        // The span is outside of whatever may refuse a request, so that refusals carry its id too.
        .layer(from_fn(guard::request_span))
        // Outermost: a defect in any layer becomes a 500 and not a dropped connection.
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(edge)
}

/// Only the metrics, for an address that the public cannot reach.
pub fn metrics_router(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(render_metrics)).with_state(metrics)
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

/// What went wrong is for the log. The client learns only that it was not its fault.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a request handler panicked");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the gateway failed; this is a defect of it",
    )
    .into_response()
}
