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
    let gateway = Running::start(home.serve_for(lab().url(), lab().token())).await;
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
            // What is asked besides is answered at once.
            to_wait.notify_one();
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

/// A gateway that runs with a config file of its own.
fn serve_config(home: &Home, tokens: &str) -> (std::path::PathBuf, std::process::Command) {
    let file = home.path("gateway.toml");
    fs::write(&file, config(tokens)).expect("a config");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    (file, command)
}

fn config(tokens: &str) -> String {
    let lab = crate::support::gateway::lab_server("lab");
    format!("store.url = \"sqlite::memory:\"\n{lab}[[tenants]]\nname = \"t\"\n{tokens}")
}

fn token(name: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"t\"\ntoken = \"token-of-{name}\"\n")
}

async fn status_for(gateway: &Running, token: &str) -> u16 {
    let request = reqwest::Client::new().post(gateway.url()).bearer_auth(token);
    let request = request.header("content-type", "application/json");
    let answer = request.body(crate::support::wire::initialize()).send().await;
    answer.expect("an answer").status().as_u16()
}

#[tokio::test]
async fn a_hangup_reads_tokens_again_whole_or_not_at_all() {
    let home = Home::new();
    let (file, command) = serve_config(&home, &token("ana"));
    let gateway = Running::start(command).await;
    assert_eq!(status_for(&gateway, "token-of-ana").await, 200);

    fs::write(&file, config(&token("bob"))).expect("a config");
    gateway.signal("-HUP");
    eventually("the new token", async || {
        (status_for(&gateway, "token-of-bob").await == 200).then_some(())
    })
    .await;
    assert_eq!(status_for(&gateway, "token-of-ana").await, 401, "who is removed is out");

    let others = [
        "nonsense".to_owned(),
        format!("http.max_body_bytes = 5000\n{}", config(&token("cleo"))),
    ];
    for (count, bad) in others.iter().enumerate() {
        fs::write(&file, bad).expect("a config");
        gateway.signal("-HUP");
        let refusals = || gateway.log().matches("cannot apply the new config").count();
        eventually("it is refused", async || (refusals() == count + 1).then_some(())).await;
        assert_eq!(status_for(&gateway, "token-of-bob").await, 200);
        assert_eq!(status_for(&gateway, "token-of-cleo").await, 401);
    }
    assert!(gateway.logged("needs a restart: http.max_body_bytes;"));
}

#[tokio::test]
async fn what_cannot_change_while_it_runs_is_refused_by_its_key() {
    let home = Home::new();
    let logins = "[auth.jupyterhub]\nurl = \"http://127.0.0.1:9/hub/api\"\ntenant = \"t\"\n\
                  [auth.jwt]\nissuer = \"http://127.0.0.1:9\"\naudience = \"x\"\n[auth.jupyter]\nenabled = false\n";
    let whole = |tokens: &str, logins: &str| format!("{}{logins}", config(tokens));
    let (file, command) = serve_config(&home, &format!("{}{logins}", token("ana")));
    let gateway = Running::start(command).await;
    let secret = "secret = \"a secret for development, and long\"\n[auth.jupyter]";
    for (from, to, key) in [
        (
            "tenant = \"t\"\n[auth.jwt]",
            "tenant = \"t\"\ncache_ttl = \"5s\"\n[auth.jwt]",
            "auth.jupyterhub.cache_ttl",
        ),
        ("audience = \"x\"", "audience = \"y\"", "auth.jwt.audience"),
        ("[auth.jupyter]", secret, "auth.jwt.secret"),
        ("enabled = false", "enabled = true", "auth.jupyter.enabled"),
        (
            "[auth.jupyter]",
            "[auth.oauth]\naccess_ttl = \"5s\"\n[auth.jupyter]",
            "auth.oauth.access_ttl",
        ),
        (logins, "", "auth.jwt, auth.jupyterhub"),
    ] {
        assert!(logins.contains(from), "{from}");
        // A token that comes with it is not let in either.
        let tokens = format!("{}{}", token("ana"), token("bob"));
        fs::write(&file, whole(&tokens, &logins.replace(from, to))).expect("a config");
        gateway.signal("-HUP");
        let told = format!("needs a restart: {key};");
        eventually(&told, async || gateway.logged(&told).then_some(())).await;
        assert_eq!(
            status_for(&gateway, "token-of-bob").await,
            503,
            "the Hub would know whether it is one of its own"
        );
        assert_eq!(status_for(&gateway, "token-of-ana").await, 200);
    }
    assert!(!gateway.log().contains("a secret for development"));
}

#[tokio::test]
async fn a_hangup_reads_the_tokens_of_servers_again() {
    let home = Home::new();
    let secret = home.path("token");
    fs::write(&secret, "not-the-token").expect("a file");
    let server = format!(
        "[[servers]]\nname = \"lab\"\nurl = \"{}\"\ntoken_file = {secret:?}\n",
        lab().url()
    );
    let file = home.path("gateway.toml");
    let text = format!(
        "store.url = \"sqlite::memory:\"\n{server}[[tenants]]\nname = \"t\"\n{}",
        token("ana")
    );
    fs::write(&file, text).expect("a config");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    let gateway = Running::start(command).await;
    let agent = Agent::connect_to(gateway.url(), "token-of-ana", Era::Modern).await;
    let refused = agent.call("list_documents", json!({})).await.error();
    assert!(refused.contains("token"), "{refused}");
    fs::write(&secret, lab().token()).expect("a file");
    gateway.signal("-HUP");
    eventually("the new token is used", async || {
        (!agent.call("list_documents", json!({})).await.is_error).then_some(())
    })
    .await;
}

#[tokio::test]
async fn without_a_config_a_hangup_changes_nothing_and_the_token_is_kept() {
    let home = Home::new();
    let serve = |arguments: &[&str]| {
        let mut command = home.serve();
        command
            .args(arguments)
            .env("JUPYTERLAB_URL", lab().url())
            .env("JUPYTERLAB_TOKEN", lab().token());
        command
    };
    let first = Running::start(serve(&[])).await;
    first.signal("-HUP");
    eventually("it is heard", async || first.logged("SIGHUP").then_some(())).await;
    assert_eq!(status_for(&first, first.token()).await, 200);
    let second = Running::start(serve(&[])).await;
    assert_eq!(second.token(), first.token(), "clients are configured once");
    let third = Running::start(serve(&["--new-token"])).await;
    assert_ne!(third.token(), first.token());
    let fourth = Running::start(serve(&[])).await;
    assert_eq!(fourth.token(), third.token());
    assert_eq!(open_to_others(&home.path("cache/state")), Vec::<String>::new());
}

/// The paths in a folder, itself included, that other users may read.
fn open_to_others(dir: &std::path::Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let mut open = Vec::new();
    let mut paths = vec![dir.to_owned()];
    while let Some(path) = paths.pop() {
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        if metadata.permissions().mode() & 0o077 != 0 {
            open.push(path.display().to_string());
        }
        if metadata.is_dir() {
            paths.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .flatten()
                    .map(|entry| entry.path()),
            );
        }
    }
    open
}

#[tokio::test]
async fn a_port_that_is_taken_is_found_before_anything_is_started() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut command = home.serve_on(&address);
    command.arg("--with-jupyter").arg(home.path("notebooks"));
    let ended = ended(command.output().expect("the binary runs"));
    assert_eq!(ended.code, Some(70), "{}", ended.stderr);
    for words in [address.as_str(), "in use", "--listen"] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert_eq!(ended.stdout, "", "JupyterLab was not started for it");
}
