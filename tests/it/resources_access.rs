//! Who sees which resources: permissions, path rules, servers and selections hold here as for tools.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN, Watcher,
    agent::ERAS,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
};

fn token(name: &str, more: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"all\"\ntoken = \"token-of-{name}\"\n{more}\n")
}

/// The ids of a notebook that an agent has opened.
async fn opened(agent: &Agent, path: &str) -> (String, String) {
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let current = agent.read("notebook://current").await;
    let text = |key: &str| current["_meta"][key].as_str().expect("an id").to_owned();
    (text("sessionId"), text("notebookId"))
}

#[tokio::test]
async fn nobody_sees_notebooks_outside_of_their_path_rules() {
    let folder = lab().folder();
    let (open, secret) = (
        folder.write("open/a.ipynb", &notebook(&["mine"])),
        folder.write("secret/b.ipynb", &notebook(&["hidden"])),
    );
    let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
    let config = format!("{}{}{}", lab_server("lab"), everything(), token("bob", &rules));
    let gateway = Gateway::configured(&config).await;
    for era in ERAS {
        let ana = Agent::connect(&gateway, era).await;
        let bob = Agent::with_token(&gateway, "token-of-bob", era).await;
        let (session, id) = opened(&ana, &secret).await;
        let (open_session, open_id) = opened(&ana, &open).await;
        let missing = if era == Era::Legacy { -32002 } else { -32602 };
        assert_eq!(
            bob.read(&format!("notebook://{open_session}/{open_id}")).await["_meta"]["path"],
            open
        );
        for uri in [
            format!("notebook://{session}/{id}"),
            format!("notebook://{session}/{id}/json"),
            format!("notebook://{session}/{id}/cells/c0"),
            format!("file:///notebooks/{session}/notebook.src.md"),
        ] {
            let (code, message) = bob.cannot_read(&uri).await;
            let unknown = bob.cannot_read(&uri.replace(&session, "no-such-session")).await;
            assert_eq!(
                (code, &message),
                (missing, &unknown.1),
                "foreign and unknown look the same"
            );
            assert!(ana.read(&uri).await["text"].is_string());
        }
        let seen = json!([bob.resources().await, bob.read("notebook://list").await]).to_string();
        assert!(seen.contains(&open_session) && !seen.contains(&session), "{seen}");
        assert_eq!(
            bob.cannot_read("notebook://current").await.0,
            missing,
            "Ana's current one is not Bob's"
        );
        let shape = json!({ "type": "ref/resource", "uri": "notebook://{session_id}/{notebook_id}/cells/{cell_id}" });
        let sessions = bob.complete(shape.clone(), "session_id", "", json!({})).await;
        assert!(sessions.contains(&open_session) && !sessions.contains(&session));
        let ids = bob
            .complete(shape.clone(), "notebook_id", "", json!({ "session_id": open_session }))
            .await;
        assert_eq!(ids, std::slice::from_ref(&open_id));
        let known = json!({ "session_id": open_session, "notebook_id": open_id });
        assert_eq!(bob.complete(shape.clone(), "cell_id", "c", known).await, ["c0"]);
        let known = json!({ "session_id": session, "notebook_id": id });
        assert!(bob.complete(shape, "cell_id", "", known).await.is_empty());
        let explain = json!({ "type": "ref/prompt", "name": "explain_notebook" });
        let paths = bob
            .complete(explain, "path", &format!("{}/", folder.name), json!({}))
            .await;
        assert_eq!(paths, [folder.path("open/")], "a denied folder is not offered");
    }
}

