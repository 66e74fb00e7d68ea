//! A history whose database is gone, full, damaged or shared: told, and nothing else breaks.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use sqlx::SqlitePool;
use test_postgres::TestDatabase;

use crate::{
    history::{each, edit, id, versions},
    support::{
        Agent, Era, Gateway, Human, eventually,
        gateway::{everything, lab_server},
        lab,
        notebook::notebook,
        process_scene::ProcessScene,
        running::Running,
    },
};

fn on_store(url: &str) -> String {
    format!("[store]\nurl = \"{url}\"\n{}{}", lab_server("lab"), everything())
}

#[tokio::test]
async fn editing_goes_on_without_a_database_and_is_written_afterwards() {
    let database = TestDatabase::create();
    let gateway = Gateway::configured(&on_store(&database.url())).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["a"]));
    edit(&agent, &path, "c0", "before").await;
    eventually("it is written", async || {
        (database.sql("SELECT count(*) FROM versions").trim() == "2").then_some(())
    })
    .await;
    database.refuse_connections();
    for n in 0..3 {
        edit(&agent, &path, "c0", &format!("meanwhile {n}")).await;
    }
    let listed = agent.call("get_document_history", json!({ "path": path })).await.ok();
    let known = listed["versions"].as_array().unwrap().len();
    assert!(
        known >= 3 && listed["note"].as_str().unwrap().contains("cannot be shown"),
        "{listed}"
    );
    let error = agent.call("undo_changes", json!({ "path": path })).await.error();
    assert!(
        error.contains("history cannot be used now") && !error.contains("hunter2"),
        "{error}"
    );
    database.accept_connections();
    eventually("all are written", async || {
        (database.sql("SELECT count(*) FROM versions").trim() == "5").then_some(())
    })
    .await;
    let all = versions(&agent, &path).await;
    assert_eq!(
        each(&all, "kind"),
        ["agent", "agent", "agent", "agent", "opened"],
        "{all:?}"
    );
    agent
        .call("undo_changes", json!({ "path": path, "steps": 3 }))
        .await
        .ok();
    let human = Human::join(&path).await;
    human
        .wait_for("three are taken back", |human| human.sources() == ["before"])
        .await;
}

/// Lets the files of a gateway grow to so many bytes.
fn limit_files(gateway: &Running, bytes: &str) {
    let limit = format!("--fsize={bytes}:unlimited");
    let limited = Command::new("prlimit")
        .args(["--pid", &gateway.pid().to_string(), &limit])
        .status();
    assert!(limited.expect("prlimit, of util-linux").success());
}

#[tokio::test]
async fn editing_goes_on_with_a_full_disk_and_is_written_once_there_is_room() {
    let scene = ProcessScene::new(&["a"]).await;
    let (gateway, agent) = scene.unharmed_by_limits().await;
    let path = scene.path.as_str();
    edit(&agent, path, "c0", "before").await;
    scene.has_versions(2).await;
    limit_files(&gateway, "4096");
    for n in 0..3 {
        edit(&agent, path, "c0", &format!("meanwhile {n}")).await;
    }
    scene
        .human
        .wait_for("people see all edits", |human| human.sources() == ["meanwhile 2"])
        .await;
    let readyz = gateway.url().replace("/mcp", "/readyz");
    let told = eventually("unready", async || {
        let asked = reqwest::Client::new().get(&readyz).bearer_auth(gateway.token());
        let answer = asked.send().await.ok()?;
        (answer.status() == 503).then_some(answer.text().await.ok()?)
    })
    .await;
    assert!(told.contains("\"store\"") && told.contains("error"), "{told}");
    let error = agent.call("undo_changes", json!({ "path": path })).await.error();
    assert!(error.contains("history cannot be used now"), "{error}");
    // Those that wait are shown, and older ones if SQLite can read without making files of its own.
    let listed = agent.call("get_document_history", json!({ "path": path })).await.ok();
    let count = listed["versions"].as_array().map_or(0, Vec::len);
    assert!(
        count == 5 || count == 3 && listed["note"].to_string().contains("cannot be shown now"),
        "{listed}"
    );
    limit_files(&gateway, "unlimited");
    scene.has_versions(5).await;
    let undo = json!({ "path": path, "steps": 3 });
    agent.call("undo_changes", undo).await.ok();
    scene
        .human
        .wait_for("all are taken back", |human| human.sources() == ["before"])
        .await;
}

