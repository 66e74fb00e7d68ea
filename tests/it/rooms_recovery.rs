//! Jupyter dies, comes back, forgets; the line is cut: nothing twice, nothing saved is lost, and what
//! an agent is told is true.

use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually,
    lab::saves_as_told,
    notebook::{CellView, cells_on_disk, notebook, sources_on_disk, without_ids},
    own_lab::OwnLab,
};

pub async fn gateway_to(url: &str, token: &str) -> (Gateway, Agent) {
    let gateway = Gateway::to(url, token).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    (gateway, agent)
}

pub async fn insert(agent: &Agent, path: &str, source: &str) -> crate::support::agent::ToolAnswer {
    agent
        .call(
            "insert_nb_cells",
            json!({ "path": path, "position": 0, "cells": [{ "content": source }] }),
        )
        .await
}

pub async fn read(agent: &Agent, path: &str) -> Vec<CellView> {
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let text = |cell: &Value, key: &str| cell[key].as_str().unwrap().to_owned();
    let view = |cell: &Value| CellView {
        id: text(cell, "id"),
        cell_type: text(cell, "cell_type"),
        source: text(cell, "source"),
    };
    read["cells"].as_array().unwrap().iter().map(view).collect()
}

/// Everybody agrees, each cell is there once, and these are among them.
async fn converged(agent: &Agent, lab: &OwnLab, path: &str, expected: &[String]) -> Vec<CellView> {
    let human = Human::join_at(&lab.url(), lab.token(), path).await;
    let cells = eventually("the gateway, the person and the file agree", async || {
        let cells = read(agent, path).await;
        let agreed = human.cells() == cells && cells_on_disk(&lab.file(path))? == cells;
        agreed.then_some(cells)
    })
    .await;
    human.leave().await;
    let sources: Vec<&String> = cells.iter().map(|cell| &cell.source).collect();
    let unique: HashSet<&&String> = sources.iter().collect();
    assert_eq!(unique.len(), sources.len(), "nothing is there twice: {sources:?}");
    for source in expected {
        assert!(sources.contains(&source), "{source:?} is lost: {sources:?}");
    }
    cells
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jupyter_is_killed_between_edits_and_comes_back() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero", "one", "two"]));
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let mut expected: Vec<String> = ["zero", "one", "two"].map(str::to_owned).to_vec();
    for forgets in [false, true, true] {
        let (early, late) = (
            format!("saved {forgets} {}", expected.len()),
            format!("unsaved {forgets} {}", expected.len()),
        );
        insert(&agent, "n.ipynb", &early).await.ok();
        eventually("it is saved", async || {
            cells_on_disk(&lab.file("n.ipynb"))?
                .iter()
                .any(|cell| cell.source == early)
                .then_some(())
        })
        .await;
        // Acknowledged, but Jupyter dies before it saves; the gateway remembers.
        insert(&agent, "n.ipynb", &late).await.ok();
        lab.kill();
        if forgets {
            lab.forget_documents();
        }
        lab.restart().await;
        expected.extend([early, late]);
        let after = format!("after {forgets} {}", expected.len());
        let edited = insert(&agent, "n.ipynb", &after).await.ok();
        assert_eq!(edited["acknowledged"], true);
        expected.push(after);
        let cells = converged(&agent, &lab, "n.ipynb", &expected).await;
        assert_eq!(cells.len(), expected.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jupyter_is_killed_during_edits() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero", "one"]));
    let (gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    insert(&agent, "n.ipynb", "first").await.ok();
    for (round, forgets) in [false, true].into_iter().enumerate() {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let url = gateway.url("/mcp");
                tokio::spawn(async move {
                    let agent = Agent::connect_to(&url, crate::support::TOKEN, Era::Modern).await;
                    let mut told = Vec::new();
                    for step in 0..40 {
                        let source = format!("round {round} writer {writer} step {step}");
                        let answer = insert(&agent, "n.ipynb", &source).await;
                        if answer.is_error {
                            let honest = ["try again", "cannot be reached", "lost this edit"];
                            assert!(
                                honest.iter().any(|words| answer.text().contains(words)),
                                "{}",
                                answer.text()
                            );
                        } else if answer.structured["acknowledged"] == true {
                            told.push(source);
                        }
                        // The pace of the agents.
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    told
                })
            })
            .collect();
        // In the middle of their work.
        tokio::time::sleep(Duration::from_millis(300)).await;
        lab.kill();
        if forgets {
            lab.forget_documents();
        }
        lab.restart().await;
        let mut told = Vec::new();
        for writer in writers {
            told.extend(writer.await.expect("no panic"));
        }
        assert!(told.len() > 80, "most edits went through: {}", told.len());
        converged(&agent, &lab, "n.ipynb", &told).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_deleted_does_not_come_back_with_jupyter() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero"]));
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    for forgets in [true, false] {
        let human = Human::join_at(&lab.url(), lab.token(), "n.ipynb").await;
        insert(&agent, "n.ipynb", "unwanted").await.ok();
        human
            .wait_for("it arrives", |human| human.sources() == ["unwanted", "zero"])
            .await;
        human.delete_cell(0);
        eventually("the gateway knows", async || {
            (read(&agent, "n.ipynb").await.len() == 1).then_some(())
        })
        .await;
        lab.kill();
        // Whether Jupyter saved in between is a matter of luck; here it did not.
        lab.write("n.ipynb", &notebook(&["zero"]));
        if forgets {
            lab.forget_documents();
        }
        lab.restart().await;
        insert(&agent, "n.ipynb", "wanted").await.ok();
        let cells = converged(&agent, &lab, "n.ipynb", &["wanted".to_owned(), "zero".to_owned()]).await;
        assert_eq!(cells.len(), 2, "{cells:?}");
        agent
            .call(
                "delete_nb_cells",
                json!({ "path": "n.ipynb", "ranges": [{ "start": 0 }] }),
            )
            .await
            .ok();
        converged(&agent, &lab, "n.ipynb", &["zero".to_owned()]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_saved_and_then_removed_from_the_file_stays_removed() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero"]));
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    insert(&agent, "n.ipynb", "saved").await.ok();
    converged(&agent, &lab, "n.ipynb", &["saved".to_owned()]).await;
    // By now the gateway has made sure that it is on disk, which it does every few seconds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    lab.kill();
    lab.write("n.ipynb", &notebook(&["zero"]));
    lab.forget_documents();
    lab.restart().await;
    insert(&agent, "n.ipynb", "new").await.ok();
    let cells = converged(&agent, &lab, "n.ipynb", &["new".to_owned(), "zero".to_owned()]).await;
    assert_eq!(cells.len(), 2, "{cells:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_jupyter_forgot_is_not_doubled() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("t.md", "one\n");
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let append = async |text: &str| {
        let length = agent.call("get_document_content", json!({ "path": "t.md" })).await.ok()["content_length"].take();
        agent
            .call(
                "insert_document_text",
                json!({ "path": "t.md", "position": length, "text": text }),
            )
            .await
            .ok()
    };
    append("two\n").await;
    eventually("it is saved", async || {
        (std::fs::read_to_string(lab.file("t.md")).ok()? == "one\ntwo\n").then_some(())
    })
    .await;
    append("three\n").await;
    lab.kill();
    lab.forget_documents();
    lab.restart().await;
    append("four\n").await;
    let human = Human::join_at(&lab.url(), lab.token(), "t.md").await;
    assert_eq!(human.text(), "one\ntwo\nthree\nfour\n");
    eventually("so is the file", async || {
        (std::fs::read_to_string(lab.file("t.md")).ok()? == human.text()).then_some(())
    })
    .await;
}

/// A page that was not reloaded has everything that Jupyter echoed before it died, also what Jupyter itself had not yet
/// noted down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_jupyter_forgot_and_a_page_still_has_is_there_once() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero", "one"]));
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let mut expected: Vec<String> = ["zero", "one"].map(str::to_owned).to_vec();
    let mut human = Human::join_at(&lab.url(), lab.token(), "n.ipynb").await;
    for round in 0..2 {
        let sources: Vec<String> = (0..30).map(|number| format!("round {round} cell {number}")).collect();
        let inserted = sources.iter().map(|source| insert(&agent, "n.ipynb", source));
        for answer in futures::future::join_all(inserted).await {
            assert_eq!(answer.ok()["acknowledged"], true);
        }
        lab.kill();
        expected.extend(sources);
        lab.restart().await;
        human.come_back(&lab.url(), lab.token(), "n.ipynb").await;
        let cells = converged(&agent, &lab, "n.ipynb", &expected).await;
        assert_eq!(cells.len(), expected.len());
        human
            .wait_for("the page has the same", |human| human.cells() == cells)
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_typed_in_haste_survives_a_killed_jupyter_whole() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["c", "other"]));
    lab.write("t.md", "seed");
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let (mut text, mut source) = ("seed".to_owned(), "c".to_owned());
    for _ in 0..2 {
        for number in 0..5 {
            let piece = format!("A{number};");
            text.insert_str(0, &piece);
            source.push_str(&piece);
            let typed = json!({ "path": "t.md", "position": 0, "text": piece });
            let set = json!({ "path": "n.ipynb", "modifications": [{ "range": { "start": 0 }, "content": source }], "exec": false });
            for (tool, arguments) in [("insert_document_text", typed), ("modify_nb_cells", set)] {
                let done = agent.call(tool, arguments).await.ok();
                assert_eq!(done["acknowledged"], true, "{done}");
            }
        }
        lab.restart().await;
        eventually("everything is back, and on disk", async || {
            let content = agent.call("get_document_content", json!({ "path": "t.md" })).await;
            let is_whole = !content.is_error && content.structured["content"] == text;
            let on_disk = cells_on_disk(&lab.file("n.ipynb"))?;
            let is_saved = std::fs::read_to_string(lab.file("t.md")).is_ok_and(|file| file == text);
            (is_whole && is_saved && on_disk[0].source == source).then_some(())
        })
        .await;
    }
    converged(&agent, &lab, "n.ipynb", &[source, "other".to_owned()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_that_a_killed_jupyter_left_out_of_the_file_come_back() {
    if !saves_as_told() {
        // Before jupyter-collaboration 4 a restarted server makes another document of the file, which then counts.
        return;
    }
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero", "one", "two", "three"]));
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let human = Human::join_at(&lab.url(), lab.token(), "n.ipynb").await;
    read(&agent, "n.ipynb").await;
    human.delete_cell(3);
    eventually("the deletion is saved", async || {
        (cells_on_disk(&lab.file("n.ipynb"))?.len() == 3).then_some(())
    })
    .await;
    // Jupyter says that it has saved once it has, which the gateway must have heard to know how old the file is.
    tokio::time::sleep(Duration::from_secs(1)).await;
    human.leave().await;
    // Jupyter reads the cells one by one while it saves, and can be killed with a file that lacks the last of them.
    let before = std::fs::metadata(lab.file("n.ipynb")).unwrap().modified().unwrap();
    lab.kill();
    lab.write("n.ipynb", &notebook(&["zero"]));
    let file = std::fs::File::options().write(true).open(lab.file("n.ipynb")).unwrap();
    file.set_modified(before).unwrap();
    lab.restart().await;
    let expected = ["zero", "one", "two"].map(str::to_owned);
    let cells = converged(&agent, &lab, "n.ipynb", &expected).await;
    let sources: Vec<&String> = cells.iter().map(|cell| &cell.source).collect();
    assert_eq!(sources, [&expected[0], &expected[1], &expected[2]]);
    // What somebody did to the file while the server was away counts.
    // By now the gateway has made sure that the rest is on disk.
    tokio::time::sleep(Duration::from_secs(6)).await;
    lab.kill();
    lab.write("n.ipynb", &notebook(&["zero"]));
    lab.restart().await;
    let cells = converged(&agent, &lab, "n.ipynb", &expected[..1]).await;
    assert_eq!(cells.len(), 1, "{cells:?}");
}

/// Jupyter notes changes down one by one and can be killed when it has saved a file and not yet noted what is in it. Then it
/// makes cells of its own for those that it finds in the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_that_jupyter_saved_and_did_not_note_down_are_there_once() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero"]));
    let (gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let runner = Agent::executing(&gateway, Era::Modern).await;
    insert(&runner, "n.ipynb", "'a kernel runs'").await.ok();
    let begun = SystemTime::now();
    let plain = insert(&agent, "n.ipynb", "plain").await.ok();
    let executed = insert(&agent, "n.ipynb", "'executed'").await.ok();
    eventually("both are saved", async || {
        (cells_on_disk(&lab.file("n.ipynb"))?.len() == 4).then_some(())
    })
    .await;
    let run = json!({ "path": "n.ipynb", "ranges": [{ "cell_id": executed["cell_ids"][0] }] });
    runner.call("execute_nb_cells", run).await.ok();
    lab.kill();
    lab.forget_since(begun);
    lab.restart().await;
    let expected = ["zero", "plain", "'executed'"].map(str::to_owned);
    let cells = converged(&agent, &lab, "n.ipynb", &expected).await;
    for (inserted, source) in [(&plain, "plain"), (&executed, "'executed'")] {
        let cell = cells.iter().find(|cell| cell.source == source).expect("a cell");
        assert_eq!(inserted["cell_ids"][0], cell.id.as_str(), "it keeps its id");
    }
}

/// Jupyter takes a cell for two that it sees twice while it saves, and writes both, the second under another id. Killed then, it
/// finds both in the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_jupyter_wrote_twice_is_there_once() {
    if !saves_as_told() {
        // Before jupyter-collaboration 4 a restarted server makes another document of the file, which then counts.
        return;
    }
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["zero"]));
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let inserted = insert(&agent, "n.ipynb", "once").await.ok();
    converged(&agent, &lab, "n.ipynb", &["once".to_owned()]).await;
    // Jupyter says that it has saved once it has, which the gateway must have heard to know how old the file is.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let file = lab.file("n.ipynb");
    let before = std::fs::metadata(&file).unwrap().modified().unwrap();
    lab.kill();
    let mut saved: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let mut copy = saved["cells"][0].clone();
    copy["id"] = "0f8fad5b-d9cb-469f-a165-70867728950e".into();
    saved["cells"].as_array_mut().unwrap().insert(1, copy);
    lab.write("n.ipynb", &saved.to_string());
    let handle = std::fs::File::options().write(true).open(&file).unwrap();
    handle.set_modified(before).unwrap();
    lab.restart().await;
    let expected = ["once", "zero"].map(str::to_owned);
    let cells = converged(&agent, &lab, "n.ipynb", &expected).await;
    assert_eq!(cells.len(), 2, "{cells:?}");
    assert_eq!(inserted["cell_ids"][0], cells[0].id.as_str(), "it keeps its id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_of_an_older_format_keep_their_ids_when_jupyter_is_killed() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &without_ids(&notebook(&["zero", "one"]), 4));
    let (_gateway, agent) = gateway_to(&lab.url(), lab.token()).await;
    let mut count = 2;
    for forgets in [false, true] {
        insert(&agent, "n.ipynb", &format!("saved {forgets}")).await.ok();
        count += 1;
        eventually("it is saved", async || {
            (sources_on_disk(&lab.file("n.ipynb"))?.len() == count).then_some(())
        })
        .await;
        insert(&agent, "n.ipynb", &format!("unsaved {forgets}")).await.ok();
        count += 1;
        let before = read(&agent, "n.ipynb").await;
        lab.kill();
        if forgets {
            lab.forget_documents();
        }
        lab.restart().await;
        insert(&agent, "n.ipynb", &format!("after {forgets}")).await.ok();
        count += 1;
        let human = Human::join_at(&lab.url(), lab.token(), "n.ipynb").await;
        let cells = eventually("the gateway, the person and the file agree", async || {
            let cells = read(&agent, "n.ipynb").await;
            let saved = sources_on_disk(&lab.file("n.ipynb"))?;
            let is_saved = cells.iter().map(|cell| &cell.source).eq(&saved);
            (is_saved && human.cells() == cells).then_some(cells)
        })
        .await;
        human.leave().await;
        assert_eq!(cells.len(), count, "{cells:#?}");
        assert_eq!(cells[1..], before, "all are there once, under the ids they had");
    }
}
