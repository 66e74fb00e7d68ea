//! Dashboards and alerts: what they ask for is there, in a gateway that was used, by Prometheus' own judgement.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::Command,
};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::support::{
    Agent, Era, TOKEN,
    collector::Collector,
    command::ended,
    eventually,
    gateway::{everything, lab_server, server},
    lab,
    notebook::notebook,
    operator_tools::{Daemon, have_tools, json_of, node, node_tools, of_debian, project},
    own_lab::free_port,
    running::{Home, Running},
};

const CHART: &str = "helm/jupyter-mcp-gateway";
const DASHBOARDS: [&str; 2] = ["gateway", "tools"];
/// Labels that Prometheus itself adds to every series.
const OF_A_SCRAPE: [&str; 2] = ["job", "instance"];
/// Connections of one address that the used gateway has places for.
const PLACES: usize = 48;

/// Metrics with the labels of their series.
type Labels = BTreeMap<String, BTreeSet<String>>;

fn queries() -> Vec<Value> {
    let chart = project(CHART).display().to_string();
    json_of("queries.py", &[&chart]).as_array().unwrap().clone()
}

/// The gateway's binary, after it was used in every way that its metrics tell of.
struct UsedGateway {
    running: Running,
    /// Where its metrics are.
    metrics: String,
    _home: Home,
    _collector: Collector,
}

impl UsedGateway {
    async fn start() -> Self {
        let (home, collector, port) = (Home::new(), Collector::start().await, free_port());
        let limited = "[[tenants]]\nname = \"limited\"\nrequests_per_minute = 1\nburst = 1\n\
            [[auth.tokens]]\nname = \"eve\"\ntenant = \"limited\"\ntoken = \"token-of-eve\"\n";
        // Nobody listens on the port of `discard`.
        let config = format!(
            "[http]\nmetrics_listen = \"127.0.0.1:{port}\"\nmax_connections_per_address = {PLACES}\n\
             [telemetry]\notlp_endpoint = \"{}\"\n{}{}{}{limited}",
            collector.url(),
            lab_server("lab"),
            server("gone", "http://127.0.0.1:9/", ""),
            everything()
        );
        fs::write(home.path("gateway.toml"), config).unwrap();
        let mut command = home.serve_on("127.0.0.1:0");
        command.arg("--config").arg(home.path("gateway.toml"));
        command.env("OTEL_BSP_SCHEDULE_DELAY", "200");
        let gateway = Self {
            running: Running::start(command).await,
            metrics: format!("127.0.0.1:{port}"),
            _home: home,
            _collector: collector,
        };
        gateway.use_it().await;
        gateway
    }

    fn url(&self, path: &str) -> String {
        self.running.url().replace("/mcp", path)
    }

    async fn use_it(&self) {
        let agent = Agent::connect_to(self.running.url(), TOKEN, Era::Modern).await;
        let path = lab().folder().write("used.ipynb", &notebook(&["1"]));
        let cells = json!({ "path": path, "position": 0, "cells": [{ "type": "code", "content": "2" }] });
        agent.call("insert_nb_cells", cells).await.ok();
        agent
            .call("read_nb_cells", json!({ "path": "nowhere.ipynb" }))
            .await
            .error();

        let code = json!({ "path": path, "code": "1 + 1" });
        agent.call("run_code", code).await.ok();
        let ready = reqwest::get(self.url("/readyz")).await.unwrap();
        assert_eq!(ready.status(), StatusCode::OK);

        let old = Agent::connect_to(self.running.url(), TOKEN, Era::Legacy).await;
        old.tools().await;
        // Of a stream that there is not.
        old.listen(Some("00000000-0000-0000-0000-000000000000:1")).await;
        assert_eq!(old.close().await, StatusCode::NO_CONTENT);

        let client = Client::new();
        for _ in 0..3 {
            let request = client.post(self.running.url()).bearer_auth("token-of-eve");
            request.json(&json!({})).send().await.unwrap();
            let stranger = client.get(self.url("/healthz")).header("host", "evil.example");
            assert_eq!(stranger.send().await.unwrap().status(), StatusCode::FORBIDDEN);
        }
        // More than there are places for.
        let address = self.url("").replace("http://", "");
        let mut silent = Vec::new();
        for _ in 0..=PLACES {
            silent.push(TcpStream::connect(&address).await.unwrap());
        }
        for done in [
            "jmg_http_connections_closed_total{",
            "jmg_telemetry_exports_total{",
            "jmg_execution_duration_seconds_count{",
        ] {
            eventually(done, async || self.scraped().await.contains(done).then_some(())).await;
        }
    }

