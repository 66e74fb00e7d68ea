//! Changes to an open document from outside of its room: renamed, deleted, overwritten.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, eventually, lab,
    lab::Folder,
    notebook::{cells_on_disk, notebook},
};

async fn scene() -> (Gateway, Agent, Folder, String) {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero", "one"]));
    let agent = Agent::connect(&gateway, Era::Modern).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    (gateway, agent, folder, path)
}

/// Another client of Jupyter's contents.
async fn contents(method: Method, path: &str, body: Value) {
    let request = reqwest::Client::new()
        .request(method, format!("{}api/contents/{path}", lab().url()))
        .header("authorization", format!("token {}", lab().token()))
        .json(&body);
    let answer = request.send().await.expect("an answer");
    assert!(answer.status().is_success(), "{answer:?}");
}

fn modify(path: &str, content: &str) -> Value {
    json!({ "path": path, "modifications": [{ "range": { "start": 0 }, "content": content }] })
}

async fn settled(folder: &Folder, name: &str, first: &str) {
    let file = folder.disk.join(name);
    eventually(&format!("{name} holds {first:?}"), async || {
        (cells_on_disk(&file)?.first()?.source == first).then_some(())
    })
    .await;
}

async fn sessions(agent: &Agent, folder: &Folder) -> Vec<String> {
    let listed = agent
        .call("query_nb_sessions", json!({ "root_path": folder.name }))
        .await
        .ok();
    listed["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|session| session["path"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_agents_rename_is_followed_at_once() {
    let (_gateway, agent, folder, path) = scene().await;
    let human = Human::join(&path).await;
    agent.call("modify_nb_cells", modify(&path, "before")).await.ok();
    let renamed = folder.path("b.ipynb");
    agent
        .call("rename_document", json!({ "path": path, "new_path": renamed }))
        .await
        .ok();
    let read = agent.call("read_nb_cells", json!({ "path": renamed })).await.ok();
    assert_eq!(
        (&read["cells"][0]["source"], &read["cell_count"]),
        (&json!("before"), &json!(2))
    );
    agent.call("modify_nb_cells", modify(&renamed, "after")).await.ok();
    human
        .wait_for("the person is in the same room", |human| {
            human.sources() == ["after", "one"]
        })
        .await;
    settled(&folder, "b.ipynb", "after").await;
    let error = agent.call("modify_nb_cells", modify(&path, "ghost")).await.error();
    assert!(error.contains("was renamed to"), "{error}");
    assert!(!folder.has("a.ipynb"), "the old name stays gone");
    assert_eq!(sessions(&agent, &folder).await, [renamed]);
    human.leave().await;
}

#[tokio::test]
async fn anothers_rename_is_followed_under_either_name() {
    for new_name_first in [true, false] {
        let (_gateway, agent, folder, path) = scene().await;
        agent.call("modify_nb_cells", modify(&path, "before")).await.ok();
        // Jupyter that is saving when a file is renamed may write under the old name once more.
        agent.call("end_nb_session", json!({ "path": path })).await.ok();
        agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        let renamed = folder.path("b.ipynb");
        contents(Method::PATCH, &path, json!({ "path": renamed })).await;
        if new_name_first {
            agent.call("modify_nb_cells", modify(&renamed, "after")).await.ok();
        }
        eventually("the old name is said not to exist", async || {
            let answer = agent.call("read_nb_cells", json!({ "path": path })).await;
            let is_told = answer.is_error && answer.text().contains("was renamed to");
            is_told.then(|| assert!(answer.text().contains("b.ipynb"), "{}", answer.text()))
        })
        .await;
        let read = agent.call("read_nb_cells", json!({ "path": renamed })).await.ok();
        assert_eq!(read["cell_count"], 2);
        agent.call("modify_nb_cells", modify(&renamed, "after all")).await.ok();
        settled(&folder, "b.ipynb", "after all").await;
        assert!(!folder.has("a.ipynb"));
        assert_eq!(
            sessions(&agent, &folder).await,
            [renamed],
            "one room, under its new name"
        );
    }
}

#[tokio::test]
async fn a_deleted_document_is_said_to_be_gone_and_stays_gone() {
    let (_gateway, agent, folder, path) = scene().await;
    agent.call("modify_nb_cells", modify(&path, "before")).await.ok();
    agent.call("delete_document", json!({ "path": path })).await.ok();
    for (tool, arguments) in [
        ("read_nb_cells", json!({ "path": path })),
        ("modify_nb_cells", modify(&path, "ghost")),
        ("get_nb_stat", json!({ "path": path })),
    ] {
        let error = agent.call(tool, arguments).await.error();
        assert!(error.contains("does not exist"), "{tool}: {error}");
    }
    assert!(sessions(&agent, &folder).await.is_empty());
    // A new document of the same name is a new one.
    agent.call("create_notebook", json!({ "path": path })).await.ok();
    let cells = json!([{ "content": "new life" }]);
    agent
        .call(
            "insert_nb_cells",
            json!({ "path": path, "position": 0, "cells": cells }),
        )
        .await
        .ok();
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert!(!read.to_string().contains("before"), "{read}");
    settled(&folder, "a.ipynb", "new life").await;
}

#[tokio::test]
async fn anothers_deletion_is_noticed_by_the_next_call() {
    for through_jupyter in [true, false] {
        let (_gateway, agent, folder, path) = scene().await;
        agent.call("modify_nb_cells", modify(&path, "before")).await.ok();
        settled(&folder, "a.ipynb", "before").await;
        // A document is trusted to be where it was for a second.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        match through_jupyter {
            true => contents(Method::DELETE, &path, json!({})).await,
            false => std::fs::remove_file(folder.disk.join("a.ipynb")).unwrap(),
        }
        let error = agent.call("modify_nb_cells", modify(&path, "ghost")).await.error();
        assert!(error.contains("does not exist"), "{error}");
        let error = agent.call("read_nb_cells", json!({ "path": path })).await.error();
        assert!(error.contains("does not exist"), "{error}");
        // Longer than Jupyter's and the gateway's saving.
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!folder.has("a.ipynb"), "nobody brings it back");
    }
}

