//! Dashboards and alerts: what they ask for is there, in a gateway that was used, by Prometheus' own judgement.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    path::Path,
    process::Command,
};

use jupyter_mcp_gateway::telemetry::Metrics;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway,
    command::ended,
    eventually,
    gateway::{everything, lab_server, server},
    lab,
    notebook::notebook,
    operator_tools::{Daemon, have_tools, json_of, project, prometheus},
    own_lab::free_port,
};

const CHART: &str = "helm/jupyter-mcp-gateway";
/// Labels that Prometheus itself adds to every series.
const OF_A_SCRAPE: [&str; 2] = ["job", "instance"];
/// Panels that are empty as long as nothing goes wrong that a test cannot have go wrong at will.
const EMPTY_WHEN_WELL: [&str; 2] = [
    "gateway.json: Connections closed by the gateway",
    // There is no collector.
    "gateway.json: Batches for the collector",
];
/// The second query of a panel, likewise.
const LOST_VERSIONS: &str = "jmg_history_lost_total";

/// Metrics with the labels of their series.
type Labels = BTreeMap<String, BTreeSet<String>>;

fn queries() -> Vec<Value> {
    let chart = project(CHART).display().to_string();
    json_of("queries.py", &[&chart]).as_array().unwrap().clone()
}

/// A gateway that was used in every way that its metrics tell of.
async fn used_gateway() -> Gateway {
    let limited = "[[tenants]]\nname = \"limited\"\nrequests_per_minute = 1\nburst = 1\n\
        [[auth.tokens]]\nname = \"eve\"\ntenant = \"limited\"\ntoken = \"token-of-eve\"\n";
    // Nobody listens on the port of `discard`.
    let config = format!(
        "[http]\nmetrics_listen = \"127.0.0.1:0\"\n{}{}{}{limited}",
        lab_server("lab"),
        server("gone", "http://127.0.0.1:9/", ""),
        everything()
    );
    let gateway = Gateway::configured(&config).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let path = lab().folder().write("used.ipynb", &notebook(&["1"]));
    let cells = json!({ "path": path, "position": 0, "cells": [{ "type": "code", "content": "2" }] });
    agent.call("insert_nb_cells", cells).await.ok();
    agent
        .call("read_nb_cells", json!({ "path": "nowhere.ipynb" }))
        .await
        .error();

    let code = json!({ "path": path, "code": "1 + 1" });
    agent.call("run_code", code).await.ok();
    let ready = reqwest::get(gateway.url("/readyz")).await.unwrap();
    assert_eq!(ready.status(), StatusCode::OK);

    let old = Agent::connect(&gateway, Era::Legacy).await;
    old.tools().await;
    // Of a stream that there is not.
    old.listen(Some("00000000-0000-0000-0000-000000000000:1")).await;
    assert_eq!(old.close().await, StatusCode::NO_CONTENT);

    for _ in 0..3 {
        let client = reqwest::Client::new();
        let request = client
            .post(gateway.url("/mcp"))
            .bearer_auth("token-of-eve")
            .json(&json!({}));
        request.send().await.unwrap();
        let stranger = client.get(gateway.url("/healthz")).header("host", "evil.example");
        assert_eq!(stranger.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    }
    gateway
}

async fn scrape(gateway: &Gateway) -> String {
    let answer = reqwest::get(gateway.metrics_url("/metrics")).await.unwrap();
    answer.text().await.unwrap()
}

/// Metrics that exist only after something went wrong.
fn rare() -> String {
    let metrics = Metrics::new("test", None).unwrap();
    metrics.connection_closed("evicted");
    metrics.version_lost();
    metrics.replayed(true);
    metrics.render().unwrap()
}

/// Reads Prometheus' text format.
fn labels_of(text: &str) -> Labels {
    let mut found = Labels::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_once('{').unwrap_or((line.split(' ').next().unwrap(), ""));
        let labels = labels.rsplit_once('}').map_or("", |(labels, _)| labels);
        let names = labels
            .split("\",")
            .filter_map(|label| label.split_once("=\""))
            .map(|(name, _)| name.to_owned());
        found.entry(name.to_owned()).or_default().extend(names);
    }
    found
}

#[tokio::test]
async fn dashboards_and_alerts_ask_for_what_the_gateway_tells() {
    if !have_tools() {
        return;
    }
    let gateway = used_gateway().await;
    let known = eventually("a version is written", async || {
        let text = scrape(&gateway).await;
        text.contains("jmg_history_versions_total")
            .then(|| labels_of(&(text + &rare())))
    })
    .await;
    let queries = queries();
    assert!(queries.len() > 50, "{}", queries.len());
    for query in queries {
        for metric in query["metrics"].as_array().unwrap() {
            let name = metric["name"].as_str().unwrap();
            // Those are Prometheus' own and kube-state-metrics'.
            if name == "up" || name.starts_with("kube_") {
                continue;
            }
            let labels = known
                .get(name)
                .unwrap_or_else(|| panic!("{}: there is no {name}", query["source"]));
            for label in metric["labels"].as_array().unwrap() {
                let label = label.as_str().unwrap();
                let is_there = labels.contains(label) || OF_A_SCRAPE.contains(&label);
                assert!(is_there, "{}: {name} has no {label}, but {labels:?}", query["source"]);
            }
        }
    }
}

