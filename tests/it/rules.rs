//! Who may use which tool: every tool with every set of permissions, on every path, server and kind of connection. The table
//! is held against the catalogue, so that a new tool has to be put into it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::support::{Agent, Era, Gateway, agent::ToolAnswer, command::run};

/// The tool that only users of a JupyterHub have.
const START: &str = "start_server";

/// Toolset, tool, and all permissions that it needs.
const TABLE: &[(&str, &str, &[&str])] = &[
    ("gateway", "list_servers", &["read"]),
    ("gateway", START, &["write"]),
    ("url", "get_base_url", &["read"]),
    ("url", "nb_path_from_url", &["read"]),
    ("notebook", "list_nbs", &["read"]),
    ("notebook", "create_notebook", &["write"]),
    ("notebook", "get_nb_stat", &["read"]),
    ("notebook", "read_nb_cells", &["read"]),
    ("notebook", "modify_nb_cells", &["write"]),
    ("notebook", "edit_nb_cell", &["write"]),
    ("notebook", "insert_nb_cells", &["write"]),
    ("notebook", "delete_nb_cells", &["write"]),
    ("notebook", "move_nb_cells", &["write"]),
    ("notebook", "clear_nb_outputs", &["write"]),
    ("notebook", "execute_nb_cells", &["execute"]),
    ("kernel", "list_available_kernels", &["read"]),
    ("kernel", "assign_nb_kernel", &["execute", "write"]),
    ("kernel", "restart_nb_kernel", &["execute"]),
    ("kernel", "interrupt_nb_kernel", &["execute"]),
    ("kernel", "list_kernels", &["read"]),
    ("kernel", "shutdown_kernel", &["execute"]),
    ("kernel", "inspect_variables", &["read", "execute"]),
    ("execution", "run_code", &["execute"]),
    ("execution", "run_notebook", &["execute"]),
    ("execution", "get_execution", &["read"]),
    ("execution", "list_executions", &["read"]),
    ("execution", "cancel_execution", &["execute"]),
    ("document", "get_document_content", &["read"]),
    ("document", "insert_document_text", &["write"]),
    ("document", "delete_document_text", &["write"]),
    ("document", "replace_document_text", &["write"]),
    ("document", "edit_document_text", &["write"]),
    ("document", "save_document", &["write"]),
    ("files", "list_documents", &["read"]),
    ("files", "create_document", &["write"]),
    ("files", "get_document_info", &["read"]),
    ("files", "delete_document", &["write"]),
    ("files", "rename_document", &["write"]),
    ("files", "copy_document", &["write"]),
    ("files", "overwrite_document", &["write"]),
    ("files", "search_documents", &["read"]),
    ("session", "query_nb_sessions", &["read"]),
    ("session", "end_nb_session", &["write"]),
    ("session", "query_document_session", &["read"]),
    ("session", "end_document_session", &["write"]),
    ("history", "get_document_history", &["read"]),
    ("history", "restore_document_version", &["write"]),
    ("history", "undo_changes", &["write"]),
    ("history", "diff_document", &["read"]),
    ("history", "fork_document", &["write"]),
    ("history", "list_document_forks", &["read"]),
    ("history", "merge_document_fork", &["write"]),
    ("history", "discard_document_fork", &["write"]),
    ("awareness", "get_online_users", &["read"]),
    ("awareness", "get_user_presence", &["read"]),
    ("awareness", "set_user_presence", &["read"]),
    ("awareness", "get_user_cursors", &["read"]),
    ("awareness", "update_cursor_position", &["read"]),
    ("awareness", "get_user_activity", &["read"]),
    ("awareness", "broadcast_user_activity", &["write"]),
    ("awareness", "get_active_sessions", &["read"]),
    ("awareness", "join_session", &["read"]),
    ("awareness", "leave_session", &["read"]),
    ("collab", "list_notebooks", &["read"]),
    ("collab", "get_notebook", &["read"]),
    ("collab", "create_notebook_session", &["read"]),
    ("collab", "batch_update_notebook_cells", &["write"]),
    ("collab", "batch_insert_notebook_cells", &["write"]),
    ("collab", "batch_delete_notebook_cells", &["write"]),
    ("collab", "execute_notebook_cell", &["execute"]),
    ("collab", "batch_execute_notebook_cells", &["execute"]),
    ("collab", "get_document", &["read"]),
    ("collab", "create_document_session", &["read"]),
    ("collab", "batch_update_document", &["write"]),
    ("collab", "batch_insert_text", &["write"]),
    ("collab", "batch_delete_text", &["write"]),
    ("classic", "connect_notebook", &["read"]),
    ("classic", "list_notebook", &["read"]),
    ("classic", "restart_notebook", &["execute"]),
    ("classic", "read_notebook", &["read"]),
    ("classic", "list_cell", &["read"]),
    ("classic", "read_cell", &["read"]),
    ("classic", "delete_cell", &["write"]),
    ("classic", "insert_cell", &["write"]),
    ("classic", "execute_cell", &["execute"]),
    ("classic", "overwrite_cell", &["write"]),
    ("classic", "append_execute_code_cell", &["execute", "write"]),
    ("classic", "execute_temporary_code", &["execute"]),
    ("datalayer", "use_notebook", &["read"]),
    ("datalayer", "unuse_notebook", &["read"]),
    ("datalayer", "list_notebooks", &["read"]),
    ("datalayer", "restart_notebook", &["execute"]),
    ("datalayer", "read_notebook", &["read"]),
    ("datalayer", "read_cell", &["read"]),
    ("datalayer", "insert_cell", &["write"]),
    ("datalayer", "insert_execute_code_cell", &["execute", "write"]),
    ("datalayer", "execute_cell", &["execute"]),
    ("datalayer", "overwrite_cell_source", &["write"]),
    ("datalayer", "edit_cell_source", &["write"]),
    ("datalayer", "move_cell", &["write"]),
    ("datalayer", "delete_cell", &["write"]),
    ("datalayer", "clear_cell_output", &["write"]),
    ("datalayer", "execute_code", &["execute"]),
    ("datalayer", "list_kernels", &["read"]),
    ("datalayer", "list_files", &["read"]),
    ("datalayer", "connect_to_jupyter", &["read"]),
];

