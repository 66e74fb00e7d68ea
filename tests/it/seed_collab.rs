//! The document on jupyter-collaboration-mcp, from its top to its bottom as far as notebooks and documents go, on a real
//! JupyterLab with a person in the same rooms; and the loop of an agent that was written for that server.

mod cells;
mod documents;
mod execution;
mod notebooks;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN,
    agent::ERAS,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
    scene::Scene,
};

/// The tools of the document that are about notebooks and documents, and what they tell a model to call, in the order in
/// which clients see them.
const TOOLS: [&str; 16] = [
    "get_execution",
    "cancel_execution",
    "list_documents",
    "list_notebooks",
    "get_notebook",
    "create_notebook_session",
    "batch_update_notebook_cells",
    "batch_insert_notebook_cells",
    "batch_delete_notebook_cells",
    "execute_notebook_cell",
    "batch_execute_notebook_cells",
    "get_document",
    "create_document_session",
    "batch_update_document",
    "batch_insert_text",
    "batch_delete_text",
];

/// An agent that knows the words of this document.
async fn connect(gateway: &Gateway, era: Era) -> Agent {
    Agent::connect_to(&gateway.url("/mcp?toolsets=collab"), TOKEN, era).await
}

impl Agent {
    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments).await;
        assert!(!answer.is_error, "{tool}: {}", answer.text());
        answer.structured
    }

    async fn refused(&self, tool: &str, arguments: Value, names: &[&str]) {
        let why = self.call(tool, arguments.clone()).await.error();
        for name in names {
            assert!(why.contains(name), "{tool} {arguments}: {name:?} is not in {why:?}");
        }
    }
}

/// A notebook that a person has open, and such an agent that works in it.
async fn shared(era: Era, sources: &[&str]) -> Scene {
    shared_file(era, "shared.ipynb", &notebook(sources)).await
}

async fn shared_file(era: Era, name: &str, content: &str) -> Scene {
    let scene = Scene::of(name, content).era(era).selecting("?toolsets=collab");
    scene.set().await
}

impl Scene {
    fn at(&self, more: Value) -> Value {
        merged(json!({ "path": self.path }), more)
    }

    async fn ok(&self, tool: &str, more: Value) -> Value {
        self.agent.ok(tool, self.at(more)).await
    }

    /// Calls a tool that fails, and returns its structured answer.
    async fn fails(&self, tool: &str, more: Value) -> Value {
        let answer = self.agent.call(tool, self.at(more)).await;
        assert!(answer.is_error, "{tool}: {}", answer.text());
        answer.structured
    }

    async fn refused(&self, tool: &str, more: Value, names: &[&str]) {
        self.agent.refused(tool, self.at(more), names).await;
    }

    async fn sees_text(&self, text: &str) {
        self.human.wait_for(text, |human| human.text() == text).await;
    }

    fn ids(&self) -> Vec<String> {
        self.human.cells().into_iter().map(|cell| cell.id).collect()
    }
}

fn paths(list: &Value) -> Vec<&str> {
    let entries = list.as_array().expect("a list");
    entries
        .iter()
        .map(|entry| entry["path"].as_str().expect("a path"))
        .collect()
}

fn says(answer: &Value, what: &str) {
    let description = answer["description"].as_str().expect("a description");
    assert!(description.contains(what), "{what:?} is not in {description:?}");
}

#[tokio::test]
async fn the_vocabulary_is_offered_to_those_who_ask_for_it() {
    let gateway = Gateway::start().await;
    let asked = connect(&gateway, Era::Legacy).await;
    assert_eq!(asked.tools().await, TOOLS);
    let default = Agent::connect(&gateway, Era::Modern).await.tools().await;
    let shared: Vec<_> = TOOLS
        .iter()
        .filter(|name| default.iter().any(|tool| tool == *name))
        .collect();
    assert_eq!(shared, [&"get_execution", &"cancel_execution", &"list_documents"]);
    let all = Agent::connect_to(&gateway.url("/mcp?toolsets=all"), TOKEN, Era::Modern)
        .await
        .tools()
        .await;
    assert!(
        TOOLS
            .iter()
            .all(|name| all.iter().filter(|tool| tool == name).count() == 1),
        "{all:?}"
    );
    let hidden = Agent::connect(&gateway, Era::Modern)
        .await
        .call("get_notebook", json!({ "path": "a.ipynb" }))
        .await;
    assert!(hidden.error().contains("?toolsets=collab"));
}

