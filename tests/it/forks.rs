//! Forks: copies of documents that JupyterLab knows too, to work in and to merge, all or cell by cell, beside people who go on
//! typing in the document.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human,
    engines::on_both_engines,
    eventually,
    gateway::{everything, lab_server, server},
    jupyter::JupyterApi,
    lab,
    notebook::notebook,
    own_lab::OwnLab,
    process_scene::ProcessScene,
    scene::{Scene, person, shown},
};

const BEN: &str = "test-token-of-ben";

/// A server's extension for Jupyter as versions without forks have it.
const WITHOUT_FORKS: &str = r#"
import jupyter_server_ydoc.app as app
original = app.YDocExtension.initialize_handlers
def without_forks(self):
    original(self)
    self.handlers = [handler for handler in self.handlers if "collaboration/fork" not in handler[0]]
app.YDocExtension.initialize_handlers = without_forks
"#;

/// Forks a document; the fork's id.
pub async fn fork(agent: &Agent, path: &str, arguments: Value) -> String {
    let mut arguments = arguments;
    arguments["path"] = path.into();
    let forked = agent.call("fork_document", arguments).await.ok();
    forked["fork_id"].as_str().expect("an id").to_owned()
}

pub async fn modify(agent: &Agent, path: &str, fork: &str, cell: &str, content: &str) -> Value {
    let modifications = json!([{ "range": { "cell_id": cell }, "content": content }]);
    let modify = json!({ "path": path, "fork_id": fork, "modifications": modifications, "exec": false });
    agent.call("modify_nb_cells", modify).await.ok()
}

pub async fn sources(agent: &Agent, path: &str, fork: Option<&str>) -> Vec<String> {
    let read = json!({ "path": path, "fork_id": fork });
    let read = agent.call("read_nb_cells", read).await.ok();
    let cells = read["cells"].as_array().expect("cells").iter();
    cells
        .map(|cell| cell["source"].as_str().unwrap_or_default().to_owned())
        .collect()
}

pub async fn merge(agent: &Agent, path: &str, fork: &str, more: Value) -> crate::support::agent::ToolAnswer {
    let mut merge = json!({ "path": path, "fork_id": fork });
    for (key, value) in more.as_object().expect("members") {
        merge[key] = value.clone();
    }
    agent.call("merge_document_fork", merge).await
}

async fn listed(agent: &Agent, path: &str) -> Vec<Value> {
    let listed = agent.call("list_document_forks", json!({ "path": path })).await.ok();
    listed["forks"].as_array().expect("forks").clone()
}

/// The forks of a document as JupyterLab asks for them.
async fn known_to_jupyter(api: &JupyterApi, path: &str) -> Value {
    let session = json!({ "format": "json", "type": "notebook" });
    let session = api
        .send(Method::PUT, &format!("api/collaboration/session/{path}"), session)
        .await;
    let session: Value = session.json().await.expect("a session");
    let room = format!("json:notebook:{}", session["fileId"].as_str().expect("an id"));
    let forks = api.get(&format!("api/collaboration/fork/{room}")).await;
    forks.json().await.expect("forks")
}

on_both_engines! {
    a_fork_is_worked_in_and_merged_while_a_person_types_in_the_same_cell,
    chosen_cells_are_merged_and_the_fork_stays_with_the_rest,
    a_fork_has_a_history_of_its_own,
    forks_survive_a_restart_of_jupyter,
}

