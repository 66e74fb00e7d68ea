//! Costs of reading and of the list of tools through datalayer's jupyter-mcp-server, whose program `JMG_TOKENS_PEER` names.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::work::{Cost, Notebooks};
use crate::support::{Agent, Era, TOKEN, lab, lab::Folder, within};

/// Time that the peer may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// The costs of the jobs in their order, if they are asked for.
pub(super) async fn costs() -> Vec<Option<Cost>> {
    let Some(program) = std::env::var_os("JMG_TOKENS_PEER") else {
        return Vec::new();
    };
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = port.expect("a free port").port();
    let server = Command::new(program)
        .args(["start", "--transport", "streamable-http", "--port", &port.to_string()])
        .args(["--jupyter-url", lab().url(), "--jupyter-token", lab().token()])
        .args(["--mcp-token", TOKEN, "--start-new-code-sandbox", "false"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let server = Running(server.expect("the peer's program"));
    let url = format!("http://127.0.0.1:{port}/mcp");
    let listening = async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    within(START_TIMEOUT, "the peer listens", listening).await;
    let folder = lab().folder();
    let peer = Peer {
        agent: Agent::introduced_as("claude-code", &url, Era::Modern).await,
        notebooks: Notebooks::write(&folder),
        _folder: folder,
        _server: server,
    };
    peer.all().await
}

/// Ends the program when the measurement is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Peer {
    agent: Agent,
    notebooks: Notebooks,
    _folder: Folder,
    _server: Running,
}

impl Peer {
    async fn all(&self) -> Vec<Option<Cost>> {
        let whole = |format: &str| json!({ "notebook_name": "messy", "response_format": format, "limit": 120 });
        let path = &self.notebooks.messy;
        let connect = json!({ "notebook_name": "messy", "notebook_path": path, "mode": "connect" });
        self.cost("use_notebook", connect).await;
        let outline = self.cost("read_notebook", whole("brief")).await;
        let brief = self.cost("read_notebook", whole("detailed")).await;
        let listed = self.agent.request("tools/list", json!({})).await;
        let list = Cost {
            bytes: listed["result"]["tools"].to_string().len(),
            images: 0,
        };
        vec![Some(outline), Some(brief), None, None, None, None, Some(list)]
    }

    async fn cost(&self, tool: &str, arguments: Value) -> Cost {
        let call = json!({ "name": tool, "arguments": arguments });
        let result = self.agent.request("tools/call", call).await["result"].take();
        let mut cost = Cost::default();
        cost.count(&result);
        cost
    }
}
