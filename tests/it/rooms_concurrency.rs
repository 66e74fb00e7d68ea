//! Many agents and a person in one notebook at the same time: everything arrives once, nothing is lost.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use futures::future::join_all;
use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, Human, eventually,
    gateway::{everything, server},
    lab,
    notebook::{cells_on_disk, notebook},
    proxy::Proxy,
};

const SENTENCE: &str = "The quick brown fox — 漢字 🎉 — jumps over the lazy dog while two hundred cells arrive.";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn twenty_agents_insert_while_a_person_types() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("busy.ipynb", &notebook(&["", "x = 1"]));
    let human = Human::join(&path).await;
    let agents = join_all((0..20).map(|_| Agent::connect(&gateway, Era::Legacy))).await;
    let inserting = join_all(agents.iter().enumerate().map(|(number, agent)| {
        let path = &path;
        async move {
            let mut ids = Vec::new();
            for step in 0..10 {
                let cells = json!([{ "content": format!("agent {number} step {step}") }]);
                let inserted = agent
                    .call(
                        "insert_nb_cells",
                        json!({ "path": path, "position": step % 2, "cells": cells }),
                    )
                    .await
                    .ok();
                assert_eq!(inserted["acknowledged"], true, "{inserted}");
                ids.push(inserted["cell_ids"][0].as_str().unwrap().to_owned());
            }
            ids
        }
    }));
    let (ids, ()) = tokio::join!(inserting, human.type_into(0, 0, SENTENCE, Duration::from_millis(5)));
    let ids: HashSet<String> = ids.into_iter().flatten().collect();
    assert_eq!(ids.len(), 200);

    human
        .wait_for("all cells reach the person", |human| human.cells().len() == 202)
        .await;
    let cells = human.cells();
    let by_id: HashMap<&str, &str> = cells
        .iter()
        .map(|cell| (cell.id.as_str(), cell.source.as_str()))
        .collect();
    assert_eq!(by_id.len(), 202, "every id once");
    assert!(
        ids.iter().all(|id| by_id.contains_key(id.as_str())),
        "every acknowledged cell is there"
    );
    assert_eq!(by_id["c0"], SENTENCE);
    let sources: HashSet<&str> = by_id.values().copied().collect();
    for (number, step) in (0..20).flat_map(|number| (0..10).map(move |step| (number, step))) {
        assert!(sources.contains(format!("agent {number} step {step}").as_str()));
    }
    let read = agents[0].call("read_nb_cells", json!({ "path": path })).await.ok();
    let shown: Vec<&str> = read["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        shown,
        cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>(),
        "both see the same order"
    );
    let quiet = Instant::now();
    eventually("the file is what the room is", async || {
        (cells_on_disk(&folder.disk.join("busy.ipynb"))? == cells).then_some(())
    })
    .await;
    assert!(
        quiet.elapsed() < Duration::from_secs(8),
        "saved after {:?}",
        quiet.elapsed()
    );
    human.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_edit_by_id_never_hits_a_neighbour_while_cells_move() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("moving.ipynb", &notebook(&["target", "keep", "keep", "keep"]));
    let human = Human::join(&path).await;
    let (editor, mover) = (
        Agent::connect(&gateway, Era::Modern).await,
        Agent::connect(&gateway, Era::Modern).await,
    );
    let moving = async {
        for step in 0..60 {
            let cells = json!([{ "content": format!("moved {step}") }]);
            mover
                .call(
                    "insert_nb_cells",
                    json!({ "path": path, "position": 0, "cells": cells }),
                )
                .await
                .ok();
            human.insert_cell(0, &format!("human-{step}"), "by hand");
            mover
                .call(
                    "delete_nb_cells",
                    json!({ "path": path, "ranges": [{ "cell_id": format!("human-{step}") }] }),
                )
                .await;
        }
    };
    let editing = async {
        for step in 0..120 {
            let modifications = json!([{ "range": { "cell_id": "c0" }, "content": format!("target {step}") }]);
            let edited = editor
                .call(
                    "modify_nb_cells",
                    json!({ "path": path, "modifications": modifications }),
                )
                .await
                .ok();
            assert_eq!(edited["cell_ids"], json!(["c0"]));
        }
    };
    tokio::join!(moving, editing);
    human
        .wait_for("the last edit", |human| {
            human.sources().contains(&"target 119".to_owned())
        })
        .await;
    let cells = human.cells();
    for cell in &cells {
        let expected = match cell.id.as_str() {
            "c0" => "target 119",
            "c1" | "c2" | "c3" => "keep",
            id if id.starts_with("human") => "by hand",
            _ => "moved",
        };
        assert!(cell.source.starts_with(expected), "{cell:?}");
    }
    assert_eq!(cells.iter().filter(|cell| cell.source.starts_with("moved")).count(), 60);
    human.leave().await;
}

/// A line that is held lets both edit the same state before either knows of the other.
#[tokio::test]
async fn an_agent_and_a_person_edit_one_cell_at_the_same_moment() {
    let proxy = Proxy::to(lab().address()).await;
    let gateway = Gateway::configured(&format!(
        "{}{}",
        server("lab", &proxy.url(), lab().token()),
        everything()
    ))
    .await;
    let folder = lab().folder();
    let path = folder.write("splice.ipynb", &notebook(&["alpha beta gamma 🎉 delta"]));
    let human = Human::join(&path).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    for (agent_writes, human_splices, merged) in [
        // The agent in the middle, the person at both ends.
        (
            "alpha beta' gamma 🎉 delta",
            vec![(0, 0, "<"), (26, 0, ">")],
            "<alpha beta' gamma 🎉 delta>",
        ),
        // The agent replaces an emoji by another, the person types a character away on both sides.
        (
            "<alpha beta' gamma 🎈 delta>",
            vec![(18, 0, "👩‍💻"), (27, 0, "漢")],
            "<alpha beta' gamma👩‍💻 🎈 漢delta>",
        ),
        // The agent deletes a word, the person deletes another one.
        ("<alpha gamma👩‍💻 🎈 漢delta>", vec![(1, 6, "")], "<gamma👩‍💻 🎈 漢delta>"),
        // The agent appends a line, the person changes the first characters.
        (
            "<gamma👩‍💻 🎈 漢delta>\nnew",
            vec![(0, 1, "["), (1, 1, "G")],
            "[Gamma👩‍💻 🎈 漢delta>\nnew",
        ),
    ] {
        let before = human.cells()[0].source.clone();
        eventually("the gateway is up to date", async || {
            let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
            (read["cells"][0]["source"] == before).then_some(())
        })
        .await;
        proxy.hold_rooms();
        for (at, delete, insert) in human_splices {
            human.splice_cell("c0", at, delete, insert);
        }
        let modifications = json!([{ "range": { "start": 0 }, "content": agent_writes }]);
        let editing = agent.call(
            "modify_nb_cells",
            json!({ "path": path, "modifications": modifications }),
        );
        let releasing = async {
            human
                .wait_for("the agent's edit arrives, though not its echo", |human| {
                    human.cells()[0].source == merged
                })
                .await;
            proxy.hold(false);
        };
        let (answer, ()) = tokio::join!(editing, releasing);
        assert_eq!(answer.ok()["acknowledged"], true);
    }
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cells"][0]["source"], human.cells()[0].source);
    human.leave().await;
}