async fn a_fork_is_worked_in_and_merged_while_a_person_types_in_the_same_cell(store: &str) {
    let cells = ["x = 1\ny = 2", "z = 3"];
    let scene = Scene::notebook(&cells).with(store).editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let id = fork(agent, path, json!({ "title": "Try", "description": "something" })).await;
    let known = known_to_jupyter(&person(), path).await;
    assert_eq!(
        (&known[&id]["title"], &known[&id]["description"]),
        (&json!("Try"), &json!("something"))
    );

    let edited = modify(agent, path, &id, "c0", "x = 10\ny = 2").await;
    assert!(
        edited["notices"].to_string().contains(&format!("This is fork {id} of")),
        "{edited}"
    );
    let insert =
        json!({ "path": path, "fork_id": id, "after": "c1", "cells": [{ "content": "new = 1" }], "exec": false });
    agent.call("insert_nb_cells", insert).await.ok();
    assert_eq!(
        sources(agent, path, Some(&id)).await,
        ["x = 10\ny = 2", "z = 3", "new = 1"]
    );
    assert_eq!(
        sources(agent, path, None).await,
        ["x = 1\ny = 2", "z = 3"],
        "the document is as it was"
    );
    let stat = agent
        .call("get_nb_stat", json!({ "path": path, "fork_id": id }))
        .await
        .ok();
    assert_eq!(stat["cell_count"], 3);

    scene.human.splice_cell("c0", 11, 0, "  # why?");
    scene.sees(&["x = 1\ny = 2  # why?", "z = 3"]).await;
    eventually("the gateway has it", async || {
        let seen = sources(agent, path, None).await;
        (seen[0].ends_with("why?")).then_some(())
    })
    .await;
    let forks = listed(agent, path).await;
    assert_eq!(forks.len(), 1);
    assert_eq!(
        forks[0]["changed_cells"].as_array().expect("cells").len(),
        2,
        "{forks:?}"
    );
    let merged = merge(agent, path, &id, json!({})).await;
    assert!(merged.texts.join("\n").contains("+x = 10"), "{:?}", merged.texts);
    let merged = merged.ok();
    assert_eq!(
        (&merged["fork_kept"], merged["merged_cells"].as_array().map(Vec::len)),
        (&json!(false), Some(2))
    );
    scene.sees(&["x = 10\ny = 2  # why?", "z = 3", "new = 1"]).await;
    assert!(listed(agent, path).await.is_empty());
    assert_eq!(known_to_jupyter(&person(), path).await, json!({}));
    let gone = merge(agent, path, &id, json!({})).await.error();
    assert!(gone.contains("no fork") && gone.contains("it has no forks"), "{gone}");
}

async fn chosen_cells_are_merged_and_the_fork_stays_with_the_rest(store: &str) {
    let cells = ["a = 1", "b = 1", "c = 1", "d = 1"];
    let scene = Scene::notebook(&cells).with(store).editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let id = fork(agent, path, json!({})).await;
    modify(agent, path, &id, "c0", "a = 2").await;
    modify(agent, path, &id, "c1", "b = 2").await;
    let delete = json!({ "path": path, "fork_id": id, "ranges": [{ "cell_id": "c2" }] });
    agent.call("delete_nb_cells", delete).await.ok();
    let moved = json!({ "path": path, "fork_id": id, "ranges": [{ "cell_id": "c3" }], "position": 0 });
    agent.call("move_nb_cells", moved).await.ok();
    let unknown = merge(agent, path, &id, json!({ "cell_ids": ["nothing"] }))
        .await
        .error();
    for part in ["nothing", "c0 (changed)", "c2 (deleted)", "c3 (moved)"] {
        assert!(unknown.contains(part), "{part}: {unknown}");
    }
    let merged = merge(agent, path, &id, json!({ "cell_ids": ["c1", "c2"] })).await.ok();
    assert_eq!(merged["fork_kept"], true, "{merged}");
    assert_eq!(merged["remaining_cells"].as_array().map(Vec::len), Some(2), "{merged}");
    scene.sees(&["a = 1", "b = 2", "d = 1"]).await;
    // A person goes on in what was merged, which is no difference of the fork any more.
    scene.human.splice_cell("c1", 4, 1, "3");
    scene.sees(&["a = 1", "b = 3", "d = 1"]).await;
    let merged = merge(agent, path, &id, json!({})).await.ok();
    assert_eq!(merged["fork_kept"], false);
    scene.sees(&["d = 1", "a = 2", "b = 3"]).await;
}

