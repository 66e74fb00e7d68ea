//! Users of a real JupyterHub: they log in with its tokens, see and start their servers, work there, and know nothing of
//! each other.

use std::time::{Duration, SystemTime};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, TIMEOUT, eventually,
    hub::{HubUser, config_for, hub},
    notebook::notebook,
    proxy::Proxy,
    scene::{ended, id},
    wire::{Events, initialize, post_without_token, send},
    within,
};

/// The Hub is asked again soon.
const FORGETFUL: &str = "cache_ttl = \"1s\"";

async fn agent_of(gateway: &Gateway, user: &HubUser) -> Agent {
    Agent::connect_to(&gateway.url("/mcp?toolsets=all"), &user.token, Era::Modern).await
}

/// The servers of an agent: names and what is said of them.
async fn servers(agent: &Agent) -> Vec<(String, Value)> {
    let listed = agent.call("list_servers", json!({})).await.ok();
    let servers = listed["servers"].as_array().expect("servers").iter();
    servers
        .map(|server| (server["name"].as_str().expect("a name").to_owned(), server.clone()))
        .collect()
}

/// Starts a server by the gateway; what is told of it, and the answer.
async fn start(agent: &Agent, server: &str) -> (Vec<String>, Value) {
    let call = json!({
        "name": "start_server",
        "arguments": { "server": server },
        "_meta": { "progressToken": "start" },
    });
    let response = agent.start(1, "tools/call", call).await;
    let mut told = Vec::new();
    let is_stream = response.headers()["content-type"] == "text/event-stream";
    if !is_stream {
        let answer: Value = response.json().await.expect("an answer");
        return (told, answer["result"].clone());
    }
    let mut events = Events::new(response);
    loop {
        let next = within(TIMEOUT, "progress of a start", events.next_message()).await;
        let (_, message) = next.expect("an answer");
        if message["id"] == 1 {
            return (told, message["result"].clone());
        }
        assert_eq!(message["method"], "notifications/progress");
        told.push(message["params"]["message"].as_str().expect("a message").to_owned());
    }
}

#[tokio::test]
async fn users_work_in_their_own_servers_and_see_nothing_of_each_other() {
    let hub = hub().await;
    let gateway = Gateway::configured(&hub.config(FORGETFUL)).await;
    let (ana, bob) = (hub.user("ana").await, hub.user("bob").await);
    let (anas, bobs) = (agent_of(&gateway, &ana).await, agent_of(&gateway, &bob).await);

    // A server that does not run is said to be stopped, by what needs it too.
    let listed = servers(&anas).await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    let (name, server) = &listed[0];
    assert_eq!(*name, ana.name);
    assert_eq!(
        (&server["state"], &server["reachable"]),
        (&json!("stopped"), &json!(false))
    );
    assert_eq!(server["default"], true);
    for (tool, arguments) in [
        ("list_documents", json!({})),
        ("create_notebook", json!({ "path": "work.ipynb" })),
        ("run_code", json!({ "code": "1" })),
        ("list_kernels", json!({})),
    ] {
        let refused = anas.call(tool, arguments).await.error();
        let named = format!("start_server(server={:?})", ana.name);
        assert!(
            refused.contains("is not running") && refused.contains(&named),
            "{tool}: {refused}"
        );
    }

    // It is started, which is told step by step.
    let (told, started) = tokio::join!(start(&anas, &ana.name), bob.start()).0;
    assert_eq!(started["structuredContent"]["state"], "running", "{started}");
    let preparing = format!("Starting {}, 20%: Preparing a place for {}", ana.name, ana.name);
    assert!(told.contains(&preparing), "{told:?}");
    assert_eq!(servers(&anas).await[0].1["state"], "running");
    assert_eq!(
        start(&anas, &ana.name).await.1["isError"],
        json!(false),
        "it runs already"
    );

    // She works there, with what is hers.
    anas.call("create_notebook", json!({ "path": "work.ipynb" })).await.ok();
    let cells = json!([{ "type": "code", "content": "import os\nos.environ['JUPYTERHUB_USER']" }]);
    let inserted = json!({ "path": "work.ipynb", "position": 0, "cells": cells, "exec": true });
    let ran = anas.call("insert_nb_cells", inserted).await;
    assert!(
        ran.texts.concat().contains(&format!("'{}'", ana.name)),
        "{:?}",
        ran.texts
    );
    anas.call("save_document", json!({ "path": "work.ipynb" })).await.ok();
    assert!(ana.home().join("work.ipynb").is_file());
    let executions = anas.call("list_executions", json!({})).await.ok();
    let execution = executions["executions"][0]["execution_id"].clone();
    assert!(execution.is_string(), "{executions}");
    anas.call(
        "broadcast_user_activity",
        json!({ "activity_type": "busy", "description": "on my way" }),
    )
    .await;

    sees_nothing(&bobs, &ana, &execution).await;

    // Until she shares it: then he works there too, in rooms and with a token of his own.
    let share = json!({ "user": bob.name, "scopes": [format!("access:servers!server={}/", ana.name)] });
    hub.ask(Method::POST, &format!("shares/{}/", ana.name), share).await;
    works_in_what_is_shared(&gateway, &ana, &bob).await;
}

