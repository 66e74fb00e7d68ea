//! The rest of jupyter-collaboration-mcp from top to bottom: "Document Versioning and History", "Document Forking" and
//! "Awareness and User Presence Features", with the parameters, defaults and results that it names.

use serde_json::{Value, json};

use crate::support::{Agent, Era, Gateway, Human, TOKEN, agent::ERAS, eventually, lab, notebook::notebook};

/// Required parameters of a tool, and all others with their defaults.
type Parameters = (&'static [&'static str], &'static [(&'static str, &'static str)]);

const TOOLS: &[(&str, Parameters)] = &[
    ("get_document_history", (&["path"], &[("limit", "10")])),
    ("restore_document_version", (&["path", "version_id"], &[])),
    (
        "fork_document",
        (
            &["path"],
            &[("title", ""), ("description", ""), ("synchronize", "false")],
        ),
    ),
    ("merge_document_fork", (&["path", "fork_id"], &[])),
    ("get_online_users", (&[], &[("document_path", "")])),
    ("get_user_presence", (&["user_id"], &[("document_path", "")])),
    ("set_user_presence", (&[], &[("status", "\"online\""), ("message", "")])),
    ("get_user_cursors", (&["document_path"], &[])),
    (
        "update_cursor_position",
        (&["document_path", "position"], &[("selection", "")]),
    ),
    ("get_user_activity", (&[], &[("document_path", ""), ("limit", "20")])),
    (
        "broadcast_user_activity",
        (
            &["activity_type", "description"],
            &[("document_path", ""), ("metadata", "")],
        ),
    ),
    ("get_active_sessions", (&[], &[("document_path", "")])),
    ("join_session", (&["session_id"], &[])),
    ("leave_session", (&["session_id"], &[])),
];

async fn aware(gateway: &Gateway, era: Era) -> Agent {
    Agent::connect_to(&gateway.url("/mcp?toolsets=default,awareness"), TOKEN, era).await
}

#[tokio::test]
async fn each_tool_has_the_parameters_and_defaults_of_the_older_server() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let agent = aware(&gateway, era).await;
        let listed = agent.request("tools/list", json!({})).await;
        let listed = listed["result"]["tools"].as_array().expect("tools").clone();
        for (name, (required, others)) in TOOLS {
            let tool = listed.iter().find(|tool| tool["name"] == *name);
            let schema = &tool.unwrap_or_else(|| panic!("no {name}"))["inputSchema"];
            let demanded = schema["required"].as_array().cloned().unwrap_or_default();
            let demanded: Vec<&str> = demanded.iter().filter_map(Value::as_str).collect();
            assert_eq!(demanded.len(), required.len(), "{name}: {schema}");
            for parameter in *required {
                assert!(demanded.contains(parameter), "{name}: {schema}");
                assert!(schema["properties"][parameter].is_object(), "{name}: {schema}");
            }
            for (parameter, default) in *others {
                let property = &schema["properties"][parameter];
                assert!(property.is_object(), "{name}.{parameter}: {schema}");
                let told = match &property["default"] {
                    // What is not there is what is left out.
                    Value::Null | Value::Bool(false) => String::new(),
                    default => default.to_string(),
                };
                assert_eq!(told, default.replace("false", ""), "{name}.{parameter}: {schema}");
            }
        }
        let of = |tool: &str| {
            listed.iter().find(|listed| listed["name"] == tool).expect("a tool")["inputSchema"].to_string()
        };
        for status in ["online", "away", "busy", "offline"] {
            assert!(of("set_user_presence").contains(&format!("\"{status}\"")));
        }
        for member in ["line", "column", "start", "end"] {
            assert!(of("update_cursor_position").contains(&format!("\"{member}\"")));
        }
    }
}

#[tokio::test]
async fn the_history_and_forks_of_the_older_server_work_as_it_says() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    for era in ERAS {
        let agent = aware(&gateway, era).await;
        let path = folder.write(&format!("{era:?}.ipynb"), &notebook(&["x = 1", "y = 1"]));
        let human = Human::join(&path).await;
        let at = |mut more: Value| {
            more["path"] = path.clone().into();
            more
        };
        for content in ["x = 2", "x = 3"] {
            let cells = json!({ "cell_ids": ["c0"], "updates": [{ "content": content }], "exec": false });
            let collab = Agent::connect_to(&gateway.url("/mcp?toolsets=collab"), TOKEN, era).await;
            collab.call("batch_update_notebook_cells", at(cells)).await.ok();
        }
        // List of document versions with timestamps and change summaries.
        let listed = agent.call("get_document_history", at(json!({}))).await.ok();
        let versions = listed["versions"].as_array().expect("versions");
        assert_eq!(versions.len(), 3, "{listed}");
        for version in versions {
            for member in ["version_id", "timestamp", "summary", "author"] {
                assert!(version[member].is_string(), "{member}: {version}");
            }
        }
        let one = agent.call("get_document_history", at(json!({ "limit": 1 }))).await.ok();
        assert_eq!(one["versions"], json!([versions[0]]));
        // Confirmation of the restoration.
        let restore = at(json!({ "version_id": versions[1]["version_id"] }));
        let restored = agent.call("restore_document_version", restore).await.ok();
        assert!(
            restored["message"]
                .as_str()
                .is_some_and(|message| message.starts_with("Restored"))
        );
        human
            .wait_for("it is restored", |human| human.sources() == ["x = 2", "y = 1"])
            .await;

        // Fork information including fork ID.
        let new = at(json!({ "title": "Try", "description": "something", "synchronize": true }));
        let forked = agent.call("fork_document", new).await.ok();
        for (member, value) in [
            ("path", json!(path)),
            ("title", json!("Try")),
            ("description", json!("something")),
            ("synchronize", json!(true)),
        ] {
            assert_eq!(forked[member], value, "{forked}");
        }
        let fork_id = forked["fork_id"].as_str().expect("an id");
        let edit = json!({ "fork_id": fork_id, "cell_id": "c1", "old_text": "1", "new_text": "2" });
        agent.call("edit_nb_cell", at(edit)).await.ok();
        // The original flows into it.
        human.splice_cell("c0", 5, 0, "  # mine");
        eventually("the fork follows", async || {
            let read = agent
                .call("read_nb_cells", at(json!({ "fork_id": fork_id })))
                .await
                .ok();
            (read["cells"][0]["source"] == "x = 2  # mine").then_some(())
        })
        .await;
        // Confirmation of the merge.
        let merged = agent
            .call("merge_document_fork", at(json!({ "fork_id": fork_id })))
            .await
            .ok();
        assert!(
            merged["message"]
                .as_str()
                .is_some_and(|message| message.starts_with("Merged")),
            "{merged}"
        );
        human
            .wait_for("it is merged", |human| human.sources() == ["x = 2  # mine", "y = 2"])
            .await;
        human.leave().await;
    }
}

