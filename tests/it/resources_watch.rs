//! Change notices, in both eras: real edits by anybody are told, and not more often than is of use.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, Human, Watcher, agent::ERAS, eventually, lab, lab::Folder, notebook::notebook, wire::Events,
};

struct Watched {
    gateway: Gateway,
    agent: Agent,
    folder: Folder,
    path: String,
    uri: String,
}

async fn scene(era: Era, more: &str) -> Watched {
    let gateway = Gateway::with(more).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["zero", "one"]));
    let agent = Agent::connect(&gateway, era).await;
    let uri = open(&agent, &path).await;
    Watched {
        gateway,
        agent,
        folder,
        path,
        uri,
    }
}

async fn open(agent: &Agent, path: &str) -> String {
    agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    let current = agent.read("notebook://current").await["_meta"].clone();
    let text = |key: &str| current[key].as_str().expect("an id").to_owned();
    format!("notebook://{}/{}", text("sessionId"), text("notebookId"))
}

#[tokio::test]
async fn edits_of_people_and_agents_are_told() {
    for era in ERAS {
        let scene = scene(era, "").await;
        let mut watcher = Watcher::start(&scene.agent, era, &[&scene.uri]).await;
        let human = Human::join(&scene.path).await;
        human.splice_cell("c0", 0, 0, "typed ");
        watcher.updated(&scene.uri).await;
        let text = scene.agent.read(&scene.uri).await["text"].to_string();
        assert!(text.contains("typed zero"), "{text}");
        assert_eq!(watcher.next().await, None, "one edit is one notice");
        let other = Agent::connect(&scene.gateway, Era::Modern).await;
        let changes = json!([{ "range": { "cell_id": "c1" }, "content": "by an agent" }]);
        let arguments = json!({ "path": scene.path, "modifications": changes });
        other.call("modify_nb_cells", arguments).await.ok();
        watcher.updated(&scene.uri).await;
    }
}

#[tokio::test]
async fn a_flood_of_typing_is_few_notices_and_the_last_one_is_not_lost() {
    for era in ERAS {
        let scene = scene(era, "").await;
        let mut watcher = Watcher::start(&scene.agent, era, &[&scene.uri]).await;
        let human = Human::join(&scene.path).await;
        let typed = "x".repeat(200);
        let started = Instant::now();
        let typing = human.type_into(0, 0, &typed, Duration::from_millis(5));
        tokio::join!(typing, watcher.updated(&scene.uri));
        let more = watcher.count(&scene.uri).await;
        // Who types on a slow machine types for longer.
        let most = usize::try_from(started.elapsed().as_millis() / 200).unwrap();
        assert!((1..=most).contains(&more), "{more} notices of 200 characters");
        let text = scene.agent.read(&scene.uri).await["text"].to_string();
        assert!(
            text.contains(&format!("{typed}zero")),
            "what is read after the last notice is complete"
        );
    }
}

#[tokio::test]
async fn who_watches_a_cell_hears_of_that_cell_only() {
    for era in ERAS {
        let scene = scene(era, "").await;
        let cell = format!("{}/cells/c1", scene.uri);
        let mut watcher = Watcher::start(&scene.agent, era, &[&cell]).await;
        // That the notebook was opened may still have to be told.
        while watcher.next().await.is_some() {}
        let human = Human::join(&scene.path).await;
        human.splice_cell("c0", 0, 0, "not this ");
        assert_eq!(watcher.next().await, None);
        human.splice_cell("c1", 0, 0, "this ");
        watcher.updated(&cell).await;
        assert_eq!(scene.agent.read(&cell).await["text"], "this one");
        human.delete_cell(1);
        watcher.updated(&cell).await;
        scene.agent.cannot_read(&cell).await;
        assert_eq!(watcher.next().await, None);
    }
}

