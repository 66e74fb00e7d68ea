//! OAuth 2.0 protected resource metadata (RFC 9728): where a client learns how to get a token.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use serde_json::{Value, json};

use super::{Edge, guard::authority};
use crate::types::Permission;

pub(super) async fn protected_resource<H>(State(edge): State<Arc<Edge<H>>>, request: Request) -> Json<Value> {
    let base = edge.base_url(authority(request.headers(), request.uri()).unwrap_or_default());
    let scopes = Permission::ALL.map(|permission| format!("jupyter:{permission}"));
    Json(json!({
        "resource": format!("{base}/mcp"),
        "resource_name": "Jupyter MCP Gateway",
        "bearer_methods_supported": ["header"],
        "scopes_supported": scopes,
    }))
}
