//! Jupyter is killed while it writes a notebook. It finds the half of it when it comes back, and puts the file of before in its place.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually,
    gateway::{everything, server},
    notebook::{notebook, sources_on_disk},
    own_lab::OwnLab,
};

async fn insert(agent: &Agent, source: &str, executes: bool) -> Value {
    let cells = json!([{ "content": source }]);
    let arguments = json!({ "path": "n.ipynb", "position": 0, "cells": cells, "exec": executes });
    agent.call("insert_nb_cells", arguments).await.ok()
}

/// Leaves the files of a server that was killed while it wrote: half of the new one, and the old one under another name.
fn write_by_half(lab: &OwnLab) {
    let (file, before) = (lab.file("n.ipynb"), lab.file(".~n.ipynb"));
    let written = std::fs::metadata(&file).unwrap().modified().unwrap();
    std::fs::copy(&file, &before).unwrap();
    let copy = std::fs::File::options().write(true).open(&before).unwrap();
    copy.set_modified(written).unwrap();
    lab.write("n.ipynb", "{\"cells\": [");
    let half = std::fs::File::options().write(true).open(&file).unwrap();
    half.set_modified(SystemTime::now() + Duration::from_millis(50))
        .unwrap();
}

async fn saved(lab: &OwnLab, source: &str) {
    eventually("it is saved", async || {
        let sources = sources_on_disk(&lab.file("n.ipynb"))?;
        sources.iter().any(|saved| saved == source).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_a_file_was_written_by_half_comes_back() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["'zero'"]));
    let config = format!("{}{}", server("lab", &lab.url(), lab.token()), everything());
    let gateway = Gateway::configured(&config).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    insert(&agent, "'saved'", true).await;
    saved(&lab, "'saved'").await;

    let human = Human::join_at(&lab.url(), lab.token(), "n.ipynb").await;
    human.insert_cell(0, "a-persons-cell", "'typed'");
    eventually("the agent sees it", async || {
        let read = agent.call("read_nb_cells", json!({ "path": "n.ipynb" })).await.ok();
        read["cells"].to_string().contains("'typed'").then_some(())
    })
    .await;
    insert(&agent, "'unsaved'", false).await;
    lab.kill();
    drop(human);
    write_by_half(&lab);
    lab.restart().await;
    // Has Jupyter asked to save as soon as it is back.
    let mut expected = vec!["'saved'", "'zero'", "'typed'", "'unsaved'"];
    for after in ["'after'", "'later'"] {
        let answer = insert(&agent, after, true).await;
        assert_eq!(answer["acknowledged"], true, "{answer}");
        let notices = answer["notices"].to_string();
        assert!(!notices.contains("outside"), "nobody else wrote the file: {answer}");
        expected.push(after);
    }
    saved(&lab, "'later'").await;
    expected.sort_unstable();
    let human = Human::join_at(&lab.url(), lab.token(), "n.ipynb").await;
    eventually("everything is there once", async || {
        let (mut live, mut on_disk) = (human.sources(), sources_on_disk(&lab.file("n.ipynb"))?);
        live.sort();
        on_disk.sort();
        (live == expected && on_disk == expected).then_some(())
    })
    .await;
}