/// Whatever a user asks for, there is nothing of another.
async fn sees_nothing(agent: &Agent, other: &HubUser, execution: &Value) {
    let is_clean = |answer: &Value| {
        let text = answer.to_string();
        assert!(
            !text.contains(&other.name) && !text.contains("work.ipynb") && !text.contains("on my way"),
            "{text}"
        );
    };
    for (tool, arguments) in [
        ("list_servers", json!({})),
        ("list_documents", json!({})),
        ("list_nbs", json!({})),
        ("query_nb_sessions", json!({})),
        ("list_executions", json!({})),
        ("list_kernels", json!({})),
        ("search_documents", json!({ "query": "JUPYTERHUB" })),
        ("get_online_users", json!({})),
        ("get_user_activity", json!({})),
        ("get_active_sessions", json!({})),
    ] {
        is_clean(&agent.call(tool, arguments).await.ok());
    }
    let unknown = agent
        .call("get_user_presence", json!({ "user_id": other.name }))
        .await
        .error();
    assert!(unknown.contains("nobody is known as"), "{unknown}");
    for (tool, mut arguments) in [
        ("read_nb_cells", json!({ "path": "work.ipynb" })),
        ("get_document_history", json!({ "path": "work.ipynb" })),
        ("run_code", json!({ "code": "1" })),
        ("start_server", json!({})),
    ] {
        arguments["server"] = other.name.as_str().into();
        let refused = agent.call(tool, arguments).await.error();
        assert!(refused.contains("unknown server"), "{tool}: {refused}");
    }
    let refused = agent
        .call("get_execution", json!({ "execution_id": execution }))
        .await
        .error();
    assert!(!refused.contains(&other.name), "{refused}");
    for method in ["resources/list", "resources/templates/list"] {
        is_clean(&agent.request(method, json!({})).await["result"]);
    }
    is_clean(
        &agent
            .request("resources/read", json!({ "uri": "notebook://activity" }))
            .await["result"],
    );
    let uri = format!("file:///documents/{}/work.ipynb", other.name);
    assert!(agent.request("resources/read", json!({ "uri": uri })).await["error"].is_object());
}

async fn works_in_what_is_shared(gateway: &Gateway, ana: &HubUser, bob: &HubUser) {
    let bobs = agent_of(gateway, bob).await;
    let shared = format!("{}/shared/{}", bob.name, ana.name);
    let found = eventually("the shared server is listed", async || {
        let listed = servers(&bobs).await;
        listed.into_iter().find(|(name, _)| *name == shared)
    })
    .await;
    assert_eq!(found.1["owner"], ana.name.as_str());
    std::fs::write(ana.home().join("notes.txt"), "for both").expect("a file");
    // By its full name or by that in the Hub, as an argument, in the URL and in an address.
    for name in [&shared, &ana.name] {
        let read = bobs
            .call("read_nb_cells", json!({ "path": "work.ipynb", "server": name }))
            .await
            .ok();
        assert!(read["cells"].to_string().contains("JUPYTERHUB_USER"), "{read}");
        let url = gateway.url(&format!("/mcp?server={}", name.replace('/', "%2F")));
        let narrowed = Agent::connect_to(&url, &bob.token, Era::Modern).await;
        assert_eq!(servers(&narrowed).await.len(), 1);
        let read = narrowed
            .call("get_document_content", json!({ "path": "notes.txt" }))
            .await
            .ok();
        assert!(read.to_string().contains("for both"), "{read}");
    }
    let uri = format!("file:///documents/{}/notes.txt", shared.replace('/', "%2F"));
    let read = bobs.request("resources/read", json!({ "uri": uri })).await;
    assert!(read["result"].to_string().contains("for both"), "{read}");
    let edit = json!({ "path": "work.ipynb", "server": shared, "position": 1, "cells": [{ "type": "markdown", "content": "Bob was here" }] });
    bobs.call("insert_nb_cells", edit).await.ok();
    let anas = agent_of(gateway, ana).await;
    eventually("she sees his edit", async || {
        let read = anas.call("read_nb_cells", json!({ "path": "work.ipynb" })).await.ok();
        read["cells"].to_string().contains("Bob was here").then_some(())
    })
    .await;
    // Each has a room of its own, and what one ran is the other's to see only in the notebook.
    let mut rooms = Vec::new();
    for (agent, server) in [(&anas, &ana.name), (&bobs, &shared)] {
        let open = agent.call("query_nb_sessions", json!({ "server": server })).await.ok();
        assert_eq!(open["total_sessions"], 1, "{open}");
        rooms.push(open["sessions"][0]["session_id"].clone());
    }
    assert_ne!(rooms[0], rooms[1]);
    let executions = bobs.call("list_executions", json!({ "server": shared })).await.ok();
    assert_eq!(executions["executions"], json!([]));
}