/// Calls that follow each other closely do not wait until it is known where their document is.
#[tokio::test]
async fn a_deletion_on_disk_is_noticed_in_steady_use() {
    let (_gateway, agent, folder, path) = scene().await;
    let read = json!({ "path": path });
    for _ in 0..20 {
        agent.call("read_nb_cells", read.clone()).await.ok();
    }
    std::fs::remove_file(folder.disk.join("a.ipynb")).unwrap();
    eventually("it is said to be gone", async || {
        let answer = agent.call("read_nb_cells", read.clone()).await;
        answer
            .is_error
            .then(|| assert!(answer.error().contains("does not exist")))
    })
    .await;
}

#[tokio::test]
async fn what_others_write_to_the_file_comes_into_the_room() {
    for through_jupyter in [true, false] {
        let (_gateway, agent, folder, path) = scene().await;
        agent.call("modify_nb_cells", modify(&path, "before")).await.ok();
        settled(&folder, "a.ipynb", "before").await;
        let revision = agent.call("read_nb_cells", json!({ "path": path })).await.ok()["revision"].take();
        let other = notebook(&["from outside", "one", "two"]);
        let write = async || match through_jupyter {
            true => {
                let content: Value = serde_json::from_str(&other).unwrap();
                contents(
                    Method::PUT,
                    &path,
                    json!({ "type": "notebook", "format": "json", "content": content }),
                )
                .await;
            }
            false => drop(folder.write("a.ipynb", &other)),
        };
        // Jupyter misses a change that is made while it saves, so it is made again until it is noticed.
        eventually("the agent reads it", async || {
            write().await;
            let reading = eventually("the agent reads it", async || {
                let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
                (read["cells"][0]["source"] == "from outside" && read["cell_count"] == 3).then_some(())
            });
            tokio::time::timeout(Duration::from_secs(3), reading).await.ok()
        })
        .await;
        let mut stale = modify(&path, "stale");
        stale["if_revision"] = revision;
        agent.call("modify_nb_cells", stale).await.error();
        agent.call("modify_nb_cells", modify(&path, "after")).await.ok();
        settled(&folder, "a.ipynb", "after").await;
        assert_eq!(cells_on_disk(&folder.disk.join("a.ipynb")).unwrap().len(), 3);
    }
}

/// Has an agent edit, and somebody write the file before Jupyter has saved that. Returns what the agent is told.
async fn edit_and_lose(agent: &Agent, folder: &Folder, tool: &str, edit: Value, file: &str, outside: &str) -> String {
    let path = edit["path"].as_str().unwrap().to_owned();
    let edited = agent.call(tool, edit).await.ok();
    assert!(edited["notices"].is_null(), "{edited}");
    folder.write(file, outside);
    let reading = match file.ends_with(".ipynb") {
        true => "read_nb_cells",
        false => "get_document_content",
    };
    let told = eventually("the agent is told", async || {
        let read = agent.call(reading, json!({ "path": path })).await.ok();
        read["notices"][0].as_str().map(str::to_owned)
    })
    .await;
    assert!(told.contains(&path) && told.contains("overwritten on disk"), "{told}");
    let again = agent.call(reading, json!({ "path": path })).await.ok();
    assert!(again["notices"].is_null(), "it is told once: {again}");
    told
}

