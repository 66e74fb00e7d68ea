//! Arguments as models send them: JSON in strings, one item without its array, other spellings; and what is told about
//! those that cannot be meant.

use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, TOKEN, agent::ERAS, eventually, lab, notebook::notebook};

const TASKS: &str = "io.modelcontextprotocol/tasks";

#[tokio::test]
async fn what_has_one_reading_is_taken() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero", "one", "two"]));
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let whole = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        let id = whole["cells"][1]["id"].as_str().expect("an id");
        let middle = json!([{ "start": 1, "end": 2 }]).to_string();
        for ranges in [
            json!([{ "start": 1.0, "end": 2 }]),
            json!(middle),
            json!([{ "start": "1", "end": "2" }]),
            json!({ "start": 1 }),
            json!("{\"start\": 1}"),
            json!([{ "cellId": id }]),
            json!([{ "cell-id": id, "start": null }]),
        ] {
            let read = json!({ "notebookPath": path, "ranges": ranges, "maxCellData": "2" });
            let read = agent.call("read_nb_cells", read).await.ok();
            assert_eq!(
                (&read["cells"][0]["id"], &read["cells"][0]["source"]),
                (&json!(id), &json!("on")),
                "{ranges}"
            );
            assert_eq!(read["cells"].as_array().map(Vec::len), Some(1), "{ranges}");
        }
        for nothing in [Value::Null, json!("null"), json!("None"), json!("[]")] {
            let read = json!({ "path": path, "ranges": nothing, "max_cell_data": nothing.as_str().map(|_| "None") });
            let read = agent.call("read_nb_cells", read).await.ok();
            assert_eq!((&read["cell_count"], &read["max_cell_data"]), (&json!(3), &json!(2048)));
        }
    }
}

/// Texts are written into a notebook as they were sent, even if they look like something else.
#[tokio::test]
async fn texts_stay_as_they_are() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    for era in ERAS {
        let path = folder.write("a.ipynb", &notebook(&["zero"]));
        let agent = Agent::connect(&gateway, era).await;
        for source in ["5", "true", "None", "null", "[1,2]", "{\"start\": 0}", " \"x\" "] {
            let modification = json!({ "range": "{\"start\": \"0\"}", "content": source });
            let modify = json!({ "path": path, "modifications": modification, "exec": "False" });
            agent.call("modify_nb_cells", modify).await.ok();
            let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
            assert_eq!(read["cells"][0]["source"], source);
        }
        agent.call("delete_document", json!({ "path": path })).await.ok();
    }
}

#[tokio::test]
async fn every_vocabulary_takes_them() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero", "one"]));
    for era in ERAS {
        let agent = Agent::connect_to(&gateway.url("/mcp?toolsets=all"), TOKEN, era).await;
        let connect = json!({ "notebookName": "a", "path": path, "mode": "Connect" });
        agent.call("connect_notebook", connect).await.ok();
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        let id = read["cells"][1]["id"].clone();
        for index in [
            json!("1"),
            json!(1.0),
            json!(json!({ "cell_id": id }).to_string()),
            json!({ "cellId": id }),
        ] {
            let read = json!({ "notebook_name": "a", "cell_index": index, "return_output": "false" });
            let read = agent.call("read_cell", read).await;
            assert!(
                !read.is_error && read.text().contains("one"),
                "{index}: {}",
                read.text()
            );
        }
        let update = json!({ "path": path, "cell_ids": id, "updates": { "source": "1" }, "exec": "false" });
        agent.call("batch_update_notebook_cells", update).await.ok();
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        assert_eq!(read["cells"][1]["source"], "1");
        let update = json!({ "path": path, "cellIds": [id], "updates": [{ "content": "one" }], "exec": false });
        agent.call("batch_update_notebook_cells", update).await.ok();
    }
}

#[tokio::test]
async fn what_cannot_be_meant_is_named_and_changes_nothing() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero", "one"]));
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        for (tool, arguments, told) in [
            (
                "delete_nb_cells",
                json!({ "rangs": [{ "start": 0 }] }),
                "unknown argument `rangs`; did you mean `ranges`? known: path, ranges",
            ),
            (
                "delete_nb_cells",
                json!({ "ranges": [{ "stard": 0 }] }),
                "unknown argument `ranges[0].stard`; did you mean `start`? known: start, end, cell_id",
            ),
            (
                "delete_nb_cells",
                json!({ "ranges": "first" }),
                "argument `ranges`: invalid type: string \"first\", expected an array",
            ),
            (
                "delete_nb_cells",
                json!({ "ranges": "[{\"start\": \"first\"}]" }),
                "argument `ranges[0].start`: invalid type: string \"first\", expected a whole number, 0 or more",
            ),
            (
                "delete_nb_cells",
                json!({ "ranges": { "start": 0 }, "force": "perhaps" }),
                "argument `force`: invalid type: string \"perhaps\", expected true or false",
            ),
            (
                "insert_nb_cells",
                json!({ "position": 0, "cells": [{ "type": "cod", "content": "x" }] }),
                "argument `cells[0].type`: unknown value \"cod\"; did you mean \"code\"? allowed: `code`, `markdown`, `raw`",
            ),
            (
                "rename_document",
                json!({ "newPath": "b.ipynb", "new_path": "c.ipynb" }),
                "argument `new_path`: the same as `newPath`, with another value; give one of them",
            ),
            (
                "list_servers",
                json!({ "verbose": true }),
                "unknown argument `verbose`; known: none",
            ),
        ] {
            let mut arguments = arguments;
            if tool != "list_servers" {
                arguments["path"] = path.as_str().into();
            }
            let error = agent.call(tool, arguments.clone()).await.error();
            assert!(error.starts_with(told), "{tool} {arguments}: {error}");
        }
        let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        assert_eq!(read["cell_count"], 2, "nothing changed");
    }
}

/// A task remembers its call with long texts cut, of which JSON in a string would not survive.
#[tokio::test]
async fn a_task_remembers_what_was_meant() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&[]));
    let agent = Agent::capable(&gateway, Era::Modern, json!({ "extensions": { TASKS: {} } })).await;
    let source = format!("# {}\nprint(input('? '))", "x".repeat(2000));
    let cells = json!([{ "content": source }]).to_string();
    let arguments = json!({ "path": path, "position": "0", "cells": cells, "exec": "true" });
    let call = json!({ "name": "insert_nb_cells", "arguments": arguments });
    let task = agent.request("tools/call", call).await["result"].take();
    assert_eq!(task["resultType"], "task", "{task}");
    let look = async || agent.request("tasks/get", json!({ "taskId": task["taskId"] })).await["result"].take();
    eventually("it asks", async || {
        (look().await["status"] == "input_required").then_some(())
    })
    .await;
    let reply = json!({ "input-1": { "action": "accept", "content": { "input": "y" } } });
    let update = json!({ "taskId": task["taskId"], "inputResponses": reply });
    agent.request("tasks/update", update).await;
    let ended = eventually("it ends", async || {
        let seen = look().await;
        (seen["status"] == "completed").then_some(seen)
    })
    .await;
    assert_ne!(ended["result"]["isError"], true, "{ended}");
}
