//! People's view of agents, and the time at which their file is written.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually, lab,
    lab::{Folder, saves_as_told},
    notebook::{cells_on_disk, notebook},
    own_lab::OwnLab,
};

async fn scene() -> (Gateway, Agent, Folder, String) {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero", "one"]));
    let agent = Agent::connect(&gateway, Era::Modern).await;
    (gateway, agent, folder, path)
}

fn modify(path: &str, content: &str) -> Value {
    json!({ "path": path, "modifications": [{ "range": { "start": 0 }, "content": content }] })
}

fn on_disk(folder: &Folder) -> Option<String> {
    Some(cells_on_disk(&folder.disk.join("a.ipynb"))?.first()?.source.clone())
}

#[tokio::test]
async fn an_agent_is_seen_by_its_name_from_its_first_edit_until_it_leaves() {
    let (_gateway, agent, _folder, path) = scene().await;
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    agent.call("modify_nb_cells", modify(&path, "edited")).await.ok();
    human.wait_for("the agent is here", |human| human.sees("ana")).await;
    human
        .wait_for("what it does", |human| human.shown_as("ana") == "ana · editing")
        .await;
    let states = human.others();
    let user = &states.iter().find(|state| state["user"]["name"] == "ana").unwrap()["user"];
    for key in ["username", "initials", "color"] {
        assert!(user[key].as_str().is_some_and(|value| !value.is_empty()), "{user}");
    }
    let avatar = user["avatar_url"].as_str().unwrap_or_default();
    assert!(
        avatar.starts_with("data:image/svg+xml"),
        "an agent is told from a person: {user}"
    );
    // Somebody who comes later is told too, because the agent greets newcomers.
    let late = Human::join(&path).await;
    late.publish("Late", true);
    late.wait_for("the agent is here", |human| human.sees("ana")).await;
    agent.call("end_nb_session", json!({ "path": path })).await.ok();
    human.wait_for("the agent is gone", |human| !human.sees("ana")).await;
    late.wait_for("for everybody", |human| !human.sees("ana")).await;
    agent.call("modify_nb_cells", modify(&path, "again")).await.ok();
    human.wait_for("the agent is back", |human| human.sees("ana")).await;
    human.leave().await;
    late.leave().await;
}

#[tokio::test]
async fn a_gateway_that_drains_says_goodbye() {
    let (gateway, agent, _folder, path) = scene().await;
    let human = Human::join(&path).await;
    agent.call("modify_nb_cells", modify(&path, "edited")).await.ok();
    human.wait_for("the agent is here", |human| human.sees("ana")).await;
    drop(agent);
    gateway.drain().start();
    gateway.gone().await;
    human.wait_for("the agent is gone", |human| !human.sees("ana")).await;
    assert_eq!(human.sources()[0], "edited");
    human.leave().await;
}

#[tokio::test]
async fn a_person_who_saves_by_hand_is_left_to_do_so() {
    let (_gateway, agent, folder, path) = scene().await;
    let human = Human::join(&path).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    human.publish("Hanna", false);
    let other = Human::join(&path).await;
    other.publish("Otto", false);
    human.wait_for("they see each other", |human| human.sees("Otto")).await;
    agent.call("modify_nb_cells", modify(&path, "not yet")).await.ok();
    human.wait_for("the agent is here", |human| human.sees("ana")).await;
    let states = human.others();
    assert!(states.iter().all(|state| state["autosave"] == false), "{states:?}");
    human.wait_for("there is something to save", Human::sees_unsaved).await;
    // Longer than Jupyter's and the gateway's saving.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let expected = if saves_as_told() { "zero" } else { "not yet" };
    assert_eq!(on_disk(&folder).unwrap(), expected);
    if saves_as_told() {
        human.save();
        eventually("it is saved", async || (on_disk(&folder)? == "not yet").then_some(())).await;
        human
            .wait_for("there is nothing to save", |human| !human.sees_unsaved())
            .await;
        // Longer than it takes the gateway to look after what is not saved.
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!human.sees_unsaved(), "and nobody says otherwise");
    }
    other.publish("Otto", true);
    agent.call("modify_nb_cells", modify(&path, "now")).await.ok();
    eventually("one who wants it is enough", async || {
        (on_disk(&folder)? == "now").then_some(())
    })
    .await;
    human.leave().await;
    other.leave().await;
}