async fn a_fork_has_a_history_of_its_own(store: &str) {
    let scene = Scene::notebook(&["x = 1", "y = 1"]).with(store).editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let (id, other) = (fork(agent, path, json!({})).await, fork(agent, path, json!({})).await);
    for content in ["x = 2", "x = 3"] {
        modify(agent, path, &id, "c0", content).await;
    }
    modify(agent, path, &other, "c0", "x = 9").await;
    let history = async |fork: Option<&str>| {
        let arguments = json!({ "path": path, "fork_id": fork });
        let listed = agent.call("get_document_history", arguments).await.ok();
        listed["versions"].as_array().expect("versions").clone()
    };
    let versions = history(Some(&id)).await;
    let kinds: Vec<&str> = versions.iter().filter_map(|version| version["kind"].as_str()).collect();
    assert_eq!(kinds, ["agent", "agent", "opened"], "{versions:?}");
    let of_document = history(None).await;
    assert_eq!(of_document.len(), 1, "{of_document:?}");
    let undo = |arguments: Value| agent.call("undo_changes", arguments);
    undo(json!({ "path": path, "fork_id": id })).await.ok();
    assert_eq!(sources(agent, path, Some(&id)).await, ["x = 2", "y = 1"]);
    let restore = json!({ "path": path, "fork_id": id, "version_id": versions[0]["version_id"] });
    agent.call("restore_document_version", restore.clone()).await.ok();
    assert_eq!(sources(agent, path, Some(&id)).await, ["x = 3", "y = 1"]);
    assert_eq!(sources(agent, path, Some(&other)).await, ["x = 9", "y = 1"]);
    let mut elsewhere = restore;
    elsewhere["fork_id"] = other.as_str().into();
    let unknown = agent.call("restore_document_version", elsewhere).await.error();
    assert!(unknown.contains("has no version"), "{unknown}");
    let nothing = undo(json!({ "path": path })).await.error();
    assert!(nothing.contains("nothing to undo"), "{nothing}");
    // A merge is one version of the document, whatever it was made of.
    merge(agent, path, &id, json!({})).await.ok();
    scene.sees(&["x = 3", "y = 1"]).await;
    undo(json!({ "path": path })).await.ok();
    scene.sees(&["x = 1", "y = 1"]).await;
}

#[tokio::test]
async fn cells_of_a_fork_run_in_the_kernel_of_the_notebook_and_show_their_outputs_in_the_fork() {
    let scene = Scene::notebook(&["secret = 42", "print(secret + 1)"]).set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    scene.run(0, 1).await.ok();
    let id = fork(agent, path, json!({})).await;
    modify(agent, path, &id, "c1", "print(secret + 2)").await;
    let run = json!({ "path": path, "fork_id": id, "ranges": [{ "cell_id": "c1" }] });
    let ran = agent.call("execute_nb_cells", run).await.ok();
    assert_eq!(ran["execution_results"][0]["outputs"][0]["text"], "44\n", "{ran}");
    assert_eq!(scene.kernels().await.len(), 1, "the notebook's own");
    let read = agent
        .call("read_nb_cells", json!({ "path": path, "fork_id": id }))
        .await
        .ok();
    assert_eq!(shown(&read["cells"][1]), "44\n", "{read}");
    assert_eq!(shown(&scene.human.cell(1)), "", "the document shows nothing of it");
    merge(agent, path, &id, json!({})).await.ok();
    scene.shows(1, "44").await;
    scene.run(1, 2).await.ok();
}

#[tokio::test]
async fn a_text_document_is_forked_and_merged_too() {
    let scene = Scene::of("notes.md", "one\ntwo\nthree\n").editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let id = fork(agent, path, json!({})).await;
    let edit = json!({ "path": path, "fork_id": id, "old_text": "two", "new_text": "2" });
    agent.call("edit_document_text", edit).await.ok();
    let read = agent
        .call("get_document_content", json!({ "path": path, "fork_id": id }))
        .await
        .ok();
    assert_eq!(read["content"], "one\n2\nthree\n");
    scene.human.splice_text(0, 0, "zero\n");
    let expected = "zero\none\n2\nthree\n";
    let some = merge(agent, path, &id, json!({ "cell_ids": ["c0"] })).await.error();
    assert!(some.contains("has no cells"), "{some}");
    eventually("the gateway has it", async || {
        let read = agent.call("get_document_content", json!({ "path": path })).await.ok();
        read["content"]
            .as_str()
            .is_some_and(|text| text.starts_with("zero"))
            .then_some(())
    })
    .await;
    merge(agent, path, &id, json!({})).await.ok();
    scene
        .human
        .wait_for("the person sees both", |human| human.text() == expected)
        .await;
}