#[tokio::test]
async fn two_gateways_on_one_database_keep_one_history() {
    let database = TestDatabase::create();
    let config = on_store(&database.url());
    let (here, there) = (Gateway::configured(&config).await, Gateway::configured(&config).await);
    let ana = Agent::connect(&here, Era::Modern).await;
    let bob = Agent::connect(&there, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["a", "b"]));
    let human = Human::join(&path).await;
    for agent in [&ana, &bob] {
        agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    }
    for n in 0..5 {
        let (one, other) = (format!("here {n}"), format!("there {n}"));
        tokio::join!(edit(&ana, &path, "c0", &one), edit(&bob, &path, "c1", &other));
    }
    human
        .wait_for("both have written", |human| human.sources() == ["here 4", "there 4"])
        .await;
    // As long as each waits for the other to write down what it heard of it, and longer.
    tokio::time::sleep(Duration::from_secs(4)).await;
    for agent in [&ana, &bob] {
        let all = versions(agent, &path).await;
        let kinds = each(&all, "kind");
        assert_eq!(kinds, [vec!["agent"; 10], vec!["opened"]].concat(), "{all:?}");
        let diff = agent
            .call("diff_document", json!({ "path": path, "from": id(&all[0]) }))
            .await;
        assert!(diff.text().ends_with("no differences"), "{}", diff.text());
    }
    human.publish("Ben", true);
    human.splice_cell("c0", 0, 0, "typed ");
    let expected = ["typed here 4", "there 4"];
    for agent in [&ana, &bob] {
        eventually("everybody has heard of it", async || {
            let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
            (read["cells"][0]["source"] == expected[0]).then_some(())
        })
        .await;
    }
    // Both are one principal, and each undoes what it did by either gateway.
    let undo = json!({ "path": path, "steps": 10 });
    ana.call("undo_changes", undo).await.ok();
    human
        .wait_for("the agents' edits are taken back", |human| {
            human.sources() == ["typed a", "b"]
        })
        .await;
    // What the person typed is a version before the undo, whichever gateway wrote it down, and is written once.
    let authors = |all: &[Value]| each(&all[..3], "author");
    for agent in [&ana, &bob] {
        let all = eventually("the undo is written", async || {
            let all = versions(agent, &path).await;
            (all[0]["tool"] == "undo_changes").then_some(all)
        })
        .await;
        assert_eq!(authors(&all), ["ana", "Ben", "ana"], "{all:?}");
    }
    // The other gateway takes the undo back, and goes back further than that.
    bob.call("undo_changes", json!({ "path": path, "redo": true }))
        .await
        .ok();
    human
        .wait_for("they are back", |human| human.sources() == ["typed here 4", "there 4"])
        .await;
    let all = versions(&bob, &path).await;
    let first = all.last().expect("versions");
    let restore = json!({ "path": path, "version_id": id(first) });
    bob.call("restore_document_version", restore).await.ok();
    human
        .wait_for("it is as it was", |human| human.sources() == ["a", "b"])
        .await;
    ana.call("undo_changes", json!({ "path": path })).await.ok();
    human
        .wait_for("that is taken back by the first", |human| {
            human.sources() == ["typed here 4", "there 4"]
        })
        .await;
    // Longer than each waits before it writes down what it only heard of.
    tokio::time::sleep(Duration::from_secs(4)).await;
    for agent in [&ana, &bob] {
        let all = versions(agent, &path).await;
        let tools = each(&all[..5], "tool");
        let expected = [
            "undo_changes",
            "restore_document_version",
            "undo_changes",
            "undo_changes",
            "",
        ];
        assert_eq!(
            (tools.as_slice(), all.len()),
            (&expected.map(str::to_owned)[..], 16),
            "{all:?}"
        );
    }
}

