//! Awareness, "User Activity Tracking" of jupyter-collaboration-mcp: what everybody does is recorded, filtered and told.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN, Watcher,
    agent::ERAS,
    eventually,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
    scene::person,
};

const ACTIVITY: &str = "notebook://activity";

fn token(name: &str, more: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"all\"\ntoken = \"token-of-{name}\"\n{more}\n")
}

async fn aware(gateway: &Gateway, token: &str, era: Era) -> Agent {
    Agent::connect_to(&gateway.url("/mcp?toolsets=default,awareness"), token, era).await
}

async fn activities(agent: &Agent, arguments: Value) -> Vec<Value> {
    let answer = agent.call("get_user_activity", arguments).await.ok();
    let found = answer["activities"].as_array().expect("activities").clone();
    assert_eq!(answer["total"], found.len());
    let times: Vec<&str> = found
        .iter()
        .filter_map(|activity| activity["timestamp"].as_str())
        .collect();
    assert!(
        times.is_sorted_by(|newer, older| newer >= older),
        "the newest first: {times:?}"
    );
    found
}

async fn read(agent: &Agent) -> Vec<Value> {
    let contents = agent.read(ACTIVITY).await;
    assert_eq!(contents["mimeType"], "application/json");
    let text = contents["text"].as_str().expect("text");
    let body: Value = serde_json::from_str(text).expect("json");
    body["activities"].as_array().expect("activities").clone()
}

/// Waits for an activity of a document.
async fn done(agent: &Agent, path: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    eventually("the activity", async || {
        let found = activities(agent, json!({ "document_path": path })).await;
        found.into_iter().find(|activity| is_it(activity))
    })
    .await
}

fn is(user: &'static str, kind: &'static str) -> impl Fn(&Value) -> bool {
    move |activity| activity["user_name"] == user && activity["activity_type"] == kind
}

#[tokio::test]
async fn what_people_and_agents_do_is_recorded() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let path = folder.write("a.ipynb", &notebook(&["1 + 1", "2"]));
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let joined = done(&agent, &path, is("ana", "join")).await;
    assert_eq!(joined["description"], format!("joined {path}"));
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    let noticed = done(&agent, &path, is("Hanna", "join")).await;
    assert_eq!(
        (&noticed["is_agent"], &noticed["user_id"]),
        (&json!(false), &json!("Hanna")),
        "{noticed}"
    );

    human.type_into(0, 0, "x = 5; ", Duration::from_millis(30)).await;
    human.splice_cell("c1", 0, 0, "y");
    let edits = eventually("one entry of both cells", async || {
        let found = activities(&agent, json!({ "document_path": path })).await;
        let edits: Vec<Value> = found
            .into_iter()
            .filter(|activity| is("Hanna", "edit")(activity))
            .collect();
        (edits.first()?["metadata"]["cell_ids"] == json!(["c0", "c1"])).then_some(edits)
    })
    .await;
    assert_eq!(edits.len(), 1, "not one of each stroke of a key: {edits:?}");
    assert_eq!(edits[0]["description"], format!("edited 2 cells of {path}"));

    let modify =
        json!({ "path": path, "modifications": [{ "range": { "cell_id": "c1" }, "content": "3" }], "force": true });
    agent.call("modify_nb_cells", modify).await.ok();
    let edit = done(&agent, &path, is("ana", "edit")).await;
    assert_eq!(
        (&edit["metadata"]["tools"], &edit["server"]),
        (&json!(["modify_nb_cells"]), &json!("lab")),
        "{edit}"
    );
    let run = json!({ "path": path, "ranges": [{ "cell_id": "c1" }] });
    agent.call("execute_nb_cells", run).await.ok();
    let run = done(&agent, &path, is("ana", "execute")).await;
    assert_eq!(run["metadata"]["cell_ids"], json!(["c1"]), "{run}");
    agent.call("save_document", json!({ "path": path })).await.ok();
    done(&agent, &path, is("ana", "save")).await;
    human.leave().await;
    done(&agent, &path, is("Hanna", "leave")).await;

    let two = activities(&agent, json!({ "document_path": path, "limit": 2 })).await;
    assert_eq!(two.len(), 2);
    for activity in &two {
        for member in ["activity_id", "timestamp", "user_id", "description"] {
            assert!(activity[member].is_string(), "{activity}");
        }
    }
    let default = agent.request("tools/list", json!({})).await;
    let tools = default["result"]["tools"].as_array().expect("tools").clone();
    let tool = tools
        .iter()
        .find(|tool| tool["name"] == "get_user_activity")
        .expect("listed");
    assert_eq!(tool["inputSchema"]["properties"]["limit"]["default"], 20);
}

