//! Liveness and readiness. Liveness ignores dependencies; readiness names each of them.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, join_all},
};
use http::{HeaderMap, StatusCode, Uri};
use jupyter_client::{JupyterServer, Servers};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use store::Store;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{Edge, login::authenticate, server::Drain};
use crate::types::Permission;

/// Anybody may ask, so the answer is kept for a moment: a flood of questions stays with the gateway.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// Probes give up after a second, and would take one server that hangs for a gateway that does.
const TIMEOUT: Duration = Duration::from_millis(800);
/// The store among the names of servers, none of which looks like it.
const STORE: &str = "(store)";

pub(super) struct Readiness {
    servers: Arc<Servers>,
    store: Store,
    drain: Drain,
    looks: Mutex<HashMap<String, Look>>,
    tasks: TaskTracker,
}

/// A look at a dependency, which those who ask at the same time share and which goes on when they wait no longer.
#[derive(Clone)]
struct Look {
    since: Instant,
    answer: Shared<BoxFuture<'static, Value>>,
    /// Result of the check before it.
    before: Option<Value>,
}

impl Look {
    fn is_current(&self) -> bool {
        self.since.elapsed() < FRESH_FOR || self.answer.peek().is_none()
    }

    /// The newest answer that there is.
    fn known(&self) -> Option<Value> {
        self.answer.peek().cloned().or_else(|| self.before.clone())
    }
}

impl Readiness {
    pub(super) fn new(servers: Arc<Servers>, store: Store, drain: Drain) -> Self {
        Self {
            servers,
            store,
            drain,
            looks: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    async fn servers(&self) -> Map<String, Value> {
        let state = |server: &Arc<JupyterServer>| {
            let (name, server) = (server.name().to_owned(), Arc::clone(server));
            async move {
                let unknown = json!({ "status": "down", "reachable": false, "error": format!("it has not answered within {TIMEOUT:?}; it may be busy or hung") });
                let state = self.state_of(&name, unknown, async move { ask(&server).await }).await;
                (name, state)
            }
        };
        let states = join_all(self.servers.iter().map(state)).await;
        Map::from_iter(states)
    }

    async fn store(&self) -> Value {
        let store = self.store.clone();
        let unknown = json!({ "status": "down", "error": format!("it has not answered within {TIMEOUT:?}") });
        let ping = async move {
            match store.ping().await {
                Ok(()) => json!({ "status": "up" }),
                Err(error) => json!({ "status": "down", "error": error.to_string() }),
            }
        };
        self.state_of(STORE, unknown, ping).await
    }

    /// State of a dependency now, or when it last answered if it takes long to. Nobody is asked by a gateway that leaves.
    async fn state_of(&self, name: &str, unknown: Value, ask: impl Future<Output = Value> + Send + 'static) -> Value {
        let look = {
            let mut looks = self.looks.lock();
            let last = looks.get(name);
            match last.filter(|look| look.is_current()) {
                Some(look) => look.clone(),
                None if self.drain.is_draining() => return last.and_then(Look::known).unwrap_or(unknown),
                None => {
                    let asked = self.tasks.spawn(ask);
                    let look = Look {
                        since: Instant::now(),
                        answer: async move { asked.await.unwrap_or_default() }.boxed().shared(),
                        before: last.and_then(Look::known),
                    };
                    looks.insert(name.to_owned(), look.clone());
                    look
                }
            }
        };
        match timeout(TIMEOUT, look.answer.clone()).await {
            Ok(answer) => answer,
            Err(_) => look.known().unwrap_or(unknown),
        }
    }
}

async fn ask(server: &JupyterServer) -> Value {
    match server.status().await {
        Ok(status) => json!({ "status": "up", "reachable": true, "version": status.version }),
        Err(error) => json!({ "status": "down", "reachable": false, "error": error.to_string() }),
    }
}

pub(super) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

/// A Jupyter server that is down is named but does not make the gateway unready: the others work. The
/// gateway's own store is another matter. Why something is down may tell addresses and paths, which are not for anybody.
pub(super) async fn readyz<H>(State(edge): State<Arc<Edge<H>>>, uri: Uri, headers: HeaderMap) -> Response {
    let readiness = &edge.readiness;
    let (mut servers, mut store) = tokio::join!(readiness.servers(), readiness.store());
    let (status, word) = match (readiness.drain.is_draining(), store["status"] == "up") {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        (false, false) => (StatusCode::SERVICE_UNAVAILABLE, "unready"),
        (false, true) => (StatusCode::OK, "ready"),
    };
    let principal = authenticate(&edge, &uri, &headers).await.ok();
    for (name, state) in &mut servers {
        if !principal
            .as_ref()
            .is_some_and(|principal| principal.servers().contains(name))
        {
            hide_details(state);
        }
    }
    if !principal.is_some_and(|principal| principal.permissions().contains(Permission::Admin)) {
        hide_details(&mut store);
    }
    let body = json!({ "status": word, "events": { "status": "up" }, "store": store, "servers": servers });
    (status, Json(body)).into_response()
}

/// Leaves only whether something works.
fn hide_details(state: &mut Value) {
    if let Some(members) = state.as_object_mut() {
        members.retain(|name, _| ["status", "reachable"].contains(&name.as_str()));
    }
}
