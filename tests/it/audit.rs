//! The record of every call, as the log has it.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Agent,
    agent::ERAS,
    eventually,
    gateway::lab_server,
    running::{Home, Running},
};

const CONFIG: &str = r#"
[[tenants]]
name = "research"
[[auth.tokens]]
name = "ana"
tenant = "research"
token = "token-of-ana"
permissions = ["read", "write"]
paths = ["mine/**"]
"#;

/// Starts a gateway that logs records.
async fn audited(home: &Home) -> Running {
    let file = home.path("gateway.toml");
    let config = format!("store.url = \"sqlite::memory:\"\n{}{CONFIG}", lab_server("lab"));
    fs::write(&file, config).unwrap();
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    command.env("JMG__TELEMETRY__LOG_LEVEL", "info,audit=debug");
    command.env("JMG__TELEMETRY__LOG_FORMAT", "json");
    Running::start(command).await
}

#[tokio::test]
async fn every_call_is_recorded_with_who_made_it_and_whether_it_was_let() {
    let home = Home::new();
    let gateway = audited(&home).await;
    for (past, era) in ERAS.into_iter().enumerate() {
        let agent = Agent::connect_to(gateway.url(), "token-of-ana", era).await;
        agent.call("list_servers", json!({})).await.ok();
        agent.call("run_code", json!({ "code": "'a secret'" })).await.error();
        // However a model spells it.
        let theirs = json!({ "server": "lab", "notebookPath": "theirs/x.ipynb" });
        agent.call("read_nb_cells", theirs).await.error();
        let found = eventually("the records", async || {
            let records = records(&gateway.log());
            (records.len() == 3 * (past + 1)).then(|| records[3 * past..].to_vec())
        })
        .await;
        let told: Vec<_> = found
            .iter()
            .map(|record| [&record["tool"], &record["decision"], &record["rule"], &record["path"]])
            .collect();
        assert_eq!(
            json!(told),
            json!([
                ["list_servers", "allowed", null, null],
                ["run_code", "denied", "execute", null],
                ["read_nb_cells", "denied", "paths", "theirs/x.ipynb"],
            ]),
            "{era:?}"
        );
        for record in &found {
            assert_eq!(
                (&record["principal"], &record["tenant"]),
                (&json!("token:ana"), &json!("research"))
            );
            assert_eq!(record["address"], "127.0.0.1");
            assert!(
                record["request_id"].as_str().is_some_and(|id| !id.is_empty()),
                "{record}"
            );
        }
    }
    assert!(!gateway.logged("a secret"));
}

#[tokio::test]
async fn tools_that_a_connection_does_not_have_are_recorded_as_denied() {
    let home = Home::new();
    let gateway = audited(&home).await;
    let url = format!("{}?toolsets=notebook&readonly=true", gateway.url());
    for (past, era) in ERAS.into_iter().enumerate() {
        let agent = Agent::connect_to(&url, "token-of-ana", era).await;
        let path = json!({ "path": "mine/x.ipynb" });
        agent.call("list_documents", json!({ "path": "mine" })).await.error();
        agent.call("delete_nb_cells", path.clone()).await.error();
        let unknown = json!({ "name": "x".repeat(200), "arguments": path });
        let answer = agent.request("tools/call", unknown).await;
        assert!(answer["error"]["message"].is_string(), "{answer}");
        let found = eventually("the records", async || {
            let records = records(&gateway.log());
            (records.len() == 3 * (past + 1)).then(|| records[3 * past..].to_vec())
        })
        .await;
        let told: Vec<_> = found
            .iter()
            .map(|record| {
                assert_eq!(
                    (&record["principal"], &record["decision"], &record["outcome"]),
                    (&json!("token:ana"), &json!("denied"), &json!("Failed"))
                );
                [&record["tool"], &record["rule"], &record["path"]]
            })
            .collect();
        assert_eq!(
            json!(told),
            json!([
                ["list_documents", "toolset", "mine"],
                ["delete_nb_cells", "readonly", "mine/x.ipynb"],
                ["x".repeat(100), "unknown", "mine/x.ipynb"],
            ]),
            "{era:?}"
        );
    }
}

fn records(log: &str) -> Vec<Value> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "audit").collect()
}