#[tokio::test]
async fn files_and_renames_are_recorded_with_who_did_it() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    let [a, b, c] = ["a.ipynb", "b.ipynb", "c.ipynb"].map(|name| folder.path(name));
    agent.call("create_notebook", json!({ "path": a })).await.ok();
    done(&agent, &a, is("ana", "create")).await;
    agent.call("read_nb_cells", json!({ "path": a })).await.ok();
    agent
        .call("rename_document", json!({ "path": a, "newPath": b }))
        .await
        .ok();
    let renamed = done(&agent, &b, is("ana", "rename")).await;
    assert_eq!(renamed["metadata"]["from"], a, "{renamed}");
    let earlier = activities(&agent, json!({ "document_path": b })).await;
    assert!(
        earlier.iter().any(is("ana", "join")),
        "what was done under its old name is found: {earlier:?}"
    );
    person()
        .send(
            reqwest::Method::PATCH,
            &format!("api/contents/{b}"),
            json!({ "path": c }),
        )
        .await;
    let renamed = done(&agent, &c, is("somebody", "rename")).await;
    assert_eq!(
        (&renamed["metadata"]["from"], &renamed["is_agent"]),
        (&json!(b), &json!(false)),
        "{renamed}"
    );
    let all = activities(&agent, json!({ "limit": 200 })).await;
    let renames: Vec<&Value> = all
        .iter()
        .filter(|activity| activity["activity_type"] == "rename")
        .collect();
    assert_eq!(renames.len(), 2, "each once: {renames:?}");
    agent.call("delete_document", json!({ "path": c })).await.ok();
    done(&agent, &c, is("ana", "delete")).await;
    agent.call("run_code", json!({ "code": "1" })).await.ok();
    let all = activities(&agent, json!({})).await;
    let ran = all
        .iter()
        .find(|activity| is("ana", "execute")(activity))
        .expect("it ran");
    assert_eq!(
        (&ran["description"], &ran["document_path"]),
        (&json!("ran code"), &Value::Null)
    );
}

#[tokio::test]
async fn a_broadcast_reaches_other_agents_and_people() {
    for era in ERAS {
        let folder = lab().folder();
        let path = folder.write("a.ipynb", &notebook(&["1"]));
        let config = format!(
            "{}{}{}",
            lab_server("lab"),
            everything(),
            token("bob", "permissions = [\"read\"]")
        );
        let gateway = Gateway::configured(&config).await;
        let ana = aware(&gateway, TOKEN, era).await;
        let bob = aware(&gateway, "token-of-bob", era).await;
        ana.call("read_nb_cells", json!({ "path": path })).await.ok();
        let human = Human::join(&path).await;
        human.publish("Hanna", true);
        done(&ana, &path, is("Hanna", "join")).await;
        let mut watcher = Watcher::start(&bob, era, &[ACTIVITY]).await;
        let mut own = Watcher::start(&ana, era, &[ACTIVITY]).await;
        while watcher.next().await.is_some() || own.next().await.is_some() {}
        let arguments = json!({
            "activity_type": "review",
            "description": "reviewing the loader",
            "document_path": path,
            "metadata": { "step": 3 },
        });
        let told = ana.call("broadcast_user_activity", arguments).await.ok();
        assert_eq!(
            (
                &told["success"],
                &told["activity_type"],
                &told["document_path"],
                &told["shown_to_people"]
            ),
            (&json!(true), &json!("review"), &json!(path), &json!(true))
        );
        watcher.updated(ACTIVITY).await;
        let newest = read(&bob).await.remove(0);
        assert_eq!(
            (
                &newest["activity_id"],
                &newest["user_id"],
                &newest["description"],
                &newest["metadata"]["step"]
            ),
            (
                &told["activity_id"],
                &json!("token:ana"),
                &json!("reviewing the loader"),
                &json!(3)
            )
        );
        human
            .wait_for("people see it beside the name", |human| {
                human.shown_as("ana").ends_with(" · reviewing the loader")
            })
            .await;
        assert_eq!(
            own.count(ACTIVITY).await,
            0,
            "nobody is told of what they did themselves"
        );
        let whole = json!({ "activity_type": "plan", "description": "no document" });
        ana.call("broadcast_user_activity", whole).await.ok();
        watcher.updated(ACTIVITY).await;
        assert_eq!(read(&bob).await[0]["document_path"], Value::Null);
        human.leave().await;
    }
}