#[tokio::test]
async fn who_loses_an_edit_to_a_write_from_outside_is_told_so() {
    let bob = "[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"token-of-bob\"\n";
    let gateway = Gateway::with(bob).await;
    let folder = lab().folder();
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let bob = Agent::with_token(&gateway, "token-of-bob", Era::Modern).await;
    let outside = notebook(&["from outside", "one"]);
    for (file, change, named) in [
        (
            "a.ipynb",
            json!({ "modifications": [{ "range": { "cell_id": "c0" }, "content": "lost" }] }),
            "cell c0",
        ),
        (
            "b.ipynb",
            json!({ "position": 1, "cells": [{ "content": "lost" }] }),
            "cell ",
        ),
    ] {
        let path = folder.write(file, &notebook(&["zero", "one"]));
        bob.call("read_nb_cells", json!({ "path": path })).await.ok();
        let mut edit = change;
        (edit["path"], edit["exec"]) = (json!(path), json!(false));
        let tool = match edit["position"].is_null() {
            true => "modify_nb_cells",
            false => "insert_nb_cells",
        };
        let told = edit_and_lose(&agent, &folder, tool, edit, file, &outside).await;
        assert!(told.contains(named), "{told}");
        let read = bob.call("read_nb_cells", json!({ "path": path })).await.ok();
        assert!(read["notices"].is_null(), "it was not his: {read}");
        assert_eq!(read["cells"][0]["source"], "from outside");
        assert_eq!(read["cell_count"], 2);
    }
    let path = folder.write("c.md", "zero\n");
    agent.call("get_document_content", json!({ "path": path })).await.ok();
    let edit = json!({ "path": path, "position": 0, "text": "lost\n" });
    edit_and_lose(&agent, &folder, "insert_document_text", edit, "c.md", "from outside\n").await;
    let read = agent.call("get_document_content", json!({ "path": path })).await.ok();
    assert_eq!(read["content"], "from outside\n");
}

#[tokio::test]
async fn a_notebook_without_cells_can_be_opened_again() {
    let (gateway, agent, _folder, path) = scene().await;
    agent
        .call(
            "delete_nb_cells",
            json!({ "path": path, "ranges": [{ "start": 0, "end": 2 }] }),
        )
        .await
        .ok();
    agent.call("end_nb_session", json!({ "path": path })).await.ok();
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let started = std::time::Instant::now();
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cell_count"], 0);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let cells = json!([{ "content": "first" }]);
    agent
        .call(
            "insert_nb_cells",
            json!({ "path": path, "position": 0, "cells": cells }),
        )
        .await
        .ok();
}

#[tokio::test]
async fn overwriting_touches_only_what_differs_and_refuses_what_is_no_notebook() {
    let (_gateway, agent, folder, path) = scene().await;
    let human = Human::join(&path).await;
    let overwrite = |content: &str| json!({ "path": path, "content": content });
    for (bad, hint) in [
        (notebook(&["a", "b"]).replace("\"c1\"", "\"c0\""), "same `id`"),
        (notebook(&["a"]).replace("\"c0\"", "\"not an id\""), "`id` must be"),
        (notebook(&["a"]).replace("\"c0\"", "7"), "`id` must be"),
        ("[]".to_owned(), "`cells` is missing"),
    ] {
        let error = agent.call("overwrite_document", overwrite(&bad)).await.error();
        assert!(error.contains(hint), "{error}");
    }
    assert_eq!(human.sources(), ["zero", "one"]);
    agent
        .call("overwrite_document", overwrite(&notebook(&["zero!", "one", "two"])))
        .await
        .ok();
    human
        .wait_for("the new content", |human| human.sources() == ["zero!", "one", "two"])
        .await;
    // A cell that stays is the same to those who have their cursor in it.
    human.splice_cell("c1", 3, 0, " by hand");
    eventually("the gateway has it", async || {
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        (read["cells"][1]["source"] == "one by hand").then_some(())
    })
    .await;
    let file = folder.disk.join("a.ipynb");
    eventually("so has the file", async || {
        (cells_on_disk(&file)? == human.cells()).then_some(())
    })
    .await;
    human.leave().await;
}

