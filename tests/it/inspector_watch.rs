//! The Inspector stays connected and subscribes to a notebook, in both eras.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{ChildStdout, Command},
    time::{Duration, timeout},
};

use crate::support::{Agent, Era, Gateway, Human, TOKEN, lab, node::node, notebook::notebook};
use serde_json::json;

const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/mcpdo/build/mcp-bin.js";

#[tokio::test]
async fn the_inspector_subscribes_in_the_legacy_era() {
    subscribe("legacy").await;
}

#[tokio::test]
async fn the_inspector_subscribes_in_the_modern_era() {
    subscribe("modern").await;
}

async fn subscribe(era: &str) {
    let gateway = Gateway::start().await;
    let path = lab().folder().write("a.ipynb", &notebook(&["zero"]));
    let agent = Agent::connect(&gateway, Era::Modern).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let current = agent.read("notebook://current").await["_meta"].clone();
    let id = |key: &str| current[key].as_str().expect("an id").to_owned();
    let uri = format!("notebook://{}/{}", id("sessionId"), id("notebookId"));

    let inspector = Inspector::new();
    let (url, token) = (gateway.url("/mcp"), format!("Authorization: Bearer {TOKEN}"));
    let connected = inspector
        .command(&["connect", &url, "--transport", "http", "--era", era, "--header", &token])
        .output()
        .await
        .expect("node runs");
    assert!(connected.status.success(), "{connected:?}");
    let mut child = inspector
        .command(&["--format", "json", "resources/subscribe", "--uri", &uri])
        .stdout(Stdio::piped())
        .spawn()
        .expect("node runs");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    said(&mut lines, "subscribed").await;
    Human::join(&path).await.splice_cell("c0", 0, 0, "typed ");
    said(&mut lines, "resources/updated").await;
}

async fn said(lines: &mut Lines<BufReader<ChildStdout>>, what: &str) {
    let waiting = async {
        while let Some(line) = lines.next_line().await.expect("text") {
            if line.contains(what) {
                return;
            }
        }
        panic!("the inspector has left without saying {what}");
    };
    timeout(Duration::from_secs(30), waiting)
        .await
        .unwrap_or_else(|_| panic!("not said: {what}"));
}

/// An Inspector with a home and a daemon of its own, which ends with it.
struct Inspector {
    home: tempfile::TempDir,
}

impl Inspector {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().expect("a home"),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = node(INSPECTOR);
        command
            .args(["--stored-auth-only", "--connection", "gateway"])
            .args(arguments)
            .env("HOME", self.home.path())
            .env("MCP_INSPECTOR_DAEMON_DIR", self.home.path().join("daemon"))
            .env("MCP_INSPECTOR_DAEMON_TOKEN", "a-token-for-the-daemon-of-one-test-only");
        command
    }
}

impl Drop for Inspector {
    fn drop(&mut self) {
        let _ = self.command(&["daemon", "stop"]).as_std_mut().output();
    }
}
