//! Jupyter servers that are set up differently: without collaboration, or loading piece by piece.

use std::time::Duration;

use serde_json::json;

use crate::support::{Agent, Era, Gateway, Human, notebook::notebook, own_lab::OwnLab};

async fn gateway_to(lab: &OwnLab) -> (Gateway, Agent) {
    let gateway = Gateway::to(&lab.url(), lab.token()).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    (gateway, agent)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_collaboration_is_told_what_it_lacks() {
    let lab = OwnLab::start(&["--ServerApp.jpserver_extensions={\"jupyter_server_ydoc\": False}"]).await;
    lab.write("n.ipynb", &notebook(&["zero"]));
    lab.write("t.md", "text");
    let (_gateway, agent) = gateway_to(&lab).await;
    for (tool, arguments) in [
        ("read_nb_cells", json!({ "path": "n.ipynb" })),
        (
            "insert_nb_cells",
            json!({ "path": "n.ipynb", "position": 0, "cells": [{ "content": "x" }] }),
        ),
        ("get_document_content", json!({ "path": "t.md" })),
    ] {
        let error = agent.call(tool, arguments).await.error();
        assert!(
            error.contains("jupyter-collaboration") && error.contains("`lab`"),
            "{tool}: {error}"
        );
    }
    // What needs no live document goes on.
    agent.call("list_documents", json!({})).await.ok();
    agent.call("get_nb_stat", json!({ "path": "n.ipynb" })).await.ok();
    agent
        .call("overwrite_document", json!({ "path": "t.md", "content": "new" }))
        .await
        .ok();
    assert_eq!(std::fs::read_to_string(lab.file("t.md")).unwrap(), "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_is_loaded_piece_by_piece_is_read_whole() {
    let lab = OwnLab::start(&["--YDocExtension.document_load_progressively=True"]).await;
    let sources: Vec<String> = (0..2000).map(|index| format!("x_{index} = {index}")).collect();
    lab.write(
        "n.ipynb",
        &notebook(&sources.iter().map(String::as_str).collect::<Vec<_>>()),
    );
    let (_gateway, agent) = gateway_to(&lab).await;
    let last = json!({ "path": "n.ipynb", "ranges": [{ "start": 1999 }] });
    let read = agent.call("read_nb_cells", last).await.ok();
    assert_eq!(
        (&read["cell_count"], &read["cells"][0]["source"]),
        (&json!(2000), &json!("x_1999 = 1999"))
    );
    let insert = json!({ "path": "n.ipynb", "position": 2000, "cells": [{ "content": "end" }] });
    assert_eq!(agent.call("insert_nb_cells", insert).await.ok()["acknowledged"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_somebody_else_has_just_opened_is_read_whole() {
    let lab = OwnLab::start(&["--YDocExtension.document_load_progressively=True"]).await;
    let sources: Vec<String> = (0..1000).map(|index| format!("x_{index} = {index}")).collect();
    let content = notebook(&sources.iter().map(String::as_str).collect::<Vec<_>>());
    let (_gateway, agent) = gateway_to(&lab).await;
    // A server does not say that it loads piece by piece; it shows when a notebook is opened first by the gateway.
    lab.write("first.ipynb", &content);
    let first = agent.call(
        "read_nb_cells",
        json!({ "path": "first.ipynb", "ranges": [{ "start": 0 }] }),
    );
    assert_eq!(first.await.ok()["cell_count"], 1000);
    let mut seen_by_person = Vec::new();
    for step in 0..3_u32 {
        let path = format!("{step}.ipynb");
        lab.write(&path, &content);
        let human = Human::join_at(&lab.url(), lab.token(), &path).await;
        // At another stage of the loading each time.
        tokio::time::sleep(Duration::from_millis(300) * step).await;
        seen_by_person.push(human.cells().len());
        let read = agent
            .call("read_nb_cells", json!({ "path": path, "ranges": [{ "start": 0 }] }))
            .await
            .ok();
        assert_eq!(read["cell_count"], 1000, "when the person had {seen_by_person:?}");
        human.leave().await;
    }
}