#[tokio::test]
async fn a_fork_can_follow_its_document() {
    let scene = Scene::notebook(&["x = 1\ny = 2", "z = 3"]).editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let id = fork(agent, path, json!({ "synchronize": true })).await;
    modify(agent, path, &id, "c0", "x = 10\ny = 2").await;
    scene.human.splice_cell("c0", 11, 0, "2");
    scene.human.insert_cell(2, "c9", "human = 1");
    eventually("the fork has what the person typed", async || {
        (sources(agent, path, Some(&id)).await == ["x = 10\ny = 22", "z = 3", "human = 1"]).then_some(())
    })
    .await;
    let merged = merge(agent, path, &id, json!({})).await.ok();
    let cells = &merged["merged_cells"];
    assert_eq!(
        (cells.as_array().map(Vec::len), &cells[0]["cell_id"]),
        (Some(1), &json!("c0")),
        "{merged}"
    );
    scene.sees(&["x = 10\ny = 22", "z = 3", "human = 1"]).await;
}

async fn forks_survive_a_restart_of_jupyter(store: &str) {
    let mut lab = OwnLab::start(&[]).await;
    lab.write("a.ipynb", &notebook(&["x = 1", "y = 1"]));
    let server = server("lab", &lab.url(), lab.token());
    let gateway = Gateway::configured(&format!("{store}\n{server}{}", everything())).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let id = fork(&agent, "a.ipynb", json!({ "title": "Try" })).await;
    modify(&agent, "a.ipynb", &id, "c0", "x = 2").await;
    lab.kill();
    lab.forget_documents();
    lab.restart().await;
    eventually("the fork is back", async || {
        let read = agent
            .call("read_nb_cells", json!({ "path": "a.ipynb", "fork_id": id }))
            .await;
        (read.structured["cells"][0]["source"] == "x = 2").then_some(())
    })
    .await;
    let known = known_to_jupyter(&JupyterApi::new(&lab.url(), lab.token()), "a.ipynb").await;
    assert!(known.as_object().is_some_and(|forks| forks.len() == 1), "{known}");
    let human = Human::join_at(&lab.url(), lab.token(), "a.ipynb").await;
    human.splice_cell("c0", 5, 0, "  # one");
    eventually("the gateway has it", async || {
        (sources(&agent, "a.ipynb", None).await[0] == "x = 1  # one").then_some(())
    })
    .await;
    merge(&agent, "a.ipynb", &id, json!({})).await.ok();
    let merged = ["x = 2  # one", "y = 1"];
    human
        .wait_for("the person sees both", |human| human.sources() == merged)
        .await;
}

#[tokio::test]
async fn forks_survive_a_killed_gateway() {
    let cells = ["x = 1", "y = 1"];
    for scene in [
        ProcessScene::new(&cells).await,
        ProcessScene::new(&cells).await.on_postgres(),
    ] {
        survives_a_kill(&scene).await;
    }
}

async fn survives_a_kill(scene: &ProcessScene) {
    let path = scene.path.as_str();
    let (gateway, agent) = scene.gateway().await;
    let id = fork(&agent, path, json!({})).await;
    modify(&agent, path, &id, "c0", "x = 2").await;
    modify(&agent, path, &id, "c0", "x = 3").await;
    // The document, its fork, and two edits of that.
    scene.has_versions(4).await;
    gateway.signal("-KILL");
    gateway.ended().await;
    scene.human.splice_cell("c1", 4, 1, "7");
    let (_gateway, agent) = scene.gateway().await;
    assert_eq!(sources(&agent, path, Some(&id)).await, ["x = 3", "y = 1"]);
    let undo = json!({ "path": path, "fork_id": id });
    agent.call("undo_changes", undo).await.ok();
    assert_eq!(sources(&agent, path, Some(&id)).await, ["x = 2", "y = 1"]);
    merge(&agent, path, &id, json!({})).await.ok();
    let merged = ["x = 2", "y = 7"];
    scene
        .human
        .wait_for("the person sees both", |human| human.sources() == merged)
        .await;
}

