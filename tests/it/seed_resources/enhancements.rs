//! "Future Enhancements" of the document on notebook resources, which are here.

use jupyter_mcp_gateway::srcbook::parse;
use serde_json::json;

use super::{OTHER, Planned, is_timestamp, not_found};
use crate::support::{Agent, notebook::notebook};

/// "Future Enhancements", templates: to read, and to make notebooks from.
pub(super) async fn templates(scene: &Planned) {
    let uris = [
        "blank",
        "data_analysis",
        "machine_learning",
        "tree_of_thought",
        "beam_search",
        "mcts",
    ];
    let resources = scene.agent.resources().await;
    for name in uris {
        let uri = format!("notebook://templates/{name}");
        assert!(
            resources.iter().any(|resource| resource["uri"] == uri),
            "{uri} is listed"
        );
        let contents = scene.agent.read(&uri).await;
        let book = parse(contents["text"].as_str().expect("text"));
        assert_eq!(
            (&contents["mimeType"], &contents["_meta"]["pattern"]),
            (&json!("text/markdown"), &json!(name))
        );
        let path = scene.folder.path(&format!("from {name}.ipynb"));
        let arguments = json!({ "path": path, "template": name });
        scene.agent.call("create_notebook", arguments).await.ok();
        let made = scene
            .agent
            .call("read_nb_cells", json!({ "path": path, "max_cell_data": 100_000 }))
            .await
            .ok();
        let made: Vec<&str> = made["cells"]
            .as_array()
            .expect("cells")
            .iter()
            .filter_map(|cell| cell["source"].as_str())
            .collect();
        let sources: Vec<&str> = book.cells.iter().map(|cell| cell.source.as_str()).collect();
        assert_eq!(made, sources, "{name}");
    }
    let refused = scene
        .agent
        .call(
            "create_notebook",
            json!({ "path": scene.folder.path("x.ipynb"), "template": "poem" }),
        )
        .await
        .error();
    assert!(
        refused.contains("`template`") && refused.contains("tree_of_thought"),
        "{refused}"
    );
    assert!(!scene.folder.has("x.ipynb"));
    let shapes = scene.agent.request("resources/templates/list", json!({})).await;
    let shapes = shapes["result"]["resourceTemplates"]
        .as_array()
        .expect("templates")
        .clone();
    for expected in [
        "notebook://{session_id}/{notebook_id}",
        "notebook://{session_id}/{notebook_id}/srcmd",
        "notebook://{session_id}/{notebook_id}/json",
        "notebook://{session_id}/{notebook_id}/cells",
        "notebook://{session_id}/{notebook_id}/cells/{cell_id}",
        "notebook://{session_id}/{notebook_id}/executions/{execution_id}",
        "notebook://templates/{name}",
        "file:///notebooks/{session_id}/notebook.src.md",
    ] {
        assert!(
            shapes.iter().any(|shape| shape["uriTemplate"] == expected),
            "{expected}"
        );
    }
}

/// "Virtual Filesystem URIs": the notebook and its cells as files.
pub(super) async fn virtual_files(scene: &Planned) {
    let base = format!("file:///notebooks/{}", scene.session);
    let whole = scene.agent.read(&format!("{base}/notebook.src.md")).await;
    assert_eq!(whole["text"], scene.agent.read(&scene.uri).await["text"]);
    assert_eq!(whole["_meta"]["fileUri"], whole["uri"]);
    let ipynb = scene.agent.read(&format!("{base}/notebook.ipynb")).await;
    assert_eq!(
        ipynb["text"],
        scene.agent.read(&format!("{}/json", scene.uri)).await["text"]
    );
    let cell = &scene.cells[1];
    let by_id = format!("{base}/cells/{}.py", cell["id"].as_str().expect("an id"));
    for uri in [by_id, format!("{base}/cells/tree_node.py")] {
        let contents = scene.agent.read(&uri).await;
        assert_eq!(
            (&contents["text"], &contents["mimeType"]),
            (&cell["source"], &json!("text/x-python"))
        );
    }
}

/// "Execution Results as Resources": those of the principal itself, in the notebook they ran in.
pub(super) async fn executions(scene: &Planned) {
    let path = scene
        .folder
        .write("run.ipynb", &notebook(&["print('\\x1b[31mhi')", "1 / 0"]));
    let ranges = json!([{ "start": 0, "end": 2 }]);
    let ran = scene
        .agent
        .call("execute_nb_cells", json!({ "path": path, "ranges": ranges }))
        .await;
    let id = ran.structured["execution_id"]
        .as_str()
        .expect("an execution")
        .to_owned();
    let current = scene.agent.read("notebook://current").await["_meta"].clone();
    let text = |key: &str| current[key].as_str().expect("an id").to_owned();
    assert_eq!(
        (current["path"].as_str(), &current["hasErrors"]),
        (Some(path.as_str()), &json!(true))
    );
    assert!(is_timestamp(&current["lastExecuted"]), "{current}");
    let base = format!("notebook://{}/{}", text("sessionId"), text("notebookId"));
    let uri = format!("{base}/executions/{id}");
    let contents = scene.agent.read(&uri).await;
    assert_eq!(
        (&contents["_meta"]["executionId"], &contents["_meta"]["status"]),
        (&json!(id), &json!("failed"))
    );
    let results = scene.json(&uri).await;
    assert_eq!(results["cells"][0]["outputs"][0]["text"], "hi\n", "{results}");
    assert_eq!(
        results["cells"][1]["outputs"][0]["ename"], "ZeroDivisionError",
        "{results}"
    );
    let stranger = Agent::with_token(&scene.gateway, OTHER, scene.era).await;
    for (agent, uri) in [
        (&scene.agent, format!("{base}/executions/exec-789")),
        (&scene.agent, format!("{}/executions/{id}", scene.uri)),
        (&stranger, uri),
    ] {
        let (code, message) = agent.cannot_read(&uri).await;
        assert_eq!(code, not_found(scene.era));
        assert!(message.starts_with("Execution not found"), "{message}");
    }
    scene
        .agent
        .call("read_nb_cells", json!({ "path": scene.path }))
        .await
        .ok();
}
