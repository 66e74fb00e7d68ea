//! The official Inspector's command line against the gateway, in both eras: what it can list it can
//! call, and it finds no fault with the schemas.

use serde_json::{Value, json};

use crate::support::{Gateway, TOKEN, lab, node::node};

const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

#[tokio::test]
async fn the_inspector_in_the_legacy_era() {
    inspect("legacy").await;
}

#[tokio::test]
async fn the_inspector_in_the_modern_era() {
    inspect("modern").await;
}

async fn inspect(era: &str) {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let inspector = Inspector::new(&gateway, era);

    // It exits with an error if a schema would not work everywhere.
    let listed = inspector.run(&["--method", "tools/list", "--strict"]).await;
    let tools = listed["tools"].as_array().expect("tools");
    assert!(tools.iter().any(|tool| tool["name"] == "create_notebook"), "{listed}");

    let path = folder.path("ä b.ipynb");
    let created = inspector.call("create_notebook", &json!({ "path": path })).await;
    assert_eq!(created["structuredContent"]["path"], path, "{created}");
    assert!(folder.has("ä b.ipynb"));
    let arguments = json!({ "path": folder.name });
    let listed = inspector.call("list_nbs", &arguments).await;
    assert_eq!(listed["structuredContent"]["notebooks"][0]["path"], path, "{listed}");
}

struct Inspector {
    url: String,
    era: String,
    /// It keeps a catalogue and logins at home, where a test has no business.
    home: tempfile::TempDir,
}

impl Inspector {
    fn new(gateway: &Gateway, era: &str) -> Self {
        Self {
            url: gateway.url("/mcp"),
            era: era.to_owned(),
            home: tempfile::tempdir().expect("a home"),
        }
    }

    async fn call(&self, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        self.run(&[
            "--method",
            "tools/call",
            "--tool-name",
            tool,
            "--tool-args-json",
            &arguments,
        ])
        .await
    }

    async fn run(&self, arguments: &[&str]) -> Value {
        let output = node(INSPECTOR)
            .args(["--cli", &self.url, "--transport", "http", "--protocol-era", &self.era])
            .args(["--format", "json", "--quiet", "--stored-auth-only"])
            .args(["--header", &format!("Authorization: Bearer {TOKEN}")])
            .args(arguments)
            .env("HOME", self.home.path())
            .output()
            .await
            .expect("node runs");
        let (said, failed) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{arguments:?}: {said}{failed}");
        let answer: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        answer["result"].clone()
    }
}
