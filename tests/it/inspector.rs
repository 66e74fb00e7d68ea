//! The official Inspector's command line against the gateway, in both eras: what it can list it can
//! call, and it finds no fault with the schemas.

use serde_json::{Value, json};

use crate::support::{Gateway, TOKEN, lab, node::node};

const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

const CURRENT: &str = "notebook://current";

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

    // What is open can be browsed, with prompts for what to do with it.
    inspector.call("read_nb_cells", &json!({ "path": path })).await;
    let listed = inspector.run(&["--method", "resources/list"]).await;
    let resources = listed["resources"].as_array().expect("resources");
    let notebook = resources
        .iter()
        .find(|resource| resource["_meta"]["path"] == path && resource["uri"] != CURRENT);
    let uri = notebook
        .and_then(|notebook| notebook["uri"].as_str())
        .expect("the notebook");
    for uri in [uri, CURRENT] {
        let read = inspector.run(&["--method", "resources/read", "--uri", uri]).await;
        assert_eq!(read["contents"][0]["mimeType"], "text/markdown", "{read}");
    }
    let shapes = inspector.run(&["--method", "resources/templates/list"]).await;
    assert!(
        shapes["resourceTemplates"]
            .as_array()
            .is_some_and(|shapes| shapes.len() >= 8)
    );
    let argument = format!("path={path}");
    let told = inspector
        .run(&[
            "--method",
            "prompts/get",
            "--prompt-name",
            "explain_notebook",
            "--prompt-args",
            &argument,
        ])
        .await;
    assert!(
        told["messages"][0]["content"]["text"]
            .as_str()
            .is_some_and(|text| text.contains(&path)),
        "{told}"
    );
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
