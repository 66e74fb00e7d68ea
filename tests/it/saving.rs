//! `save_document`: answers when the file has it, also where people save by hand.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually, lab,
    lab::{Folder, saves_as_told},
    notebook::{notebook, sources_on_disk},
};

async fn start() -> (Gateway, Agent, Folder) {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    (gateway, agent, lab().folder())
}

fn modify(path: &str, source: &str) -> Value {
    json!({ "path": path, "modifications": [{ "range": { "cell_id": "c0" }, "content": source }], "exec": false })
}

async fn save(agent: &Agent, path: &str) -> Value {
    agent.call("save_document", json!({ "path": path })).await.ok()
}

#[tokio::test]
async fn the_file_has_what_was_saved() {
    let (_gateway, agent, folder) = start().await;
    let path = folder.write("run.ipynb", &notebook(&["0"]));
    let text = folder.write("notes.txt", "0");
    for number in 1..=5 {
        agent
            .call("modify_nb_cells", modify(&path, &format!("n = {number}")))
            .await
            .ok();
        assert_eq!(save(&agent, &path).await["saved"], true);
        assert_eq!(
            sources_on_disk(&folder.disk.join("run.ipynb")).unwrap(),
            [format!("n = {number}")]
        );
        let content = format!("line {number}");
        agent
            .call("overwrite_document", json!({ "path": text, "content": content }))
            .await
            .ok();
        assert_eq!(save(&agent, &text).await["saved"], true);
        assert_eq!(std::fs::read_to_string(folder.disk.join("notes.txt")).unwrap(), content);
    }
}

#[tokio::test]
async fn what_people_save_by_hand_is_saved_and_their_mark_goes() {
    let (_gateway, agent, folder) = start().await;
    if !saves_as_told() {
        return;
    }
    let path = folder.write("run.ipynb", &notebook(&["0", "1"]));
    let human = Human::join(&path).await;
    human.publish("Hanna", false);
    agent.call("modify_nb_cells", modify(&path, "edited")).await.ok();
    human.splice_cell("c1", 0, 1, "typed");
    human
        .wait_for("both are there", |human| human.sources() == ["edited", "typed"])
        .await;
    human.wait_for("the tab has its mark", Human::sees_unsaved).await;
    eventually("the gateway has it", async || {
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        (read["cells"][1]["source"] == "typed").then_some(())
    })
    .await;
    assert_eq!(sources_on_disk(&folder.disk.join("run.ipynb")).unwrap(), ["0", "1"]);
    save(&agent, &path).await;
    assert_eq!(
        sources_on_disk(&folder.disk.join("run.ipynb")).unwrap(),
        ["edited", "typed"]
    );
    human.wait_for("the mark is gone", |human| !human.sees_unsaved()).await;
    // It does not come back with the next look after the document.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    assert!(!human.sees_unsaved());

    let text = folder.write("notes.txt", "0");
    let typist = Human::join(&text).await;
    typist.publish("Hanna", false);
    agent.call("get_document_content", json!({ "path": text })).await.ok();
    agent
        .call("overwrite_document", json!({ "path": text, "content": "1" }))
        .await
        .ok();
    typist.wait_for("the tab has its mark", Human::sees_unsaved).await;
    save(&agent, &text).await;
    assert_eq!(std::fs::read_to_string(folder.disk.join("notes.txt")).unwrap(), "1");
    typist.wait_for("the mark is gone", |human| !human.sees_unsaved()).await;
}

#[tokio::test]
async fn what_only_a_person_has_open_is_saved_and_what_nobody_has_needs_nothing() {
    let (_gateway, agent, folder) = start().await;
    let quiet = folder.write("quiet.ipynb", &notebook(&["0"]));
    let answer = save(&agent, &quiet).await;
    assert_eq!(answer["saved"], false, "{answer}");
    assert!(
        answer["message"].as_str().unwrap().contains("nothing to save"),
        "{answer}"
    );
    let path = folder.write("run.ipynb", &notebook(&["0"]));
    let human = Human::join(&path).await;
    human.publish("Hanna", false);
    human.splice_cell("c0", 0, 1, "typed");
    human.mark_unsaved();
    let witness = Human::join(&path).await;
    witness
        .wait_for("Jupyter has it", |witness| {
            witness.sources() == ["typed"] && witness.sees_unsaved()
        })
        .await;
    let answer = save(&agent, &path).await;
    assert_eq!(answer["saved"], true, "{answer}");
    assert_eq!(sources_on_disk(&folder.disk.join("run.ipynb")).unwrap(), ["typed"]);
}

/// Makes a file one that nobody may write, not even the administrator as whom Jupyter may run.
fn protect(file: &Path, protected: bool) {
    let change = |program: &str, how: &str| {
        let done = std::process::Command::new(program).arg(how).arg(file).status();
        done.is_ok_and(|status| status.success())
    };
    let (attribute, mode) = if protected { ("+i", "a-w") } else { ("-i", "u+w") };
    assert!(change("chattr", attribute) || change("chmod", mode));
}

#[tokio::test]
async fn what_cannot_be_saved_is_an_error() {
    let (_gateway, agent, folder) = start().await;
    let text = folder.write("notes.txt", "0");
    agent.call("get_document_content", json!({ "path": text })).await.ok();
    protect(&folder.disk.join("notes.txt"), true);
    let refused = agent.call("save_document", json!({ "path": text })).await;
    protect(&folder.disk.join("notes.txt"), false);
    assert!(refused.error().contains("cannot write"));
    let missing = json!({ "path": folder.path("none.txt") });
    assert!(
        agent
            .call("save_document", missing)
            .await
            .error()
            .contains("does not exist")
    );
    let directory = json!({ "path": folder.path("") });
    agent.call("save_document", directory).await.error();
}

#[tokio::test]
async fn what_is_deleted_while_it_is_being_saved_does_not_come_back() {
    let (_gateway, agent, folder) = start().await;
    let paths: Vec<String> = (0..24)
        .map(|n| folder.write(&format!("{n}.ipynb"), &notebook(&["0"])))
        .collect();
    let edit_and_delete = async |path: &String| {
        agent.call("modify_nb_cells", modify(path, "edited")).await.ok();
        // Jupyter writes what was edited a second later.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        agent.call("delete_document", json!({ "path": path })).await.ok();
    };
    futures::future::join_all(paths.iter().map(edit_and_delete)).await;
    // Longer than any of the saves takes.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let left: Vec<_> = (0..24).filter(|n| folder.has(&format!("{n}.ipynb"))).collect();
    assert!(left.is_empty(), "came back: {left:?}");
}
