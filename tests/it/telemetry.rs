//! Signals of the gateway's binary to an OpenTelemetry collector, by either protocol and of clients of either era, and what
//! it does when there is none.

use std::process::Command;

use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use serde_json::{Value, json};

use crate::support::{
    Agent, Era,
    collector::{Collector, attributes, hex},
    command::{ended, gateway_command},
    eventually, lab,
    lab::Folder,
    notebook::notebook,
    running::{Home, Running},
    tap::Tap,
};

const CLIENT_SPAN: &str = "00f067aa0ba902b7";
/// Words in a cell's source and its output that must be nowhere else.
const SOURCE: &str = "unspeakable-source";
const OUTPUT: &str = "UNSPEAKABLE-OUTPUT";

/// A gateway that tells a collector soon.
fn telling(home: &Home, url: &str, collector: &str) -> Command {
    let mut command = home.serve_for(url, lab().token());
    command
        .env("JMG__TELEMETRY__OTLP_ENDPOINT", collector)
        .env("OTEL_BSP_SCHEDULE_DELAY", "100")
        .env("OTEL_BLRP_SCHEDULE_DELAY", "100")
        .env("OTEL_METRIC_EXPORT_INTERVAL", "500");
    command
}

async fn connect(gateway: &Running, era: Era) -> Agent {
    Agent::connect_to(gateway.url(), gateway.token(), era).await
}

