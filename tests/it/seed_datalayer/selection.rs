//! Which tools there are, and which of two with one name is meant.

use serde_json::json;

use super::{Scene, agent};
use crate::support::{Agent, Era, TOKEN, agent::ERAS, notebook::notebook};

const TOOLS: [&str; 18] = [
    "use_notebook",
    "unuse_notebook",
    "list_notebooks",
    "restart_notebook",
    "read_notebook",
    "read_cell",
    "insert_cell",
    "insert_execute_code_cell",
    "execute_cell",
    "overwrite_cell_source",
    "edit_cell_source",
    "move_cell",
    "delete_cell",
    "clear_cell_output",
    "execute_code",
    "list_kernels",
    "list_files",
    "connect_to_jupyter",
];

#[tokio::test]
async fn the_toolset_is_the_originals_and_not_among_the_defaults() {
    for era in ERAS {
        let scene = Scene::set(era).await;
        let mut expected: Vec<&str> = TOOLS.to_vec();
        expected.extend(["get_execution", "cancel_execution"]);
        let mut listed = scene.agent.tools().await;
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected);
        let default = Agent::connect(&scene.gateway, era).await.tools().await;
        for tool in ["use_notebook", "get_online_users", "connect_notebook", "get_notebook"] {
            assert!(!default.contains(&tool.to_owned()), "{tool} is a default tool");
        }
    }
}

/// "What is listed is what is called": the toolset that is selected first has the name.
#[tokio::test]
async fn of_two_tools_with_one_name_that_of_the_first_toolset_is_meant() {
    let scene = Scene::set(Era::Modern).await;
    let path = scene.folder.write("a.ipynb", &notebook(&["x = 1"]));
    let select = async |toolsets: &str| {
        let url = scene.gateway.url(&format!("/mcp?toolsets={toolsets}"));
        Agent::connect_to(&url, TOKEN, Era::Modern).await
    };
    for (toolsets, is_ours) in [
        ("datalayer,classic", true),
        ("classic,datalayer", false),
        ("kernel,datalayer,collab,classic", true),
        ("all", false),
        ("default,classic", false),
    ] {
        let agent = select(toolsets).await;
        let listed = agent.request("tools/list", json!({})).await;
        let listed = listed["result"]["tools"].as_array().expect("tools").clone();
        let mut names: Vec<&str> = listed.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{toolsets}: each name once");
        let read = listed
            .iter()
            .find(|tool| tool["name"] == "read_cell")
            .expect("read_cell");
        let has_ours = read["inputSchema"]["properties"]["include_outputs"].is_object();
        assert_eq!(has_ours, is_ours, "{toolsets}: {read}");
        // What is called is what is listed.
        let connected = match toolsets.contains("classic,") || toolsets == "default,classic" || toolsets == "all" {
            true => (
                "connect_notebook",
                json!({ "notebook_name": "a", "notebook_path": path }),
            ),
            false => ("use_notebook", json!({ "notebook_name": "a", "notebook_path": path })),
        };
        agent.call(connected.0, connected.1).await.ok();
        let read = agent
            .call("read_cell", json!({ "notebook_name": "a", "cell_index": 0 }))
            .await;
        let is_originals = read.text().starts_with("=====Cell 0 | type: code");
        assert_eq!(is_originals, is_ours, "{toolsets}: {read:?}");
        let foreign = json!({ "notebook_name": "a", "cell_index": 0, "include_outputs": true });
        let foreign = agent.call("read_cell", foreign).await;
        assert_eq!(foreign.is_error, !is_ours, "{toolsets}: {foreign:?}");
    }
    // Of `list_kernels` the same: the one of `kernel` unless it is not selected before.
    let kernels = select("datalayer,kernel").await.call("list_kernels", json!({})).await;
    assert!(kernels.structured["columns"].is_array(), "{kernels:?}");
    let kernels = select("kernel,datalayer").await.call("list_kernels", json!({})).await;
    assert!(kernels.structured["kernels"].is_array(), "{kernels:?}");
}

#[tokio::test]
async fn unselected_and_unknown_tools_and_arguments_are_named() {
    let scene = Scene::set(Era::Modern).await;
    let default = Agent::connect(&scene.gateway, Era::Modern).await;
    let error = default.call("use_notebook", json!({})).await.error();
    assert!(error.contains("?toolsets=datalayer"), "{error}");
    let error = scene.error("use_notebook", json!({ "notebook_name": "a" })).await;
    assert!(error.contains("`notebook_path`"), "{error}");
    let error = scene
        .error(
            "read_notebook",
            json!({ "notebook_name": "a", "response_format": "long" }),
        )
        .await;
    assert!(error.contains("brief") && error.contains("detailed"), "{error}");
    let reader = agent(&scene.gateway, "&readonly=true", TOKEN, Era::Modern).await;
    let tools = reader.tools().await;
    assert!(
        tools.contains(&"use_notebook".to_owned()) && !tools.contains(&"insert_cell".to_owned()),
        "{tools:?}"
    );
    let error = reader.call("insert_cell", json!({})).await.error();
    assert!(error.contains("read-only"), "{error}");
}