#[tokio::test]
async fn a_server_without_forks_gets_those_of_the_gateway() {
    let config = tempfile::NamedTempFile::with_suffix(".py").expect("a file");
    std::fs::write(config.path(), WITHOUT_FORKS).expect("written");
    let argument = format!("--config={}", config.path().display());
    let lab = OwnLab::start(&[&argument]).await;
    lab.write("a.ipynb", &notebook(&["x = 1", "print(x)"]));
    let missing = JupyterApi::new(&lab.url(), lab.token())
        .get("api/collaboration/fork/x")
        .await;
    assert_eq!(missing.status(), 404, "it has none");
    let gateway = Gateway::to(&lab.url(), lab.token()).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let human = Human::join_at(&lab.url(), lab.token(), "a.ipynb").await;
    let id = fork(&agent, "a.ipynb", json!({ "synchronize": true })).await;
    modify(&agent, "a.ipynb", &id, "c0", "x = 2").await;
    human.insert_cell(2, "c9", "human = 1");
    eventually("the fork follows", async || {
        (sources(&agent, "a.ipynb", Some(&id)).await == ["x = 2", "print(x)", "human = 1"]).then_some(())
    })
    .await;
    let run = json!({ "path": "a.ipynb", "fork_id": id, "ranges": [{ "start": 0, "end": 2 }] });
    let ran = agent.call("execute_nb_cells", run).await.ok();
    assert_eq!(ran["execution_results"][1]["outputs"][0]["text"], "2\n", "{ran}");
    assert_eq!(human.sources(), ["x = 1", "print(x)", "human = 1"]);
    merge(&agent, "a.ipynb", &id, json!({})).await.ok();
    let merged = ["x = 2", "print(x)", "human = 1"];
    human
        .wait_for("the person sees both", |human| human.sources() == merged)
        .await;
}

#[tokio::test]
async fn every_tool_that_works_in_one_document_takes_a_fork() {
    let scene = Scene::notebook(&["x = 1"]).selecting("?toolsets=all").set().await;
    let text = scene.folder.write("notes.md", "one\n");
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let cell = json!([{ "cell_id": "c0" }]);
    let content = json!([{ "range": { "cell_id": "c0" }, "content": "y" }]);
    let of_notebook = [
        ("get_nb_stat", json!({})),
        ("read_nb_cells", json!({})),
        ("modify_nb_cells", json!({ "modifications": content })),
        (
            "edit_nb_cell",
            json!({ "cell_id": "c0", "old_text": "x", "new_text": "y" }),
        ),
        (
            "insert_nb_cells",
            json!({ "position": 0, "cells": [{ "content": "y" }] }),
        ),
        ("delete_nb_cells", json!({ "ranges": cell })),
        ("move_nb_cells", json!({ "ranges": cell, "position": 0 })),
        ("clear_nb_outputs", json!({})),
        ("execute_nb_cells", json!({})),
        ("get_notebook", json!({})),
        (
            "batch_update_notebook_cells",
            json!({ "cell_ids": ["c0"], "updates": [{ "content": "y" }] }),
        ),
        ("batch_insert_notebook_cells", json!({ "cells": [{ "content": "y" }] })),
        ("batch_delete_notebook_cells", json!({ "cell_ids": ["c0"] })),
        ("execute_notebook_cell", json!({ "cell_id": "c0" })),
    ];
    let of_text = [
        ("get_document_content", json!({})),
        ("insert_document_text", json!({ "position": 0, "text": "y" })),
        ("delete_document_text", json!({ "position": 0, "length": 1 })),
        (
            "replace_document_text",
            json!({ "position": 0, "length": 1, "text": "y" }),
        ),
        ("edit_document_text", json!({ "old_text": "one", "new_text": "y" })),
        ("overwrite_document", json!({ "content": "y" })),
        ("get_document", json!({})),
        ("get_document_info", json!({ "include_content": true })),
    ];
    let known = fork(agent, path, json!({ "title": "Known" })).await;
    let of_notebook = of_notebook.into_iter().map(|(tool, arguments)| (tool, path, arguments));
    let of_text = of_text
        .into_iter()
        .map(|(tool, arguments)| (tool, text.as_str(), arguments));
    for (tool, path, mut arguments) in of_notebook.chain(of_text) {
        arguments["path"] = path.into();
        arguments["fork_id"] = "nonsense".into();
        let refused = agent.call(tool, arguments).await.error();
        assert!(refused.contains("there is no fork \"nonsense\""), "{tool}: {refused}");
        let names = path == scene.path.as_str();
        assert_eq!(refused.contains(&known), names, "{tool}: {refused}");
    }
    // A fork of another document is none of this one.
    let other = json!({ "path": text, "fork_id": known });
    let refused = agent.call("get_document_content", other).await.error();
    assert!(refused.contains("it has no forks"), "{refused}");
    scene.sees(&["x = 1"]).await;
}