#[tokio::test]
async fn the_current_notebook_can_be_watched_whichever_it_is() {
    for era in ERAS {
        let scene = scene(era, "").await;
        let mut watcher = Watcher::start(&scene.agent, era, &["notebook://current", "notebook://list"]).await;
        let human = Human::join(&scene.path).await;
        human.splice_cell("c0", 0, 0, "x");
        watcher.updated("notebook://current").await;
        let other = scene.folder.write("b.ipynb", &notebook(&["other"]));
        scene.agent.call("read_nb_cells", json!({ "path": other })).await.ok();
        watcher.updated("notebook://current").await;
        while watcher.next().await.is_some() {}
        let person = Human::join(&other).await;
        person.splice_cell("c0", 0, 0, "y");
        watcher.updated("notebook://current").await;
        human.splice_cell("c0", 0, 0, "z");
        let told = watcher.count("notebook://current").await;
        assert_eq!(told, 0, "the other one is not current any more");
        scene
            .agent
            .call("end_nb_session", json!({ "path": scene.path }))
            .await
            .ok();
        watcher.updated("notebook://list").await;
    }
}

#[tokio::test]
async fn the_list_tells_of_edits_and_not_of_each_keystroke() {
    for era in ERAS {
        let scene = scene(era, "").await;
        let mut watcher = Watcher::start(&scene.agent, era, &["notebook://list"]).await;
        while watcher.next().await.is_some() {}
        let human = Human::join(&scene.path).await;
        human.insert_cell(0, "by-hand", "words");
        watcher.updated("notebook://list").await;
        let list = scene.agent.read("notebook://list").await;
        let list: Value = serde_json::from_str(list["text"].as_str().expect("text")).expect("json");
        assert_eq!(list[0]["cellCount"], 3, "{list}");
        while watcher.next().await.is_some() {}
        human.type_into(0, 0, &"x".repeat(200), Duration::from_millis(5)).await;
        let told = watcher.count("notebook://list").await;
        assert!((1..=20).contains(&told), "{told} notices of 200 characters");
        // One that was opened since is followed too.
        let other = scene.folder.write("b.ipynb", &notebook(&["other"]));
        scene.agent.call("read_nb_cells", json!({ "path": other })).await.ok();
        watcher.updated("notebook://list").await;
        while watcher.next().await.is_some() {}
        Human::join(&other).await.splice_cell("c0", 0, 0, "y");
        watcher.updated("notebook://list").await;
    }
}

#[tokio::test]
async fn only_what_can_be_told_is_acknowledged() {
    let scene = scene(Era::Modern, "").await;
    let execution = format!("{}/executions/e", scene.uri);
    let uris = [
        scene.uri.as_str(),
        &execution,
        "notebook://list",
        "notebook://templates/poem",
        "notebook://nope",
        "http://example.org",
    ];
    let wanted = json!({ "resourceSubscriptions": uris });
    let listening = scene
        .agent
        .start(7001, "subscriptions/listen", json!({ "notifications": wanted }));
    let mut events = Events::new(listening.await);
    let (_, acknowledged) = events.next_message().await.expect("an acknowledgement");
    assert_eq!(
        acknowledged["params"]["notifications"]["resourceSubscriptions"],
        json!([scene.uri, "notebook://list"]),
        "{acknowledged}"
    );
}

#[tokio::test]
async fn opening_and_closing_changes_the_list_and_closing_is_the_last_notice() {
    for era in ERAS {
        let scene = scene(era, "").await;
        let mut watcher = Watcher::start(&scene.agent, era, &[&scene.uri]).await;
        let other = scene.folder.notebook("b.ipynb");
        scene.agent.call("read_nb_cells", json!({ "path": other })).await.ok();
        watcher.list_changed().await;
        scene
            .agent
            .call("end_nb_session", json!({ "path": scene.path }))
            .await
            .ok();
        watcher.updated(&scene.uri).await;
        scene.agent.cannot_read(&scene.uri).await;
        let resources = Value::from(scene.agent.resources().await).to_string();
        assert!(!resources.contains(&scene.uri), "{resources}");
        // Opened again it is another session, which nobody watches.
        let again = open(&scene.agent, &scene.path).await;
        assert_ne!(again, scene.uri);
        while watcher.next().await.is_some() {}
        Human::join(&scene.path).await.splice_cell("c0", 0, 0, "x");
        assert_eq!(watcher.next().await, None);
    }
}

