//! The store on SQLite and on PostgreSQL, as operators and agents see it.

use serde_json::{Value, json};
use store::{AuditFilter, Store, StoreLimits, file_url};
use test_postgres::TestDatabase;

use crate::support::{
    Agent, Era, Gateway,
    agent::ERAS,
    command::{ended, gateway_command},
    eventually,
    gateway::TOKEN,
    scene::Scene,
    wire::{get, send},
};

fn stored_at(url: &str) -> String {
    format!("[store]\nurl = \"{url}\"")
}

/// Tool, decision and rule of every call that the database has, the oldest first.
async fn audited(url: &str) -> Vec<Value> {
    let store = Store::open(url, StoreLimits::default()).await.unwrap();
    let filter = AuditFilter {
        limit: 100,
        ..AuditFilter::default()
    };
    let mut rows = store.audit(&filter).await.unwrap();
    store.close().await;
    rows.reverse();
    rows.into_iter()
        .map(|row| json!([row.tool, row.decision, row.rule]))
        .collect()
}

async fn readiness(gateway: &Gateway) -> (u16, Value) {
    let request = reqwest::Client::new().get(gateway.url("/readyz")).bearer_auth(TOKEN);
    let answer = send(request).await;
    (answer.status.as_u16(), answer.json())
}

#[tokio::test]
async fn every_call_is_in_the_store_whether_it_was_let_or_not() {
    let (folder, database) = (tempfile::tempdir().unwrap(), TestDatabase::create());
    for url in [file_url(&folder.path().join("gateway.db")), database.url()] {
        let gateway = Gateway::with(&stored_at(&url)).await;
        for era in ERAS {
            let url = gateway.url("/mcp?readonly=true");
            let agent = Agent::connect_to(&url, TOKEN, era).await;
            agent.call("list_servers", json!({})).await.ok();
            agent
                .call("delete_nb_cells", json!({ "path": "x.ipynb" }))
                .await
                .error();
        }
        gateway.drain().start();
        gateway.gone().await;
        let calls = audited(&url).await;
        for of_one_era in calls.chunks(2) {
            let expected = json!([["list_servers", "allow", null], ["delete_nb_cells", "deny", "readonly"]]);
            assert_eq!(json!(of_one_era), expected);
        }
        assert_eq!(calls.len(), 2 * ERAS.len());
    }
}

#[tokio::test]
async fn a_database_that_is_gone_is_told_and_edits_go_on() {
    let database = TestDatabase::create();
    let scene = Scene::notebook(&["1"])
        .with(&stored_at(&database.url()))
        .editing()
        .set()
        .await;
    scene.call("read_nb_cells", json!({})).await.ok();
    assert_eq!(readiness(&scene.gateway).await.1["store"], json!({ "status": "up" }));
    database.refuse_connections();
    let told = eventually("unready", async || {
        let (status, body) = readiness(&scene.gateway).await;
        (status == 503 && body["store"]["error"].is_string()).then_some(body)
    })
    .await;
    assert_eq!(
        (&told["status"], &told["store"]["status"]),
        (&json!("unready"), &json!("down"))
    );
    assert!(!told.to_string().contains("hunter2"), "{told}");
    assert_eq!(
        get(&scene.gateway, "/readyz").await.json()["store"],
        json!({ "status": "down" })
    );
    let cells = json!({ "position": 1, "cells": [{ "content": "2" }] });
    scene.call("insert_nb_cells", cells).await.ok();
    scene.sees(&["1", "2"]).await;
    let error = scene.call("list_executions", json!({})).await.error();
    assert!(error.contains("store") && !error.contains("hunter2"), "{error}");
    database.accept_connections();
    eventually("ready", async || {
        (readiness(&scene.gateway).await.0 == 200).then_some(())
    })
    .await;
    scene.call("list_executions", json!({})).await.ok();
    let metrics = get(&scene.gateway, "/metrics").await.text;
    assert!(metrics.contains("jmg_store_lost_total{"), "{metrics}");
    eventually("the call made meanwhile is recorded", async || {
        let calls = audited(&database.url()).await;
        calls.iter().any(|call| call[0] == "insert_nb_cells").then_some(())
    })
    .await;
}

#[tokio::test]
async fn gateways_that_start_at_once_share_a_database() {
    let database = TestDatabase::create();
    let settings = stored_at(&database.url());
    let (first, second) = tokio::join!(Gateway::with(&settings), Gateway::with(&settings));
    for gateway in [first, second] {
        assert_eq!(readiness(&gateway).await.0, 200);
        let agent = Agent::connect(&gateway, Era::Modern).await;
        agent.call("list_servers", json!({})).await.ok();
        gateway.drain().start();
        gateway.gone().await;
    }
    assert_eq!(audited(&database.url()).await.len(), 2);
}

#[test]
fn a_database_in_postgresql_is_migrated_once_and_one_of_a_newer_version_refused() {
    let database = TestDatabase::create();
    let migrate = || {
        let mut command = gateway_command();
        command.arg("migrate").env("JMG__STORE__URL", database.url());
        ended(command.output().unwrap())
    };
    let (made, again) = (migrate(), migrate());
    assert_eq!(
        (made.code, again.code),
        (Some(0), Some(0)),
        "{}{}",
        made.stderr,
        again.stderr
    );
    assert!(made.stdout.contains(": applied 0001 executions"), "{}", made.stdout);
    assert!(
        !again.stdout.contains("applied") && again.stdout.contains("up to date"),
        "{}",
        again.stdout
    );
    database.sql("INSERT INTO _sqlx_migrations VALUES (9999, 'x', now(), true, '', 0)");
    let newer = migrate();
    assert_eq!(newer.code, Some(70), "{}", newer.stderr);
    assert!(newer.stderr.contains("schema 9999, known up to "), "{}", newer.stderr);
    for said in [made.stdout, again.stdout, newer.stderr] {
        assert!(!said.contains("hunter2"), "{said}");
    }
}