#[tokio::test]
async fn nobody_hears_of_notebooks_outside_of_their_path_rules() {
    let folder = lab().folder();
    let secret = folder.write("secret/b.ipynb", &notebook(&["hidden"]));
    let open = folder.write("open/a.ipynb", &notebook(&["mine"]));
    let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
    let config = format!("{}{}{}", lab_server("lab"), everything(), token("bob", &rules));
    let gateway = Gateway::configured(&config).await;
    let human = Human::join(&secret).await;
    for era in ERAS {
        let ana = Agent::connect(&gateway, era).await;
        let bob = Agent::with_token(&gateway, "token-of-bob", era).await;
        let mut nothing = Watcher::start(&bob, era, &[]).await;
        let (session, id) = opened(&ana, &secret).await;
        let uri = format!("notebook://{session}/{id}");
        assert_eq!(nothing.next().await, None, "a hidden notebook was opened");
        drop(nothing);
        match era {
            Era::Legacy => {
                let refused = bob.request("resources/subscribe", json!({ "uri": uri })).await;
                assert_eq!(refused["error"]["code"], -32002, "{refused}");
            }
            Era::Modern => {
                let mut watcher = Watcher::start(&bob, era, &[&uri]).await;
                assert_eq!(
                    watcher.accepted["resourceSubscriptions"].as_array().map_or(0, Vec::len),
                    0
                );
                human.splice_cell("c0", 0, 0, "x");
                assert_eq!(watcher.next().await, None, "a hidden notebook was edited");
            }
        }
        let mut watcher = Watcher::start(&bob, era, &[]).await;
        opened(&ana, &open).await;
        watcher.list_changed().await;
        for path in [&secret, &open] {
            ana.call("end_nb_session", json!({ "path": path })).await.ok();
        }
    }
}

#[tokio::test]
async fn who_loses_a_notebook_is_told_once_and_can_watch_it_again() {
    let folder = lab().folder();
    let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
    let config = format!("{}{}{}", lab_server("lab"), everything(), token("bob", &rules));
    let gateway = Gateway::configured(&config).await;
    folder.write("secret/other.ipynb", &notebook(&["x"]));
    for era in ERAS {
        let ana = Agent::connect(&gateway, era).await;
        let bob = Agent::with_token(&gateway, "token-of-bob", era).await;
        let (open, secret) = (
            folder.write(&format!("{era:?}.ipynb"), &notebook(&["mine"])),
            folder.path(&format!("secret/{era:?}.ipynb")),
        );
        let (session, id) = opened(&ana, &open).await;
        let uri = format!("notebook://{session}/{id}");
        let mut watcher = Watcher::start(&bob, era, &[&uri, "notebook://list"]).await;
        while watcher.next().await.is_some() {}
        let rename = async |from: &str, to: &str| {
            let arguments = json!({ "path": from, "newPath": to });
            ana.call("rename_document", arguments).await.ok();
        };
        rename(&open, &secret).await;
        let mut told = Vec::new();
        while let Some(notice) = watcher.next().await {
            let what = notice["params"]["uri"].as_str().unwrap_or("list_changed");
            told.push(what.replace(&uri, "it"));
        }
        told.sort();
        assert_eq!(told, ["it", "list_changed", "notebook://list"]);
        let edit = async |path: &str, content: &str| {
            let edit = json!([{ "range": { "cell_id": "c0" }, "content": content }]);
            let arguments = json!({ "path": path, "modifications": edit, "exec": false });
            ana.call("modify_nb_cells", arguments).await.ok();
        };
        edit(&secret, "hidden").await;
        assert_eq!(watcher.next().await, None, "nothing is told of what is hidden");
        rename(&secret, &open).await;
        watcher.list_changed().await;
        let mut again = match era {
            Era::Legacy => {
                let answer = bob.request("resources/subscribe", json!({ "uri": uri })).await;
                assert!(answer["error"].is_null(), "{answer}");
                watcher
            }
            Era::Modern => Watcher::start(&bob, era, &[&uri]).await,
        };
        edit(&open, "seen").await;
        again.updated(&uri).await;
    }
}

