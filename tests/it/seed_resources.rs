//! The document on notebook resources, from its top to its bottom, in both eras on a real JupyterLab.

mod enhancements;

use jupyter_mcp_gateway::srcbook::parse;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, Watcher,
    agent::ERAS,
    gateway::{everything, lab_server},
    lab,
    lab::Folder,
};

const OTHER: &str = "token-of-somebody-else";

/// A notebook that an agent has made from a template and opened.
struct Planned {
    gateway: Gateway,
    agent: Agent,
    era: Era,
    folder: Folder,
    path: String,
    session: String,
    notebook: String,
    uri: String,
    cells: Vec<Value>,
}

impl Planned {
    async fn set(era: Era) -> Self {
        let other = format!("[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"{OTHER}\"\n");
        let gateway = Gateway::configured(&format!("{}{}{other}", lab_server("lab"), everything())).await;
        let folder = lab().folder();
        let agent = Agent::connect(&gateway, era).await;
        let path = folder.path("plan ü.ipynb");
        let created = agent
            .call(
                "create_notebook",
                json!({ "path": path, "template": "tree_of_thought" }),
            )
            .await;
        created.ok();
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        let sessions = agent
            .call("query_nb_sessions", json!({ "root_path": folder.name }))
            .await
            .ok();
        let text = |key: &str| sessions["sessions"][0][key].as_str().expect("an id").to_owned();
        let (session, notebook) = (text("session_id"), text("file_id"));
        Self {
            uri: format!("notebook://{session}/{notebook}"),
            cells: read["cells"].as_array().expect("cells").clone(),
            gateway,
            agent,
            era,
            folder,
            path,
            session,
            notebook,
        }
    }

    async fn json(&self, uri: &str) -> Value {
        let contents = self.agent.read(uri).await;
        assert_eq!(contents["mimeType"], "application/json");
        serde_json::from_str(contents["text"].as_str().expect("text")).expect("json")
    }
}

#[tokio::test]
async fn the_document_in_the_legacy_era() {
    walk(Era::Legacy).await;
}

#[tokio::test]
async fn the_document_in_the_modern_era() {
    walk(Era::Modern).await;
}

async fn walk(era: Era) {
    let scene = Planned::set(era).await;
    uri_scheme(&scene).await;
    the_list(&scene).await;
    a_notebook(&scene).await;
    its_cells(&scene).await;
    a_single_cell(&scene).await;
    registration_and_discovery(&scene).await;
    reading(&scene).await;
    use_cases(&scene).await;
    security(&scene).await;
    enhancements::templates(&scene).await;
    enhancements::virtual_files(&scene).await;
    enhancements::executions(&scene).await;
    metadata(&scene).await;
    errors(&scene).await;
    the_end(scene).await;
}

/// "URI Scheme": the default is Srcbook markdown, each format has its address, and so has the current one.
async fn uri_scheme(scene: &Planned) {
    let default = scene.agent.read(&scene.uri).await;
    let srcmd = scene.agent.read(&format!("{}/srcmd", scene.uri)).await;
    assert_eq!(
        (&default["text"], &default["mimeType"]),
        (&srcmd["text"], &json!("text/markdown"))
    );
    for format in ["json", "cells"] {
        assert_eq!(
            scene.agent.read(&format!("{}/{format}", scene.uri)).await["mimeType"],
            "application/json"
        );
    }
    assert_eq!(scene.agent.read("notebook://current").await["text"], default["text"]);
}

/// "1. Notebook List Resource".
async fn the_list(scene: &Planned) {
    let contents = scene.agent.read("notebook://list").await;
    assert_eq!(contents["_meta"]["name"], "Active Notebooks");
    assert_eq!(
        contents["_meta"]["description"],
        "List of all active notebooks in the system"
    );
    let list = scene.json("notebook://list").await;
    let entry = list
        .as_array()
        .expect("a list")
        .iter()
        .find(|entry| entry["id"] == scene.notebook);
    let entry = entry.unwrap_or_else(|| panic!("{list}"));
    assert_eq!(entry["sessionId"], scene.session);
    assert_eq!(entry["cellCount"], scene.cells.len());
    assert_eq!(entry["pattern"], "tree_of_thought");
    assert!(is_timestamp(&entry["createdAt"]), "{entry}");
}

