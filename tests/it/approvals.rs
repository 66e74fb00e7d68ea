//! Calls that a person must allow: asked in both eras, below every face, with nothing run or changed before.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway,
    agent::ERAS,
    eventually,
    gateway::{TOKEN, lab_server},
    lab,
    lab::Folder,
    notebook::notebook,
    scene::{Scene, ended, id},
    wire::Events,
};

/// A tenant with rules, and a file for its audit.
fn config(rules: &str, audit: &std::path::Path) -> String {
    format!(
        "[audit]\nfile = \"{}\"\n{}[[tenants]]\nname = \"team\"\n{rules}\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"team\"\n\
         token = \"{TOKEN}\"\npermissions = [\"read\", \"write\", \"execute\", \"admin\"]\n",
        audit.display(),
        lab_server("lab")
    )
}

const SHELL: &str = "[[tenants.approvals]]\ncode = '^\\s*!|pip install'";

pub(crate) struct Ruled {
    scene: Scene,
    audit: tempfile::TempDir,
}

impl Ruled {
    async fn set(rules: &str, cells: &[&str]) -> Self {
        let audit = tempfile::tempdir().expect("a folder");
        let config = config(rules, &audit.path().join("audit.jsonl"));
        let scene = Scene::notebook(cells).configured(&config).set().await;
        Self { scene, audit }
    }

    fn path(&self) -> &str {
        &self.scene.path
    }

    fn folder(&self) -> &Folder {
        &self.scene.folder
    }

    async fn agent(&self, selection: &str, era: Era, capabilities: Value) -> Agent {
        let url = self.scene.gateway.url(&format!("/mcp{selection}"));
        Agent::able_to(capabilities, &url, TOKEN, era).await
    }

    /// The rows of the audit file for a tool, once there are so many.
    async fn audited(&self, tool: &str, count: usize) -> Vec<Value> {
        eventually("the audit", async || {
            let text = std::fs::read_to_string(self.audit.path().join("audit.jsonl")).ok()?;
            let rows = text
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let rows: Vec<Value> = rows.filter(|row| row["tool"] == tool).collect();
            (rows.len() == count).then_some(rows)
        })
        .await
    }
}

fn can_ask() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// Calls a tool of a legacy client whose person answers so.
async fn answered(agent: &Agent, number: i64, tool: &str, arguments: Value, answer: Value) -> (Value, Value) {
    let call = json!({ "name": tool, "arguments": arguments });
    let mut events = Events::new(agent.start(number, "tools/call", call).await);
    let (_, question) = events.next_message().await.expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer });
    agent.send(reply).await;
    let (_, answered) = events.next_message().await.expect("a result");
    (question["params"].clone(), answered["result"].clone())
}

/// Every tool that runs code, with arguments by which it would run some that a rule is about.
fn runs(path: &str) -> Vec<(&'static str, &'static str, Value)> {
    let code = "!touch ran-anyway";
    let new = json!([{ "content": code }]);
    let whole = json!([{ "range": { "cell_id": "c1" }, "content": code }]);
    vec![
        ("", "execute_nb_cells", json!({ "path": path })),
        (
            "",
            "modify_nb_cells",
            json!({ "path": path, "modifications": whole, "exec": true }),
        ),
        (
            "",
            "insert_nb_cells",
            json!({ "path": path, "position": -1, "cells": new, "exec": true }),
        ),
        (
            "",
            "edit_nb_cell",
            json!({ "path": path, "cell_id": "c1", "old_text": "x = 1", "new_text": code, "exec": true }),
        ),
        ("", "restart_nb_kernel", json!({ "path": path })),
        ("", "run_code", json!({ "path": path, "code": code })),
        ("", "run_code", json!({ "code": code })),
        ("", "run_notebook", json!({ "path": path })),
        (
            "?toolsets=collab",
            "execute_notebook_cell",
            json!({ "path": path, "cell_id": "c0" }),
        ),
        (
            "?toolsets=collab",
            "batch_execute_notebook_cells",
            json!({ "path": path, "start_index": 0 }),
        ),
        (
            "?toolsets=collab",
            "batch_update_notebook_cells",
            json!({ "path": path, "cell_ids": ["c1"], "updates": new }),
        ),
        (
            "?toolsets=collab",
            "batch_insert_notebook_cells",
            json!({ "path": path, "cells": new }),
        ),
        (
            "?toolsets=collab",
            "batch_delete_notebook_cells",
            json!({ "path": path, "cell_ids": ["c0"], "exec": true }),
        ),
        (
            "?toolsets=classic",
            "execute_cell",
            json!({ "notebook_name": "n", "cell_index": 0 }),
        ),
        (
            "?toolsets=classic",
            "append_execute_code_cell",
            json!({ "notebook_name": "n", "cell_content": code }),
        ),
        (
            "?toolsets=classic",
            "execute_temporary_code",
            json!({ "notebook_name": "n", "cell_content": code }),
        ),
        ("?toolsets=datalayer", "execute_cell", json!({ "cell_index": 0 })),
        (
            "?toolsets=datalayer",
            "insert_execute_code_cell",
            json!({ "cell_index": -1, "cell_source": code }),
        ),
        ("?toolsets=datalayer", "execute_code", json!({ "code": code })),
    ]
}

