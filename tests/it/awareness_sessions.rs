//! Awareness, "Collaboration Sessions" of jupyter-collaboration-mcp: open documents, who is in them, joining and leaving.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN,
    agent::ERAS,
    eventually,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
};

fn token(name: &str, more: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"all\"\ntoken = \"token-of-{name}\"\n{more}\n")
}

async fn aware(gateway: &Gateway, token: &str, era: Era) -> Agent {
    Agent::connect_to(&gateway.url("/mcp?toolsets=default,awareness"), token, era).await
}

async fn session_of(agent: &Agent, path: &str) -> Value {
    let answer = agent
        .call("get_active_sessions", json!({ "document_path": path }))
        .await
        .ok();
    assert_eq!(answer["total"], 1, "{answer}");
    answer["sessions"][0].clone()
}

fn names(session: &Value) -> Vec<&str> {
    let participants = session["participants"].as_array().expect("participants");
    participants
        .iter()
        .filter_map(|participant| participant["name"].as_str())
        .collect()
}

#[tokio::test]
async fn sessions_are_listed_joined_and_left() {
    for era in ERAS {
        let folder = lab().folder();
        let path = folder.write("a.ipynb", &notebook(&["1", "2"]));
        let other = folder.write("notes.md", "text");
        let gateway = Gateway::configured(&format!("{}{}{}", lab_server("lab"), everything(), token("bob", ""))).await;
        let ana = aware(&gateway, TOKEN, era).await;
        let bob = aware(&gateway, "token-of-bob", era).await;
        let none = ana
            .call("get_active_sessions", json!({ "document_path": path }))
            .await
            .ok();
        assert_eq!((&none["sessions"], &none["total"]), (&json!([]), &json!(0)));
        let human = Human::join(&path).await;
        human.select("Hanna", Some("c1"), 0, 1);
        ana.call("read_nb_cells", json!({ "path": path })).await.ok();
        ana.call("get_document_content", json!({ "path": other })).await.ok();
        human.select("Hanna", Some("c1"), 1, 1);
        let session = eventually("both are in it", async || {
            let session = session_of(&ana, &path).await;
            (names(&session) == ["Hanna", "ana"]).then_some(session)
        })
        .await;
        assert_eq!(
            (
                &session["status"],
                &session["document_type"],
                &session["participant_count"],
                &session["server"]
            ),
            (&json!("connected"), &json!("notebook"), &json!(2), &json!("lab"))
        );
        let [hanna, own] = [0, 1].map(|index| &session["participants"][index]);
        assert_eq!(
            (&hanna["cell_id"], &hanna["is_agent"]),
            (&json!("c1"), &json!(false)),
            "{hanna}"
        );
        assert_eq!(
            (&own["is_you"], &own["activity"]),
            (&json!(true), &json!("reading")),
            "{own}"
        );
        let all = ana.call("get_active_sessions", json!({})).await.ok();
        assert_eq!(all["total"], 2, "{all}");

        let id = session["session_id"].as_str().expect("an id");
        let joined = bob.call("join_session", json!({ "session_id": id })).await.ok();
        assert_eq!(
            (&joined["success"], &joined["status"], &joined["document_path"]),
            (&json!(true), &json!("joined"), &json!(path))
        );
        human.wait_for("bob is seen", |human| human.sees("bob")).await;
        let left = bob.call("leave_session", json!({ "session_id": id })).await.ok();
        assert_eq!(
            (&left["success"], &left["status"]),
            (&json!(true), &json!("left")),
            "{left}"
        );
        human.wait_for("bob is gone", |human| !human.sees("bob")).await;
        assert!(human.sees("ana"), "others stay");
        let again = bob.call("leave_session", json!({ "session_id": id })).await.ok();
        assert_eq!(
            (&again["success"], &again["status"]),
            (&json!(false), &json!("not_joined")),
            "{again}"
        );
        human.leave().await;
    }
}