#[tokio::test]
async fn documents_follow_a_server_that_is_stopped_and_started_again() {
    let hub = hub().await;
    let gateway = Gateway::configured(&hub.config("")).await;
    let user = hub.user("cleo").await;
    let agent = agent_of(&gateway, &user).await;
    user.start().await;
    std::fs::write(
        user.home().join("run.ipynb"),
        notebook(&["'before'", "import time\ntime.sleep(600)"]),
    )
    .expect("a file");
    let run = json!({ "path": "run.ipynb", "timeout": 0 });
    let running = id(&agent.call("execute_nb_cells", run).await.ok());
    let has_begun = async || {
        let read = agent.call("read_nb_cells", json!({ "path": "run.ipynb" })).await.ok();
        (read["cells"][0]["execution_count"] == 1).then_some(())
    };
    eventually("the first cell has run", has_begun).await;

    user.stop().await;
    // Nothing is shown that may be old, and what ran is known to be lost.
    for (tool, arguments) in [
        ("read_nb_cells", json!({ "path": "run.ipynb" })),
        ("execute_nb_cells", json!({ "path": "run.ipynb" })),
        (
            "insert_nb_cells",
            json!({ "path": "run.ipynb", "position": 0, "cells": [{ "content": "x" }] }),
        ),
    ] {
        let refused = agent.call(tool, arguments).await.error();
        assert!(refused.contains("start_server"), "{tool}: {refused}");
    }
    assert_eq!(ended(&agent, &running).await["status"], "lost");

    // While it is stopped, its files belong to nobody.
    std::fs::write(user.home().join("run.ipynb"), notebook(&["'changed meanwhile'"])).expect("a file");
    let (_, started) = start(&agent, &user.name).await;
    assert_eq!(started["structuredContent"]["state"], "running", "{started}");
    let read = eventually("the document is back", async || {
        let read = agent.call("read_nb_cells", json!({ "path": "run.ipynb" })).await;
        if read.is_error {
            return None;
        }
        let cells = read.ok()["cells"].to_string();
        cells.contains("changed meanwhile").then_some(cells)
    })
    .await;
    assert!(!read.contains("before") && !read.contains("sleep"), "{read}");
    let run =
        json!({ "path": "run.ipynb", "position": 1, "cells": [{ "type": "code", "content": "6 * 7" }], "exec": true });
    let ran = agent.call("insert_nb_cells", run).await;
    assert!(ran.texts.concat().contains("42"), "{:?}", ran.texts);
    agent.call("save_document", json!({ "path": "run.ipynb" })).await.ok();
    let file = std::fs::read_to_string(user.home().join("run.ipynb")).expect("a notebook");
    assert!(
        file.contains("changed meanwhile") && file.contains("6 * 7") && !file.contains("before"),
        "{file}"
    );
}