/// Somebody with autosave off and a document open before the gateway comes, which Jupyter does not tell newcomers.
async fn behind_a_person_who_saves_by_hand() -> (Gateway, Agent, Folder, String, Human) {
    let (gateway, agent, folder, path) = scene().await;
    let human = Human::join(&path).await;
    human.publish("Hanna", false);
    let witness = Human::join(&path).await;
    witness.publish("Will", false);
    human.wait_for("Jupyter has both", |human| human.sees("Will")).await;
    witness.leave().await;
    human.wait_for("one left", |human| !human.sees("Will")).await;
    agent.call("modify_nb_cells", modify(&path, "not yet")).await.ok();
    human.wait_for("the agent is here", |human| human.sees("ana")).await;
    (gateway, agent, folder, path, human)
}

#[tokio::test]
async fn a_person_who_switched_autosave_off_before_is_left_to_save_by_hand() {
    let (_gateway, agent, folder, path, human) = behind_a_person_who_saves_by_hand().await;
    let expected = |source: &'static str| if saves_as_told() { "zero" } else { source };
    let started = Instant::now();
    let mut step = 0;
    // Longer than it takes until the person speaks again, and than the gateway listens for that.
    while started.elapsed() < Duration::from_secs(24) {
        step += 1;
        let source = if step % 2 == 0 { "not yet" } else { "still not" };
        agent.call("modify_nb_cells", modify(&path, source)).await.ok();
        let all_stand_back = human.others().iter().all(|state| state["autosave"] == false);
        assert!(all_stand_back || !saves_as_told(), "{:?}", human.others());
        // Longer than the server waits before it saves.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(
            on_disk(&folder).unwrap(),
            expected(source),
            "after {:?}",
            started.elapsed()
        );
    }
    human.publish("Hanna", true);
    agent.call("modify_nb_cells", modify(&path, "now")).await.ok();
    eventually("it is saved", async || (on_disk(&folder)? == "now").then_some(())).await;
    human.leave().await;
}

#[tokio::test]
async fn what_a_person_did_not_save_is_saved_when_they_left() {
    let (_gateway, _agent, folder, _path, human) = behind_a_person_who_saves_by_hand().await;
    // Longer than the server waits before it saves.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(
        on_disk(&folder).unwrap(),
        if saves_as_told() { "zero" } else { "not yet" }
    );
    human.leave().await;
    eventually("it is saved", async || (on_disk(&folder)? == "not yet").then_some(())).await;
}

#[tokio::test]
async fn a_session_that_ends_leaves_saving_to_a_person_who_saves_by_hand() {
    let (_gateway, agent, folder, path, human) = behind_a_person_who_saves_by_hand().await;
    agent.call("end_nb_session", json!({ "path": path })).await.ok();
    human.wait_for("the agent is gone", |human| !human.sees("ana")).await;
    assert_eq!(human.sources()[0], "not yet");
    assert_eq!(
        on_disk(&folder).unwrap(),
        if saves_as_told() { "zero" } else { "not yet" }
    );
    human.leave().await;
}

/// Jupyter saves when changes pause, because the person wants it; the gateway when they do not.
#[tokio::test]
async fn beside_a_person_who_wants_it_everything_is_saved() {
    let (_gateway, agent, folder, path) = scene().await;
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    agent.call("modify_nb_cells", modify(&path, "edited")).await.ok();
    let started = Instant::now();
    eventually("it is saved", async || (on_disk(&folder)? == "edited").then_some(())).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    agent.call("modify_nb_cells", modify(&path, "ended")).await.ok();
    agent.call("end_nb_session", json!({ "path": path })).await.ok();
    if saves_as_told() {
        assert_eq!(on_disk(&folder).unwrap(), "ended");
    }
    human.leave().await;
}

