//! What must be told to nobody: tokens of every kind, sources, outputs and what people answer. The gateway logs as much as an
//! operator may ask for, and sends logs, spans and metrics to a collector, while callers of three kinds work and fail.

use std::fs;

use reqwest::Client;
use serde_json::json;

use crate::support::{
    Agent, Era,
    agent::ERAS,
    collector::Collector,
    eventually,
    gateway::lab_server,
    hub::hub,
    lab,
    notebook::notebook,
    provider::Provider,
    running::{Home, Running},
    wire::initialize,
};

const OWN: &str = "unspeakable-own-token";
const BAD: &str = "unspeakable-bad-token";
const AUDIENCE: &str = "https://mcp.example.org/mcp";
/// What is in sources, in outputs (which no source has as it is), in an answer to a question and in an edit.
const SOURCE: &str = "unspeakable_source";
const OUTPUT: &str = "UNSPEAKABLE_OUTPUT";
const ANSWER: &str = "unspeakable-answer";
const EDIT: &str = "unspeakable-edit";
const QUERY: &str = "unspeakable-query";

fn sources() -> [String; 3] {
    [
        format!("print('{SOURCE}'[:11].upper() + '_OUTPUT')"),
        format!("raise ValueError('{SOURCE}'[:11].upper() + '_OUTPUT')"),
        format!("{SOURCE} = input('Who? ')"),
    ]
}

/// Works on a notebook with all that is in it.
async fn work(agent: &Agent, path: &str) {
    let run = async |start: usize| {
        let run = json!({ "path": path, "ranges": [{ "start": start }], "timeout": 60 });
        agent.call("execute_nb_cells", run).await.structured
    };
    let printed = run(0).await;
    assert!(printed.to_string().contains(OUTPUT), "{printed}");
    let raised = run(1).await;
    assert!(raised.to_string().contains(OUTPUT), "{raised}");
    let asked = run(2).await;
    assert_eq!(asked["status"], "input_required", "{asked}");
    let answer = json!({ "execution_id": asked["execution_id"], "input": ANSWER, "wait": 30 });
    assert_eq!(agent.call("get_execution", answer).await.ok()["status"], "completed");
    let cells = json!([{ "type": "code", "content": EDIT }]);
    let insert = json!({ "path": path, "position": 3, "cells": cells, "exec": false });
    agent.call("insert_nb_cells", insert).await.ok();
    // Some of it fails, which is told in more words.
    let edit = json!({ "path": path, "index": 0, "old_text": EDIT, "new_text": SOURCE, "exec": false });
    agent.call("edit_nb_cell", edit).await.error();
    agent.call("search_documents", json!({ "query": QUERY })).await.ok();
    let code = format!("{SOURCE}\n{OUTPUT}");
    agent.call("run_code", json!({ "code": code, "path": path })).await;
    agent
        .call("run_code", json!({ "code": code, "kernel_name": "no-such-kernel" }))
        .await
        .error();
    agent.call("run_code", json!({ "code": [SOURCE] })).await.error();
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_in_no_log_span_or_metric() {
    let (collector, provider, hub) = (Collector::start().await, Provider::start().await, hub().await);
    let client = provider.register("https://client.example.org/callback").await;
    provider.token_claims(json!({ "tenant": "research" })).await;
    let of_provider = provider
        .token(&client, AUDIENCE, "jupyter:read jupyter:write jupyter:execute")
        .await;
    let user = hub.user("olm").await;
    user.start().await;
    let (folder, home) = (lab().folder(), Home::new());
    let file = home.path("gateway.toml");
    let config = format!(
        "store.url = \"{}\"\naudit.file = \"{}\"\n{}[[tenants]]\nname = \"research\"\nservers = [\"lab\"]\n[[tenants]]\nname = \"hub\"\n\
         [[auth.tokens]]\nname = \"ana\"\ntenant = \"research\"\ntoken = \"{OWN}\"\n\
         [auth.jwt]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n\
         [auth.jupyterhub]\nurl = \"{}hub/api\"\ntenant = \"hub\"\n",
        store::file_url(&home.path("gateway.db")),
        home.path("audit.jsonl").display(),
        lab_server("lab"),
        provider.issuer(),
        hub.url(),
    );
    fs::write(&file, config).expect("a config");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    command
        .env("JMG__TELEMETRY__OTLP_ENDPOINT", collector.url())
        .env("JMG__TELEMETRY__OTLP_LOGS", "true")
        .env("JMG__TELEMETRY__LOG_LEVEL", "debug")
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
        .env("OTEL_BLRP_SCHEDULE_DELAY", "100")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "500");
    let gateway = Running::start(command).await;
    let sources = sources();
    let cells: Vec<&str> = sources.iter().map(String::as_str).collect();
    for (token, era) in [(OWN, Era::Modern), (&*of_provider, Era::Legacy)] {
        let path = folder.write(&format!("{era:?}.ipynb"), &notebook(&cells));
        work(&Agent::connect_to(gateway.url(), token, era).await, &path).await;
    }
    fs::write(user.home().join("n.ipynb"), notebook(&cells)).expect("a file");
    work(
        &Agent::connect_to(gateway.url(), &user.token, Era::Modern).await,
        "n.ipynb",
    )
    .await;
    for _ in ERAS {
        let request = Client::new().post(gateway.url()).bearer_auth(BAD).body(initialize());
        assert_eq!(request.send().await.expect("an answer").status(), 401);
    }
    // A signature makes a token; what is before it says whose it is.
    let signature = of_provider.rsplit('.').next().expect("a signature").to_owned();
    let metrics = gateway.url().replace("/mcp", "/metrics");
    let metrics = reqwest::get(metrics)
        .await
        .expect("metrics")
        .text()
        .await
        .expect("text");
    assert!(metrics.contains("jmg_http_rejections_total"), "{metrics}");
    collector.metric("jmg.execution.duration").await;
    eventually("the end of a run is told", async || {
        let mut spans = collector.spans().into_iter();
        spans.any(|span| span.name == "execution").then_some(())
    })
    .await;
    gateway.signal("-TERM");
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines = ended.stderr.lines();
    assert!(
        lines.filter(|line| line.contains("DEBUG")).count() > 50,
        "{}",
        ended.stderr
    );
    let audit = fs::read_to_string(home.path("audit.jsonl")).expect("records");
    assert!(audit.contains("execute_nb_cells"), "{audit}");
    for (place, told) in [
        ("the log", &ended.stderr),
        ("the output", &ended.stdout),
        ("what the collector got", &collector.text()),
        ("the metrics", &metrics),
        ("the audit", &audit),
    ] {
        for secret in [
            OWN,
            BAD,
            &user.token,
            &*signature,
            lab().token(),
            SOURCE,
            OUTPUT,
            ANSWER,
            EDIT,
            QUERY,
        ] {
            let line = told.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{secret} is in {place}: {line:?}");
        }
    }
}