#[tokio::test]
async fn a_file_deleted_under_an_open_notebook_is_told() {
    let scene = scene(Era::Modern, "").await;
    let mut watcher = Watcher::start(&scene.agent, Era::Modern, &[&scene.uri]).await;
    scene
        .agent
        .call("delete_document", json!({ "path": scene.path }))
        .await
        .ok();
    watcher.updated(&scene.uri).await;
    scene.agent.cannot_read(&scene.uri).await;
}

#[tokio::test]
async fn what_is_watched_stays_open_and_closes_when_nobody_watches() {
    for era in ERAS {
        let scene = scene(era, "[sessions]\nidle_timeout = \"500ms\"\n").await;
        let is_open = async || {
            let listed = Agent::connect(&scene.gateway, Era::Modern)
                .await
                .read("notebook://list")
                .await;
            listed["text"].as_str().is_some_and(|text| text.contains(&scene.path))
        };
        let mut watcher = Watcher::start(&scene.agent, era, &[&scene.uri]).await;
        while watcher.next().await.is_some() {}
        assert!(is_open().await, "watched for longer than the idle timeout");
        Human::join(&scene.path).await.splice_cell("c0", 0, 0, "x");
        watcher.updated(&scene.uri).await;
        drop(watcher);
        if era == Era::Legacy {
            let answer = scene
                .agent
                .request("resources/unsubscribe", json!({ "uri": scene.uri }))
                .await;
            assert!(answer["error"].is_null(), "{answer}");
        }
        eventually("it is closed", async || (!is_open().await).then_some(())).await;
    }
}

#[tokio::test]
async fn listing_resources_keeps_none_of_them_open() {
    let scene = scene(Era::Modern, "[sessions]\nidle_timeout = \"500ms\"\n").await;
    eventually("it is closed though it is listed all the time", async || {
        let listed = Value::from(scene.agent.resources().await).to_string();
        (!listed.contains(&scene.uri)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_end_of_a_session_ends_its_subscriptions() {
    let scene = scene(Era::Legacy, "[sessions]\nidle_timeout = \"500ms\"\n").await;
    let watcher = Watcher::start(&scene.agent, Era::Legacy, &[&scene.uri]).await;
    assert!(scene.agent.close().await.is_success());
    watcher.ended().await;
    let other = Agent::connect(&scene.gateway, Era::Modern).await;
    eventually("its notebook is closed", async || {
        let listed = other.read("notebook://list").await;
        (listed["text"] == "[]").then_some(())
    })
    .await;
}

#[tokio::test]
async fn nobody_can_watch_without_end() {
    let scene = scene(Era::Legacy, "").await;
    let mut refused = None;
    for index in 0..300 {
        let uri = format!("notebook://templates/{}", ["mcts", "blank"][index % 2]);
        let agent = Agent::connect(&scene.gateway, Era::Legacy).await;
        for uri in [uri.as_str(), "notebook://list", "notebook://current", &scene.uri] {
            let answer = agent.request("resources/subscribe", json!({ "uri": uri })).await;
            refused = refused.or_else(|| answer["error"]["message"].as_str().map(str::to_owned));
        }
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.expect("a limit");
    assert!(refused.contains("256"), "{refused}");
}

#[tokio::test]
async fn a_gateway_that_leaves_does_not_wait_for_watchers() {
    for era in ERAS {
        let scene = scene(era, "").await;
        let watcher = Watcher::start(&scene.agent, era, &[&scene.uri]).await;
        let started = Instant::now();
        scene.gateway.drain().start();
        watcher.ended().await;
        scene.gateway.gone().await;
        assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    }
}