#[tokio::test]
async fn what_nobody_uses_does_not_keep_a_server_from_being_culled() {
    let hub = hub().await;
    let config = format!("[sessions]\nidle_timeout = \"1s\"\n{}", hub.config(FORGETFUL));
    let gateway = Gateway::configured(&config).await;
    let user = hub.user("dora").await;
    let agent = agent_of(&gateway, &user).await;
    user.start().await;
    std::fs::write(user.home().join("run.ipynb"), notebook(&["1 + 1"])).expect("a file");
    agent
        .call("execute_nb_cells", json!({ "path": "run.ipynb" }))
        .await
        .ok();
    agent.call("get_online_users", json!({})).await.ok();
    // Nothing is said to the server for longer than anything that is open stays silent: whoever lists servers, or logs in,
    // asks the Hub.
    let mut latest = (user.last_traffic().await, SystemTime::now());
    within(TIMEOUT, "an idle server", async {
        while latest.1.elapsed().unwrap_or_default() < Duration::from_secs(9) {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert_eq!(servers(&agent).await[0].1["state"], "running");
            let traffic = user.last_traffic().await;
            if traffic != latest.0 {
                latest = (traffic, SystemTime::now());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_start_that_fails_is_explained() {
    let hub = hub().await;
    let gateway = Gateway::configured(&hub.config(FORGETFUL)).await;
    let user = hub.user("eva").await;
    let agent = agent_of(&gateway, &user).await;
    let named = |server: &str| format!("{}/{server}", user.name);
    for (server, words) in [
        (named("broken"), "no machine has so much memory"),
        (named("busy"), "No machine is free); try again in 30 s"),
        (named("third"), "maximum"),
        ("nobody/else".to_owned(), "unknown server"),
    ] {
        let (_, refused) = start(&agent, &server).await;
        let text = refused["content"][0]["text"].as_str().expect("a text");
        assert!(
            refused["isError"] == true && text.contains(words),
            "{server}: {refused}"
        );
    }
    let listed = servers(&agent).await;
    let states: Vec<_> = listed
        .iter()
        .map(|(name, server)| (name.as_str(), &server["state"]))
        .collect();
    let (broken, busy) = (named("broken"), named("busy"));
    let stopped = json!("stopped");
    assert_eq!(
        states,
        [(user.name.as_str(), &stopped), (&broken, &stopped), (&busy, &stopped)]
    );
    let refused = agent.call("list_documents", json!({ "server": busy })).await.error();
    assert!(refused.contains("start_server"), "{refused}");

    // A token that may use a server need not be one that may start it.
    let scopes = json!({ "scopes": ["access:servers!user", "read:servers!user"] });
    let (token, _) = user.new_token(scopes).await;
    let narrow = Agent::with_token(&gateway, &token, Era::Modern).await;
    let refused = narrow
        .call("start_server", json!({ "server": user.name }))
        .await
        .error();
    assert!(refused.contains("does not let your token start"), "{refused}");
}

#[tokio::test]
async fn tokens_hold_for_as_long_as_the_hub_says() {
    let hub = hub().await;
    let proxy = Proxy::to(&hub.address()).await;
    let gateway = Gateway::configured(&config_for(&proxy.url(), FORGETFUL)).await;
    let user = hub.user("finn").await;
    let status = async |token: &str| {
        let request = post_without_token(&gateway, initialize()).bearer_auth(token);
        send(request).await.status
    };
    assert_eq!(status(&user.token).await, StatusCode::OK);
    assert_eq!(status("no-token-of-the-hub").await, StatusCode::UNAUTHORIZED);

    // Without the Hub nobody can be told from anybody else.
    proxy.refuse(true);
    proxy.cut();
    eventually("the Hub is missed", async || {
        (status(&user.token).await == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await;
    proxy.refuse(false);
    eventually("the Hub is back", async || {
        (status(&user.token).await == StatusCode::OK).then_some(())
    })
    .await;

    // Who loses a token loses what is open too.
    let agent = Agent::with_token(&gateway, &user.token, Era::Legacy).await;
    let mut stream = Events::new(agent.listen(None).await);
    user.revoke_token().await;
    within(TIMEOUT, "the stream ends", async {
        while stream.next_message().await.is_some() {}
    })
    .await;
    assert_eq!(status(&user.token).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_token_needs_the_scope_that_the_operator_requires() {
    let hub = hub().await;
    let gateway = Gateway::configured(&hub.config("required_scope = \"custom:mcp:use\"")).await;
    let user = hub.user("gil").await;
    assert_eq!(servers(&agent_of(&gateway, &user).await).await.len(), 1);
    let (narrow, _) = user.new_token(json!({ "scopes": ["access:servers!user"] })).await;
    let refused = send(post_without_token(&gateway, initialize()).bearer_auth(narrow)).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text.contains("custom:mcp:use"), "{}", refused.text);
}

#[tokio::test]
async fn only_users_of_a_hub_know_of_starting_servers() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    assert!(!agent.tools().await.contains(&"start_server".to_owned()));
    let called = json!({ "name": "start_server", "arguments": { "server": "lab" } });
    let answer = agent.request("tools/call", called).await;
    assert!(answer.to_string().contains("Unknown tool: start_server"), "{answer}");
    let hub = hub().await;
    let gateway = Gateway::configured(&hub.config("")).await;
    let user = hub.user("hal").await;
    assert!(
        agent_of(&gateway, &user)
            .await
            .tools()
            .await
            .contains(&"start_server".to_owned())
    );
}