#[tokio::test]
async fn forks_that_people_made_in_jupyterlab_are_listed() {
    let scene = Scene::notebook(&["x = 1"]).editing().set().await;
    let (agent, path) = (&scene.agent, scene.path.as_str());
    let own = fork(agent, path, json!({ "title": "mine" })).await;
    let session = json!({ "format": "json", "type": "notebook" });
    let session = person()
        .send(Method::PUT, &format!("api/collaboration/session/{path}"), session)
        .await;
    let session: Value = session.json().await.expect("a session");
    let room = format!("json:notebook:{}", session["fileId"].as_str().expect("an id"));
    let new = json!({ "title": "Ben's idea", "description": "", "synchronize": true });
    let made = person()
        .send(Method::PUT, &format!("api/collaboration/fork/{room}"), new)
        .await;
    let made: Value = made.json().await.expect("a fork");
    let theirs = made["fork_roomid"].as_str().expect("an id");
    let answer = agent.call("list_document_forks", json!({ "path": path })).await;
    assert!(
        answer.text().contains("Ben's idea") && answer.text().contains("in JupyterLab"),
        "{}",
        answer.text()
    );
    let listed = answer.ok();
    assert_eq!(listed["forks"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["forks"][0]["fork_id"], own.as_str());
    assert_eq!(listed["jupyterlab_forks"][0]["fork_roomid"], theirs, "{listed}");
    assert_eq!(listed["jupyterlab_forks"].as_array().map(Vec::len), Some(1), "{listed}");
    let refused = merge(agent, path, theirs, json!({})).await.error();
    assert!(refused.contains("was made in JupyterLab"), "{refused}");
}

#[tokio::test]
async fn permissions_hold_for_forks() {
    let ben = format!(
        "[[auth.tokens]]\nname = \"ben\"\ntenant = \"all\"\ntoken = \"{BEN}\"\npermissions = [\"read\", \"write\"]\n\
         [[auth.tokens]]\nname = \"cy\"\ntenant = \"all\"\ntoken = \"test-token-of-cy\"\npermissions = [\"read\"]\n\
         [[auth.tokens]]\nname = \"dan\"\ntenant = \"all\"\ntoken = \"test-token-of-dan\"\npermissions = [\"read\", \"write\"]\npaths = [\"else/**\"]\n"
    );
    let config = format!("{}{}{ben}", lab_server("lab"), everything());
    let scene = Scene::notebook(&["x = 1"]).configured(&config).editing().set().await;
    let path = scene.path.as_str();
    let connect = async |token| Agent::connect_to(&scene.gateway.url("/mcp"), token, Era::Modern).await;
    let (ben, cy, dan) = (
        connect(BEN).await,
        connect("test-token-of-cy").await,
        connect("test-token-of-dan").await,
    );
    let id = fork(&scene.agent, path, json!({})).await;
    let own = fork(&ben, path, json!({})).await;
    for tool in ["fork_document", "merge_document_fork", "discard_document_fork"] {
        let arguments = json!({ "path": path, "fork_id": id });
        let refused = cy.call(tool, arguments).await.error();
        assert!(refused.contains("permission `write`"), "{tool}: {refused}");
    }
    assert_eq!(listed(&cy, path).await.len(), 2);
    let denied = dan.call("list_document_forks", json!({ "path": path })).await.error();
    assert!(denied.contains("outside the path rules"), "{denied}");
    let discard = |id: &str| json!({ "path": path, "fork_id": id });
    let refused = ben.call("discard_document_fork", discard(&id)).await.error();
    assert!(refused.contains("permission `admin`"), "{refused}");
    ben.call("discard_document_fork", discard(&own)).await.ok();
    let again = fork(&ben, path, json!({})).await;
    scene.agent.call("discard_document_fork", discard(&again)).await.ok();
    assert_eq!(listed(&ben, path).await.len(), 1);
    assert_eq!(
        known_to_jupyter(&person(), path)
            .await
            .as_object()
            .map(serde_json::Map::len),
        Some(1)
    );
    // Whoever may write merges the forks of others.
    modify(&scene.agent, path, &id, "c0", "x = 2").await;
    merge(&ben, path, &id, json!({})).await.ok();
    scene.sees(&["x = 2"]).await;
    let _ = lab();
}
