//! Awareness, "User Presence Management" of jupyter-collaboration-mcp: who is online, where, and how available.

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, TOKEN,
    agent::ERAS,
    eventually,
    gateway::{everything, lab_server, server},
    lab,
    notebook::notebook,
    own_lab::OwnLab,
};

fn token(name: &str, more: &str) -> String {
    format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"all\"\ntoken = \"token-of-{name}\"\n{more}\n")
}

async fn aware(gateway: &Gateway, token: &str, era: Era) -> Agent {
    Agent::connect_to(&gateway.url("/mcp?toolsets=default,awareness"), token, era).await
}

/// A name that nobody else has: all tests share one list of who is online.
fn unique(name: &str) -> String {
    format!("{name}-{}", uuid::Uuid::new_v4().simple())
}

/// The entry of somebody in an answer.
fn user<'a>(answer: &'a Value, name: &str) -> Option<&'a Value> {
    let users = answer["users"].as_array().expect("users");
    assert_eq!(answer["total"], users.len());
    let mut found = users.iter().filter(|user| user["name"] == name);
    let user = found.next();
    assert!(found.next().is_none(), "each once: {answer}");
    user
}

async fn online(agent: &Agent, name: &str, arguments: &Value) -> Value {
    eventually(&format!("{name} is online"), async || {
        let answer = agent.call("get_online_users", arguments.clone()).await.ok();
        user(&answer, name).cloned()
    })
    .await
}