/// Tools that need `execute` and run no code of the caller's.
const RUN_NOTHING: &[&str] = &[
    "interrupt_nb_kernel",
    "shutdown_kernel",
    "cancel_execution",
    "assign_nb_kernel",
    "restart_notebook",
    "inspect_variables",
];

#[tokio::test]
async fn whichever_tool_runs_code_a_person_must_allow_it() {
    let cells = ["!touch ran-anyway", "x = 1"];
    let mut tried = BTreeSet::new();
    for era in ERAS {
        let ruled = Ruled::set(SHELL, &cells).await;
        let path = ruled.path();
        for (selection, tool, arguments) in runs(path) {
            let agent = ruled.agent(selection, era, json!({})).await;
            let connect = json!({ "server_url": "lab", "token": "", "notebook_name": "n", "notebook_path": path });
            match selection {
                "?toolsets=classic" => drop(agent.call("connect_notebook", connect).await.ok()),
                "?toolsets=datalayer" => {
                    let used = json!({ "notebook_name": "n", "notebook_path": path });
                    agent.call("use_notebook", used).await.ok();
                }
                _ => {}
            }
            let told = agent.call(tool, arguments).await.error();
            assert!(
                told.contains("input_required") && told.contains("approvals[0]") && told.contains("ran-anyway"),
                "{tool} {era:?}: {told}"
            );
            assert_eq!(
                ruled.scene.human.sources(),
                cells,
                "{tool} {era:?} changed the notebook"
            );
            tried.insert(tool.to_owned());
        }
        assert!(!ruled.folder().has("ran-anyway"));
        // What runs nothing that a rule is about needs nobody.
        let harmless = json!({ "path": path, "code": "1 + 1" });
        ruled.scene.agent.call("run_code", harmless).await.ok();
    }
    let listed = crate::support::command::run(&["tools", "--toolsets", "all", "--markdown"]).stdout;
    let executing = listed.split("\n### ").skip(1).filter(|tool| {
        let first = tool.lines().nth(2).unwrap_or_default();
        first.contains("`execute`") || tool.contains("| `exec` |")
    });
    let missing: Vec<&str> = executing
        .filter_map(|tool| tool.lines().next())
        .filter(|name| !tried.contains(*name) && !RUN_NOTHING.contains(name))
        .collect();
    assert!(missing.is_empty(), "not tried here: {missing:?}");
}

