//! `serve --with-jupyter`, the real binary as a newcomer runs it: everything it prints works, and
//! nothing that it has started outlives it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::{
    command::ended,
    eventually,
    jupyter::JupyterApi,
    lab::venv,
    process::{children, is_alive, send_signal},
    running::{Home, Running},
};

const NOTEBOOK: &str = r#"{"cells":[],"metadata":{},"nbformat":4,"nbformat_minor":5}"#;

#[tokio::test]
async fn what_is_printed_works_and_the_network_is_not_needed() {
    let home = Home::new();
    fs::write(home.path("notebooks/first steps ü.ipynb"), NOTEBOOK).expect("a notebook");
    let theirs = "c.ServerApp.base_url = '/theirs/'\nc.ServerApp.jpserver_extensions = {}\n";
    fs::write(home.path(".jupyter/jupyter_server_config.py"), theirs).expect("a configuration");
    let mut command = home.serve_with_jupyter();
    command
        .env("JMG__TELEMETRY__LOG_LEVEL", "debug")
        .env("PYTHONPATH", "/nonexistent");
    let gateway = Running::start(command).await;
    assert!(gateway.said.starts_with("Starting JupyterLab"), "{}", gateway.said);

    run_python_snippet(&home, &gateway);
    let header = json!({ "Authorization": format!("Bearer {}", gateway.token()) });
    let vs_code = json!({ "type": "http", "url": gateway.url(), "headers": header });
    assert_eq!(
        json_after(&gateway, "VS Code"),
        json!({ "servers": { "jupyter": vs_code } })
    );
    let cursor = json!({ "url": gateway.url(), "headers": header });
    assert_eq!(
        json_after(&gateway, "Cursor"),
        json!({ "mcpServers": { "jupyter": cursor } })
    );
    let (token, url) = (gateway.token().to_owned(), gateway.url().to_owned());
    assert!(
        gateway
            .value("claude mcp add")
            .contains(&format!("jupyter {url} --header \"Authorization: Bearer {token}\""))
    );

    // The address for people opens without a login, and the user's configuration has no say.
    let page = reqwest::get(gateway.value("JupyterLab ")).await.expect("JupyterLab");
    assert_eq!(page.status(), 200);
    assert!(page.text().await.expect("a page").contains("<title>JupyterLab</title>"));
    let jupyter = jupyter(&gateway);
    assert!(!jupyter.url.contains("theirs"), "{}", jupyter.url);
    assert_eq!(jupyter.get("api/fileid/id?path=none").await.status(), 404);

    for folder in ["cache/state", "cache/state/config", "cache/state/roots"] {
        let mode = fs::metadata(home.path(folder)).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{folder} is nobody else's business");
    }
    for root in fs::read_dir(home.path("cache/state/roots"))
        .expect("a folder")
        .flatten()
    {
        for database in ["ystore.db", "file_ids.db"] {
            let file = fs::metadata(root.path().join(database)).expect("a database");
            assert_eq!(file.permissions().mode() & 0o077, 0, "{database}");
        }
    }

    gateway.signal("-TERM");
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for line in ended.stderr.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(event["level"].is_string() && event["message"].is_string(), "{line}");
    }
    for secret in [&token, &jupyter.token] {
        assert!(
            ended.stdout.contains(secret) && !ended.stderr.contains(secret),
            "{}",
            ended.stderr
        );
    }
}

#[tokio::test]
async fn a_terminated_gateway_stops_jupyterlab_and_its_kernels() {
    let home = Home::new();
    let gateway = Running::start(home.serve_with_jupyter()).await;
    let server = server_process(&gateway);
    let kernel = jupyter(&gateway).start_kernel(server).await;
    gateway.signal("-TERM");
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!is_alive(server), "the gateway left before JupyterLab did");
    eventually("the kernel is gone", async || (!is_alive(kernel)).then_some(())).await;
    // Nobody is led to a server that is gone.
    let files = fs::read_dir(home.path(".local/share/jupyter/runtime"))
        .expect("runtime files")
        .flatten();
    let left: Vec<_> = files
        .map(|file| file.file_name())
        .filter(|name| name != "jupyter_cookie_secret")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_killed_gateway_takes_jupyterlab_and_its_kernels_along() {
    let home = Home::new();
    let gateway = Running::start(home.serve_with_jupyter()).await;
    let server = server_process(&gateway);
    let jupyter = jupyter(&gateway);
    let kernel = jupyter.start_kernel(server).await;
    // A stopped kernel neither obeys the server nor sees that it is gone.
    let stopped = jupyter.start_kernel(server).await;
    send_signal("-STOP", stopped);
    gateway.signal("-KILL");
    let killed = Instant::now();
    assert_eq!(gateway.ended().await.code, None);
    eventually("JupyterLab and its kernels are gone", async || {
        [server, kernel, stopped]
            .into_iter()
            .all(|pid| !is_alive(pid))
            .then_some(())
    })
    .await;
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
}

#[tokio::test]
async fn an_orphan_without_its_environment_leaves_too() {
    let home = Home::new();
    let gateway = Running::start(home.serve_with_jupyter()).await;
    let server = server_process(&gateway);
    home.remove_environment();
    gateway.signal("-KILL");
    eventually("JupyterLab is gone", async || (!is_alive(server)).then_some(())).await;
}

#[test]
fn without_a_network_the_first_start_says_what_pip_said() {
    let home = Home::new();
    let mut command = home.serve_with_jupyter();
    command.env("JMG_CACHE_DIR", home.path("empty-cache"));
    let ended = ended(command.output().expect("the binary runs"));
    assert_eq!(ended.code, Some(70), "{}", ended.stderr);
    assert!(ended.stdout.contains("Creating a private Python"), "{}", ended.stdout);
    for words in [
        "pip could not install",
        "PIP_INDEX_URL",
        "No matching distribution found",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// Runs it exactly as it stands on the screen.
fn run_python_snippet(home: &Home, gateway: &Running) {
    let (_, printed) = gateway
        .said
        .split_once("Python (pip install mcp):\n")
        .expect("a snippet");
    let script = home.path("snippet.py");
    fs::write(&script, printed).expect("a script");
    let ran = Command::new(venv().python())
        .arg(script)
        .env("PYTHONUTF8", "1")
        .output();
    let ran = ended(ran.expect("python runs"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("first steps ü.ipynb"), "{}", ran.stdout);
    assert!(ran.stdout.contains("is_error=False"), "{}", ran.stdout);
}

/// The JSON line below a heading.
fn json_after(gateway: &Running, heading: &str) -> Value {
    let (_, rest) = gateway.said.split_once(heading).expect("a heading");
    let line = rest.lines().skip(1).find(|line| !line.trim().is_empty());
    serde_json::from_str(line.expect("a line")).expect("json")
}

/// The process of JupyterLab, the only one that the gateway has started.
fn server_process(gateway: &Running) -> u32 {
    let [server] = children(gateway.pid())[..] else {
        panic!("one child: {:?}", children(gateway.pid()));
    };
    server
}

fn jupyter(gateway: &Running) -> JupyterApi {
    let (url, token) = gateway.value("JupyterLab ").split_once("lab?token=").expect("a token");
    JupyterApi::new(url, token)
}
