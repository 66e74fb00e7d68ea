//! Clients of several makes, with a browser that follows redirects and sends forms.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use super::{Browser, Stage};
use crate::support::{
    TIMEOUT,
    lab::venv,
    node::{node, node_script},
    within,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_logs_in_and_refreshes() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/python/login.py");
    let mut python = Command::new(venv().python());
    python.arg(script).env("PYTHONUTF8", "1").kill_on_drop(true);
    logs_in_once(python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_logs_in_and_refreshes() {
    logs_in_once(node_script("provider/login.mjs")).await;
}

async fn logs_in_once(mut client: Command) {
    // So short that it has to refresh.
    let stage = Stage::with("access_ttl = \"3s\"").await;
    client.args([&stage.url("/mcp"), "ana", "refresh"]);
    let output = within(TIMEOUT, "the client", client.output()).await.expect("it runs");
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && said.contains("logged in once"),
        "{said}{failed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_asks_for_more_when_more_is_needed() {
    let stage = Stage::new().await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/python/login.py");
    let mut python = Command::new(venv().python());
    python.arg(script).env("PYTHONUTF8", "1").kill_on_drop(true);
    python.args([&stage.url("/mcp"), "ana", "step-up"]);
    let output = within(TIMEOUT, "the client", python.output()).await.expect("it runs");
    let (said, failed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        output.status.success() && said.contains("allowed more"),
        "{said}{failed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_remote_logs_in() {
    let stage = Stage::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let mut remote = node("mcp-remote/dist/proxy.js")
        .args([&stage.url("/mcp"), "--transport", "http-only"])
        .env("MCP_REMOTE_CONFIG_DIR", folder.path())
        .env_remove("DISPLAY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node runs");
    let mut log = BufReader::new(remote.stderr.take().expect("its log")).lines();
    let url = within(TIMEOUT, "a URL to visit", async {
        let mut said = String::new();
        while let Some(line) = log.next_line().await.expect("text") {
            if line.starts_with(&stage.url("/oauth/authorize")) {
                return line;
            }
            said += &line;
        }
        panic!("no URL to visit: {said}");
    });
    let url = url.await;
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
    let browser = Browser::new();
    let consent = browser.log_in(&url, "ana").await.shown();
    let told = browser.submit(&consent, &[("decision", "allow")]).await.shown();
    assert_eq!(told.status, 200, "{}", told.html);

    let mut input = remote.stdin.take().expect("its input");
    let mut output = BufReader::new(remote.stdout.take().expect("its output")).lines();
    let info = json!({ "name": "test", "version": "1" });
    let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "list_servers", "arguments": {} } }),
    ];
    for message in messages {
        input.write_all(format!("{message}\n").as_bytes()).await.expect("sent");
        let id = message["id"].clone();
        let answered = async {
            while let Some(line) = output.next_line().await.expect("text") {
                let answer: Value = serde_json::from_str(&line).expect("JSON");
                if answer["id"] == id {
                    return answer;
                }
            }
            panic!("mcp-remote has left");
        };
        if !id.is_null() {
            let answer = within(TIMEOUT, "an answer", answered).await;
            assert!(answer["error"].is_null(), "{answer}");
        }
    }
    reading.abort();
}