/// A gateway on a database in a file, and an agent that has edited a notebook there.
async fn on_file(edits: usize) -> (tempfile::TempDir, String, Gateway, Agent, lab::Folder, String) {
    let dir = tempfile::tempdir().unwrap();
    let url = store::file_url(&dir.path().join("history.db"));
    let gateway = Gateway::configured(&on_store(&url)).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let folder = lab().folder();
    let path = folder.write("a.ipynb", &notebook(&["a"]));
    for n in 0..edits {
        edit(&agent, &path, "c0", &format!("edit {n}")).await;
    }
    let pool = SqlitePool::connect(&url).await.unwrap();
    eventually("all are written", async || {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM versions")
            .fetch_one(&pool)
            .await
            .ok()?;
        (count == i64::try_from(edits).unwrap() + 1).then_some(())
    })
    .await;
    pool.close().await;
    (dir, url, gateway, agent, folder, path)
}

#[tokio::test]
async fn damaged_versions_are_told_and_the_others_stay() {
    let (_dir, url, _gateway, agent, _folder, path) = on_file(4).await;
    let all = versions(&agent, &path).await;
    let pool = SqlitePool::connect(&url).await.unwrap();
    sqlx::query("UPDATE versions SET delta = x'0100ff' WHERE version_id = $1")
        .bind(id(&all[1]))
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(versions(&agent, &path).await.len(), 5);
    let restore = |version: &Value| json!({ "path": path, "version_id": version["version_id"] });
    let error = agent.call("restore_document_version", restore(&all[1])).await.error();
    assert!(error.contains("cannot be read") && error.contains("damaged"), "{error}");
    agent.call("restore_document_version", restore(&all[2])).await.ok();
    sqlx::query("UPDATE versions SET authors = 'no json' WHERE version_id = $1")
        .bind(id(&all[3]))
        .execute(&pool)
        .await
        .unwrap();
    assert_eq!(
        versions(&agent, &path).await.len(),
        5,
        "one more, and one that cannot be read"
    );
    edit(&agent, &path, "c0", "it goes on").await;
    pool.close().await;
}

#[tokio::test]
async fn a_history_that_cannot_be_read_begins_anew() {
    let (_dir, url, gateway, agent, _folder, path) = on_file(2).await;
    agent.call("end_nb_session", json!({ "path": path })).await.ok();
    let pool = SqlitePool::connect(&url).await.unwrap();
    for damage in [
        "UPDATE snapshots SET content = x'00'",
        "UPDATE versions SET delta = x'00'",
    ] {
        sqlx::query(damage).execute(&pool).await.unwrap();
    }
    pool.close().await;
    edit(&agent, &path, "c0", "after").await;
    let all = eventually("a new beginning", async || {
        let all = versions(&agent, &path).await;
        (all[1]["kind"] == "opened").then_some(all)
    })
    .await;
    assert_eq!(
        each(&all, "kind"),
        ["agent", "opened", "agent", "agent", "opened"],
        "{all:?}"
    );
    agent.call("undo_changes", json!({ "path": path })).await.ok();
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cells"][0]["source"], "edit 1");
    drop(gateway);
}

#[tokio::test]
async fn a_clock_that_was_set_back_changes_nothing() {
    let (_dir, url, _gateway, agent, _folder, path) = on_file(2).await;
    let pool = SqlitePool::connect(&url).await.unwrap();
    // As if what is written until now had been written by a clock that was a day ahead.
    let ahead = "UPDATE versions SET time = time + 86400000000";
    sqlx::query(ahead).execute(&pool).await.unwrap();
    pool.close().await;
    edit(&agent, &path, "c0", "later").await;
    let all = versions(&agent, &path).await;
    assert_eq!(all.len(), 4);
    assert!(all[0]["timestamp"].as_str() < all[1]["timestamp"].as_str(), "{all:?}");
    agent
        .call("undo_changes", json!({ "path": path, "steps": 2 }))
        .await
        .ok();
    let read = agent.call("read_nb_cells", json!({ "path": path })).await.ok();
    assert_eq!(read["cells"][0]["source"], "edit 0");
}
