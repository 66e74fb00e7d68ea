//! `serve` without a config, the real binary: which servers it finds, and how it leaves.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

use crate::support::{
    Agent, Era,
    agent::ERAS,
    command::ended,
    eventually, lab,
    running::{Home, Running},
};

#[tokio::test]
async fn a_server_that_runs_on_this_machine_is_found() {
    let home = Home::new();
    let owner = Running::start(home.serve_with_jupyter()).await;
    let jupyter = owner.value("Jupyter      local: ").trim_end_matches('/').to_owned();
    let finder = Running::start(home.serve()).await;
    let port = jupyter.rsplit(':').next().expect("a port");
    let found = only_server(&finder).await;
    assert_eq!(found["name"], format!("local-{port}"));
    assert_eq!(
        (&found["url"], &found["reachable"]),
        (&json!(jupyter), &json!(true)),
        "{found}"
    );
    // It belongs to somebody else and stays.
    finder.signal("-TERM");
    assert_eq!(finder.ended().await.code, Some(0));
    assert_eq!(only_server(&owner).await["reachable"], true);
    owner.signal("-TERM");
    assert_eq!(owner.ended().await.code, Some(0));
}

#[tokio::test]
async fn a_server_can_come_from_the_environment() {
    let home = Home::new();
    let mut command = home.serve();
    command
        .env("JUPYTERLAB_URL", lab().url())
        .env("JUPYTERLAB_TOKEN", lab().token());
    let gateway = Running::start(command).await;
    let server = only_server(&gateway).await;
    assert_eq!(
        (&server["name"], &server["reachable"]),
        (&json!("default"), &json!(true)),
        "{server}"
    );
    assert_eq!(server["url"], lab().url().trim_end_matches('/'));
}

#[test]
fn without_any_server_it_says_what_to_do() {
    let home = Home::new();
    fs::create_dir_all(home.path(".local/share/jupyter/runtime")).expect("an empty folder");
    let ended = ended(home.serve().output().expect("the binary runs"));
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    for words in ["no Jupyter server", "JUPYTERLAB_URL", "--with-jupyter"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert_eq!(ended.stdout, "");
}

#[tokio::test]
async fn a_call_under_way_is_finished_before_it_leaves() {
    for era in ERAS {
        let slow = SlowJupyter::start().await;
        let gateway = slow.gateway().await;
        let call = slow.call_under_way(&gateway, era).await;
        gateway.signal("-TERM");
        eventually("draining", async || gateway.logged("draining").then_some(())).await;
        let readiness = reqwest::get(gateway.url().replace("/mcp", "/readyz"))
            .await
            .expect("an answer");
        assert_eq!(readiness.status(), 503, "it says that it is leaving");
        assert!(!call.is_finished());
        slow.answer.notify_one();
        let listed = call.await.expect("an answer");
        assert_eq!(listed["documents"][0]["name"], "slow.ipynb", "{era:?}: {listed}");
        let ended = gateway.ended().await;
        assert_eq!(ended.code, Some(0), "{era:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("drained"), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn a_second_signal_means_now() {
    let slow = SlowJupyter::start().await;
    let gateway = slow.gateway().await;
    let call = slow.call_under_way(&gateway, Era::Modern).await;
    let asked = Instant::now();
    gateway.signal("-TERM");
    eventually("draining", async || gateway.logged("draining").then_some(())).await;
    gateway.signal("-TERM");
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Well before the drain deadline of 20 s, although the call is never answered.
    assert!(asked.elapsed() < Duration::from_secs(10), "{}", ended.stderr);
    assert!(ended.stderr.contains("leaving without waiting"), "{}", ended.stderr);
    call.abort();
}

async fn only_server(gateway: &Running) -> Value {
    let agent = Agent::connect_to(gateway.url(), gateway.token(), Era::Modern).await;
    let listed = agent.call("list_servers", json!({})).await.ok();
    let [server] = &listed["servers"].as_array().expect("servers")[..] else {
        panic!("one server: {listed}");
    };
    server.clone()
}

/// A server that answers when it is told to.
struct SlowJupyter {
    home: Home,
    url: String,
    asked: Arc<Notify>,
    answer: Arc<Notify>,
}

impl SlowJupyter {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let (asked, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (to_tell, to_wait) = (Arc::clone(&asked), Arc::clone(&answer));
        let router = Router::new().fallback(async move || {
            to_tell.notify_one();
            to_wait.notified().await;
            let notebook = json!({ "name": "slow.ipynb", "path": "slow.ipynb", "type": "notebook" });
            Json(json!({ "name": "", "path": "", "type": "directory", "content": [notebook] }))
        });
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            home: Home::new(),
            url,
            asked,
            answer,
        }
    }

    async fn gateway(&self) -> Running {
        let mut command = self.home.serve();
        command.env("JUPYTERLAB_URL", &self.url);
        Running::start(command).await
    }

    /// A call of a tool that waits for this server.
    async fn call_under_way(&self, gateway: &Running, era: Era) -> tokio::task::JoinHandle<Value> {
        let agent = Agent::connect_to(gateway.url(), gateway.token(), era).await;
        let call = tokio::spawn(async move { agent.call("list_documents", json!({})).await.ok() });
        self.asked.notified().await;
        call
    }
}
