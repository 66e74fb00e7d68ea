//! The schemas of results: every tool's answer is as its schema says, in the states that there are. All other tests hold what
//! they are answered against them too, so that this one only sees to it that no tool is left out.

use std::{cell::RefCell, collections::BTreeSet};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN, agent::ToolAnswer, eventually, lab, lab::Folder, notebook::notebook,
};

struct Caller {
    agent: Agent,
    path: String,
    called: RefCell<BTreeSet<String>>,
}

impl Caller {
    /// Calls with the path, unless another is given; the answer was held against the schema.
    async fn call(&self, tool: &str, mut arguments: Value) -> ToolAnswer {
        if arguments.get("path").is_none() {
            arguments["path"] = self.path.clone().into();
        }
        self.bare(tool, arguments).await
    }

    async fn bare(&self, tool: &str, arguments: Value) -> ToolAnswer {
        let answer = self.agent.call(tool, arguments).await;
        if answer.structured.is_object() {
            self.called.borrow_mut().insert(tool.to_owned());
        }
        answer
    }
}

#[tokio::test]
async fn every_answer_is_as_its_schema_says() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.write("all.ipynb", &notebook(&["1 + 1", "print('x' * 5000)", "1 / 0"]));
    for era in [Era::Legacy, Era::Modern] {
        let caller = Caller {
            agent: Agent::connect_to(&gateway.url("/mcp?toolsets=all"), TOKEN, era).await,
            path: path.clone(),
            called: RefCell::default(),
        };
        notebooks(&caller, &folder).await;
        executions(&caller).await;
        documents(&caller, &folder).await;
        forks(&caller).await;
        other_words(&caller, &folder).await;
        active_notebook(&caller, &folder).await;
        presence(&caller).await;
        let all: BTreeSet<String> = caller.agent.tools().await.into_iter().collect();
        let called = caller.called.take();
        let left_out: Vec<_> = all.difference(&called).collect();
        assert!(left_out.is_empty(), "not answered: {left_out:?}");
    }
}

async fn notebooks(caller: &Caller, folder: &Folder) {
    caller.bare("list_servers", json!({})).await.ok();
    let base = caller.bare("get_base_url", json!({})).await.ok();
    let url = format!("{}/lab/tree/{}", base["base_url"].as_str().expect("a URL"), caller.path);
    caller.bare("nb_path_from_url", json!({ "url": url })).await.ok();
    caller.bare("list_nbs", json!({ "path": folder.name })).await.ok();
    let new = folder.path(&format!("new-{}.ipynb", uuid()));
    caller.call("create_notebook", json!({ "path": new })).await.ok();
    caller.call("get_nb_stat", json!({})).await.ok();
    let human = Human::join(&caller.path).await;
    human.publish("Ida", true);
    let first = caller.call("read_nb_cells", json!({})).await.ok()["cells"][0]["id"].clone();
    human.point_at("Ida", first.as_str().expect("an id"), 1);
    eventually("the person is seen", async || {
        let read = caller.call("read_nb_cells", json!({ "max_cell_data": 100 })).await.ok();
        caller.call("get_nb_stat", json!({})).await.ok();
        read["people"].to_string().contains("Ida").then_some(())
    })
    .await;
    let cells = json!([{ "content": "a = 1" }, { "content": "# text", "type": "markdown" }]);
    caller
        .call(
            "insert_nb_cells",
            json!({ "position": 3, "cells": cells, "exec": true }),
        )
        .await
        .ok();
    let modifications = json!([{ "range": { "start": 3 }, "content": "a = 2\na" }]);
    caller
        .call(
            "modify_nb_cells",
            json!({ "modifications": modifications, "exec": true }),
        )
        .await
        .ok();
    let edit = json!({ "index": 3, "old_text": "a = 2", "new_text": "a = 3" });
    caller.call("edit_nb_cell", edit.clone()).await.ok();
    assert!(caller.call("edit_nb_cell", edit).await.is_error);
    let moved = json!({ "ranges": [{ "start": 3 }], "position": -1 });
    caller.call("move_nb_cells", moved).await.ok();
    caller.call("clear_nb_outputs", json!({})).await.ok();
    caller
        .call("delete_nb_cells", json!({ "ranges": [{ "start": 3, "end": 5 }] }))
        .await
        .ok();
    caller
        .call("assign_nb_kernel", json!({ "kernel_name": "python3" }))
        .await
        .ok();
    caller.bare("list_available_kernels", json!({})).await.ok();
    caller.call("restart_nb_kernel", json!({ "exec": false })).await.ok();
    caller.call("interrupt_nb_kernel", json!({})).await.ok();
    caller.bare("list_kernels", json!({})).await.ok();
    caller.call("shutdown_kernel", json!({})).await.ok();
    caller.call("save_document", json!({})).await.ok();
    caller.bare("query_nb_sessions", json!({})).await.ok();
}

