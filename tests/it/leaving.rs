//! A gateway that is told to leave while its Jupyter cannot save: it leaves in time, and says what is unsaved.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    Agent, Era, eventually,
    notebook::notebook,
    own_lab::OwnLab,
    running::{Home, Running},
};

/// Log line about a document whose edits are not on disk.
const UNSAVED: &str = "closed a document before Jupyter had saved its last edits";

/// A gateway whose agent has edited `n.ipynb` just now, in front of a Jupyter that does nothing any more.
async fn edited_before_jupyter_stopped(lab: &OwnLab, drain_timeout: &str) -> (Home, Running) {
    lab.write("n.ipynb", &notebook(&["a"]));
    let home = Home::new();
    let mut command = home.serve_for(&lab.url(), lab.token());
    command.env("JMG__HTTP__DRAIN_TIMEOUT", drain_timeout);
    let gateway = Running::start(command).await;
    let agent = Agent::connect_to(gateway.url(), gateway.token(), Era::Modern).await;
    let cells = json!({ "path": "n.ipynb", "position": 0, "cells": [{ "content": "'unsaved'" }] });
    agent.call("insert_nb_cells", cells).await.ok();
    lab.pause();
    (home, gateway)
}

#[tokio::test]
async fn it_leaves_though_jupyter_dies_meanwhile() {
    let mut lab = OwnLab::start(&[]).await;
    let (_home, gateway) = edited_before_jupyter_stopped(&lab, "20s").await;
    let asked = Instant::now();
    gateway.signal("-TERM");
    eventually("draining", async || gateway.logged("draining").then_some(())).await;
    // Its document waits for a save by now, or is about to.
    lab.kill();
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        asked.elapsed() < Duration::from_secs(20),
        "{:?}: {}",
        asked.elapsed(),
        ended.stderr
    );
    let said = ended.stderr.lines().find(|line| line.contains(UNSAVED));
    assert!(said.is_some_and(|line| line.contains("n.ipynb")), "{}", ended.stderr);
}

#[tokio::test]
async fn it_leaves_though_jupyter_is_gone_before() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["import time; time.sleep(600)"]));
    let home = Home::new();
    let mut command = home.serve_for(&lab.url(), lab.token());
    command.env("JMG__HTTP__DRAIN_TIMEOUT", "8s");
    let gateway = Running::start(command).await;
    let agent = Agent::connect_to(gateway.url(), gateway.token(), Era::Modern).await;
    let cells = json!({ "path": "n.ipynb", "position": 1, "cells": [{ "content": "'unsaved'" }], "exec": false });
    agent.call("insert_nb_cells", cells).await.ok();
    let run = json!({ "path": "n.ipynb", "ranges": [{ "start": 0 }], "timeout": 0 });
    agent.call("execute_nb_cells", run).await.ok();
    lab.kill();
    // It has noticed, and tries to reach it again and again.
    eventually("Jupyter is missed", async || {
        let read = agent.call("list_documents", json!({})).await;
        read.is_error.then_some(())
    })
    .await;
    let asked = Instant::now();
    gateway.signal("-TERM");
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        asked.elapsed() < Duration::from_secs(12),
        "{:?}: {}",
        asked.elapsed(),
        ended.stderr
    );
    let said = ended.stderr.lines().find(|line| line.contains(UNSAVED));
    assert!(said.is_some_and(|line| line.contains("n.ipynb")), "{}", ended.stderr);
}

#[tokio::test]
async fn it_leaves_in_time_though_jupyter_hangs() {
    let lab = OwnLab::start(&[]).await;
    let (_home, gateway) = edited_before_jupyter_stopped(&lab, "6s").await;
    let asked = Instant::now();
    gateway.signal("-TERM");
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        asked.elapsed() < Duration::from_secs(12),
        "{:?}: {}",
        asked.elapsed(),
        ended.stderr
    );
    let said = ended.stderr.lines().find(|line| line.contains(UNSAVED));
    assert!(said.is_some_and(|line| line.contains("n.ipynb")), "{}", ended.stderr);
}