#[tokio::test]
async fn who_listens_is_told_what_there_is_to_hear_of() {
    let folder = lab().folder();
    let secret = folder.write("secret/b.ipynb", &notebook(&["hidden"]));
    let open = folder.write("open/a.ipynb", &notebook(&["mine"]));
    let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
    let (bob, writer) = (token("bob", &rules), token("writer", "permissions = [\"write\"]"));
    let config = format!("{}{}{bob}{writer}", lab_server("lab"), everything());
    let gateway = Gateway::configured(&config).await;
    let era = Era::Modern;
    let ana = Agent::connect(&gateway, era).await;
    let uri = |(session, id): (String, String)| format!("notebook://{session}/{id}");
    let (secret, open) = (uri(opened(&ana, &secret).await), uri(opened(&ana, &open).await));
    let (cell, json) = (format!("{open}/cells/c0"), format!("{open}/json"));
    let (no_cell, hidden_cell) = (format!("{open}/cells/none"), format!("{secret}/cells/c0"));
    let asked = [
        secret.as_str(),
        "notebook://list",
        &open,
        "notebook://no-such/notebook",
        "notebook://current",
        &cell,
        &no_cell,
        &hidden_cell,
        &json,
        "notebook://templates/mcts",
        "notebook://templates/poem",
        "notebook://nonsense",
        "http://example.org",
        &format!("{open}/executions/none"),
    ];
    let heard = [asked[1], &open, asked[4], &cell, &json, asked[9]];
    let agent = Agent::with_token(&gateway, "token-of-bob", era).await;
    let mut watcher = Watcher::start(&agent, era, &asked).await;
    assert_eq!(
        watcher.accepted,
        json!({ "resourcesListChanged": true, "resourceSubscriptions": heard })
    );
    let edit = json!([{ "range": { "cell_id": "c0" }, "content": "changed" }]);
    let path = folder.path("open/a.ipynb");
    ana.call("modify_nb_cells", json!({ "path": path, "modifications": edit }))
        .await
        .ok();
    watcher.updated(&cell).await;
    let watcher = Watcher::start(&ana, era, &[&secret, &hidden_cell]).await;
    assert_eq!(watcher.accepted["resourceSubscriptions"], json!([secret, hidden_cell]));
    let agent = Agent::with_token(&gateway, "token-of-writer", era).await;
    let watcher = Watcher::start(&agent, era, &asked).await;
    let nothing = [json!({}), json!({ "resourceSubscriptions": [] })];
    assert!(nothing.contains(&watcher.accepted), "{}", watcher.accepted);
}

#[tokio::test]
async fn without_the_permission_to_read_there_is_nothing() {
    let writer = token("writer", "permissions = [\"write\"]");
    let gateway = Gateway::configured(&format!("{}{}{writer}", lab_server("lab"), everything())).await;
    for era in ERAS {
        let agent = Agent::with_token(&gateway, "token-of-writer", era).await;
        assert!(agent.resources().await.is_empty());
        let (_, message) = agent.cannot_read("notebook://list").await;
        assert!(message.contains("`read`") && message.contains("writer"), "{message}");
        let shape = json!({ "type": "ref/prompt", "name": "explain_notebook" });
        assert!(agent.complete(shape, "server", "", json!({})).await.is_empty());
    }
}

#[tokio::test]
async fn selections_leave_resources_as_they_are() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let path = folder.notebook("a.ipynb");
    let whole = Agent::connect(&gateway, Era::Modern).await;
    let (session, id) = opened(&whole, &path).await;
    for era in ERAS {
        let narrow = gateway.url("/mcp?toolsets=gateway&readonly=true&server=lab");
        let agent = Agent::connect_to(&narrow, TOKEN, era).await;
        assert_eq!(agent.tools().await, ["list_servers"]);
        let contents = agent.read(&format!("notebook://{session}/{id}")).await;
        assert_eq!(contents["_meta"]["path"], path);
    }
}