#[tokio::test]
async fn a_legacy_client_asks_its_person_before_anything_is_done() {
    let ruled = Ruled::set(SHELL, &["x = 1"]).await;
    let (path, agent) = (ruled.path(), ruled.agent("", Era::Legacy, can_ask()).await);
    let cells = json!([{ "content": "# one\n!touch allowed" }]);
    let insert = json!({ "path": path, "position": -1, "cells": cells, "exec": true });
    for (number, answer) in [
        (7, json!({ "action": "decline" })),
        (8, json!({ "action": "cancel" })),
        (9, json!({ "action": "accept", "content": { "allow": false } })),
    ] {
        let (_, result) = answered(&agent, number, "insert_nb_cells", insert.clone(), answer).await;
        assert!(
            result["isError"] == true && result.to_string().contains("did not allow"),
            "{result}"
        );
        assert_eq!(ruled.scene.human.sources(), ["x = 1"]);
        assert!(ruled.scene.kernels().await.is_empty(), "no kernel was started");
    }
    let yes = json!({ "action": "accept", "content": { "allow": true } });
    let (asked, result) = answered(&agent, 10, "insert_nb_cells", insert, yes).await;
    let message = asked["message"].as_str().expect("a message");
    assert!(
        message.contains("# one\n!touch allowed") && message.contains("insert_nb_cells"),
        "{message}"
    );
    assert_eq!(result["structuredContent"]["status"], "completed", "{result}");
    assert!(ruled.folder().has("allowed"));
    ruled.scene.sees(&["x = 1", "# one\n!touch allowed"]).await;
    let rows = ruled.audited("insert_nb_cells", 4).await;
    let told: Vec<_> = rows
        .iter()
        .map(|row| {
            [
                &row["decision"],
                &row["rule"],
                &row["outcome"],
                &row["approval"],
                &row["path"],
            ]
        })
        .collect();
    let declined = json!([
        "deny",
        "approvals",
        "failed",
        "approvals[0]: declined by the person at the client",
        path
    ]);
    let allowed = json!([
        "allow",
        null,
        "completed",
        "approvals[0]: allowed by the person at the client",
        path
    ]);
    assert_eq!(json!(told), json!([declined, declined, declined, allowed]));
    assert!(!json!(rows).to_string().contains("touch"), "no source: {rows:?}");
}

#[tokio::test]
async fn a_modern_client_asks_its_person_in_a_round_for_each_question() {
    let rules = format!("{SHELL}\n[[tenants.approvals]]\ntools = [\"execute_nb_cells\"]\npaths = [\"test-*/**\"]");
    let ruled = Ruled::set(&rules, &["!touch allowed"]).await;
    let agent = ruled.agent("", Era::Modern, can_ask()).await;
    let mut params = json!({ "name": "execute_nb_cells", "arguments": { "path": ruled.path() } });
    let yes = json!({ "choice": { "action": "accept", "content": { "allow": true } } });
    for (round, rule) in ["approvals[1]", "approvals[0]"].into_iter().enumerate() {
        let asked = agent.request("tools/call", params.clone()).await["result"].take();
        assert_eq!(asked["resultType"], "input_required", "{round}: {asked}");
        let message = &asked["inputRequests"]["choice"]["params"]["message"];
        assert!(
            message.as_str().is_some_and(|message| message.contains(rule)),
            "{round}: {message}"
        );
        params["requestState"] = asked["requestState"].clone();
        params["inputResponses"] = yes.clone();
        if round == 1 {
            // What was allowed for one call is not for another, and no answer is none.
            let mut other = params.clone();
            other["arguments"]["timeout"] = 3.into();
            let refused = agent.request("tools/call", other).await;
            assert!(refused["error"].is_object(), "{refused}");
            let mut declined = params.clone();
            declined["inputResponses"] = json!({ "choice": { "action": "decline" } });
            let declined = agent.request("tools/call", declined).await["result"].take();
            assert!(declined.to_string().contains("did not allow"), "{declined}");
        }
        assert!(!ruled.folder().has("allowed"));
    }
    let ran = agent.request("tools/call", params).await["result"].take();
    assert_eq!(ran["structuredContent"]["status"], "completed", "{ran}");
    assert!(ruled.folder().has("allowed"));
    let rows = ruled.audited("execute_nb_cells", 4).await;
    let outcomes: Vec<_> = rows.iter().map(|row| &row["outcome"]).collect();
    assert_eq!(
        json!(outcomes),
        json!(["unanswered", "unanswered", "failed", "completed"])
    );
}

#[tokio::test]
async fn code_that_is_changed_while_it_waits_does_not_run() {
    let wait = "import os, time\nwhile not os.path.exists('go-on'):\n    time.sleep(0.05)";
    let ruled = Ruled::set(SHELL, &[wait, "x = 1", "y = 2"]).await;
    let (scene, path) = (&ruled.scene, ruled.path());
    let first = scene.start(0).await;
    scene.shows_running(0).await;
    let ranges = json!([{ "start": 1, "end": 3 }]);
    let run = json!({ "ranges": ranges, "timeout": 0 });
    let waiting = id(&scene.call("execute_nb_cells", run).await.structured);
    let modifications = json!([{ "range": { "cell_id": "c1" }, "content": "!touch ran-anyway" }]);
    let modify = json!({ "path": path, "modifications": modifications, "exec": false });
    scene.agent.call("modify_nb_cells", modify).await.ok();
    ruled.folder().write("go-on", "");
    ended(&scene.agent, &first).await;
    let result = ended(&scene.agent, &waiting).await;
    assert!(result.to_string().contains("a person must allow this code"), "{result}");
    assert!(!ruled.folder().has("ran-anyway"));
}