async fn presence(caller: &Caller) {
    let path = &caller.path;
    let human = Human::join(path).await;
    human.publish("Ida", true);
    caller.call("read_nb_cells", json!({})).await.ok();
    let position = json!({ "line": 0, "column": 0 });
    let point =
        json!({ "document_path": path, "cell_index": 0, "position": position, "selection": { "start": position } });
    caller.bare("update_cursor_position", point).await.ok();
    caller
        .bare("get_user_cursors", json!({ "document_path": path }))
        .await
        .ok();
    caller.bare("get_online_users", json!({})).await.ok();
    let busy = json!({ "status": "busy", "message": "testing" });
    caller.bare("set_user_presence", busy).await.ok();
    let own = json!({ "user_id": "token:ana", "document_path": path });
    caller.bare("get_user_presence", own).await.ok();
    let told = json!({ "activity_type": "test", "description": "testing", "document_path": path });
    caller.bare("broadcast_user_activity", told).await.ok();
    caller.bare("get_user_activity", json!({})).await.ok();
    let sessions = caller
        .bare("get_active_sessions", json!({ "document_path": path }))
        .await
        .ok();
    let session = json!({ "session_id": sessions["sessions"][0]["session_id"] });
    caller.bare("join_session", session.clone()).await.ok();
    caller.bare("leave_session", session).await.ok();
    human.leave().await;
}

async fn forks(caller: &Caller) {
    let forked = async || caller.call("fork_document", json!({ "title": "Try" })).await.ok()["fork_id"].clone();
    let (first, second) = (forked().await, forked().await);
    let insert = json!({ "fork_id": first, "position": 0, "cells": [{ "content": "f = 1" }], "exec": false });
    caller.call("insert_nb_cells", insert).await.ok();
    caller.call("list_document_forks", json!({})).await.ok();
    caller
        .call("merge_document_fork", json!({ "fork_id": first }))
        .await
        .ok();
    caller
        .call("discard_document_fork", json!({ "fork_id": second }))
        .await
        .ok();
    let inserted = json!({ "ranges": [{ "start": 0 }] });
    caller.call("delete_nb_cells", inserted).await.ok();
}

/// Completed, failed, running, queued, asking and cancelled.
async fn executions(caller: &Caller) {
    let ran = caller
        .call("execute_nb_cells", json!({ "ranges": [{ "start": 0, "end": 3 }] }))
        .await;
    assert_eq!(ran.structured["status"], "failed", "{}", ran.structured);
    let failed = json!({ "execution_id": ran.structured["execution_id"], "max_cell_output_size": 200 });
    caller.bare("get_execution", failed).await;
    let copied = caller.call("run_notebook", json!({ "keep": true })).await.structured;
    assert_eq!(copied["status"], "failed", "{copied}");
    let copied = json!({ "execution_id": copied["execution_id"] });
    caller.bare("get_execution", copied).await;
    let asks = caller
        .call("run_code", json!({ "code": "input('who? ')", "timeout": 20 }))
        .await
        .ok();
    assert_eq!(asks["status"], "input_required", "{asks}");
    let behind = caller.call("run_code", json!({ "code": "1", "timeout": 0 })).await.ok();
    for execution in [&asks, &behind] {
        let get = json!({ "execution_id": execution["execution_id"] });
        caller.bare("get_execution", get).await.ok();
    }
    caller.bare("list_executions", json!({})).await.ok();
    for execution in [&behind, &asks] {
        let cancel = json!({ "execution_id": execution["execution_id"] });
        caller.bare("cancel_execution", cancel.clone()).await.ok();
        caller.bare("get_execution", cancel).await;
    }
    caller.bare("list_executions", json!({})).await.ok();
    caller.call("run_code", json!({ "code": "variable = [1]" })).await.ok();
    caller.call("inspect_variables", json!({})).await.ok();
    caller
        .call("inspect_variables", json!({ "name": "variable" }))
        .await
        .ok();
    caller.bare("run_code", json!({ "code": "print(1)" })).await.ok();
}