#[test]
fn every_metric_of_the_gateway_is_on_a_dashboard() {
    if !have_tools() {
        return;
    }
    let queries = queries();
    let boards = queries
        .iter()
        .filter(|query| query["source"].as_str().unwrap().contains(".json"));
    let shown: BTreeSet<_> = boards
        .flat_map(|query| query["metrics"].as_array().unwrap())
        .map(|metric| metric["name"].as_str().unwrap())
        .collect();
    for (name, _) in labels_of(&rare()) {
        let parts = ["_bucket", "_count", "_sum"].map(|end| name.strip_suffix(end));
        let base = parts.into_iter().flatten().next().unwrap_or(&name);
        let is_shown = shown.iter().any(|shown| shown.starts_with(base));
        assert!(
            is_shown || name == "target_info" || name == "otel_scope_info",
            "{name} is on no dashboard"
        );
    }
}

#[test]
fn every_alert_has_its_paragraph_in_the_runbook() {
    let rules = fs::read_to_string(project(CHART).join("rules/alerts.yaml")).unwrap();
    let runbook = fs::read_to_string(project("docs/runbook.md")).unwrap();
    let alerts: Vec<_> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    assert!(alerts.len() >= 15);
    for alert in &alerts {
        assert!(runbook.contains(&format!("\n## {alert}\n")), "{alert}");
        assert!(
            rules.contains(&format!("docs/runbook.md#{}\n", alert.to_lowercase())),
            "{alert}"
        );
    }
    let paragraphs = runbook.lines().filter_map(|line| line.strip_prefix("## "));
    for paragraph in paragraphs {
        assert!(alerts.contains(&paragraph), "{paragraph} is no alert");
    }
}

#[test]
fn every_alert_fires_and_is_quiet_when_all_is_well() {
    let Some(promtool) = prometheus("promtool") else { return };
    let folder = tempfile::tempdir().unwrap();
    let rules = fs::read_to_string(project(CHART).join("rules/alerts.yaml")).unwrap();
    let tests = fs::read_to_string(project("tests/deploy/alerts.test.yaml")).unwrap();
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(
            tests.contains(&format!("alertname: {alert}\n")),
            "{alert} is not tested"
        );
    }
    fs::write(folder.path().join("alerts.yaml"), rules).unwrap();
    fs::write(folder.path().join("alerts.test.yaml"), tests).unwrap();
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]] {
        let mut command = Command::new(&promtool);
        let tool = ended(command.args(arguments).current_dir(folder.path()).output().unwrap());
        assert_eq!(tool.code, Some(0), "{}{}", tool.stdout, tool.stderr);
    }
}

/// A Prometheus that scrapes a gateway every second, with the alerts loaded.
struct Prometheus {
    port: u16,
    _daemon: Daemon,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(program: &Path, metrics: &str) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let rules = project(CHART).join("rules/alerts.yaml");
        let config = json!({
            "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
            "rule_files": [rules],
            "scrape_configs": [{ "job_name": "jupyter-mcp-gateway", "static_configs": [{ "targets": [metrics] }] }],
        });
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, config.to_string()).unwrap();
        let arguments = [
            format!("--config.file={}", file.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ];
        Self {
            port,
            _daemon: Daemon::start(program, &arguments.each_ref().map(String::as_str)),
            _folder: folder,
        }
    }

    async fn query(&self, expr: &str) -> Option<Value> {
        let url = format!("http://127.0.0.1:{}/api/v1/query", self.port);
        let request = reqwest::Client::new().get(url).query(&[("query", expr)]);
        request.send().await.ok()?.json().await.ok()
    }
}

#[tokio::test]
async fn every_panel_shows_what_a_gateway_did() {
    if !have_tools() {
        return;
    }
    let Some(program) = prometheus("prometheus") else {
        return;
    };
    let gateway = used_gateway().await;
    let address: SocketAddr = gateway.metrics_url("").trim_start_matches("http://").parse().unwrap();
    let prometheus = Prometheus::start(&program, &address.to_string());
    for query in queries() {
        let source = query["source"].as_str().unwrap();
        let expr = query["expr"].as_str().unwrap();
        let may_be_empty = source.starts_with("alert")
            || EMPTY_WHEN_WELL.contains(&source)
            || expr.contains(LOST_VERSIONS) && !expr.contains(" or ");
        eventually(&format!("{source} shows something: {expr}"), async || {
            let answer = prometheus.query(expr).await?;
            assert_eq!(answer["status"], "success", "{source}: {answer}");
            let series = answer["data"]["result"].as_array()?;
            (may_be_empty || !series.is_empty()).then_some(())
        })
        .await;
    }
}