/// A call within a trace of the client's.
async fn call(agent: &Agent, trace_id: &str, tool: &str, arguments: Value) -> Value {
    let meta = json!({
        "traceparent": format!("00-{trace_id}-{CLIENT_SPAN}-01"),
        "tracestate": "vendor=opaque",
        "baggage": "team=blue",
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let answer = agent.request("tools/call", params).await;
    assert!(answer["result"]["isError"] != true, "{answer}");
    answer["result"]["structuredContent"].clone()
}

fn secretive() -> (Folder, String) {
    let folder = lab().folder();
    let path = folder.write(
        "n.ipynb",
        &notebook(&[&format!("print('{SOURCE}'[:11].upper() + '-OUTPUT')")]),
    );
    (folder, path)
}

/// One trace goes from the client's message through the gateway to the kernel and to Jupyter's REST.
async fn one_trace(era: Era, trace_id: &str, protocol: &str) {
    let (collector, tap) = (Collector::start().await, Tap::on(lab().address()).await);
    let ((_folder, path), home) = (secretive(), Home::new());
    let mut command = telling(&home, &tap.url(), &collector.url());
    command
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        .env("JMG__TELEMETRY__SERVICE_NAME", "gateway-under-test")
        .env("JMG__TELEMETRY__OTLP_LOGS", "true")
        .env("JMG__TELEMETRY__LOG_LEVEL", "info,audit=debug");
    let gateway = Running::start(command).await;
    let agent = connect(&gateway, era).await;
    let run = json!({ "path": path, "ranges": [{ "start": 0 }] });
    let ran = call(&agent, trace_id, "execute_nb_cells", run).await;
    assert_eq!(ran["status"], "completed", "{ran}");
    assert!(ran.to_string().contains(OUTPUT), "{ran}");

    let operation = collector.span(trace_id, "tools/call execute_nb_cells").await;
    assert_eq!(
        hex(&operation.parent_span_id),
        CLIENT_SPAN,
        "the client's span is its parent"
    );
    assert_eq!(operation.kind, SpanKind::Server as i32);
    assert_eq!(operation.trace_state, "vendor=opaque");
    let told = attributes(&operation.attributes);
    assert_eq!(told["mcp.method.name"], "tools/call");
    assert_eq!(told["gen_ai.tool.name"], "execute_nb_cells");
    assert_eq!(told["gen_ai.operation.name"], "execute_tool");
    assert_eq!(told.contains_key("mcp.session.id"), era == Era::Legacy, "{told:?}");
    let request = linked(&collector, &operation, "POST /mcp").await;
    assert_ne!(hex(&request.trace_id), trace_id, "the request is a trace of its own");

    let execution = collector.span(trace_id, "execution").await;
    assert_eq!(execution.parent_span_id, operation.span_id);
    assert_eq!(execution.links[0].span_id, operation.span_id);
    assert_eq!(attributes(&execution.attributes)["jmg.execution.status"], "completed");
    let kernel = collector.span(trace_id, "execute_request").await;
    assert_eq!(kernel.parent_span_id, execution.span_id);
    assert_eq!(kernel.kind, SpanKind::Client as i32);
    let room = collector.span(trace_id, "open document").await;
    assert_eq!(attributes(&room.attributes)["jmg.document.path"], path);
    let asked = collector.span(trace_id, "GET").await;
    let told = attributes(&asked.attributes);
    assert_eq!(
        (told["http.request.method"].as_str(), asked.kind),
        ("GET", SpanKind::Client as i32)
    );
    assert!(tap.was_told(&format!("traceparent: 00-{trace_id}-{}-01", hex(&asked.span_id))));
    assert!(tap.was_told("tracestate: vendor=opaque") && tap.was_told("baggage: team=blue"));

    for metric in [
        "mcp.server.operation.duration",
        "jmg.execution.duration",
        "process.memory.usage",
    ] {
        collector.metric(metric).await;
    }
    let line = collector.log("a call was made").await;
    assert_eq!(
        hex(&line.trace_id),
        trace_id,
        "a line belongs to the trace in which it was written"
    );
    let resource = collector.resource();
    assert_eq!(resource["service.name"], "gateway-under-test");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert!(collector.has_header("x-team", "blue"));
    let token = gateway.token().to_owned();
    gateway.signal("-TERM");
    assert_eq!(gateway.ended().await.code, Some(0));
    let text = collector.text();
    for secret in [SOURCE, OUTPUT, token.as_str(), lab().token()] {
        assert!(!text.contains(secret), "{secret} was told");
    }
    every_span_is_documented(&collector.spans());
}

async fn linked(collector: &Collector, span: &Span, name: &str) -> Span {
    let link = span.links.first().unwrap_or_else(|| panic!("no link: {span:?}"));
    let found = collector.span(&hex(&link.trace_id), name).await;
    assert_eq!(found.span_id, link.span_id);
    found
}

/// The table of the docs has every attribute of every span.
#[track_caller]
fn every_span_is_documented(spans: &[Span]) {
    let docs = include_str!("../../docs/telemetry.md");
    let (_, table) = docs.split_once("## Spans").expect("the table of spans");
    assert!(spans.len() > 5);
    for span in spans {
        for name in attributes(&span.attributes).keys() {
            assert!(
                table.contains(&format!("`{name}`")),
                "{name} of {} is not in the docs",
                span.name
            );
        }
    }
}

#[tokio::test]
async fn one_trace_leads_from_a_modern_client_to_the_kernel_by_grpc() {
    one_trace(Era::Modern, "0af7651916cd43dd8448eb211c80319c", "grpc").await;
}

#[tokio::test]
async fn one_trace_leads_from_a_client_with_a_session_to_the_kernel_by_http() {
    one_trace(Era::Legacy, "4bf92f3577b34da6a3ce929d0e0e4736", "http/protobuf").await;
}

#[tokio::test]
async fn an_execution_that_outlives_its_call_is_linked_to_it_and_to_those_who_ask_for_it() {
    const RUNS: &str = "1bf92f3577b34da6a3ce929d0e0e4731";
    const ASKS: &str = "2bf92f3577b34da6a3ce929d0e0e4732";
    let (collector, home, folder) = (Collector::start().await, Home::new(), lab().folder());
    let waits = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)";
    let path = folder.write("n.ipynb", &notebook(&[waits]));
    let gateway = Running::start(telling(&home, lab().url(), &collector.url())).await;
    let agent = connect(&gateway, Era::Modern).await;
    let run = json!({ "path": path, "ranges": [{ "start": 0 }], "timeout": 0.2 });
    let running = call(&agent, RUNS, "execute_nb_cells", run).await;
    assert_eq!(running["status"], "running", "{running}");
    let first = collector.span(RUNS, "tools/call execute_nb_cells").await;
    let is_told = collector.spans().iter().any(|span| span.name == "execution");
    assert!(!is_told, "the call is told of while the execution goes on");
    folder.write("go", "");
    let ask = json!({ "execution_id": running["execution_id"], "wait": 60 });
    assert_eq!(call(&agent, ASKS, "get_execution", ask).await["status"], "completed");
    let execution = collector.span(RUNS, "execution").await;
    assert_eq!(execution.links[0].span_id, first.span_id);
    assert!(execution.end_time_unix_nano > first.end_time_unix_nano);
    let second = collector.span(ASKS, "tools/call get_execution").await;
    let links_to_it = second.links.iter().any(|link| link.span_id == execution.span_id);
    assert!(links_to_it, "{second:?}");
}

#[tokio::test]
async fn a_collector_that_is_down_costs_one_warning() {
    let (folder, home) = (lab().folder(), Home::new());
    let path = folder.write("n.ipynb", &notebook(&["6 * 7"]));
    // A port that nobody listens on.
    let mut command = telling(&home, lab().url(), "http://127.0.0.1:9");
    command.env("JMG__TELEMETRY__OTLP_LOGS", "true");
    let gateway = Running::start(command).await;
    let agent = connect(&gateway, Era::Modern).await;
    let metrics = gateway.url().replace("/mcp", "/metrics");
    eventually("several attempts have failed", async || {
        let run = json!({ "path": path, "ranges": [{ "start": 0 }] });
        agent.call("execute_nb_cells", run).await.ok();
        let text = reqwest::get(&metrics).await.ok()?.text().await.ok()?;
        let failed = |signal: &str| {
            let is_it = |line: &&str| {
                let parts = ["jmg_telemetry_exports_total{", "outcome=\"failure\"", signal];
                parts.iter().all(|part| line.contains(part))
            };
            let count = text.lines().find(is_it)?.rsplit(' ').next()?;
            count.parse::<f64>().ok()
        };
        (failed("traces")? >= 3.0 && failed("metrics")? >= 2.0).then_some(())
    })
    .await;
    let log = gateway.log();
    for signal in ["traces", "metrics", "logs"] {
        let is_warning = |line: &&str| line.contains("cannot send telemetry") && line.contains(signal);
        assert_eq!(log.lines().filter(is_warning).count(), 1, "{signal}: {log}");
    }
    gateway.signal("-TERM");
    assert_eq!(gateway.ended().await.code, Some(0));
}

#[tokio::test]
async fn it_is_switched_off_by_one_variable() {
    let (collector, home) = (Collector::start().await, Home::new());
    let mut command = telling(&home, lab().url(), &collector.url());
    command.env("OTEL_SDK_DISABLED", "true");
    let gateway = Running::start(command).await;
    connect(&gateway, Era::Modern).await.tools().await;
    let metrics = gateway.url().replace("/mcp", "/metrics");
    let text = reqwest::get(&metrics)
        .await
        .expect("an answer")
        .text()
        .await
        .expect("text");
    assert!(text.contains("mcp_server_operation_duration_seconds_count"), "{text}");
    gateway.signal("-TERM");
    assert_eq!(gateway.ended().await.code, Some(0));
    assert_eq!(
        collector.text(),
        "",
        "everything is sent before it ends, if anything is"
    );
}

#[tokio::test]
async fn a_person_sees_traces_and_metrics_on_the_console() {
    let (home, folder) = (Home::new(), lab().folder());
    let path = folder.write("n.ipynb", &notebook(&["6 * 7"]));
    let mut command = home.serve_for(lab().url(), lab().token());
    command.args(["--telemetry", "console"]);
    let gateway = Running::start(command).await;
    let agent = connect(&gateway, Era::Modern).await;
    let run = json!({ "path": path, "ranges": [{ "start": 0 }] });
    agent.call("execute_nb_cells", run).await.ok();
    eventually("the trace is shown", async || {
        gateway.logged("execute_request").then_some(())
    })
    .await;
    gateway.signal("-TERM");
    let shown = gateway.ended().await.stderr;
    let lines: Vec<&str> = shown.lines().collect();
    let request = lines.iter().position(|line| line.trim_start().starts_with("POST /mcp"));
    let request = request.unwrap_or_else(|| panic!("no request: {shown}"));
    assert!(lines[request - 1].starts_with("trace "), "{shown}");
    let depth = |word: &str| {
        let line = lines.iter().find(|line| line.trim_start().starts_with(word));
        line.map(|line| line.len() - line.trim_start().len())
    };
    assert_eq!(depth("POST /mcp"), Some(2), "{shown}");
    assert_eq!(depth("tools/call execute_nb_cells"), Some(4), "{shown}");
    assert!(depth("execute_request") > depth("execution "), "{shown}");
    assert!(
        shown.contains("\nmetrics\n") && shown.contains("mcp.server.operation.duration"),
        "{shown}"
    );
}

#[test]
fn variables_that_cannot_be_honoured_are_refused_before_anything_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gateway.toml");
    std::fs::write(&file, "[[servers]]\nname = \"lab\"\nurl = \"http://127.0.0.1:1/\"\n[[tenants]]\nname = \"all\"\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"all\"\ntoken = \"a-token-of-ana\"\n").expect("a file");
    let check = |variables: &[(&str, &str)]| {
        let mut command = gateway_command();
        command.args(["check-config", "--config"]).arg(&file);
        command.envs(variables.iter().copied());
        ended(command.output().expect("it runs"))
    };
    let fine = check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317")]);
    assert_eq!(fine.code, Some(0), "{}", fine.stderr);
    let refused = check(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4317"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
    ]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("expected one of grpc, http/protobuf"),
        "{}",
        refused.stderr
    );
    let refused = check(&[("JMG__TELEMETRY__OTLP_LOGS", "true")]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("set telemetry.otlp_endpoint"),
        "{}",
        refused.stderr
    );
}
