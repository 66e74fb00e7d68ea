//! `/metrics`: everything that the docs list and nothing else, and no more series than there are names of the gateway's own.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, TOKEN, eventually,
    gateway::{everything, lab_server},
    lab,
    notebook::notebook,
};

/// Names that Prometheus adds: of the target, and of the series of a histogram.
const TARGET: &str = "target_info";
const SUFFIXES: [&str; 3] = ["_bucket", "_sum", "_count"];

async fn scrape(gateway: &Gateway) -> String {
    let answer = reqwest::get(gateway.url("/metrics")).await.expect("an answer");
    answer.text().await.expect("text")
}

/// The names of all metrics of a scrape.
fn names(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut names: BTreeSet<String> = types
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect();
    names.remove(TARGET);
    names
}

/// The names of the second column of the docs' table of metrics, and the attributes of each as Prometheus spells them.
fn documented() -> Vec<(String, BTreeSet<String>)> {
    let docs = include_str!("../../docs/telemetry.md");
    let (_, rest) = docs.split_once("## Metrics").expect("the table of metrics");
    let table = rest.split("\n## ").next().expect("its section");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let attributes = cells[4]
            .split(',')
            .map(|name| name.trim().trim_matches('`').replace('.', "_"));
        (
            cells[2].trim_matches('`').to_owned(),
            attributes.filter(|name| !name.is_empty()).collect(),
        )
    })
    .collect()
}

/// Labels of the samples of a metric.
fn labels(text: &str, name: &str) -> BTreeSet<String> {
    let of_name = |line: &&str| {
        let sample = line.split(['{', ' ']).next().unwrap_or_default();
        sample == name || SUFFIXES.iter().any(|suffix| sample == format!("{name}{suffix}"))
    };
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter(of_name);
    let inner = samples.filter_map(|line| Some(line.split_once('{')?.1.rsplit_once('}')?.0));
    let pairs = inner.flat_map(|labels| labels.split(',').filter_map(|pair| pair.split_once('=')));
    let of_exporter = |label: &str| label == "le" || label.starts_with("otel_scope_");
    pairs
        .map(|(label, _)| label.to_owned())
        .filter(|label| !of_exporter(label))
        .collect()
}

/// Does once whatever is counted only when it happens.
async fn let_everything_happen(gateway: &Gateway) {
    let folder = lab().folder();
    let path = folder.write("n.ipynb", &notebook(&["6 * 7", "1 / 0"]));
    let agent = Agent::connect(gateway, Era::Legacy).await;
    let run = json!({ "path": path, "ranges": [{ "start": 0, "end": 2 }] });
    agent.call("execute_nb_cells", run).await.error();
    agent.close().await;
    let wrong = reqwest::Client::new().post(gateway.url("/mcp")).bearer_auth("wrong");
    assert_eq!(wrong.send().await.expect("an answer").status(), 401);
    let limited = Agent::with_token(gateway, "test-token-of-ben", Era::Modern).await;
    eventually("it is limited", async || {
        let refused = limited.request("tools/list", json!({})).await;
        refused["error"]["message"].is_string().then_some(())
    })
    .await;
}

#[tokio::test]
async fn it_has_what_the_docs_list_and_nothing_else() {
    let ben = "[[tenants]]\nname = \"few\"\nrequests_per_minute = 1\nburst = 2\n\
               [[auth.tokens]]\nname = \"ben\"\ntenant = \"few\"\ntoken = \"test-token-of-ben\"\n";
    let gateway = Gateway::configured(&format!("{}{}{ben}", lab_server("lab"), everything())).await;
    let_everything_happen(&gateway).await;
    let text = eventually("versions are written", async || {
        let text = scrape(&gateway).await;
        text.contains("jmg_execution_duration_seconds_count").then_some(text)
    })
    .await;
    let documented = documented();
    let listed: BTreeSet<String> = documented.iter().map(|(name, _)| name.clone()).collect();
    let mut scraped = names(&text);
    // Only where clients behave badly; the reasons are told by the tests of connections.
    scraped.insert("jmg_http_connections_closed_total".to_owned());
    assert_eq!(scraped, listed, "scraped, and in the docs");
    for (name, attributes) in documented {
        let had = labels(&text, &name);
        assert!(
            had.is_subset(&attributes),
            "{name} has {had:?} and should have {attributes:?}"
        );
    }
}

#[tokio::test]
async fn names_that_clients_make_up_make_no_series() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let make_up = async |round: usize| {
        for number in 0..20 {
            let name = format!("made_up_{round}_{number}");
            agent
                .request("tools/call", json!({ "name": name, "arguments": {} }))
                .await;
            agent.request("prompts/get", json!({ "name": name })).await;
            agent
                .request("resources/read", json!({ "uri": format!("notebook://{name}") }))
                .await;
            agent.call("list_nbs", json!({ "server": name })).await.error();
            agent
                .call("get_nb_stat", json!({ "path": format!("{name}.ipynb") }))
                .await
                .error();
            let stranger = reqwest::Client::new().post(gateway.url("/mcp")).bearer_auth(&name);
            stranger
                .header("mcp-protocol-version", &name)
                .send()
                .await
                .expect("an answer");
            reqwest::get(gateway.url(&format!("/{name}"))).await.expect("an answer");
        }
        let text = scrape(&gateway).await;
        assert!(!text.contains("made_up") && !text.contains(TOKEN), "{text}");
        text.lines().filter(|line| !line.starts_with('#')).count()
    };
    let first = make_up(0).await;
    assert_eq!(make_up(1).await, first, "another round adds none");
}