#[tokio::test]
async fn an_edit_is_on_disk_soon() {
    let (_gateway, agent, folder, path) = scene().await;
    agent.call("modify_nb_cells", modify(&path, "edited")).await.ok();
    let started = Instant::now();
    eventually("it is saved", async || (on_disk(&folder)? == "edited").then_some(())).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// Jupyter waits for a second without changes, which never comes.
#[tokio::test]
async fn what_changes_all_the_time_is_saved_in_between() {
    let (_gateway, agent, folder, path) = scene().await;
    change_all_the_time(&agent, &folder, &path).await;
}

#[tokio::test]
async fn what_changes_all_the_time_beside_a_person_who_wants_it_saved_is_saved_in_between() {
    let (_gateway, agent, folder, path) = scene().await;
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    change_all_the_time(&agent, &folder, &path).await;
    human.leave().await;
}

async fn change_all_the_time(agent: &Agent, folder: &Folder, path: &str) {
    let started = Instant::now();
    let (mut seen, mut step) = (Vec::<String>::new(), 0);
    while started.elapsed() < Duration::from_secs(8) {
        step += 1;
        agent
            .call("modify_nb_cells", modify(path, &format!("step {step}")))
            .await
            .ok();
        // More often than the server would save by itself.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = on_disk(folder).filter(|now| now != "zero" && seen.last() != Some(now));
        seen.extend(now);
    }
    assert!(!seen.is_empty() || !saves_as_told(), "never saved in 8 s of edits");
    eventually("the last one too", async || {
        (on_disk(folder)? == format!("step {step}")).then_some(())
    })
    .await;
}

/// JupyterLab's side panel lists who is online from a room that belongs to no document.
#[tokio::test]
async fn an_agent_at_work_is_listed_as_online() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let path = folder.write("n.ipynb", &notebook(&["1"]));
    let panel = Panel::open(lab().address(), lab().token()).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    agent.call("modify_nb_cells", modify(&path, "2")).await.ok();
    let listed = panel.lists(&path, Duration::from_secs(20)).await;
    assert!(listed.contains(r#""display_name":"ana · editing""#), "{listed}");
}

#[tokio::test]
async fn an_agent_is_listed_as_online_again_when_jupyter_comes_back_from_a_crash() {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("n.ipynb", &notebook(&["1"]));
    let gateway = Gateway::to(&lab.url(), lab.token()).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let panel = Panel::open(&lab.address(), lab.token()).await;
    agent.call("modify_nb_cells", modify("n.ipynb", "2")).await.ok();
    panel.lists("n.ipynb", Duration::from_secs(20)).await;
    lab.kill();
    agent.call("query_document_session", json!({ "path": "n.ipynb" })).await;
    lab.restart().await;
    let panel = Panel::open(&lab.address(), lab.token()).await;
    // An edit tells that the document is there again; the list must be no later than that, give or take.
    agent.call("modify_nb_cells", modify("n.ipynb", "3")).await.ok();
    panel.lists("n.ipynb", Duration::from_secs(10)).await;
}

/// The list of who is online, as a browser gets it.
struct Panel(tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>);

impl Panel {
    async fn open(address: &str, token: &str) -> Self {
        let address = format!("ws://{address}/api/collaboration/room/JupyterLab:globalAwareness?token={token}");
        let (socket, _) = tokio_tungstenite::connect_async(address).await.expect("the room opens");
        Self(socket)
    }

    /// Waits until somebody is listed in a notebook, and returns the entry.
    async fn lists(mut self, path: &str, patience: Duration) -> String {
        let listed = tokio::time::timeout(patience, async {
            loop {
                let frame = futures::StreamExt::next(&mut self.0).await;
                let frame = frame.expect("more").expect("a frame");
                let text = String::from_utf8_lossy(&frame.into_data()).into_owned();
                if text.contains(&format!("notebook:{path}")) {
                    return text;
                }
            }
        });
        listed.await.expect("the agent is listed")
    }
}

#[tokio::test]
async fn the_cursor_of_an_agent_is_where_it_edited_last_also_at_the_end() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let path = folder.write("n.ipynb", &notebook(&["first", "second"]));
    let (agent, human) = (Agent::connect(&gateway, Era::Modern).await, Human::join(&path).await);
    let cursor = async |what: &str, differs_from: Value| {
        eventually(what, async || {
            let others = human.others();
            let cursors = others.iter().map(|state| state["cursors"][0]["head"].clone());
            cursors
                .into_iter()
                .find(|head| !head.is_null() && *head != differs_from)
        })
        .await
    };
    let modify = |cell: usize, content: &str| json!({ "path": path, "modifications": [{ "range": { "start": cell }, "content": content }] });
    agent.call("modify_nb_cells", modify(0, "f1rst")).await.ok();
    let middle = cursor("a cursor in the middle", Value::Null).await;
    assert!(middle["item"].is_object(), "{middle}");
    agent.call("modify_nb_cells", modify(1, "second and more")).await.ok();
    let end = cursor("a cursor at the end", middle).await;
    assert!(end["type"].is_object() && end["item"].is_null(), "{end}");
}

#[tokio::test]
async fn an_agent_that_only_reads_is_seen_reading() {
    let (_gateway, agent, folder, path) = scene().await;
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    human
        .wait_for("the reader is here", |human| human.shown_as("ana") == "ana · reading")
        .await;
    let text = folder.write("notes.md", "one");
    let other = Human::join(&text).await;
    agent.call("get_document_content", json!({ "path": text })).await.ok();
    other
        .wait_for("in text too", |human| human.shown_as("ana") == "ana · reading")
        .await;
    human.leave().await;
    other.leave().await;
}

/// Who is shown says something of saving too, which must not keep the server from it.
#[tokio::test]
async fn what_is_edited_after_reading_is_on_disk_as_soon() {
    let (_gateway, agent, folder, path) = scene().await;
    let witness = Human::join(&path).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    witness.wait_for("the reader is here", |human| human.sees("ana")).await;
    agent.call("modify_nb_cells", modify(&path, "edited")).await.ok();
    let started = Instant::now();
    eventually("it is saved", async || (on_disk(&folder)? == "edited").then_some(())).await;
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    witness.wait_for("the agent is here", |human| human.sees("ana")).await;
    witness.leave().await;
}

/// Somebody else in the room who says nothing of themselves, as programs do.
#[tokio::test]
async fn a_reader_keeps_nobody_from_being_saved() {
    let (_gateway, agent, folder, path) = scene().await;
    let silent = Human::join(&path).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    silent.wait_for("the reader is here", |human| human.sees("ana")).await;
    let id = silent.cells()[0].id.clone();
    silent.splice_cell(&id, 0, 4, "theirs");
    eventually("it is saved", async || (on_disk(&folder)? == "theirs").then_some(())).await;
    silent.leave().await;
}

#[tokio::test]
async fn an_agent_leaves_when_it_did_nothing_for_as_long_as_configured() {
    let gateway = Gateway::with("[sessions]\npresence_timeout = \"2s\"").await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero"]));
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let human = Human::join(&path).await;
    agent.call("modify_nb_cells", modify(&path, "edited")).await.ok();
    human.wait_for("the agent is here", |human| human.sees("ana")).await;
    human.wait_for("the agent is gone", |human| !human.sees("ana")).await;
}

#[tokio::test]
async fn what_an_agent_changed_is_selected_for_people() {
    let (_gateway, agent, folder, _path) = scene().await;
    let path = folder.write("s.ipynb", &notebook(&["alpha = 1\nbeta = 2\ngamma = 3"]));
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    let source = "alpha = 1\nbeta = 2222\ngamma = 3";
    agent.call("modify_nb_cells", modify(&path, source)).await.ok();
    human
        .wait_for("the change is selected", |human| human.selected("ana") == ["222"])
        .await;
    let cells = json!([{ "content": "whole = 1\ncell = 2" }]);
    let insert = json!({ "path": path, "position": 1, "cells": cells, "exec": true });
    agent.call("insert_nb_cells", insert).await.ok();
    human
        .wait_for("what it wrote stays selected when it runs", |human| {
            human.selected("ana") == ["whole = 1\ncell = 2"]
        })
        .await;
}
