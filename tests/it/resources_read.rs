//! Reading notebooks that are not simple: cells with the same name, renamed ones, and runs.

use jupyter_mcp_gateway::srcbook::{parse, templates};
use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, agent::ERAS, lab, notebook::notebook};

/// Opens a notebook and tells what its resource says of it.
async fn opened(agent: &Agent, path: &str) -> Value {
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    agent.read("notebook://current").await["_meta"].clone()
}

fn uri(metadata: &Value) -> String {
    let text = |key: &str| metadata[key].as_str().expect("an id").to_owned();
    format!("notebook://{}/{}", text("sessionId"), text("notebookId"))
}

#[tokio::test]
async fn cells_of_one_name_are_different_files() {
    let cell = |id: &str, source: &str| json!({ "id": id, "cell_type": "code", "source": source, "metadata": { "filename": "a.py" }, "outputs": [], "execution_count": null });
    let cells = [cell("c0", "zero"), cell("c1", "one")];
    let notebook = json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    let gateway = Gateway::start().await;
    let path = lab().folder().write("a.ipynb", &notebook.to_string());
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let uri = uri(&opened(&agent, &path).await);
    for (id, source, name) in [("c0", "zero", "a.py"), ("c1", "one", "c1.py")] {
        let cell = agent.read(&format!("{uri}/cells/{id}")).await;
        assert_eq!(cell["_meta"]["filename"], name);
        let file = agent.read(cell["_meta"]["fileUri"].as_str().expect("a file")).await;
        assert_eq!((&file["text"], &file["_meta"]["cellId"]), (&json!(source), &json!(id)));
    }
    let text = agent.read(&uri).await["text"].as_str().expect("text").to_owned();
    assert!(
        text.contains("###### a.py\n") && text.contains("###### c1.py\n"),
        "{text}"
    );
    let names: Vec<_> = parse(&text)
        .cells
        .into_iter()
        .map(|cell| cell.metadata["filename"].clone())
        .collect();
    assert_eq!(names, ["a.py", "a.py"], "it parses back into what it was");
}

#[tokio::test]
async fn executions_follow_a_renamed_notebook() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let (old, new) = (
        folder.write("old.ipynb", &notebook(&["print('hi')"])),
        folder.path("new.ipynb"),
    );
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let ranges = json!([{ "start": 0 }]);
    let ran = agent
        .call("execute_nb_cells", json!({ "path": old, "ranges": ranges }))
        .await
        .ok();
    let before = opened(&agent, &old).await;
    let execution = format!(
        "{}/executions/{}",
        uri(&before),
        ran["execution_id"].as_str().expect("an id")
    );
    agent.read(&execution).await;
    let shape =
        json!({ "type": "ref/resource", "uri": "notebook://{session_id}/{notebook_id}/executions/{execution_id}" });
    let known = json!({ "session_id": before["sessionId"], "notebook_id": before["notebookId"] });
    let completed = agent.complete(shape, "execution_id", "", known).await;
    assert_eq!(json!(completed), json!([ran["execution_id"]]));
    let rename = json!({ "path": old, "newPath": new });
    agent.call("rename_document", rename).await.ok();
    let text = agent.read(&execution).await["text"].to_string();
    assert!(text.contains("hi"), "{text}");
    let after = agent.read(&uri(&before)).await["_meta"].clone();
    assert_eq!((&after["path"], &after["totalExecutions"]), (&json!(new), &json!(1)));
    assert_eq!(after["lastExecuted"], before["lastExecuted"]);
    let listed = agent.call("list_executions", json!({ "path": new })).await.ok();
    assert_eq!(listed["executions"][0]["path"], new, "{listed}");
}

#[tokio::test]
async fn every_list_tells_what_was_run_and_what_failed() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("failing.ipynb", &notebook(&["1", "1 / 0"]));
    let quiet = folder.write("quiet.ipynb", &notebook(&["1"]));
    for (era, count) in ERAS.into_iter().zip([2, 4]) {
        let agent = Agent::connect(&gateway, era).await;
        for start in [0, 1] {
            let ranges = json!([{ "start": start }]);
            agent
                .call("execute_nb_cells", json!({ "path": path, "ranges": ranges }))
                .await;
        }
        agent.call("read_nb_cells", json!({ "path": quiet })).await.ok();
        let list = agent.read("notebook://list").await;
        let list: Value = serde_json::from_str(list["text"].as_str().expect("text")).expect("json");
        let resources: Vec<Value> = agent
            .resources()
            .await
            .into_iter()
            .map(|resource| resource["_meta"].clone())
            .collect();
        for told in [list, resources.into()] {
            let of = |path: &str| {
                let mut entries = told.as_array().expect("entries").iter();
                let entry = entries.find(|entry| entry["path"] == path);
                entry.cloned().unwrap_or_else(|| panic!("{told}"))
            };
            let (failing, quiet) = (of(&path), of(&quiet));
            assert_eq!(
                (&failing["totalExecutions"], &failing["hasErrors"]),
                (&json!(count), &json!(true))
            );
            assert!(failing["lastExecuted"].is_string(), "{failing}");
            assert_eq!(
                (&quiet["totalExecutions"], &quiet["hasErrors"]),
                (&json!(0), &json!(false))
            );
            assert!(quiet["lastExecuted"].is_null(), "{quiet}");
        }
    }
}

#[tokio::test]
async fn every_template_runs_in_the_environment_that_comes_with_the_gateway() {
    let gateway = Gateway::start().await;
    let agent = Agent::executing(&gateway, Era::Modern).await;
    let rows: Vec<String> = (0..60)
        .map(|n| format!("{n},{},{}", ["x", "", "z"][n % 3], n % 2))
        .collect();
    let (example, own) = (lab().folder(), lab().folder());
    own.write("data.csv", &format!("size,mark,target\n{}\n", rows.join("\n")));
    for template in templates() {
        for folder in [&example, &own] {
            let path = folder.path(&format!("{}.ipynb", template.name));
            let made = json!({ "path": path, "template": template.name });
            agent.call("create_notebook", made).await.ok();
            let all = json!([{ "start": 0, "end": template.book().cells.len() }]);
            let run = json!({ "path": path, "ranges": all, "timeout": 120 });
            let ran = agent.call("execute_nb_cells", run).await.ok();
            assert_eq!(ran["status"], "completed", "{}: {ran}", template.name);
        }
    }
}
