//! The prompt `jupyter_cite`, and notebooks as resources by their names.

use serde_json::{Value, json};

use super::{OTHER, Scene, agent};
use crate::support::{Agent, Era, agent::ERAS};

async fn cite(agent: &Agent, arguments: Value) -> Result<String, String> {
    let params = json!({ "name": "jupyter_cite", "arguments": arguments });
    let answer = agent.request("prompts/get", params).await;
    match answer["result"]["messages"][0]["content"]["text"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(answer["error"]["message"].as_str().expect("a message").to_owned()),
    }
}

#[tokio::test]
async fn cells_are_cited() {
    for era in ERAS {
        let scene = Scene::set(era).await;
        scene.activate("other", &["in other"]).await;
        scene.activate("nb", &["a", "b", "c", "d", "e"]).await;
        let text = cite(&scene.agent, json!({ "prompt": "explain", "cell_indices": "0-2,4" }))
            .await
            .unwrap();
        assert!(
            text.starts_with(
                "USER Cite cells [0, 1, 2, 4] from notebook nb, here are the cells:\n=====Cell 0 | type: code"
            ),
            "{text}"
        );
        assert!(text.contains("=====\nc\n") && !text.contains("=====Cell 3"), "{text}");
        assert!(
            text.ends_with("=====End of Cited Cells=====\nUSER's Instruction are follow: explain"),
            "{text}"
        );
        let named = json!({ "prompt": "", "cell_indices": "0-", "notebook_name": "other" });
        let text = cite(&scene.agent, named).await.unwrap();
        assert!(
            text.contains("from notebook other") && text.contains("in other"),
            "{text}"
        );
        for (arguments, expected) in [
            (json!({ "prompt": "x" }), "cell_indices"),
            (json!({ "prompt": "x", "cell_indices": "" }), "name at least one cell"),
            (
                json!({ "prompt": "x", "cell_indices": "5" }),
                "5 is out of range; the notebook has 5 cells",
            ),
            (json!({ "prompt": "x", "cell_indices": "a" }), "\"a\" is no index"),
            (
                json!({ "prompt": "x", "cell_indices": "0", "notebook_name": "no" }),
                "\"no\" is not connected",
            ),
            (
                json!({ "prompt": "x", "cell_indices": "0", "cells": "0" }),
                "has no argument `cells`",
            ),
        ] {
            let error = cite(&scene.agent, arguments).await.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let completion = json!({
            "ref": { "type": "ref/prompt", "name": "jupyter_cite" },
            "argument": { "name": "notebook_name", "value": "o" },
        });
        let completed = scene.agent.request("completion/complete", completion).await;
        assert_eq!(
            completed["result"]["completion"]["values"],
            json!(["other"]),
            "{completed}"
        );
        let default = Agent::connect(&scene.gateway, era).await;
        let listed = default.request("prompts/list", json!({})).await.to_string();
        assert!(!listed.contains("jupyter_cite"), "{listed}");
    }
}

#[tokio::test]
async fn notebooks_are_resources_by_their_names() {
    for era in ERAS {
        let scene = Scene::set(era).await;
        scene.activate("my nb", &["print('hello')\nprint('you')"]).await;
        scene.outputs("execute_cell", json!({ "cell_index": 0 })).await;
        let notebook = scene.agent.read("notebook://my%20nb").await;
        assert_eq!(notebook["mimeType"], "application/x-ipynb+json");
        let content: Value = serde_json::from_str(notebook["text"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&content["nbformat"], content["cells"].as_array().unwrap().len()),
            (&json!(4), 1)
        );
        let id = content["cells"][0]["id"].as_str().unwrap();
        let address = format!("notebook://my%20nb/cells/{id}");
        let cell = scene.agent.read(&address).await;
        assert_eq!(cell["mimeType"], "application/json");
        let cell: Value = serde_json::from_str(cell["text"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&cell["id"], &cell["index"], &cell["cell_type"]),
            (&json!(id), &json!(0), &json!("code"))
        );
        assert_eq!(cell["source"], json!(["print('hello')\n", "print('you')"]));
        assert_eq!(cell["outputs"][0]["mimeType"], "text/plain");
        let output = cell["outputs"][0]["uri"].as_str().unwrap();
        assert_eq!(output, format!("{address}/outputs/0"));
        let output = scene.agent.read(output).await;
        assert_eq!(
            (&output["text"], &output["mimeType"]),
            (&json!("hello\nyou\n"), &json!("text/plain"))
        );

        // The gateway's own are as they were.
        assert_eq!(
            scene.agent.read("notebook://list").await["mimeType"],
            "application/json"
        );
        assert_eq!(
            scene.agent.read("notebook://current").await["mimeType"],
            "text/markdown"
        );
        for unknown in [
            "notebook://no-such".to_owned(),
            format!("{address}/outputs/1"),
            format!("{address}/outputs/x"),
            "notebook://my%20nb/cells/no-such".to_owned(),
        ] {
            scene.agent.cannot_read(&unknown).await;
        }
        let bob = agent(&scene.gateway, "", OTHER, era).await;
        bob.cannot_read("notebook://my%20nb").await;
        let default = Agent::connect(&scene.gateway, era).await;
        default.cannot_read("notebook://my%20nb").await;
        for (agent, expected) in [(&scene.agent, true), (&default, false)] {
            let templates = agent.request("resources/templates/list", json!({})).await.to_string();
            let has = templates.contains("\"notebook://{name}/cells/{cell_id}/outputs/{index}\"");
            assert_eq!(has, expected, "{templates}");
        }
    }
}

/// A room that was closed meanwhile is opened for who reads the notebook by its name.
#[tokio::test]
async fn a_notebook_that_was_closed_is_opened_to_be_read() {
    let config = format!(
        "[sessions]\nidle_timeout = \"1s\"\n{}{}",
        crate::support::gateway::lab_server("lab"),
        crate::support::gateway::everything()
    );
    let scene = Scene::configured(&config, Era::Modern).await;
    scene.activate("nb", &["x = 1"]).await;
    crate::support::eventually("the room to be closed", async || {
        let list = scene.agent.read("notebook://list").await;
        (list["text"] == "[]").then_some(())
    })
    .await;
    let notebook = scene.agent.read("notebook://nb").await;
    assert!(notebook["text"].as_str().unwrap().contains("x = 1"), "{notebook}");
}