#[tokio::test]
async fn permissions_hold_in_this_vocabulary_too() {
    let token = "[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"writes-only-words\"\npermissions = [\"read\", \"write\"]\n";
    let gateway = Gateway::configured(&format!("{}{}{token}", lab_server("lab"), everything())).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["x = 1"]));
    let bob = Agent::connect_to(&gateway.url("/mcp?toolsets=collab"), "writes-only-words", Era::Modern).await;
    assert!(!bob.tools().await.contains(&"execute_notebook_cell".to_owned()));
    let update = json!({ "path": path, "start_index": 0, "updates": [{ "content": "x = 2" }] });
    let updated = bob.call("batch_update_notebook_cells", update.clone()).await.ok();
    assert_eq!(
        updated["executed"], false,
        "who may not execute and does not ask for it only edits"
    );
    says(&updated, "not executed, since the permission `execute` is missing");
    let asked = bob
        .call("batch_update_notebook_cells", merged(update, json!({ "exec": true })))
        .await
        .error();
    assert!(asked.contains("`execute`") && asked.contains("exec=false"), "{asked}");
    let asked = json!({ "path": path, "cell_ids": ["c0"], "exec": true });
    let asked = bob.call("batch_delete_notebook_cells", asked).await.error();
    assert!(asked.contains("`execute`") && asked.contains("exec=false"), "{asked}");
    let deleted = bob
        .call(
            "batch_delete_notebook_cells",
            json!({ "path": path, "cell_ids": ["c0"] }),
        )
        .await
        .ok();
    assert_eq!(
        (&deleted["executed"], &deleted["results"][0]["cell_id"]),
        (&json!(false), &json!("c0"))
    );
    says(&deleted, "not executed, since the permission `execute` is missing");
    let reader = Agent::connect_to(&gateway.url("/mcp?toolsets=collab&readonly=true"), TOKEN, Era::Legacy).await;
    let reading = [
        "get_execution",
        "list_documents",
        "list_notebooks",
        "get_notebook",
        "create_notebook_session",
        "get_document",
        "create_document_session",
    ];
    assert_eq!(reader.tools().await, reading);
}

#[tokio::test]
async fn a_loop_written_for_the_older_server_runs_unchanged() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let (agent, folder) = (connect(&gateway, era).await, lab().folder());
        let path = folder.write("loop.ipynb", &notebook(&["total = 40"]));
        let person = Human::join(&path).await;
        let at = |more: Value| merged(json!({ "path": path }), more);

        let listed = agent
            .ok("list_notebooks", json!({ "path_prefix": format!("/{}/", folder.name) }))
            .await;
        assert_eq!(paths(&listed["notebooks"]), [path.as_str()]);
        agent.ok("create_notebook_session", at(json!({}))).await;
        let read = agent.ok("get_notebook", at(json!({}))).await;
        let first = read["content"]["cells"][0]["id"].clone();
        agent
            .ok("execute_notebook_cell", at(json!({ "cell_id": first, "timeout": 30 })))
            .await;
        let cells = json!({ "start_position": 1, "cells": [{ "content": "total + 2" }, { "content": "# Sum", "cell_type": "markdown" }] });
        let inserted = agent.ok("batch_insert_notebook_cells", at(cells)).await;
        assert_eq!(
            inserted["execution_results"][0]["outputs"][0]["data"]["text/plain"], "42",
            "{era:?}"
        );
        let sum = &inserted["results"][0]["cell_id"];
        let overwritten = json!({ "cell_ids": [sum], "updates": [{ "content": "total * 2", "cell_type": "code" }] });
        let overwritten = agent.ok("batch_update_notebook_cells", at(overwritten)).await;
        assert_eq!(
            overwritten["execution_results"][0]["outputs"][0]["data"]["text/plain"],
            "80"
        );
        person
            .wait_for("the person sees it", |person| {
                person.cell(1)["outputs"][0]["data"]["text/plain"] == "80"
            })
            .await;
        agent
            .ok(
                "batch_delete_notebook_cells",
                at(json!({ "start_index": 1, "end_index": 2 })),
            )
            .await;
        person
            .wait_for("they are gone", |person| person.sources() == ["total = 40"])
            .await;
        person.leave().await;
    }
}

fn merged(mut first: Value, more: Value) -> Value {
    let members = first.as_object_mut().expect("members");
    members.extend(more.as_object().expect("members").clone());
    first
}
