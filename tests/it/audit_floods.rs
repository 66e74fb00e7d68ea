//! Floods of requests that nobody can be told from: their records are few, count all of them, and are in nobody's way.

use std::{fs, sync::Arc};

use futures::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use store::file_url;

use crate::support::{
    Agent, Era, Gateway,
    command::run_beside,
    gateway::lab_server,
    wire::{get, initialize},
};

const FLOOD: u64 = 5000;
const CLIENTS: u64 = 20;
/// Records of their own that an address gets for a reason in a minute.
const SINGLE: u64 = 10;

const TENANT: &str = "[[tenants]]\nname = \"research\"\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"research\"\ntoken = \"token-of-ana\"\npaths = [\"mine/**\"]\n";

/// Bad logins from an address; how often each status was the answer.
async fn flood(gateway: &Gateway) -> (u64, u64) {
    let url: Arc<str> = gateway.url("/mcp").into();
    let clients = (0..CLIENTS).map(|client| {
        let url = Arc::clone(&url);
        tokio::spawn(async move {
            let http = Client::new();
            let (mut unknown, mut limited) = (0, 0);
            for attempt in 0..FLOOD / CLIENTS {
                let request = http.post(&*url).bearer_auth(format!("guess-{client}-{attempt}"));
                match request.body(initialize()).send().await.unwrap().status().as_u16() {
                    401 => unknown += 1,
                    429 => limited += 1,
                    other => panic!("{other}"),
                }
            }
            (unknown, limited)
        })
    });
    let counted = join_all(clients).await;
    counted
        .into_iter()
        .map(Result::unwrap)
        .fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
}

/// The value of a metric's series.
fn metric(metrics: &str, series: &str) -> u64 {
    let line = metrics.lines().find(|line| line.starts_with(series));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_bad_logins_is_a_few_records_that_count_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let (file, config) = (folder.path().join("audit.jsonl"), folder.path().join("gateway.toml"));
    let text = format!(
        "[store]\nurl = {:?}\naudit_max = 1000\n[audit]\nfile = {:?}\n{}{TENANT}",
        file_url(&folder.path().join("gateway.db")),
        file.display().to_string(),
        lab_server("lab")
    );
    fs::write(&config, &text).unwrap();
    let gateway = Gateway::configured(&text).await;
    let agent = Agent::with_token(&gateway, "token-of-ana", Era::Modern).await;
    let works = async || {
        agent.call("list_servers", json!({})).await.ok();
        let theirs = json!({ "path": "theirs/x.ipynb" });
        agent.call("read_nb_cells", theirs).await.error();
    };
    works().await;
    let (unknown, limited) = flood(&gateway).await;
    assert_eq!((unknown + limited, unknown), (FLOOD, 100), "the limit on failed logins");
    works().await;
    let metrics = get(&gateway, "/metrics").await.text;
    let refused = ["token_unknown", "limited"].map(|reason| {
        let series = format!("jmg_http_rejections_total{{reason=\"{reason}\"");
        metric(&metrics, &series)
    });
    assert_eq!(refused.iter().sum::<u64>(), FLOOD, "{metrics}");
    gateway.drain().start();
    gateway.gone().await;

    let in_file = fs::read_to_string(&file).unwrap();
    let arguments = ["audit", "--config", config.to_str().unwrap(), "--json"];
    let in_store = run_beside(&arguments).await.stdout;
    for told in [in_file, in_store] {
        let rows: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (logins, calls): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["tool"] == "login");
        let counts: Vec<u64> = logins.iter().map(|row| row["count"].as_u64().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u64>(), FLOOD, "{counts:?}");
        // The flood may have been at the turn of a minute.
        assert!(counts.len() as u64 <= 2 * (SINGLE + 1), "{counts:?}");
        for row in logins {
            assert_eq!(
                json!([row["decision"], row["rule"], row["address"], row["principal"]]),
                json!(["deny", "token_unknown", "127.0.0.1", null]),
                "{row}"
            );
        }
        let mut calls: Vec<_> = calls
            .iter()
            .map(|row| json!([row["tool"], row["decision"], row["rule"], row["count"]]).to_string())
            .collect();
        calls.sort();
        let (listed, read) = (
            json!(["list_servers", "allow", null, 1]).to_string(),
            json!(["read_nb_cells", "deny", "paths", 1]).to_string(),
        );
        assert_eq!(calls, [listed.clone(), listed, read.clone(), read]);
    }
}