#[tokio::test]
async fn the_awareness_of_the_older_server_works_as_it_says() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    for era in ERAS {
        let agent = aware(&gateway, era).await;
        let path = folder.write(&format!("{era:?}.ipynb"), &notebook(&["first\nsecond"]));
        let name = format!("Hanna-{}", uuid::Uuid::new_v4().simple());
        let human = Human::join(&path).await;
        human.select(&name, Some("c0"), 1, 3);
        let here = json!({ "document_path": path });
        agent.call("read_nb_cells", json!({ "path": path })).await.ok();
        // List of online users with their identity information.
        let hanna = eventually("the person is online", async || {
            let online = agent.call("get_online_users", here.clone()).await.ok();
            let users = online["users"].as_array()?;
            users.iter().find(|user| user["name"] == name.as_str()).cloned()
        })
        .await;
        for member in ["user_id", "name", "display_name", "color", "status"] {
            assert!(hanna[member].is_string(), "{member}: {hanna}");
        }
        // Presence information including status, last activity, and current document.
        let presence = json!({ "user_id": hanna["user_id"], "document_path": path });
        let presence = agent.call("get_user_presence", presence).await.ok();
        assert_eq!(
            (&presence["status"], &presence["current_document"]),
            (&json!("online"), &json!(path))
        );
        assert!(presence["last_activity"].is_string(), "{presence}");
        let set = json!({ "status": "away", "message": "at lunch" });
        let set = agent.call("set_user_presence", set).await.ok();
        assert_eq!(
            (&set["success"], &set["status"]),
            (&json!(true), &json!("away")),
            "{set}"
        );
        human
            .wait_for("people see it", |human| {
                human.shown_as("ana").ends_with(" · away · at lunch")
            })
            .await;
        agent.call("set_user_presence", json!({})).await.ok();

        // Cursor positions with line, column, and selection information.
        let cursor = eventually("the person's cursor", async || {
            let cursors = agent.call("get_user_cursors", here.clone()).await.ok();
            let cursors = cursors["cursors"].as_array()?;
            cursors.iter().find(|cursor| cursor["name"] == name.as_str()).cloned()
        })
        .await;
        assert_eq!((&cursor["line"], &cursor["column"]), (&json!(0), &json!(3)), "{cursor}");
        assert_eq!(
            cursor["selection"],
            json!({ "start": { "line": 0, "column": 1 }, "end": { "line": 0, "column": 3 } }),
            "{cursor}"
        );
        let (start, end) = (json!({ "line": 1, "column": 0 }), json!({ "line": 1, "column": 6 }));
        let point = json!({ "document_path": path, "position": end, "selection": { "start": start, "end": end } });
        let pointed = agent.call("update_cursor_position", point).await.ok();
        assert_eq!(
            (&pointed["success"], &pointed["position"]),
            (&json!(true), &end),
            "{pointed}"
        );

        // Confirmation of the broadcast, and recent activities with timestamps and descriptions.
        let tell =
            json!({ "activity_type": "view", "description": "looking", "document_path": path, "metadata": { "a": 1 } });
        let told = agent.call("broadcast_user_activity", tell).await.ok();
        assert_eq!(told["success"], true, "{told}");
        let latest = json!({ "document_path": path, "limit": 1 });
        let latest = agent.call("get_user_activity", latest).await.ok()["activities"][0].clone();
        assert_eq!(
            (
                &latest["activity_type"],
                &latest["description"],
                &latest["metadata"]["a"]
            ),
            (&json!("view"), &json!("looking"), &json!(1)),
            "{latest}"
        );
        assert!(latest["timestamp"].is_string(), "{latest}");

        // Active sessions with participant information, joining and leaving.
        let sessions = agent.call("get_active_sessions", here).await.ok();
        let session = &sessions["sessions"][0];
        assert!(session["participants"].to_string().contains(&name), "{sessions}");
        let session = json!({ "session_id": session["session_id"] });
        for (tool, status) in [("join_session", "joined"), ("leave_session", "left")] {
            let done = agent.call(tool, session.clone()).await.ok();
            assert_eq!(
                (&done["success"], &done["status"]),
                (&json!(true), &json!(status)),
                "{done}"
            );
        }
        human.leave().await;
    }
}