async fn documents(caller: &Caller, folder: &Folder) {
    let at = |name: &str| folder.path(&format!("{}-{name}", uuid()));
    let path = at("text.md");
    caller
        .call("create_document", json!({ "path": path, "content": "one two three" }))
        .await
        .ok();
    caller.call("get_document_content", json!({ "path": path })).await.ok();
    for (tool, more) in [
        ("insert_document_text", json!({ "position": 0, "text": "zero " })),
        ("delete_document_text", json!({ "position": 0, "length": 5 })),
        (
            "replace_document_text",
            json!({ "position": 0, "length": 3, "text": "1" }),
        ),
        ("edit_document_text", json!({ "old_text": "two", "new_text": "2" })),
        ("overwrite_document", json!({ "content": "anew" })),
        ("get_document_info", json!({ "include_content": true })),
        ("query_document_session", json!({})),
        ("end_document_session", json!({})),
    ] {
        let mut arguments = more;
        arguments["path"] = path.clone().into();
        caller.bare(tool, arguments).await.ok();
    }
    caller
        .bare("query_document_session", json!({ "path": path }))
        .await
        .ok();
    let versions = caller.bare("get_document_history", json!({ "path": path })).await.ok();
    let first = versions["versions"].as_array().unwrap().last().unwrap()["version_id"].clone();
    for (tool, arguments) in [
        ("diff_document", json!({ "path": path, "from": first })),
        ("restore_document_version", json!({ "path": path, "version_id": first })),
        ("undo_changes", json!({ "path": path })),
    ] {
        caller.bare(tool, arguments).await.ok();
    }
    caller.bare("list_documents", json!({ "path": folder.name })).await.ok();
    let search = json!({ "query": "a", "path": folder.name, "where": "all" });
    caller.bare("search_documents", search).await.ok();
    let (copy, renamed) = (at("copy.md"), at("renamed.md"));
    caller
        .bare("copy_document", json!({ "path": path, "copyPath": copy }))
        .await
        .ok();
    caller
        .bare("rename_document", json!({ "path": copy, "newPath": renamed }))
        .await
        .ok();
    caller.bare("delete_document", json!({ "path": renamed })).await.ok();
}

/// The vocabularies of other servers.
/// The words of which each is about the notebook that was activated last.
async fn active_notebook(caller: &Caller, folder: &Folder) {
    let path = folder.write(&format!("{}.ipynb", uuid()), &notebook(&["1 + 1", "2"]));
    for (tool, arguments) in [
        ("connect_to_jupyter", json!({ "jupyter_url": lab().url() })),
        ("use_notebook", json!({ "notebook_name": "u", "notebook_path": path })),
        (
            "insert_execute_code_cell",
            json!({ "cell_index": 0, "cell_source": "print(1)" }),
        ),
        ("overwrite_cell_source", json!({ "cell_index": 1, "cell_source": "3" })),
        (
            "edit_cell_source",
            json!({ "cell_index": 1, "old_string": "3", "new_string": "4" }),
        ),
        ("move_cell", json!({ "source_index": 0, "target_index": 2 })),
        ("clear_cell_output", json!({ "cell_index": 2 })),
        ("execute_code", json!({ "code": "5" })),
        ("list_files", json!({ "path": folder.name })),
        ("unuse_notebook", json!({ "notebook_name": "u" })),
    ] {
        caller.bare(tool, arguments).await.ok();
    }
}