#[tokio::test]
async fn people_and_agents_are_listed_once_with_their_documents() {
    for era in ERAS {
        let (ana_name, folder) = (unique("ana"), lab().folder());
        let config = format!(
            "{}[[tenants]]\nname = \"all\"\n{}",
            lab_server("lab"),
            token(&ana_name, "")
        );
        let gateway = Gateway::configured(&config).await;
        let (a, b) = (folder.write("a.ipynb", &notebook(&["1"])), folder.write("b.md", "text"));
        let agent = aware(&gateway, &format!("token-of-{ana_name}"), era).await;
        let first = agent.call("get_online_users", json!({})).await;
        assert!(first.text().contains("Listening began just now"), "{}", first.text());
        let first = first.ok();
        assert!(
            first["listening_since"].is_string() && first["note"].is_string(),
            "{first}"
        );

        let name = unique("Hanna");
        let listed = Human::online(&name, Some(&a), &[&a, &b]).await;
        let human = Human::join(&a).await;
        human.publish(&name, true);
        let hanna = online(&agent, &name, &json!({})).await;
        for (member, value) in [
            ("user_id", json!(name)),
            ("display_name", json!(name)),
            ("initials", json!("H")),
            ("color", json!("#000000")),
            ("is_agent", json!(false)),
            ("status", json!("online")),
            ("documents", json!([a, b])),
            ("current", json!(a)),
        ] {
            assert_eq!(hanna[member], value, "{member}: {hanna}");
        }
        agent.call("read_nb_cells", json!({ "path": a })).await.ok();
        let ana = online(&agent, &ana_name, &json!({ "document_path": a })).await;
        assert_eq!(
            (&ana["is_agent"], &ana["user_id"]),
            (&json!(true), &json!(format!("token:{ana_name}"))),
            "{ana}"
        );
        assert_eq!(ana["documents"], json!([a]), "{ana}");
        // The old spelling of the path works too.
        let in_b = agent.call("get_online_users", json!({ "path": b })).await;
        assert!(in_b.text().contains(&name), "{}", in_b.text());
        let in_b = in_b.ok();
        assert!(
            user(&in_b, &name).is_some() && user(&in_b, &ana_name).is_none(),
            "{in_b}"
        );
        listed.leave().await;
        human.leave().await;
        eventually("who left is not listed", async || {
            let answer = agent.call("get_online_users", json!({})).await.ok();
            user(&answer, &name).is_none().then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_presence_of_one_user_is_told() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let a = folder.write("a.ipynb", &notebook(&["1"]));
    let b = folder.write("b.ipynb", &notebook(&["1"]));
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    agent.call("read_nb_cells", json!({ "path": a })).await.ok();
    let name = unique("Hanna");
    let human = Human::join(&a).await;
    human.publish(&name, true);
    online(&agent, &name, &json!({})).await;
    let ask = |user: &str| json!({ "user_id": user, "document_path": a });
    let hanna = agent.call("get_user_presence", ask(&name)).await.ok();
    for (member, value) in [
        ("user_id", json!(name)),
        ("status", json!("online")),
        ("current_document", json!(a)),
        ("in_document", json!(true)),
        ("is_agent", json!(false)),
    ] {
        assert_eq!(hanna[member], value, "{member}: {hanna}");
    }
    assert!(
        hanna["last_activity"].is_string() && hanna["message"].is_null(),
        "{hanna}"
    );
    let elsewhere = json!({ "user_id": name.to_uppercase(), "document_path": b });
    let elsewhere = agent.call("get_user_presence", elsewhere).await.ok();
    assert_eq!(elsewhere["in_document"], false, "a name works in any case: {elsewhere}");
    human.leave().await;
    let gone = eventually("who left is offline", async || {
        let presence = agent.call("get_user_presence", ask(&name)).await.ok();
        (presence["status"] == "offline").then_some(presence)
    })
    .await;
    assert!(
        gone["last_activity"].is_string() && gone["current_document"].is_null(),
        "{gone}"
    );
    let error = agent
        .call("get_user_presence", json!({ "user_id": "nobody-at-all" }))
        .await
        .error();
    assert!(
        error.contains("\"nobody-at-all\"") && error.contains("token:ana"),
        "{error}"
    );
    for (arguments, told) in [
        (json!({}), "user_id"),
        (json!({ "user_id": " " }), "get_online_users"),
        (json!({ "user_id": "x", "server": "nowhere" }), "lab"),
        (json!({ "user_id": "x", "document_path": "../up" }), ".."),
    ] {
        let error = agent.call("get_user_presence", arguments).await.error();
        assert!(error.contains(told), "{error}");
    }
}

#[tokio::test]
async fn an_agent_sets_its_status_and_everybody_sees_it() {
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["1"]));
    let (ana, bob) = (unique("ana"), unique("bob"));
    let config = format!(
        "{}[[tenants]]\nname = \"all\"\n{}{}",
        lab_server("lab"),
        token(&ana, ""),
        token(&bob, "")
    );
    let gateway = Gateway::configured(&config).await;
    let agent = aware(&gateway, &format!("token-of-{ana}"), Era::Modern).await;
    let other = aware(&gateway, &format!("token-of-{bob}"), Era::Legacy).await;
    let panel = Human::online(&unique("Panel"), None, &[]).await;
    let human = Human::join(&path).await;
    human.publish("Hanna", true);
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    human.wait_for("the agent is here", |human| human.sees(&ana)).await;

    let set = json!({ "status": "busy", "message": "training" });
    let set = agent.call("set_user_presence", set).await;
    assert_eq!(set.text(), "You are shown as busy: training");
    let set = set.ok();
    assert_eq!(
        (&set["success"], &set["status"]),
        (&json!(true), &json!("busy")),
        "{set}"
    );
    assert!(
        set["expires_at"].is_string() && set["servers"] == json!(["lab"]),
        "{set}"
    );
    let shown = |human: &Human| human.shown_as(&ana).ends_with(" · busy · training");
    human.wait_for("people in the document see it", shown).await;
    panel.wait_for("people in the list see it", shown).await;
    let presence = other.call("get_user_presence", json!({ "user_id": ana })).await.ok();
    assert_eq!(
        (&presence["status"], &presence["message"]),
        (&json!("busy"), &json!("training")),
        "{presence}"
    );

    agent
        .call("set_user_presence", json!({ "status": "offline" }))
        .await
        .ok();
    human.wait_for("it is not shown", |human| !human.sees(&ana)).await;
    panel.wait_for("nowhere", |panel| !panel.sees(&ana)).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let presence = other.call("get_user_presence", json!({ "user_id": ana })).await.ok();
    assert_eq!(presence["status"], "offline", "{presence}");
    assert!(!human.sees(&ana), "also when it works");

    // The default is online.
    agent.call("set_user_presence", json!({})).await.ok();
    panel.wait_for("it is back", |panel| panel.sees(&ana)).await;
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    human.wait_for("in the document too", |human| human.sees(&ana)).await;
    let error = agent
        .call("set_user_presence", json!({ "status": "sleepy" }))
        .await
        .error();
    assert!(error.contains("online") && error.contains("away"), "{error}");
    let long = json!({ "message": "x".repeat(201) });
    let error = agent.call("set_user_presence", long).await.error();
    assert!(error.contains("at most 200"), "{error}");
    human.leave().await;
    panel.leave().await;
}

#[tokio::test]
async fn people_in_hidden_documents_are_hidden_with_them() {
    let folder = lab().folder();
    let open = folder.write("open/a.ipynb", &notebook(&["1"]));
    let secret = folder.write("secret/b.ipynb", &notebook(&["1"]));
    let rules = format!("paths = [\"{0}/**\", \"!{0}/secret/**\"]", folder.name);
    let config = format!("{}{}{}", lab_server("lab"), everything(), token("bob", &rules));
    let gateway = Gateway::configured(&config).await;
    let ana = aware(&gateway, TOKEN, Era::Modern).await;
    let bob = aware(&gateway, "token-of-bob", Era::Modern).await;
    for agent in [&ana, &bob] {
        agent.call("get_online_users", json!({})).await.ok();
    }
    let (both, only_secret) = (unique("Both"), unique("Secret"));
    let people = [
        Human::online(&both, Some(&secret), &[&open, &secret]).await,
        Human::online(&only_secret, Some(&secret), &[&secret]).await,
    ];
    let human = Human::join(&secret).await;
    human.publish(&only_secret, true);
    ana.call("read_nb_cells", json!({ "path": secret })).await.ok();
    for name in [&both, &only_secret] {
        online(&ana, name, &json!({})).await;
    }
    let seen = online(&bob, &both, &json!({})).await;
    assert_eq!(
        (&seen["documents"], &seen["current"]),
        (&json!([open]), &Value::Null),
        "{seen}"
    );
    let answer = bob.call("get_online_users", json!({})).await.ok();
    let told = answer.to_string();
    assert!(!told.contains(&only_secret) && !told.contains("secret/"), "{told}");
    let error = bob
        .call("get_user_presence", json!({ "user_id": only_secret }))
        .await
        .error();
    let unknown = bob
        .call("get_user_presence", json!({ "user_id": "nobody" }))
        .await
        .error();
    assert_eq!(error.replace(&only_secret, "nobody"), unknown, "hidden is as unknown");
    let denied = bob
        .call("get_online_users", json!({ "document_path": secret }))
        .await
        .error();
    assert!(denied.contains("path rules"), "{denied}");
    for human in people.into_iter().chain([human]) {
        human.leave().await;
    }
}

#[tokio::test]
async fn each_server_has_its_own_people() {
    let lab_b = OwnLab::start(&[]).await;
    let config = format!(
        "{}{}{}",
        lab_server("lab"),
        server("lab-b", &lab_b.url(), lab_b.token()),
        everything()
    );
    let gateway = Gateway::configured(&config).await;
    let agent = aware(&gateway, TOKEN, Era::Modern).await;
    let there = json!({ "server": "lab-b" });
    agent.call("get_online_users", there.clone()).await.ok();
    let human = Human::online_at(&lab_b.url(), lab_b.token(), "Hanna B", None, &[]).await;
    let hanna = online(&agent, "Hanna B", &there).await;
    assert_eq!(
        (&hanna["documents"], &hanna["current"]),
        (&json!([]), &Value::Null),
        "{hanna}"
    );
    let here = agent.call("get_online_users", json!({})).await.ok();
    assert!(user(&here, "Hanna B").is_none(), "{here}");
    agent.call("set_user_presence", json!({ "status": "away" })).await.ok();
    human
        .wait_for("a status is shown on all servers", |human| {
            human.shown_as("ana") == "ana · away"
        })
        .await;
    let only_b = json!({ "status": "busy", "server": "lab-b" });
    agent.call("set_user_presence", only_b).await.ok();
    human
        .wait_for("or on one", |human| human.shown_as("ana") == "ana · busy")
        .await;
    let presence = |server: &str| json!({ "user_id": "token:ana", "server": server });
    let on_a = agent.call("get_user_presence", presence("lab")).await.ok();
    let on_b = agent.call("get_user_presence", presence("lab-b")).await.ok();
    assert_eq!((&on_a["status"], &on_b["status"]), (&json!("away"), &json!("busy")));
    human.leave().await;
}