const PERMISSIONS: [&str; 4] = ["read", "write", "execute", "admin"];

/// All sets of permissions but the empty one, for which there is no token.
fn sets() -> impl Iterator<Item = Vec<&'static str>> {
    (1..16_usize).map(|bits| {
        let has = PERMISSIONS.iter().enumerate();
        has.filter(|(bit, _)| bits >> bit & 1 == 1)
            .map(|(_, name)| *name)
            .collect()
    })
}

/// A gateway whose servers do not answer, with a token for each set of permissions: nothing is to be asked of Jupyter.
async fn gateway() -> Gateway {
    gateway_with("").await
}

/// The same with more settings.
async fn gateway_with(settings: &str) -> Gateway {
    let mut config = settings.to_owned();
    for name in ["lab", "theirs"] {
        let server =
            format!("[[servers]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:9/\"\nconnect_timeout = \"1s\"\n");
        config += &server;
    }
    config +=
        "[[tenants]]\nname = \"ours\"\nservers = [\"lab\"]\n[[tenants]]\nname = \"others\"\nservers = [\"theirs\"]\n";
    for set in sets() {
        let name = set.join("-");
        let token = format!(
            "[[auth.tokens]]\nname = \"{name}\"\ntenant = \"ours\"\ntoken = \"token-of-{name}\"\npermissions = {set:?}\npaths = [\"mine/**\"]\n"
        );
        config += &token;
    }
    Gateway::configured(&config).await
}

async fn agent(gateway: &Gateway, selection: &str, token: &str) -> Agent {
    Agent::connect_to(
        &gateway.url(&format!("/mcp?{selection}")),
        &format!("token-of-{token}"),
        Era::Modern,
    )
    .await
}

const EVERYTHING: &str = "read-write-execute-admin";

/// Toolsets and tools of the catalogue, with their schemas.
fn catalogue(toolset: &str) -> Vec<Value> {
    let listed = run(&["tools", "--toolsets", toolset, "--json"]).stdout;
    serde_json::from_str(&listed).expect("a list")
}

fn toolsets() -> Vec<&'static str> {
    let mut names: Vec<&str> = TABLE.iter().map(|(toolset, ..)| *toolset).collect();
    names.dedup();
    names
}

fn tools_of(toolset: &str) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    let rows = TABLE.iter().filter(move |(of, ..)| *of == toolset);
    rows.map(|(_, tool, needs)| (*tool, *needs))
}

/// The same without what callers with a token of the config do not have.
fn usual_tools_of(toolset: &str) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    tools_of(toolset).filter(|(tool, _)| *tool != START)
}

