//! The history of documents beside people: who changed what, and going back to it.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human,
    engines::on_both_engines,
    eventually,
    gateway::{everything, server},
    lab,
    notebook::notebook,
    own_lab::OwnLab,
    process_scene::ProcessScene,
    running::{Home, Running},
    scene::{Scene, person, shown},
};

/// The versions of a document, the newest first.
pub async fn versions(agent: &Agent, path: &str) -> Vec<Value> {
    let listed = agent
        .call("get_document_history", json!({ "path": path, "limit": 100 }))
        .await
        .ok();
    listed["versions"].as_array().expect("versions").clone()
}

/// A member of each version.
pub fn each(versions: &[Value], member: &str) -> Vec<String> {
    let text = |version: &Value| version[member].as_str().unwrap_or_default().to_owned();
    versions.iter().map(text).collect()
}

pub fn id(version: &Value) -> &str {
    version["version_id"].as_str().expect("an id")
}

/// Edits a cell by its id.
pub async fn edit(agent: &Agent, path: &str, cell: &str, content: &str) -> Value {
    let modifications = json!([{ "range": { "cell_id": cell }, "content": content }]);
    let arguments = json!({ "path": path, "modifications": modifications, "exec": false, "force": true });
    agent.call("modify_nb_cells", arguments).await.ok()
}

on_both_engines! {
    versions_tell_who_changed_what,
    a_version_is_restored_with_the_smallest_edit,
    differences_are_shown_cell_by_cell,
    the_history_goes_on_after_a_restart_of_jupyter,
}