#[tokio::test]
async fn overwriting_sets_the_metadata_and_the_attachments_too() {
    let (_gateway, agent, folder, path) = scene().await;
    let image = json!({ "dot.png": { "image/png": "iVBORw0KGgo=" } });
    let kernel = json!({ "name": "python3", "display_name": "Python 3" });
    let mut content: Value = serde_json::from_str(&notebook(&["zero"])).unwrap();
    content["metadata"] = json!({ "kernelspec": kernel, "language_info": { "name": "python" }, "title": "new" });
    let cells = content["cells"].as_array_mut().unwrap();
    cells.push(json!({ "id": "m", "cell_type": "markdown", "metadata": {}, "source": "![](attachment:dot.png)", "attachments": image }));
    let saved = async |expected: &Value| {
        eventually("it is saved", async || {
            let file: Value = serde_json::from_str(&folder.read("a.ipynb")).ok()?;
            let attachments = &file["cells"][1]["attachments"];
            (file["metadata"] == expected["metadata"] && *attachments == expected["cells"][1]["attachments"])
                .then_some(())
        })
        .await;
    };
    let overwrite = async |content: &Value| {
        let arguments = json!({ "path": path, "content": content.to_string() });
        let answer = agent.call("overwrite_document", arguments).await.ok();
        assert_eq!(answer["acknowledged"], true);
        saved(content).await;
    };
    overwrite(&content).await;
    content["metadata"]["title"].take();
    content["metadata"]["tags"] = json!(["a", 1]);
    content["cells"][1]["attachments"] = json!({ "dot.png": { "image/png": "iVBORw0KGg==" } });
    overwrite(&content).await;
}

/// A directory `old` with open notebooks in it and below it, each edited and saved.
async fn directory_scene() -> (Gateway, Agent, Folder) {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    for name in ["old/a.ipynb", "old/below/b.ipynb"] {
        let path = folder.write(name, &notebook(&["zero"]));
        agent.call("modify_nb_cells", modify(&path, "before")).await.ok();
        settled(&folder, name, "before").await;
    }
    (gateway, agent, folder)
}

#[tokio::test]
async fn open_notebooks_follow_their_directory() {
    for through_the_gateway in [true, false] {
        let (_gateway, agent, folder) = directory_scene().await;
        let human = Human::join(&folder.path("old/a.ipynb")).await;
        let (old, new) = (folder.path("old"), folder.path("new"));
        match through_the_gateway {
            true => drop(
                agent
                    .call("rename_document", json!({ "path": old, "newPath": new }))
                    .await
                    .ok(),
            ),
            false => contents(Method::PATCH, &old, json!({ "path": new })).await,
        }
        for name in ["new/a.ipynb", "new/below/b.ipynb"] {
            agent
                .call("modify_nb_cells", modify(&folder.path(name), "after"))
                .await
                .ok();
            settled(&folder, name, "after").await;
        }
        // Otherwise Jupyter itself has lost track of the person's room.
        if through_the_gateway {
            human
                .wait_for("the person is in the same room", |human| human.sources() == ["after"])
                .await;
        }
        eventually("each has one room, under its new name", async || {
            let mut open = sessions(&agent, &folder).await;
            open.sort_unstable();
            (open == [folder.path("new/a.ipynb"), folder.path("new/below/b.ipynb")]).then_some(())
        })
        .await;
        assert!(!folder.has("old"));
        human.leave().await;
    }
}

#[tokio::test]
async fn open_notebooks_go_with_their_directory() {
    for through_the_gateway in [true, false] {
        let (_gateway, agent, folder) = directory_scene().await;
        let old = folder.path("old");
        match through_the_gateway {
            true => drop(
                agent
                    .call("delete_document", json!({ "path": old, "recursive": true }))
                    .await
                    .ok(),
            ),
            false => contents(Method::DELETE, &old, json!({})).await,
        }
        for name in ["old/a.ipynb", "old/below/b.ipynb"] {
            eventually("it is said to be gone", async || {
                let answer = agent.call("read_nb_cells", json!({ "path": folder.path(name) })).await;
                (answer.is_error && answer.text().contains("does not exist")).then_some(())
            })
            .await;
        }
        // Longer than Jupyter's and the gateway's saving.
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(!folder.has("old"), "nobody brings it back");
        assert!(sessions(&agent, &folder).await.is_empty());
    }
}