#[tokio::test]
async fn bad_broadcasts_and_questions_are_refused() {
    let folder = lab().folder();
    let rules = format!("paths = [\"{}/**\"]", folder.name);
    let reader = format!("permissions = [\"read\"]\n{rules}");
    let gateway = Gateway::configured(&format!(
        "{}{}{}",
        lab_server("lab"),
        everything(),
        token("bob", &reader)
    ))
    .await;
    let ana = aware(&gateway, TOKEN, Era::Modern).await;
    let bob = aware(&gateway, "token-of-bob", Era::Modern).await;
    for (arguments, told) in [
        (json!({ "activity_type": "edit" }), "description"),
        (json!({ "description": "x" }), "activity_type"),
        (json!({ "activity_type": " ", "description": "x" }), "empty"),
        (
            json!({ "activity_type": "x".repeat(65), "description": "x" }),
            "at most 64",
        ),
        (
            json!({ "activity_type": "x", "description": "x".repeat(1001) }),
            "at most 1000",
        ),
        (
            json!({ "activity_type": "x", "description": "x", "metadata": { "a": "x".repeat(9000) } }),
            "at most 8192",
        ),
        (
            json!({ "activity_type": "x", "description": "x", "document_path": "../x" }),
            "..",
        ),
    ] {
        let error = ana.call("broadcast_user_activity", arguments).await.error();
        assert!(error.contains(told), "{error}");
    }
    let broadcast = json!({ "activity_type": "x", "description": "x" });
    let error = bob.call("broadcast_user_activity", broadcast).await.error();
    assert!(error.contains("`write`"), "{error}");
    for limit in [0, 201] {
        let error = ana.call("get_user_activity", json!({ "limit": limit })).await.error();
        assert!(error.contains("1 to 200"), "{error}");
    }
    assert!(activities(&ana, json!({})).await.is_empty(), "nothing was recorded");
    let error = bob
        .call("get_user_activity", json!({ "document_path": "elsewhere.ipynb" }))
        .await
        .error();
    assert!(error.contains("path rules"), "{error}");
}

#[tokio::test]
async fn activity_in_hidden_documents_is_hidden_and_not_told() {
    for era in ERAS {
        let folder = lab().folder();
        let open = folder.write("open/a.ipynb", &notebook(&["1"]));
        let secret = folder.write("secret/b.ipynb", &notebook(&["1"]));
        let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
        let foreign = "[[tenants]]\nname = \"foreign\"\n[[auth.tokens]]\nname = \"eve\"\ntenant = \"foreign\"\ntoken = \"token-of-eve\"\n";
        let config = format!("{}{}{}{foreign}", lab_server("lab"), everything(), token("bob", &rules));
        let gateway = Gateway::configured(&config).await;
        let ana = aware(&gateway, TOKEN, era).await;
        let bob = aware(&gateway, "token-of-bob", era).await;
        let eve = aware(&gateway, "token-of-eve", era).await;
        let mut watcher = Watcher::start(&bob, era, &[ACTIVITY]).await;
        let modify =
            |path: &str| json!({ "path": path, "modifications": [{ "range": { "start": 0 }, "content": "2" }] });
        ana.call("modify_nb_cells", modify(&secret)).await.ok();
        ana.call(
            "rename_document",
            json!({ "path": secret, "newPath": folder.path("open/c.ipynb") }),
        )
        .await
        .ok();
        ana.call(
            "rename_document",
            json!({ "path": folder.path("open/c.ipynb"), "newPath": secret }),
        )
        .await
        .ok();
        let whole = json!({ "activity_type": "plan", "description": "for my tenant" });
        eve.call("broadcast_user_activity", whole).await.ok();
        assert_eq!(watcher.count(ACTIVITY).await, 0);
        let told = json!([read(&bob).await, activities(&bob, json!({ "limit": 200 })).await]).to_string();
        assert!(!told.contains("secret/") && !told.contains("for my tenant"), "{told}");
        ana.call("modify_nb_cells", modify(&open)).await.ok();
        watcher.updated(ACTIVITY).await;
        assert!(json!(read(&bob).await).to_string().contains("open/a.ipynb"));
    }
}

#[tokio::test]
async fn activity_outlives_the_gateway() {
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["1"]));
    let dir = tempfile::tempdir().expect("a directory");
    let store = format!("[store]\nurl = \"sqlite://{}/gateway.db\"", dir.path().display());
    let gateway = Gateway::with(&store).await;
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    let modify = json!({ "path": path, "modifications": [{ "range": { "start": 0 }, "content": "2" }] });
    agent.call("modify_nb_cells", modify).await.ok();
    let note = json!({ "activity_type": "note", "description": "before", "metadata": { "a": [1] } });
    agent.call("broadcast_user_activity", note).await.ok();
    done(&agent, &path, is("ana", "edit")).await;
    drop(agent);
    gateway.drain().start();
    gateway.gone().await;
    let gateway = Gateway::with(&store).await;
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    let edit = done(&agent, &path, is("ana", "edit")).await;
    assert_eq!(edit["description"], format!("edited 1 cell of {path}"));
    let all = activities(&agent, json!({})).await;
    let note = all
        .iter()
        .find(|activity| activity["activity_type"] == "note")
        .expect("the broadcast");
    assert_eq!(
        (&note["description"], &note["metadata"]["a"]),
        (&json!("before"), &json!([1])),
        "{note}"
    );
    assert!(!note.to_string().contains("_tenant"), "{note}");
}