/// "2. Individual Notebook Resource": content that parses back into the same cells, and what is told beside it.
async fn a_notebook(scene: &Planned) {
    let contents = scene.agent.read(&scene.uri).await;
    let text = contents["text"].as_str().expect("text");
    assert!(
        text.contains("# Tree of Thought Reasoning\n\n## Problem Statement\n"),
        "{text}"
    );
    let back = parse(text);
    assert_eq!(
        (back.language.as_str(), back.cells.len()),
        ("python", scene.cells.len())
    );
    for (parsed, cell) in back.cells.iter().zip(&scene.cells) {
        assert_eq!(parsed.id.as_deref(), cell["id"].as_str());
        assert_eq!(parsed.kind.as_str(), cell["cell_type"]);
        assert_eq!(parsed.source, cell["source"].as_str().expect("a source"));
        assert_eq!(json!(parsed.metadata), cell["metadata"]);
    }
    let metadata = &contents["_meta"];
    assert!(
        metadata["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("Tree of Thought Notebook"))
    );
    assert!(
        metadata["description"]
            .as_str()
            .is_some_and(|text| text.contains("tree_of_thought"))
    );
    assert_eq!(metadata["sessionId"], scene.session);
    assert_eq!(metadata["notebookId"], scene.notebook);
    assert_eq!(metadata["pattern"], "tree_of_thought");
    assert_eq!(metadata["cellCount"], scene.cells.len());
    assert!(
        is_timestamp(&metadata["createdAt"]) && is_timestamp(&metadata["lastModified"]),
        "{metadata}"
    );
}

/// "3. Notebook Cells Resource".
async fn its_cells(scene: &Planned) {
    let uri = format!("{}/cells", scene.uri);
    let contents = scene.agent.read(&uri).await;
    assert_eq!(contents["_meta"]["name"], "Notebook Cells");
    assert_eq!(contents["_meta"]["description"], "Individual cells from the notebook");
    let cells = scene.json(&uri).await;
    let cells = cells.as_array().expect("cells");
    assert_eq!(cells.len(), scene.cells.len());
    for (shown, cell) in cells.iter().zip(&scene.cells) {
        assert_eq!(
            (&shown["id"], &shown["type"], &shown["source"]),
            (&cell["id"], &cell["cell_type"], &cell["source"])
        );
    }
}

/// "4. Single Cell Resource".
async fn a_single_cell(scene: &Planned) {
    let class = scene
        .cells
        .iter()
        .find(|cell| cell["metadata"]["filename"] == "tree_node.py");
    let class = class.expect("the cell of the class");
    let uri = format!("{}/cells/{}", scene.uri, class["id"].as_str().expect("an id"));
    let contents = scene.agent.read(&uri).await;
    assert_eq!(
        (&contents["text"], &contents["mimeType"]),
        (&class["source"], &json!("text/x-python"))
    );
    assert!(
        contents["text"]
            .as_str()
            .is_some_and(|text| text.contains("class TreeNode"))
    );
    let metadata = &contents["_meta"];
    assert!(
        metadata["name"].as_str().is_some_and(|name| name.starts_with("Cell: ")),
        "{metadata}"
    );
    assert!(
        metadata["description"]
            .as_str()
            .is_some_and(|text| text.starts_with("code cell 2 of "))
    );
    let expected = json!({
        "cellId": class["id"], "cellType": "code", "language": "python",
        "filename": "tree_node.py", "status": "idle", "hasOutputs": false,
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&metadata[key], value, "{key}");
    }
    let markdown = format!("{}/cells/{}", scene.uri, scene.cells[0]["id"].as_str().expect("an id"));
    assert_eq!(scene.agent.read(&markdown).await["mimeType"], "text/markdown");
}

/// "Resource Registration" and "Resource Discovery".
async fn registration_and_discovery(scene: &Planned) {
    let resources = scene.agent.resources().await;
    let of = |uri: &str| resources.iter().find(|resource| resource["uri"] == uri);
    let list = of("notebook://list").expect("the list");
    assert_eq!(
        (&list["name"], &list["mimeType"]),
        (&json!("Active Notebooks"), &json!("application/json"))
    );
    assert!(
        list["description"]
            .as_str()
            .is_some_and(|text| text.ends_with("active notebooks"))
    );
    let notebook = of(&scene.uri).expect("the notebook");
    assert_eq!(notebook["mimeType"], "text/markdown");
    assert!(notebook["name"].as_str().is_some_and(|name| name.contains("Notebook")));
    assert!(
        notebook["description"]
            .as_str()
            .is_some_and(|text| text.contains(&scene.session))
    );
    assert_eq!(notebook["_meta"]["notebookId"], scene.notebook);
    let cells = of(&format!("{}/cells", scene.uri)).expect("its cells");
    assert_eq!(cells["description"], format!("{} cells", scene.cells.len()));
    assert_eq!(cells["mimeType"], "application/json");
    assert!(of("notebook://current").is_some());
    let by_scheme = resources.iter().filter(|resource| {
        resource["uri"]
            .as_str()
            .is_some_and(|uri| uri.starts_with("notebook://"))
    });
    assert!(by_scheme.count() >= 4);
}

/// "Resource Reading": the JSON is the notebook as its file would be.
async fn reading(scene: &Planned) {
    let notebook = scene.json(&format!("{}/json", scene.uri)).await;
    assert_eq!(
        (&notebook["nbformat"], &notebook["nbformat_minor"]),
        (&json!(4), &json!(5))
    );
    let sources = |cells: &Value| -> Vec<Value> {
        cells
            .as_array()
            .expect("cells")
            .iter()
            .map(|cell| cell["source"].clone())
            .collect()
    };
    assert_eq!(sources(&notebook["cells"]), sources(&json!(scene.cells)));
    assert_eq!(notebook["metadata"]["srcbook"]["pattern"], "tree_of_thought");
}

/// "Use Cases": inspecting everything there is, exporting the current one, one cell, and polling the list.
async fn use_cases(scene: &Planned) {
    for resource in scene.agent.resources().await {
        let contents = scene.agent.read(resource["uri"].as_str().expect("a uri")).await;
        assert_eq!(contents["mimeType"], resource["mimeType"], "{resource}");
        assert!(contents["text"].is_string(), "{resource}");
    }
    let other = scene.folder.notebook("other.ipynb");
    scene.agent.call("read_nb_cells", json!({ "path": other })).await.ok();
    let current = scene.agent.read("notebook://current").await;
    assert_eq!(current["_meta"]["path"], other, "what was used last is the current one");
    assert!(scene.json("notebook://list").await.to_string().contains(&other));
    scene.agent.call("end_nb_session", json!({ "path": other })).await.ok();
    assert!(!scene.json("notebook://list").await.to_string().contains(&other));
    scene
        .agent
        .call("read_nb_cells", json!({ "path": scene.path }))
        .await
        .ok();
    assert_eq!(
        scene.agent.read("notebook://current").await["_meta"]["path"],
        scene.path
    );
}

/// "Security Considerations": a session belongs to its notebook, nothing is run or changed by reading, and
/// outputs are made harmless.
async fn security(scene: &Planned) {
    let kernel = scene
        .agent
        .call("get_nb_stat", json!({ "path": scene.path }))
        .await
        .ok();
    assert!(kernel["kernel"].is_null(), "reading has started no kernel: {kernel}");
    let (code, _) = scene
        .agent
        .cannot_read(&format!("notebook://{}/{}", scene.notebook, scene.session))
        .await;
    assert_eq!(code, not_found(scene.era));
    let output = json!({
        "output_type": "display_data", "metadata": {},
        "data": { "text/html": "<img src=x onerror=alert(1)>", "text/plain": "\u{1b}[31mred\u{1b}[0m" },
    });
    let cell = json!({ "id": "out", "cell_type": "code", "source": "x", "metadata": {}, "outputs": [output], "execution_count": 1 });
    let notebook = json!({ "cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    let path = scene.folder.write("outputs.ipynb", &notebook.to_string());
    scene.agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let current = scene.agent.read("notebook://current").await;
    let base = format!(
        "notebook://{}/{}",
        current["_meta"]["sessionId"].as_str().expect("an id"),
        current["_meta"]["notebookId"].as_str().expect("an id")
    );
    for format in ["cells", "json"] {
        let text = scene.agent.read(&format!("{base}/{format}")).await["text"].to_string();
        assert!(
            !text.contains("onerror") && !text.contains("[31m") && text.contains("red"),
            "{text}"
        );
    }
    let cell = scene.agent.read(&format!("{base}/cells/out")).await;
    assert_eq!(cell["_meta"]["hasOutputs"], true);
    scene
        .agent
        .call("read_nb_cells", json!({ "path": scene.path }))
        .await
        .ok();
}

/// "Metadata Schema", after an edit of a person: it follows the live notebook.
async fn metadata(scene: &Planned) {
    let before = scene.agent.read(&scene.uri).await["_meta"].clone();
    assert_eq!(before["hasErrors"], false);
    let mut watcher = Watcher::start(&scene.agent, scene.era, &[&scene.uri]).await;
    let human = Human::join(&scene.path.replace(' ', "%20")).await;
    human.insert_cell(0, "by-hand", "words of a person");
    watcher.updated(&scene.uri).await;
    let after = scene.agent.read(&scene.uri).await;
    assert_eq!(after["_meta"]["cellCount"], scene.cells.len() + 1);
    assert_ne!(after["_meta"]["lastModified"], before["lastModified"]);
    assert_eq!(after["_meta"]["createdAt"], before["createdAt"]);
    assert_eq!(
        parse(after["text"].as_str().expect("text")).cells[0].source,
        "words of a person"
    );
    human.leave().await;
}

/// "Error Handling".
async fn errors(scene: &Planned) {
    let missing = not_found(scene.era);
    let invalid = -32602;
    for (uri, code, words) in [
        ("http://example.org".to_owned(), invalid, "Unknown resource"),
        ("notebook://nonsense".to_owned(), missing, "Unknown resource"),
        (
            "notebook://LIST".to_owned(),
            missing,
            "Unknown resource: notebook://LIST; there are notebook://list, ",
        ),
        ("notebook://current/json".to_owned(), missing, "Unknown resource"),
        (format!("{}/pdf", scene.uri), invalid, "Unknown format: pdf"),
        (
            format!("notebook://{}/other", scene.session),
            missing,
            "Notebook not found",
        ),
        (
            format!("notebook://other/{}", scene.notebook),
            missing,
            "Notebook not found",
        ),
        (format!("{}/cells/none", scene.uri), missing, "Cell not found"),
        ("notebook://templates/poem".to_owned(), missing, "Template not found"),
        ("file:///etc/passwd".to_owned(), invalid, "Unknown resource"),
    ] {
        let (got, message) = scene.agent.cannot_read(&uri).await;
        assert_eq!(got, code, "{uri}: {message}");
        assert!(message.starts_with(words), "{uri}: {message}");
    }
    let write = scene
        .agent
        .request("resources/write", json!({ "uri": scene.uri, "text": "x" }))
        .await;
    assert_eq!(write["error"]["code"], -32601, "resources are read-only");
    let fresh = Gateway::configured(&format!(
        "{}[[tenants]]\nname = \"t\"\n[[auth.tokens]]\nname = \"new\"\ntenant = \"t\"\ntoken = \"somebody-new\"\n",
        lab_server("lab")
    ))
    .await;
    let agent = Agent::with_token(&fresh, "somebody-new", scene.era).await;
    let (code, message) = agent.cannot_read("notebook://current").await;
    assert_eq!(code, missing);
    assert!(
        message.starts_with("No notebook for current session; reading one"),
        "{message}"
    );
}

/// "Ephemeral Nature": what is closed is gone.
async fn the_end(scene: Planned) {
    let mut watcher = Watcher::start(&scene.agent, scene.era, &[]).await;
    scene
        .agent
        .call("end_nb_session", json!({ "path": scene.path }))
        .await
        .ok();
    watcher.list_changed().await;
    for uri in [
        scene.uri.clone(),
        format!("file:///notebooks/{}/notebook.src.md", scene.session),
    ] {
        assert_eq!(scene.agent.cannot_read(&uri).await.0, not_found(scene.era));
    }
    let resources = scene.agent.resources().await;
    assert!(!resources.iter().any(|resource| resource["uri"] == scene.uri));
    drop(scene.gateway);
}

#[tokio::test]
async fn both_eras_declare_what_they_have() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let capabilities = agent.introduction().await["capabilities"].take();
        assert_eq!(
            capabilities["resources"],
            json!({ "subscribe": true, "listChanged": true }),
            "{era:?}"
        );
        assert!(
            capabilities["prompts"].is_object() && capabilities["completions"].is_object(),
            "{capabilities}"
        );
        assert!(capabilities["prompts"]["listChanged"].is_null(), "prompts never change");
    }
}

fn not_found(era: Era) -> i64 {
    match era {
        Era::Legacy => -32002,
        Era::Modern => -32602,
    }
}

fn is_timestamp(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.len() >= 20 && text.contains('T') && text.ends_with('Z'))
}