#[tokio::test]
async fn what_is_no_document_is_refused_for_what_it_is() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let broken = folder.write("broken.ipynb", "this is no notebook");
    std::fs::write(folder.disk.join("binary.md"), [0xff, 0xfe, 0x00]).unwrap();
    for (tool, path, told) in [
        ("read_nb_cells", broken, "not a valid notebook"),
        ("get_document_content", folder.path("binary.md"), "is a binary file"),
    ] {
        let error = agent.call(tool, json!({ "path": path })).await.error();
        assert!(error.contains(told), "{tool}: {error}");
    }
}

#[tokio::test]
async fn what_was_written_is_on_disk_when_a_session_has_ended() {
    let (_gateway, agent, folder, path) = scene().await;
    let insert = json!({ "path": path, "position": 2, "cells": [{ "content": "two" }] });
    agent.call("insert_nb_cells", insert).await.ok();
    agent.call("end_nb_session", json!({ "path": path })).await.ok();
    if lab::saves_as_told() {
        let copy = json!({ "path": path, "copyPath": folder.path("copy.ipynb") });
        agent.call("copy_document", copy).await.ok();
        let copied = cells_on_disk(&folder.disk.join("copy.ipynb")).expect("a notebook");
        let sources: Vec<&str> = copied.iter().map(|cell| cell.source.as_str()).collect();
        assert_eq!(sources, ["zero", "one", "two"]);
    }
}

/// Makes a file one that nobody may write, not even the administrator as whom Jupyter may run.
fn protect(file: &std::path::Path, protected: bool) {
    let change = |program: &str, how: &str| {
        let done = std::process::Command::new(program).arg(how).arg(file).status();
        done.is_ok_and(|status| status.success())
    };
    let (attribute, mode) = if protected { ("+i", "a-w") } else { ("-i", "u+w") };
    assert!(change("chattr", attribute) || change("chmod", mode));
}

#[tokio::test]
async fn edits_that_could_never_be_saved_are_refused() {
    let (_gateway, agent, folder, _) = scene().await;
    let path = folder.write("protected.txt", "as it is");
    protect(&folder.disk.join("protected.txt"), true);
    let info = agent.call("get_document_info", json!({ "path": path })).await.ok();
    let insert = json!({ "path": path, "position": 0, "text": "never " });
    let refused = agent.call("insert_document_text", insert.clone()).await;
    let read = agent.call("get_document_content", json!({ "path": path })).await;
    protect(&folder.disk.join("protected.txt"), false);
    assert_eq!(info["writable"], false, "{info}");
    assert!(refused.error().contains("cannot write"));
    assert_eq!(read.ok()["content"], "as it is");
    eventually("it can be edited once it can be written", async || {
        (!agent.call("insert_document_text", insert.clone()).await.is_error).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_cannot_be_opened_is_given_no_kernel_and_can_be_replaced() {
    let (_gateway, agent, folder, _) = scene().await;
    let path = folder.write("broken.ipynb", "{ this is no notebook");
    let assign = json!({ "path": path, "kernel_name": "python3" });
    agent.call("assign_nb_kernel", assign.clone()).await.error();
    let sessions: Value = crate::support::scene::person()
        .get("api/sessions")
        .await
        .json()
        .await
        .unwrap();
    assert!(!sessions.to_string().contains(&path), "{sessions}");
    let refused = agent.call("read_nb_cells", json!({ "path": path })).await.error();
    assert!(refused.contains("overwrite_document"), "{refused}");
    let whole = json!({ "path": path, "content": notebook(&["mended"]) });
    agent.call("overwrite_document", whole).await.ok();
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cells"][0]["source"], "mended");
    agent.call("assign_nb_kernel", assign).await.ok();
    let stat = agent.call("get_nb_stat", json!({ "path": path })).await.ok();
    assert_eq!(stat["kernel"]["state"], "idle", "{stat}");
}

#[tokio::test]
async fn overwriting_is_refused_if_somebody_changed_the_document_since() {
    let (_gateway, agent, _, path) = scene().await;
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let whole = json!({ "path": path, "content": notebook(&["replaced"]), "if_revision": read["revision"] });
    let human = Human::join(&path).await;
    human.insert_cell(2, "typed", "typed meanwhile");
    eventually("the gateway has it", async || {
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        (read["cells"][2]["source"] == "typed meanwhile").then_some(())
    })
    .await;
    agent.call("overwrite_document", whole.clone()).await.error();
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let mut whole = whole;
    whole["if_revision"] = read["revision"].clone();
    let written = agent.call("overwrite_document", whole).await.ok();
    assert!(written["revision"].is_string(), "{written}");
}