async fn other_words(caller: &Caller, folder: &Folder) {
    caller
        .bare("list_notebooks", json!({ "path_prefix": folder.name }))
        .await
        .ok();
    caller.call("get_notebook", json!({})).await.ok();
    let read = caller.call("read_nb_cells", json!({})).await.ok();
    let id = read["cells"][0]["id"].clone();
    for (tool, more) in [
        ("create_notebook_session", json!({})),
        (
            "batch_insert_notebook_cells",
            json!({ "start_position": 3, "cells": [{ "content": "b = 1" }], "exec": true }),
        ),
        (
            "batch_update_notebook_cells",
            json!({ "start_index": 3, "updates": [{ "content": "b = 2" }], "exec": true }),
        ),
        (
            "batch_execute_notebook_cells",
            json!({ "start_index": 3, "end_index": 3 }),
        ),
        ("execute_notebook_cell", json!({ "cell_id": id })),
        (
            "batch_delete_notebook_cells",
            json!({ "start_index": 3, "end_index": 3, "exec": false }),
        ),
    ] {
        let answer = caller.call(tool, more).await;
        assert!(answer.structured.is_object(), "{tool}: {}", answer.text());
    }
    let text = folder.write(&format!("{}.md", uuid()), "one two");
    for (tool, more) in [
        ("create_document_session", json!({})),
        ("get_document", json!({})),
        (
            "batch_update_document",
            json!({ "operations": [{ "position": -1, "content": "!" }] }),
        ),
        (
            "batch_insert_text",
            json!({ "operations": [{ "position": 0, "text": "zero " }] }),
        ),
        (
            "batch_delete_text",
            json!({ "operations": [{ "position": 0, "length": 5 }] }),
        ),
    ] {
        let mut arguments = more;
        arguments["path"] = text.clone().into();
        caller.bare(tool, arguments).await.ok();
    }
    let name = "all";
    let connect = json!({ "notebook_name": name, "notebook_path": caller.path });
    caller.bare("connect_notebook", connect).await.ok();
    for (tool, more) in [
        ("list_notebook", Value::Null),
        ("read_notebook", json!({})),
        ("list_cell", json!({})),
        ("read_cell", json!({ "cell_index": 0 })),
        (
            "insert_cell",
            json!({ "cell_index": 0, "cell_type": "code", "cell_content": "c = 1" }),
        ),
        ("overwrite_cell", json!({ "cell_index": 0, "cell_content": "c = 2" })),
        ("execute_cell", json!({ "cell_index": 0 })),
        ("delete_cell", json!({ "cell_index": 0 })),
        ("append_execute_code_cell", json!({ "cell_content": "d = 1" })),
        ("delete_cell", json!({ "cell_index": 3 })),
        ("execute_temporary_code", json!({ "cell_content": "2" })),
        ("restart_notebook", json!({})),
    ] {
        let mut arguments = more;
        match arguments.as_object_mut() {
            Some(members) => drop(members.insert("notebook_name".to_owned(), name.into())),
            None => arguments = json!({}),
        }
        caller.bare(tool, arguments).await.ok();
    }
    caller.call("end_nb_session", json!({})).await.ok();
}

fn uuid() -> String {
    uuid::Uuid::new_v4().simple().to_string()[..8].to_owned()
}

#[tokio::test]
async fn schemas_tell_of_what_is_inside_the_members() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let listed = agent.request("tools/list", json!({})).await;
    let read = |tool: &str, pointer: &str| {
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let found = tools.iter().find(|listed| listed["name"] == tool).expect("the tool");
        found["outputSchema"].pointer(pointer).cloned().unwrap_or_default()
    };
    for (tool, pointer, kind) in [
        (
            "read_nb_cells",
            "/properties/cells/items/properties/source",
            json!("string"),
        ),
        (
            "execute_nb_cells",
            "/properties/execution_results/items/properties/execution_count",
            json!(["integer", "null"]),
        ),
        (
            "list_executions",
            "/properties/executions/items/properties/status",
            json!("string"),
        ),
        (
            "list_documents",
            "/properties/documents/items/properties/path",
            json!("string"),
        ),
        (
            "list_servers",
            "/properties/servers/items/properties/name",
            json!("string"),
        ),
    ] {
        assert_eq!(read(tool, pointer)["type"], kind, "{tool}");
    }
    let output = read("run_code", "/properties/outputs/items/properties");
    assert!(output.get("output_type").is_some(), "{output}");
}