#[tokio::test]
async fn a_selected_server_is_the_only_one_that_is_seen() {
    let config = format!("{}{}{}", lab_server("lab"), lab_server("twin"), everything());
    let gateway = Gateway::configured(&config).await;
    let folder = lab().folder();
    let path = folder.notebook("a.ipynb");
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let (session, id) = opened(&agent, &path).await;
    let elsewhere = Agent::connect_to(&gateway.url("/mcp?server=twin"), TOKEN, Era::Modern).await;
    let uri = format!("notebook://{session}/{id}");
    assert_eq!(elsewhere.cannot_read(&uri).await.0, -32602);
    let listed = Value::from(elsewhere.resources().await).to_string();
    assert!(!listed.contains(&session), "{listed}");
    let shape = json!({ "type": "ref/prompt", "name": "explain_notebook" });
    assert_eq!(elsewhere.complete(shape, "server", "", json!({})).await, ["twin"]);
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let gateway = Gateway::start().await;
    let folder = lab().folder();
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let paths: Vec<String> = (0..100)
        .map(|index| folder.notebook(&format!("n{index:03}.ipynb")))
        .collect();
    let reader = &agent;
    let opening = paths.chunks(10).map(|some| async move {
        for path in some {
            reader.call("read_nb_cells", json!({ "path": path })).await.ok();
        }
    });
    futures::future::join_all(opening).await;
    let first = agent.request("resources/list", json!({})).await;
    assert_eq!(first["result"]["resources"].as_array().map(Vec::len), Some(200));
    assert!(first["result"]["nextCursor"].is_string());
    let all = agent.resources().await;
    let uris: std::collections::BTreeSet<&str> = all.iter().filter_map(|resource| resource["uri"].as_str()).collect();
    assert_eq!(
        (all.len(), uris.len()),
        (210, 210),
        "list, activity, current, two for each notebook, six templates, a skill"
    );
    for cursor in ["nonsense", "", "%"] {
        let refused = agent.request("resources/list", json!({ "cursor": cursor })).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[tokio::test]
async fn everybody_is_told_how_often_a_notebook_ran_and_nobody_what_others_ran() {
    let config = format!("{}{}{}", lab_server("lab"), everything(), token("bob", ""));
    let gateway = Gateway::configured(&config).await;
    let path = lab().folder().write("a.ipynb", &notebook(&["1"]));
    let ana = Agent::connect(&gateway, Era::Modern).await;
    let bob = Agent::with_token(&gateway, "token-of-bob", Era::Modern).await;
    let execute = json!({ "path": path, "ranges": [{ "start": 0 }] });
    let ran = ana.call("execute_nb_cells", execute).await.ok();
    let (session, id) = opened(&bob, &path).await;
    let uri = format!("notebook://{session}/{id}");
    let metadata = bob.read(&uri).await["_meta"].clone();
    assert_eq!(metadata["totalExecutions"], 1, "{metadata}");
    assert!(metadata["lastExecuted"].is_string(), "{metadata}");
    let execution = format!("{uri}/executions/{}", ran["execution_id"].as_str().expect("an id"));
    assert!(ana.read(&execution).await["text"].is_string());
    bob.cannot_read(&execution).await;
}

/// Words that are names of tools.
fn tools_in(message: &str, all: &[String]) -> Vec<String> {
    let words = message.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let named = words.filter(|word| all.iter().any(|tool| tool == word));
    named.map(str::to_owned).collect()
}

#[tokio::test]
async fn errors_name_only_tools_that_are_listed() {
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["1"]));
    let config = format!("{}{}{}", lab_server("lab"), everything(), token("new", ""));
    let gateway = Gateway::configured(&config).await;
    let ana = Agent::connect(&gateway, Era::Modern).await;
    let all = Agent::connect_to(&gateway.url("/mcp?toolsets=all"), TOKEN, Era::Modern).await;
    let all = all.tools().await;
    let (session, id) = opened(&ana, &path).await;
    for era in ERAS {
        for (selection, current) in [
            ("", "read_nb_cells"),
            ("?readonly=true", "read_nb_cells"),
            ("?toolsets=classic", "read_cell"),
            ("?toolsets=classic&readonly=true", "read_cell"),
            ("?toolsets=collab&readonly=true", "get_notebook"),
            ("?toolsets=gateway", ""),
        ] {
            let url = gateway.url(&format!("/mcp{selection}"));
            // Who has used no notebook yet.
            let agent = Agent::connect_to(&url, "token-of-new", era).await;
            let listed = agent.tools().await;
            let execution = format!("notebook://{session}/{id}/executions/none");
            for uri in [
                "notebook://current",
                execution.as_str(),
                "notebook://no/such",
                "notebook://templates/no_such",
                "x://y",
            ] {
                let (_, message) = agent.cannot_read(uri).await;
                let named = tools_in(&message, &all);
                assert!(named.iter().all(|tool| listed.contains(tool)), "{selection} {message}");
                if uri == "notebook://current" {
                    let told = message.starts_with("No notebook for current session");
                    assert!(
                        told && named == [current].map(str::to_owned)[..usize::from(!current.is_empty())],
                        "{message}"
                    );
                }
                if uri == execution {
                    let told = named == ["list_executions"];
                    assert_eq!(told, listed.iter().any(|tool| tool == "list_executions"), "{message}");
                }
            }
            if era == Era::Modern {
                let task = agent.request("tasks/get", json!({ "taskId": "none" })).await;
                let message = task["error"]["message"].as_str().unwrap_or_else(|| panic!("{task}"));
                let named = tools_in(message, &all);
                assert!(named.iter().all(|tool| listed.contains(tool)), "{selection} {message}");
            }
        }
    }
}