#[tokio::test]
async fn who_joined_stays_although_it_does_nothing() {
    let gateway = Gateway::with("[sessions]\npresence_timeout = \"1s\"\nidle_timeout = \"2s\"").await;
    let folder = lab().folder();
    let (path, other) = (
        folder.write("a.ipynb", &notebook(&["1"])),
        folder.write("b.ipynb", &notebook(&["1"])),
    );
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    let (human, elsewhere) = (Human::join(&path).await, Human::join(&other).await);
    for path in [&path, &other] {
        agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    }
    let session = session_of(&agent, &path).await;
    agent
        .call("join_session", json!({ "session_id": session["session_id"] }))
        .await
        .ok();
    elsewhere
        .wait_for("who only read is seen", |human| human.sees("ana"))
        .await;
    elsewhere.wait_for("and forgotten", |human| !human.sees("ana")).await;
    eventually("a room that nobody joined is closed", async || {
        let sessions = agent
            .call("get_active_sessions", json!({ "document_path": other }))
            .await
            .ok();
        (sessions["total"] == 0).then_some(())
    })
    .await;
    assert!(human.sees("ana"));
    assert_eq!(session_of(&agent, &path).await["session_id"], session["session_id"]);
    agent
        .call("leave_session", json!({ "session_id": session["session_id"] }))
        .await
        .ok();
    eventually("it is closed when it is left", async || {
        let sessions = agent
            .call("get_active_sessions", json!({ "document_path": path }))
            .await
            .ok();
        (sessions["total"] == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn only_an_admin_takes_others_out() {
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["1"]));
    let bob = token("bob", "permissions = [\"read\"]");
    let gateway = Gateway::configured(&format!("{}{}{bob}", lab_server("lab"), everything())).await;
    let ana = aware(&gateway, TOKEN, Era::Modern).await;
    let bob = aware(&gateway, "token-of-bob", Era::Modern).await;
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    for agent in [&ana, &bob] {
        agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    }
    human
        .wait_for("both are here", |human| human.sees("ana") && human.sees("bob"))
        .await;
    let id = session_of(&ana, &path).await["session_id"].clone();
    let take = |user: &str| json!({ "session_id": id, "user_id": user });
    let error = bob.call("leave_session", take("token:ana")).await.error();
    assert!(error.contains("admin") && human.sees("ana"), "{error}");
    let error = ana.call("leave_session", take("Hanna")).await.error();
    assert!(error.contains("token:bob"), "people are not taken out: {error}");
    let left = ana.call("leave_session", take("bob")).await.ok();
    assert_eq!(left["user_id"], "token:bob", "{left}");
    human.wait_for("bob is gone", |human| !human.sees("bob")).await;
    assert!(human.sees("ana"));
    human.leave().await;
}

#[tokio::test]
async fn unknown_sessions_name_the_known_ones_and_hidden_ones_do_not_exist() {
    let folder = lab().folder();
    let open = folder.write("open/a.ipynb", &notebook(&["1"]));
    let secret = folder.write("secret/b.ipynb", &notebook(&["1"]));
    let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
    let config = format!("{}{}{}", lab_server("lab"), everything(), token("bob", &rules));
    let gateway = Gateway::configured(&config).await;
    let ana = aware(&gateway, TOKEN, Era::Modern).await;
    let bob = aware(&gateway, "token-of-bob", Era::Modern).await;
    let error = bob
        .call("join_session", json!({ "session_id": "nothing" }))
        .await
        .error();
    assert!(error.contains("open: none"), "{error}");
    for path in [&open, &secret] {
        ana.call("read_nb_cells", json!({ "path": path })).await.ok();
    }
    let hidden = session_of(&ana, &secret).await["session_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let known = session_of(&bob, &open).await["session_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    for tool in ["join_session", "leave_session"] {
        let error = bob.call(tool, json!({ "session_id": hidden })).await.error();
        let unknown = bob.call(tool, json!({ "session_id": "nothing" })).await.error();
        assert_eq!(error.replace(&hidden, "nothing"), unknown);
        assert!(unknown.contains(&known) && !unknown.contains("secret"), "{unknown}");
        let error = bob.call(tool, json!({})).await.error();
        assert!(error.contains("session_id"), "{error}");
    }
    let sessions = bob.call("get_active_sessions", json!({})).await.ok().to_string();
    assert!(sessions.contains(&known) && !sessions.contains(&hidden), "{sessions}");
    let denied = bob
        .call("get_active_sessions", json!({ "document_path": secret }))
        .await
        .error();
    assert!(denied.contains("path rules"), "{denied}");
}

#[tokio::test]
async fn documents_that_only_people_have_open_are_told_too() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let path = folder.write("theirs.ipynb", &notebook(&["1"]));
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    agent.call("get_active_sessions", json!({})).await.ok();
    let name = format!("Hanna-{}", uuid::Uuid::new_v4().simple());
    let human = Human::online(&name, Some(&path), &[&path]).await;
    let elsewhere = eventually("it is told", async || {
        let answer = agent
            .call("get_active_sessions", json!({ "document_path": path }))
            .await
            .ok();
        answer["elsewhere"].as_array().filter(|all| !all.is_empty()).cloned()
    })
    .await;
    assert_eq!(elsewhere, [json!({ "document_path": path, "users": [name] })]);
    human.leave().await;
}
