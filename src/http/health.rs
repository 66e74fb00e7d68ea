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
use crate::jupyter::{JupyterServer, Servers};

/// Anybody may ask, so the answer is kept for a moment: a flood of questions stays with the gateway.
const FRESH_FOR: Duration = Duration::from_secs(2);

pub(super) struct Readiness {
    servers: Arc<Servers>,
    drain: Drain,
    /// Held while the servers are asked, so that questions at the same time share one answer.
    last: Mutex<Option<(Instant, Value)>>,
}

impl Readiness {
    pub(super) fn new(servers: Arc<Servers>, drain: Drain) -> Self {
        Self {
            servers,
            drain,
            last: Mutex::default(),
        }
    }

    #[expect(
        clippy::await_holding_invalid_type,
        reason = "those who ask meanwhile are to wait for this answer"
    )]
    async fn servers(&self) -> Value {
        let mut last = self.last.lock().await;
        if let Some((asked, answer)) = last.as_ref().filter(|(asked, _)| asked.elapsed() < FRESH_FOR) {
            let _ = asked;
            return answer.clone();
        }
        let answers = join_all(self.servers.iter().map(|server| ask(server))).await;
        let answer = Value::Object(Map::from_iter(answers));
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

/// A Jupyter server that is down is named but does not make the gateway unready: the others work.
pub(super) async fn readyz<H>(State(edge): State<Arc<Edge<H>>>) -> Response {
    let readiness = &edge.readiness;
    let servers = readiness.servers().await;
    let (status, word) = match readiness.drain.is_draining() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        false => (StatusCode::OK, "ready"),
    };
    let body = json!({ "status": word, "events": { "status": "up" }, "servers": servers });
    (status, Json(body)).into_response()
}