async fn versions_tell_who_changed_what(store: &str) {
    let scene = Scene::notebook(&["zero", "one", "two"])
        .with(store)
        .editing()
        .set()
        .await;
    let (agent, path) = (&scene.agent, &scene.path);
    edit(agent, path, "c0", "by ana").await;
    scene.human.publish("Ben", true);
    scene.human.splice_cell("c1", 0, 0, "typed ");
    eventually("the gateway has it", async || {
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        (read["cells"][1]["source"] == "typed one").then_some(())
    })
    .await;
    let edited = edit(agent, path, "c2", "by ana too").await;
    let versions = versions(agent, path).await;
    assert_eq!(
        each(&versions, "author"),
        ["ana", "Ben", "ana", "outside"],
        "{versions:?}"
    );
    assert_eq!(each(&versions, "kind"), ["agent", "people", "agent", "opened"]);
    assert_eq!(versions[0]["tool"], "modify_nb_cells");
    assert_eq!(versions[0]["summary"], "1 cell changed");
    assert_eq!(versions[0]["revision"], edited["revision"]);
    assert!(versions[0]["timestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(versions[0]["size"], "by anatyped oneby ana too".len());
    let by_ben = json!({ "path": path, "author": "Ben" });
    let by_ben = agent.call("get_document_history", by_ben).await;
    assert_eq!(
        by_ben.text().lines().next().unwrap().split(' ').next().unwrap(),
        id(&versions[1])
    );
    assert_eq!(by_ben.ok()["versions"].as_array().unwrap().len(), 1);
    let older = json!({ "path": path, "limit": 1, "before": id(&versions[1]) });
    let older = agent.call("get_document_history", older).await;
    assert!(older.text().contains("Older ones: before="), "{}", older.text());
    assert_eq!(older.ok()["versions"][0]["version_id"], versions[2]["version_id"]);
    let since = json!({ "path": path, "before": versions[1]["timestamp"] });
    assert_eq!(
        agent.call("get_document_history", since).await.ok()["versions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn what_people_type_is_a_version_when_they_pause() {
    let scene = Scene::notebook(&["zero"]).editing().set().await;
    scene.call("read_nb_cells", json!({})).await.ok();
    scene.human.publish("Ben", true);
    scene.human.splice_cell("c0", 0, 0, "typed ");
    let newest = eventually("a version", async || {
        versions(&scene.agent, &scene.path)
            .await
            .into_iter()
            .find(|version| version["kind"] == "people")
    })
    .await;
    assert_eq!(newest["author"], "Ben");
    assert!(newest["tool"].is_null());
}

async fn a_version_is_restored_with_the_smallest_edit(store: &str) {
    let scene = Scene::notebook(&["print('zero')", "one", "two"])
        .with(store)
        .set()
        .await;
    let (agent, path) = (&scene.agent, &scene.path);
    scene.run(0, 1).await.ok();
    edit(agent, path, "c1", "one, changed").await;
    let good = id(&versions(agent, path).await[0]).to_owned();
    agent
        .call("delete_nb_cells", json!({ "path": path, "ranges": [{ "start": 0 }] }))
        .await
        .ok();
    edit(agent, path, "c2", "two, changed").await;
    // People work on while it is restored.
    scene.human.splice_cell("c1", 0, 0, "typed ");
    eventually("the gateway has it", async || {
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        (read["cells"][0]["source"] == "typed one, changed").then_some(())
    })
    .await;
    let typed = "0123456789".repeat(30);
    let late = async {
        for letter in typed.chars().rev() {
            scene.human.splice_cell("c2", 0, 0, &letter.to_string());
            // Spread over the time of the restoration.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let restoring = agent.call("restore_document_version", json!({ "path": path, "version_id": good }));
    let (restored, ()) = tokio::join!(restoring, late);
    let restored = restored.ok();
    assert!(
        restored["message"].as_str().unwrap().starts_with("Restored"),
        "{restored}"
    );
    scene
        .human
        .wait_for("the cells are back, and what was typed late stays", |human| {
            let sources = human.sources();
            let late = sources.last().and_then(|source| source.strip_suffix("two"));
            sources.len() == 3
                && sources[..2] == ["print('zero')", "one, changed"]
                && late.is_some_and(|late| !late.is_empty() && typed.starts_with(late))
        })
        .await;
    let cells = scene.human.cells();
    assert_eq!(
        cells.iter().map(|cell| cell.id.as_str()).collect::<Vec<_>>(),
        ["c0", "c1", "c2"]
    );
    assert_eq!(shown(&scene.human.cell(0)), "zero\n", "outputs come back");
    let newest = versions(agent, path).await;
    assert!(
        newest
            .iter()
            .any(|version| version["version_id"] == restored["version_id"]),
        "{restored} {newest:?}"
    );
    assert_eq!(
        newest
            .iter()
            .find(|version| version["tool"] == "restore_document_version")
            .unwrap()["author"],
        "ana"
    );
    let undone = agent.call("undo_changes", json!({ "path": path })).await;
    assert!(undone.text().starts_with("Undid 1 version"), "{}", undone.text());
    scene
        .human
        .wait_for("the restoring is taken back", |human| human.sources().len() == 2)
        .await;
}

async fn differences_are_shown_cell_by_cell(store: &str) {
    let scene = Scene::notebook(&["a\nb\nc", "one"]).with(store).editing().set().await;
    let (agent, path) = (&scene.agent, &scene.path);
    let first = edit(agent, path, "c0", "a\nB\nc").await;
    agent
        .call(
            "insert_nb_cells",
            json!({ "path": path, "position": 1, "cells": [{ "content": "new", "type": "code" }], "exec": false }),
        )
        .await
        .ok();
    let all = versions(agent, path).await;
    let begin = id(all.last().unwrap()).to_owned();
    let diff = agent
        .call("diff_document", json!({ "path": path, "from": begin }))
        .await;
    for line in ["[0] c0 changed", "-b", "+B", "inserted", "+new"] {
        assert!(
            diff.text().lines().any(|shown| shown.contains(line)),
            "{line}: {}",
            diff.text()
        );
    }
    assert_eq!(diff.ok()["changes"].as_array().unwrap().len(), 2);
    let from = first["revision"].as_str().unwrap();
    let later = agent
        .call(
            "diff_document",
            json!({ "path": path, "from": from, "to": id(&all[0]) }),
        )
        .await
        .ok();
    assert_eq!(later["changes"][0]["status"], "inserted", "{later}");
    let none = agent
        .call(
            "diff_document",
            json!({ "path": path, "from": id(&all[0]), "to": id(&all[0]) }),
        )
        .await;
    assert!(none.text().ends_with("no differences"), "{}", none.text());
}

#[tokio::test]
async fn the_history_of_a_text_goes_on_after_writes_from_outside_and_renames() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("a.txt", "one\ntwo\n");
    let replace = |path: &str, old: &str, new: &str| json!({ "path": path, "old_text": old, "new_text": new });
    agent.call("edit_document_text", replace(&path, "one", "1")).await.ok();
    agent.call("save_document", json!({ "path": path })).await.ok();
    let body = json!({ "type": "file", "format": "text", "content": "1\ntwo\nthree\n" });
    person().send(Method::PUT, &format!("api/contents/{path}"), body).await;
    eventually("the outside write is a version", async || {
        (versions(&agent, &path).await[0]["kind"] == "outside").then_some(())
    })
    .await;
    let renamed = folder.path("b.txt");
    agent
        .call("rename_document", json!({ "path": path, "new_path": renamed }))
        .await
        .ok();
    agent
        .call("edit_document_text", replace(&renamed, "three", "3"))
        .await
        .ok();
    let all = versions(&agent, &renamed).await;
    assert_eq!(each(&all, "kind"), ["agent", "outside", "agent", "opened"], "{all:?}");
    agent
        .call("end_document_session", json!({ "path": renamed }))
        .await
        .ok();
    assert_eq!(versions(&agent, &renamed).await.len(), 4, "it need not be open");
    let restore = json!({ "path": renamed, "version_id": id(&all[2]) });
    agent.call("restore_document_version", restore).await.ok();
    let read = agent
        .call("get_document_content", json!({ "path": renamed }))
        .await
        .ok();
    assert_eq!(read["content"], "1\ntwo\n", "{read}");
    agent.call("delete_document", json!({ "path": renamed })).await.ok();
    assert_eq!(
        versions(&agent, &renamed).await.len(),
        5,
        "what is deleted keeps its history"
    );
}

#[tokio::test]
async fn a_document_that_suddenly_lost_its_content_is_told_and_restored() {
    let cells = ["the first of them", "the second of them", "the third of them"];
    let scene = Scene::notebook(&cells)
        .selecting("?toolsets=default,awareness")
        .editing()
        .set()
        .await;
    let (agent, path) = (&scene.agent, &scene.path);
    edit(agent, path, "c0", "the first, edited").await;
    let good = id(&versions(agent, path).await[0]).to_owned();
    agent.call("save_document", json!({ "path": path })).await.ok();
    let empty: Value = serde_json::from_str(&notebook(&[""])).unwrap();
    let body = json!({ "type": "notebook", "format": "json", "content": empty });
    person().send(Method::PUT, &format!("api/contents/{path}"), body).await;
    let notice = eventually("a notice", async || {
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        read["notices"][0].as_str().map(str::to_owned)
    })
    .await;
    assert!(
        notice.contains("restore_document_version") && notice.contains(&good),
        "{notice}"
    );
    let again = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert!(again["notices"].is_null(), "it is told once: {again}");
    let activity = eventually("an activity", async || {
        let about = json!({ "document_path": path, "limit": 50 });
        let found = agent.call("get_user_activity", about).await.ok();
        let mut all = found["activities"].as_array()?.iter();
        all.find(|activity| activity["activity_type"] == "content_lost")
            .cloned()
    })
    .await;
    assert_eq!(activity["metadata"]["version_id"], good.as_str(), "{activity}");
    agent
        .call("restore_document_version", json!({ "path": path, "version_id": good }))
        .await
        .ok();
    scene.sees(&["the first, edited", cells[1], cells[2]]).await;
}

#[tokio::test]
async fn the_last_edits_survive_a_kill_of_the_gateway() {
    for scene in [
        ProcessScene::new(&["zero"]).await,
        ProcessScene::new(&["zero"]).await.on_postgres(),
    ] {
        survive_a_kill(&scene).await;
    }
}

async fn survive_a_kill(scene: &ProcessScene) {
    let (gateway, agent) = scene.gateway().await;
    for n in 0..5 {
        edit(&agent, &scene.path, "c0", &format!("edit {n}")).await;
    }
    // The answer may be a moment ahead of the disk.
    scene.has_versions(6).await;
    gateway.signal("-KILL");
    gateway.ended().await;
    let (_gateway, agent) = scene.gateway().await;
    let all = versions(&agent, &scene.path).await;
    assert_eq!(
        each(&all, "kind"),
        ["agent", "agent", "agent", "agent", "agent", "opened"],
        "{all:?}"
    );
    let undone = agent
        .call("undo_changes", json!({ "path": scene.path, "steps": 4 }))
        .await;
    assert!(!undone.is_error, "{}", undone.text());
    scene
        .human
        .wait_for("four edits are taken back", |human| human.sources() == ["edit 0"])
        .await;
}

#[tokio::test]
async fn edits_that_jupyter_lost_are_told_after_a_kill_of_both() {
    let mut jupyter = OwnLab::start(&[]).await;
    jupyter.write("a.ipynb", &notebook(&["zero"]));
    let (jupyter_url, jupyter_token) = (jupyter.url(), jupyter.token());
    let home = Home::new();
    let serve = || {
        let mut command = home.serve_for(&jupyter_url, jupyter_token);
        command.env("JMG__STORE__URL", store::file_url(&home.path("history.db")));
        command
    };
    let gateway = Running::start(serve()).await;
    let agent = Agent::connect_to(gateway.url(), gateway.token(), Era::Modern).await;
    edit(&agent, "a.ipynb", "c0", "saved").await;
    agent.call("save_document", json!({ "path": "a.ipynb" })).await.ok();
    edit(&agent, "a.ipynb", "c0", "not saved").await;
    let newest = id(&versions(&agent, "a.ipynb").await[0]).to_owned();
    // Undoing needs the whole log, so that all of it is written then.
    let nothing = json!({ "path": "a.ipynb", "redo": true });
    agent.call("undo_changes", nothing).await.error();
    jupyter.kill();
    gateway.signal("-KILL");
    gateway.ended().await;
    jupyter.forget_documents();
    jupyter.restart().await;
    jupyter.write("a.ipynb", &notebook(&["saved"]));
    let gateway = Running::start(serve()).await;
    let agent = Agent::connect_to(gateway.url(), gateway.token(), Era::Modern).await;
    let notice = eventually("a notice", async || {
        let read = agent.call("read_nb_cells", json!({ "path": "a.ipynb" })).await.ok();
        read["notices"][0].as_str().map(str::to_owned)
    })
    .await;
    assert!(
        notice.contains("restore_document_version") && notice.contains(&newest),
        "{notice}"
    );
    agent
        .call(
            "restore_document_version",
            json!({ "path": "a.ipynb", "version_id": newest }),
        )
        .await
        .ok();
    let read = agent.call("read_nb_cells", json!({ "path": "a.ipynb" })).await.ok();
    assert_eq!(read["cells"][0]["source"], "not saved");
}

async fn the_history_goes_on_after_a_restart_of_jupyter(store: &str) {
    let mut jupyter = OwnLab::start(&[]).await;
    jupyter.write("a.ipynb", &notebook(&["zero", "one"]));
    let server = server("lab", &jupyter.url(), jupyter.token());
    let gateway = Gateway::configured(&format!("{store}\n{server}{}", everything())).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    edit(&agent, "a.ipynb", "c0", "before").await;
    agent.call("save_document", json!({ "path": "a.ipynb" })).await.ok();
    jupyter.kill();
    jupyter.forget_documents();
    jupyter.restart().await;
    eventually("the gateway is back", async || {
        let read = agent.call("read_nb_cells", json!({ "path": "a.ipynb" })).await;
        (!read.is_error).then_some(())
    })
    .await;
    edit(&agent, "a.ipynb", "c1", "after").await;
    let all = versions(&agent, "a.ipynb").await;
    assert_eq!(each(&all, "kind"), ["agent", "agent", "opened"], "{all:?}");
    let undone = agent
        .call("undo_changes", json!({ "path": "a.ipynb", "steps": 2 }))
        .await;
    assert!(!undone.is_error, "{}", undone.text());
    let human = Human::join_at(&jupyter.url(), jupyter.token(), "a.ipynb").await;
    human
        .wait_for("both are taken back", |human| human.sources() == ["zero", "one"])
        .await;
}