    async fn scraped(&self) -> String {
        let answer = reqwest::get(format!("http://{}/metrics", self.metrics)).await.unwrap();
        answer.text().await.unwrap()
    }
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

/// What is asked for is there, and what is there is asked for.
fn fit_together(queries: &[Value], known: &Labels) {
    assert!(queries.len() > 50, "{}", queries.len());
    let mut shown = BTreeSet::new();
    for query in queries {
        let source = query["source"].as_str().unwrap();
        for metric in query["metrics"].as_array().unwrap() {
            let name = metric["name"].as_str().unwrap();
            if source.contains(".json") {
                shown.insert(name);
            }
            // Those are Prometheus' own and kube-state-metrics'.
            if name == "up" || name.starts_with("kube_") {
                continue;
            }
            let labels = known
                .get(name)
                .unwrap_or_else(|| panic!("{source}: there is no {name}"));
            for label in metric["labels"].as_array().unwrap() {
                let label = label.as_str().unwrap();
                let is_there = labels.contains(label) || OF_A_SCRAPE.contains(&label);
                assert!(is_there, "{source}: {name} has no {label}, but {labels:?}");
            }
        }
    }
    for name in known.keys().filter(|name| !name.is_empty()) {
        let parts = ["_bucket", "_count", "_sum"].map(|end| name.strip_suffix(end));
        let base = parts.into_iter().flatten().next().unwrap_or(name);
        let is_shown = shown.iter().any(|shown| shown.starts_with(base));
        assert!(
            is_shown || ["target_info", "otel_scope_info"].contains(&name.as_str()),
            "{name} is on no dashboard"
        );
    }
}

#[tokio::test]
async fn every_panel_shows_what_a_gateway_did() {
    if !have_tools() {
        return;
    }
    let (gateway, queries) = (UsedGateway::start().await, queries());
    fit_together(&queries, &labels_of(&gateway.scraped().await));
    let Some(program) = of_debian("prometheus", "prometheus") else {
        return;
    };
    let prometheus = Prometheus::start(&program, &gateway.metrics);
    for query in queries {
        let source = query["source"].as_str().unwrap();
        let expr = query["expr"].as_str().unwrap();
        eventually(&format!("{source} shows something: {expr}"), async || {
            let answer = prometheus.query(expr).await?;
            assert_eq!(answer["status"], "success", "{source}: {answer}");
            let series = answer["data"]["result"].as_array()?;
            // An alert is well if it is empty.
            (source.starts_with("alert") || !series.is_empty()).then_some(())
        })
        .await;
    }
}

/// What Grafana's types say of a dashboard.
fn type_checked(board: &str) -> (Option<i32>, String) {
    let (folder, modules) = (tempfile::tempdir().unwrap(), node_tools());
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    fs::copy(
        project("tests/deploy/dashboards.ts"),
        folder.path().join("dashboards.ts"),
    )
    .unwrap();
    let board = format!(
        "import type {{ Board }} from \"./dashboards\";\nexport const board = {} satisfies Board;\n",
        board.trim_end()
    );
    fs::write(folder.path().join("board.ts"), board).unwrap();
    let mut compile = node(&modules.join("typescript/lib/tsc.js"));
    let options =
        "--noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler --target esnext board.ts";
    let compiled = compile.args(options.split(' ')).current_dir(folder.path()).output();
    let compiled = ended(compiled.unwrap());
    (compiled.code, compiled.stdout)
}

#[test]
fn dashboards_have_grafanas_types() {
    for name in DASHBOARDS {
        let board = fs::read_to_string(project(CHART).join(format!("dashboards/{name}.json"))).unwrap();
        let (code, said) = type_checked(&board);
        assert_eq!(code, Some(0), "{name}: {said}");
    }
    let board = fs::read_to_string(project(CHART).join("dashboards/gateway.json")).unwrap();
    for (right, wrong) in [
        ("\"displayMode\": \"list\"", "\"displayMode\": \"lists\""),
        ("\"graphMode\"", "\"graphmode\""),
        ("\"expr\"", "\"query\""),
    ] {
        let (code, said) = type_checked(&board.replacen(right, wrong, 1));
        let word = wrong.split('"').nth_back(1).unwrap();
        assert!(code != Some(0) && said.contains(word), "{wrong}: {said}");
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
    let Some(promtool) = of_debian("prometheus", "promtool") else {
        return;
    };
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
        let request = Client::new().get(url).query(&[("query", expr)]);
        request.send().await.ok()?.json().await.ok()
    }
}