#[tokio::test]
async fn input_of_an_agent_for_running_code_is_code_too() {
    let ruled = Ruled::set(SHELL, &["print(input('? '))"]).await;
    let execution = ruled.scene.start(0).await;
    let agent = &ruled.scene.agent;
    eventually("the question", async || {
        let seen = agent.call("get_execution", json!({ "execution_id": execution })).await;
        (seen.structured["status"] == "input_required").then_some(())
    })
    .await;
    let answer = |input: &str| json!({ "execution_id": execution, "input": input, "wait": 30 });
    let told = agent.call("get_execution", answer("!pip install x")).await.error();
    assert!(told.contains("input_required: a person must allow"), "{told}");
    let ended = agent.call("get_execution", answer("fine")).await.ok();
    assert!(
        ended["status"] == "completed" && ended.to_string().contains("fine"),
        "{ended}"
    );
}

#[tokio::test]
async fn calls_on_paths_and_of_tools_are_asked_about_before_they_change_anything() {
    let rules = "[[tenants.approvals]]\npaths = [\"*/production/**\"]\n[[tenants.approvals]]\ntools = [\"rename_document\", \"read_nb_cells\"]";
    for era in ERAS {
        let ruled = Ruled::set(rules, &["x = 1"]).await;
        let folder = ruled.folder();
        let (report, draft) = (
            folder.write("production/report.ipynb", &notebook(&["y = 1"])),
            folder.write("draft.md", "draft"),
        );
        let directory = folder.path("production");
        let agent = ruled.agent("?toolsets=default,collab", era, json!({})).await;
        for (tool, arguments) in [
            ("delete_document", json!({ "path": report })),
            ("delete_document", json!({ "path": directory })),
            (
                "copy_document",
                json!({ "path": draft, "copyPath": format!("{directory}/copy.md") }),
            ),
            (
                "rename_document",
                json!({ "path": draft, "newPath": folder.path("other.md") }),
            ),
            ("clear_nb_outputs", json!({ "path": report })),
            (
                "batch_insert_text",
                json!({ "path": format!("{directory}/a.md"), "operations": [] }),
            ),
            ("read_nb_cells", json!({ "path": report })),
        ] {
            let told = agent.call(tool, arguments).await.error();
            assert!(
                told.contains("input_required") && told.contains("approvals["),
                "{tool}: {told}"
            );
        }
        // Reading is not asked about unless it is named, and other paths are nobody's business.
        agent.call("get_nb_stat", json!({ "path": report })).await.ok();
        agent
            .call("overwrite_document", json!({ "path": draft, "content": "draft" }))
            .await
            .ok();
        assert!(
            folder.has("production/report.ipynb") && !folder.has("production/copy.md") && folder.has("draft.md"),
            "{era:?}"
        );
        let asking = ruled.agent("", Era::Legacy, can_ask()).await;
        let yes = json!({ "action": "accept", "content": { "allow": true } });
        let (asked, _) = answered(&asking, 7, "delete_document", json!({ "path": report }), yes).await;
        let message = asked["message"].as_str().expect("a message");
        assert!(message.contains(&report), "{asked}");
        eventually("it is deleted", async || {
            (!folder.has("production/report.ipynb")).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_rule_can_hold_only_while_a_person_is_there() {
    let rules = "[[tenants.approvals]]\ncode = \"x\"\nwhen = \"person_present\"\n[[tenants.approvals]]\ntools = [\"clear_nb_outputs\"]\nwhen = \"person_present\"";
    let ruled = Ruled::set(rules, &["x = 1"]).await;
    let agent = &ruled.scene.agent;
    let alone = ruled.folder().write("alone.ipynb", &notebook(&["x = 1"]));
    ruled.scene.human.publish("Ida", true);
    let run = async |path: &str| agent.call("execute_nb_cells", json!({ "path": path })).await;
    let clear = async |path: &str| agent.call("clear_nb_outputs", json!({ "path": path })).await;
    let (with_her, without, cleared_with_her, cleared_without) =
        tokio::join!(run(ruled.path()), run(&alone), clear(ruled.path()), clear(&alone));
    assert!(with_her.error().contains("approvals[0]"));
    without.ok();
    assert!(cleared_with_her.error().contains("approvals[1]"));
    cleared_without.ok();
}

#[tokio::test]
async fn rules_that_can_mean_nothing_are_refused_at_the_start() {
    let (folder, server) = (
        tempfile::tempdir().unwrap(),
        "[[servers]]\nname = \"lab\"\nurl = \"http://127.0.0.1:9/\"\n",
    );
    for (rule, told) in [
        (
            "",
            "tenants[0].approvals[0]: one of code, paths, tools, when is required",
        ),
        (
            "tools = []",
            "tenants[0].approvals[0]: one of code, paths, tools, when is required",
        ),
        (
            "code = \"(\"",
            "tenants[0].approvals[0].code: \"(\" is not a regular expression: unclosed group",
        ),
        (
            "paths = [\"a[\"]",
            "tenants[0].approvals[0].paths[0]: \"a[\" is not a glob",
        ),
        (
            "when = \"never\"",
            "tenants[0].approvals[0].when: \"never\" is not a condition; allowed: person_present",
        ),
        (
            "tools = [\"run_cod\"]",
            "tenants[0].approvals[0].tools: \"run_cod\" is not a tool; did you mean `run_code`?",
        ),
        (
            "cod = \"x\"",
            "unknown key; allowed: code, paths, tools, when, decided_by",
        ),
    ] {
        let file = folder.path().join("gateway.toml");
        let text = format!("{server}[[tenants]]\nname = \"t\"\n[[tenants.approvals]]\n{rule}\n");
        std::fs::write(&file, text).unwrap();
        let ended = crate::support::command::run(&["check-config", "--config", file.to_str().unwrap()]);
        assert_eq!(ended.code, Some(64), "{rule}");
        assert!(ended.stderr.contains(told), "{rule}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn other_tenants_are_under_no_rule() {
    let other = "[[tenants]]\nname = \"other\"\n[[auth.tokens]]\nname = \"ben\"\ntenant = \"other\"\ntoken = \"test-token-of-ben\"\n";
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{}{other}", config(SHELL, &folder.path().join("audit")));
    let gateway = Gateway::configured(&config).await;
    let notebook = lab().folder().write("a.ipynb", &notebook(&["1"]));
    let ben = Agent::with_token(&gateway, "test-token-of-ben", Era::Modern).await;
    ben.call("run_code", json!({ "path": notebook, "code": "!true" }))
        .await
        .ok();
    let ana = Agent::with_token(&gateway, TOKEN, Era::Modern).await;
    ana.call("run_code", json!({ "path": notebook, "code": "!true" }))
        .await
        .error();
}

#[tokio::test]
async fn a_task_that_was_allowed_is_asked_about_once() {
    let rule = "[[tenants.approvals]]\ntools = [\"execute_nb_cells\"]";
    let wait = "import os, time\nwhile not os.path.exists('go-on'):\n    time.sleep(0.05)";
    let ruled = Ruled::set(rule, &[wait]).await;
    let able = json!({ "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let agent = ruled.agent("", Era::Modern, able).await;
    let arguments = json!({ "path": ruled.path(), "timeout": 0.5 });
    let mut params = json!({ "name": "execute_nb_cells", "arguments": arguments });
    let asked = agent.request("tools/call", params.clone()).await["result"].take();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = json!({ "choice": { "action": "accept", "content": { "allow": true } } });
    let task = agent.request("tools/call", params).await["result"].take();
    assert_eq!(task["resultType"], "task", "{task}");
    ruled.folder().write("go-on", "");
    let ended = eventually("it ends", async || {
        let id = json!({ "taskId": task["taskId"] });
        let seen = agent.request("tasks/get", id).await["result"].take();
        (seen["status"] == "completed").then_some(seen)
    })
    .await;
    assert_eq!(ended["result"]["structuredContent"]["status"], "completed", "{ended}");
}
