//! Liveness and readiness. Liveness ignores dependencies; readiness names each of them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use futures::future::join_all;
use http::StatusCode;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::{Edge, server::Drain};
use crate::{
    jupyter::{JupyterServer, Servers},
    store::Store,
};

/// Anybody may ask, so the answer is kept for a moment: a flood of questions stays with the gateway.
const FRESH_FOR: Duration = Duration::from_secs(2);

pub(super) struct Readiness {
    servers: Arc<Servers>,
    store: Store,
    drain: Drain,
    /// Held while the dependencies are asked, so that questions at the same time share one answer.
    last: Mutex<Option<(Instant, Dependencies)>>,
}

/// How the dependencies are.
#[derive(Clone)]
struct Dependencies {
    servers: Value,
    /// Why the store cannot be used, if so.
    store: Result<(), String>,
}

impl Readiness {
    pub(super) fn new(servers: Arc<Servers>, store: Store, drain: Drain) -> Self {
        Self {
            servers,
            store,
            drain,
            last: Mutex::default(),
        }
    }

    #[expect(
        clippy::await_holding_invalid_type,
        reason = "those who ask meanwhile are to wait for this answer"
    )]
    async fn dependencies(&self) -> Dependencies {
        let mut last = self.last.lock().await;
        if let Some((_, answer)) = last.as_ref().filter(|(asked, _)| asked.elapsed() < FRESH_FOR) {
            return answer.clone();
        }
        let asked = join_all(self.servers.iter().map(|server| ask(server)));
        let (servers, store) = tokio::join!(asked, self.store.ping());
        let answer = Dependencies {
            servers: Value::Object(Map::from_iter(servers)),
            store: store.map_err(|error| error.to_string()),
        };
        *last = Some((Instant::now(), answer.clone()));
        answer
    }
}

async fn ask(server: &JupyterServer) -> (String, Value) {
    let answer = match server.status().await {
        Ok(status) => json!({ "reachable": true, "version": status.version }),
        Err(error) => json!({ "reachable": false, "error": error.to_string() }),
    };
    (server.name().to_owned(), answer)
}

pub(super) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// A Jupyter server that is down is named but does not make the gateway unready: the others work. The
/// gateway's own store is another matter.
pub(super) async fn readyz<H>(State(edge): State<Arc<Edge<H>>>) -> Response {
    let readiness = &edge.readiness;
    let Dependencies { servers, store } = readiness.dependencies().await;
    let (status, word) = match (readiness.drain.is_draining(), &store) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        (false, Err(_)) => (StatusCode::SERVICE_UNAVAILABLE, "unready"),
        (false, Ok(())) => (StatusCode::OK, "ready"),
    };
    let store = match store {
        Ok(()) => json!({ "status": "up" }),
        Err(error) => json!({ "status": "down", "error": error }),
    };
    let body = json!({ "status": word, "events": { "status": "up" }, "store": store, "servers": servers });
    (status, Json(body)).into_response()
}