#[test]
fn every_tool_is_in_the_table() {
    for toolset in toolsets() {
        let listed: BTreeSet<String> = catalogue(toolset)
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect();
        let known: BTreeSet<String> = tools_of(toolset).map(|(tool, _)| tool.to_owned()).collect();
        // Tools that other toolsets bring with them are in their own.
        let unknown: Vec<_> = listed
            .difference(&known)
            .filter(|name| !TABLE.iter().any(|(_, tool, _)| tool == name))
            .collect();
        assert!(
            unknown.is_empty(),
            "{toolset}: say in this table who may use {unknown:?}"
        );
        assert!(known.is_subset(&listed), "{toolset}: {:?}", known.difference(&listed));
    }
    let all: BTreeSet<String> = catalogue("all")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned())
        .collect();
    let known: BTreeSet<String> = TABLE.iter().map(|(_, tool, _)| (*tool).to_owned()).collect();
    assert_eq!(all, known, "a toolset is missing in this table");
}

/// The permission for want of which a call was refused.
fn missing(answer: &ToolAnswer) -> Option<String> {
    let told = answer.text();
    let (_, after) = told.split_once("this needs permission `")?;
    after.split('`').next().map(str::to_owned)
}

#[tokio::test]
async fn a_tool_runs_with_all_of_its_permissions_and_no_other_makes_up_for_one() {
    let gateway = gateway().await;
    for toolset in toolsets() {
        for set in sets() {
            let agent = agent(&gateway, &format!("toolsets={toolset}"), &set.join("-")).await;
            for (tool, needs) in usual_tools_of(toolset) {
                let lacking: Vec<&str> = needs.iter().copied().filter(|needed| !set.contains(needed)).collect();
                let told = missing(&agent.call(tool, json!({})).await);
                assert_eq!(
                    told.is_some(),
                    !lacking.is_empty(),
                    "{toolset} {tool} with {set:?}: {told:?}"
                );
                assert!(told.is_none_or(|told| lacking.contains(&&*told)), "{tool} with {set:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_only_reads_has_no_tool_that_does_more() {
    let gateway = gateway().await;
    for toolset in toolsets() {
        let agent = agent(&gateway, &format!("toolsets={toolset}&readonly=true"), EVERYTHING).await;
        for (tool, needs) in usual_tools_of(toolset) {
            let answer = agent.call(tool, json!({})).await;
            let is_refused = answer.text().contains("read-only");
            assert_eq!(is_refused, needs != ["read"], "{tool}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_tool_that_was_not_selected_is_none() {
    let gateway = gateway().await;
    let selected = agent(&gateway, "toolsets=gateway", EVERYTHING).await;
    for (toolset, tool, _) in TABLE.iter().filter(|(_, tool, _)| *tool != START) {
        let answer = selected.call(tool, json!({})).await;
        assert_eq!(
            *toolset == "gateway",
            !answer.text().contains("toolsets"),
            "{tool}: {}",
            answer.text()
        );
    }
}

/// Arguments of a tool by its schema: all that it requires, of the right kind.
fn arguments(tool: &Value) -> Map<String, Value> {
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().into_iter().flatten();
    let sample = |name: &str| match schema["properties"][name]["type"].as_str() {
        Some("integer" | "number") => json!(0),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("x"),
    };
    let named = required.filter_map(Value::as_str);
    named.map(|name| (name.to_owned(), sample(name))).collect()
}

#[tokio::test]
async fn no_argument_leads_to_a_path_or_a_server_that_is_not_the_callers() {
    let gateway = gateway().await;
    let (mut paths, mut servers) = (0, 0);
    for toolset in toolsets() {
        let agent = agent(&gateway, &format!("toolsets={toolset}"), EVERYTHING).await;
        for tool in catalogue(toolset).into_iter().filter(|tool| tool["name"] != START) {
            let name = tool["name"].as_str().expect("a name");
            let members = tool["inputSchema"]["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default();
            for argument in members.keys().filter(|name| name.to_lowercase().ends_with("path")) {
                for denied in [
                    "theirs/x.ipynb",
                    "mine/../theirs/x.ipynb",
                    "/theirs//x.ipynb",
                    "theirs",
                    "mine%2F..%2Ftheirs",
                ] {
                    let mut given = arguments(&tool);
                    // The others are where the caller may go.
                    for other in members.keys().filter(|name| name.to_lowercase().ends_with("path")) {
                        given.insert(other.clone(), json!("mine/x.ipynb"));
                    }
                    given.insert(argument.clone(), json!(denied));
                    let answer = agent.call(name, given.into()).await;
                    let told = answer.text();
                    let is_refused = [
                        "outside the path rules",
                        "leaves the server's root",
                        "hides a separator",
                        "argument `",
                    ]
                    .iter()
                    .any(|refusal| told.contains(refusal));
                    assert!(
                        answer.is_error && is_refused,
                        "{toolset} {name} {argument}={denied}: {told}"
                    );
                    paths += usize::from(told.contains("outside the path rules"));
                }
            }
            if members.contains_key("server") {
                let mut given = arguments(&tool);
                given.insert("server".to_owned(), json!("theirs"));
                let answer = agent.call(name, given.into()).await;
                let told = answer.text();
                assert!(
                    answer.is_error && told.contains("unknown server \"theirs\"; available: lab"),
                    "{toolset} {name}: {told}"
                );
                servers += 1;
            }
        }
    }
    assert!(paths > 200 && servers > 50, "{paths} {servers}");
}

#[tokio::test]
async fn every_call_of_every_tool_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("audit.jsonl");
    let gateway = gateway_with(&format!("audit.file = {:?}\n", file.display().to_string())).await;
    let (mut calls, sets) = (0, [EVERYTHING, "read", "admin"]);
    for toolset in toolsets() {
        for set in sets {
            let agent = agent(&gateway, &format!("toolsets={toolset}"), set).await;
            for (tool, _) in usual_tools_of(toolset) {
                agent.call(tool, json!({})).await;
                calls += 1;
            }
        }
    }
    gateway.drain().start();
    gateway.gone().await;
    let text = std::fs::read_to_string(&file).expect("records");
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    assert_eq!(rows.len(), calls);
    let mut rows = rows.iter();
    for toolset in toolsets() {
        for set in sets {
            for (tool, needs) in usual_tools_of(toolset) {
                let row = rows.next().expect("a record");
                let has: Vec<&str> = set.split('-').collect();
                let lacking: Vec<&str> = needs.iter().copied().filter(|needed| !has.contains(needed)).collect();
                let principal = format!("token:{set}");
                assert_eq!(
                    (row["tool"].as_str(), row["principal"].as_str()),
                    (Some(tool), Some(&*principal))
                );
                let rule = row["rule"].as_str().unwrap_or_default();
                let decision = if lacking.is_empty() { "allow" } else { "deny" };
                assert_eq!(row["decision"], decision, "{tool} with {set}: {row}");
                assert!(
                    lacking.is_empty() || lacking.contains(&rule),
                    "{tool} with {set}: {row}"
                );
            }
        }
    }
}

/// Whatever is no tool: what it is asked by, and with what.
fn methods() -> Vec<(&'static str, Value)> {
    let session = "notebook://no-such-session/no-such-notebook";
    let mut methods: Vec<_> = [
        "notebook://list",
        "notebook://current",
        "notebook://activity",
        "notebook://templates/blank",
        "file:///documents/lab/mine/x.md",
        session,
        &format!("{session}/cells/c0"),
        &format!("{session}/executions/none"),
    ]
    .map(|uri| ("resources/read", json!({ "uri": uri })))
    .into();
    methods.push(("resources/subscribe", json!({ "uri": session })));
    methods
}

#[tokio::test]
async fn what_is_no_tool_needs_permission_to_read_too() {
    let gateway = gateway().await;
    for set in sets() {
        let token = format!("token-of-{}", set.join("-"));
        let agents = [
            agent(&gateway, "toolsets=default", &set.join("-")).await,
            Agent::connect_to(&gateway.url("/mcp"), &token, Era::Legacy).await,
        ];
        for agent in agents {
            for (method, params) in methods() {
                let answer = agent.request(method, params.clone()).await;
                let told = answer["error"]["message"].as_str().unwrap_or_default();
                let may = set.contains(&"read");
                let is_refused = told.contains("permission `read`");
                // What this protocol does not have is nobody's.
                let exists = answer["error"]["code"] != -32601;
                assert!(!exists || is_refused != may, "{method} {params} with {set:?}: {answer}");
            }
            let listed = agent.request("resources/list", json!({})).await;
            let count = listed["result"]["resources"].as_array().map_or(0, Vec::len);
            assert_eq!(count > 0, set.contains(&"read"), "{set:?}: {listed}");
        }
    }
}

#[tokio::test]
async fn resources_need_permission_to_read() {
    let gateway = gateway().await;
    for set in sets() {
        let agent = agent(&gateway, "toolsets=default", &set.join("-")).await;
        for uri in [
            "notebook://list",
            "notebook://activity",
            "notebook://templates/blank",
            "file:///documents/lab/mine/x.md",
        ] {
            let answer = agent.request("resources/read", json!({ "uri": uri })).await;
            let told = answer["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(
                told.contains("permission `read`"),
                !set.contains(&"read"),
                "{uri} with {set:?}: {answer}"
            );
        }
    }
}
