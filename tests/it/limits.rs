//! Limits on callers: how fast they may ask, what a tenant may hold at once, and that nobody else feels it.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_util::task::AbortOnDropHandle;

use crate::support::{
    Agent, Era, Gateway, Watcher,
    agent::ERAS,
    eventually,
    gateway::lab_server,
    lab,
    notebook::notebook,
    running::{Home, Running},
    wire::{self, Events, get},
};

const ANA: &str = "token-of-ana";
const BEN: &str = "token-of-ben";
const CLEO: &str = "token-of-cleo";

/// Ana and Ben share a tenant with these settings; Cleo has one of her own.
fn tenants(of_ana: &str) -> String {
    let token = |name: &str, tenant: &str| {
        format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"{tenant}\"\ntoken = \"token-of-{name}\"\n")
    };
    let tokens = [token("ana", "loud"), token("ben", "loud"), token("cleo", "quiet")].concat();
    format!("[[tenants]]\nname = \"loud\"\n{of_ana}\n[[tenants]]\nname = \"quiet\"\n{tokens}")
}

/// A gateway whose Jupyter server is down, for calls that need none.
async fn gateway(of_ana: &str) -> Gateway {
    let server = "[[servers]]\nname = \"lab\"\nurl = \"http://127.0.0.1:9/\"\n";
    Gateway::configured(&format!("{server}{}", tenants(of_ana))).await
}

async fn call(agent: &Agent, tool: &str, arguments: Value) -> Response {
    let params = json!({ "name": tool, "arguments": arguments });
    agent.start(77, "tools/call", params).await
}

async fn base_url(agent: &Agent) -> Response {
    call(agent, "get_base_url", json!({})).await
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    let value = response.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// Requests that are left to the principal, as the header tells.
fn left(response: &Response) -> u32 {
    let state = header(response, "ratelimit");
    let left = state
        .strip_prefix("\"principal\";r=")
        .and_then(|rest| rest.split(';').next());
    left.and_then(|left| left.parse().ok())
        .unwrap_or_else(|| panic!("what is left: {state}"))
}

/// The value of a metric of a tenant's limit.
async fn metric(gateway: &Gateway, name: &str, tenant: &str, limit: &str) -> Option<f64> {
    let metrics = get(gateway, "/metrics").await.text;
    let (tenant, limit) = (format!("tenant=\"{tenant}\""), format!("limit=\"{limit}\""));
    let is_meant = |line: &&str| line.starts_with(name) && line.contains(&tenant) && line.contains(&limit);
    metrics.lines().find(is_meant)?.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn who_asks_too_much_is_told_when_to_come_again_and_nobody_else_is() {
    for era in ERAS {
        let gateway = gateway("requests_per_minute = 6\nburst = 20").await;
        let ana = Agent::with_token(&gateway, ANA, era).await;
        let first = base_url(&ana).await;
        assert_eq!(first.status(), 200);
        let policy = "\"principal\";q=20;w=200, \"tenant\";q=200;w=200";
        assert_eq!(header(&first, "ratelimit-policy"), policy);
        let rest = left(&first);
        assert!((17..=19).contains(&rest), "{rest}");
        for expected in (0..rest).rev() {
            let answer = base_url(&ana).await;
            assert_eq!((answer.status(), left(&answer)), (StatusCode::OK, expected));
        }
        let refused = base_url(&ana).await;
        assert_eq!(refused.status(), 429);
        let retry_after: u64 = header(&refused, "retry-after").parse().expect("seconds");
        assert!((1..=10).contains(&retry_after), "{retry_after}");
        assert_eq!(header(&refused, "ratelimit-policy"), policy);
        assert_eq!(
            header(&refused, "ratelimit"),
            format!("\"principal\";r=0;t={retry_after}")
        );
        let body: Value = refused.json().await.expect("JSON");
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("20 at once and 6 per minute") && message.contains("wait"),
            "{body}"
        );
        assert_eq!(
            (&body["jsonrpc"], &body["error"]["data"]["limit"]),
            (&json!("2.0"), &json!("principal"))
        );
        for token in [BEN, CLEO] {
            let other = Agent::with_token(&gateway, token, era).await;
            assert_eq!(base_url(&other).await.status(), 200, "{token}");
        }
        assert_eq!(
            metric(&gateway, "jmg_limits_refusals_total", "loud", "principal").await,
            Some(1.0)
        );
    }
}

#[tokio::test]
async fn what_keeps_jupyter_busy_costs_more_than_reading() {
    for era in ERAS {
        let gateway = gateway("requests_per_minute = 1\nburst = 40").await;
        let ana = Agent::with_token(&gateway, ANA, era).await;
        let mut before = left(&base_url(&ana).await);
        let edit = json!({ "path": "a.ipynb", "cell_id": "x", "old_text": "a", "new_text": "b", "exec": false });
        for (tool, arguments, cost) in [
            ("get_base_url", json!({}), 1),
            ("search_documents", json!({ "query": "x" }), 5),
            ("run_code", json!({ "code": "1" }), 5),
            ("edit_nb_cell", edit, 2),
            ("delete_document", json!({ "path": "a.txt" }), 2),
            ("cancel_execution", json!({ "execution_id": "x" }), 1),
        ] {
            let answer = call(&ana, tool, arguments).await;
            let now = left(&answer);
            assert_eq!(before - now, cost, "{era:?} {tool}");
            before = now;
            answer.text().await.expect("an answer");
        }
        while left(&base_url(&ana).await) > 3 {}
        let refused = call(&ana, "run_code", json!({ "code": "1" })).await;
        assert_eq!(refused.status(), 429);
        let body: Value = refused.json().await.expect("JSON");
        assert_eq!(
            (&body["id"], &body["error"]["code"]),
            (&json!(77), &json!(-32000)),
            "{body}"
        );
    }
}

#[tokio::test]
async fn all_of_a_tenant_share_its_rate() {
    let gateway = gateway("requests_per_minute = 1\nburst = 20\ntotal_requests_per_minute = 1\ntotal_burst = 25").await;
    let [ana, ben, cleo] = [ANA, BEN, CLEO].map(|token| Agent::with_token(&gateway, token, Era::Modern));
    let (ana, ben, cleo) = (ana.await, ben.await, cleo.await);
    for _ in 0..20 {
        assert_eq!(base_url(&ana).await.status(), 200);
    }
    for _ in 0..30 {
        assert_eq!(
            base_url(&ana).await.status(),
            429,
            "what is refused takes nothing from the others"
        );
    }
    for _ in 0..5 {
        assert_eq!(base_url(&ben).await.status(), 200);
    }
    let refused = base_url(&ben).await;
    assert_eq!(refused.status(), 429);
    assert!(
        refused
            .text()
            .await
            .expect("text")
            .contains("all agents of your tenant")
    );
    assert_eq!(base_url(&cleo).await.status(), 200);
}

/// The status of a request with a token, forwarded for an address.
async fn login(gateway: &Gateway, token: &str, forwarded_for: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let request = wire::post_without_token(gateway, body).bearer_auth(token);
    let request = request.header("x-forwarded-for", forwarded_for);
    request.send().await.expect("an answer")
}

#[tokio::test]
async fn guessing_tokens_is_slowed_down_by_address_and_who_has_one_gets_in() {
    for (trusted, is_believed) in [("[]", false), ("[\"127.0.0.0/8\"]", true)] {
        let config = format!("http.trusted_proxies = {trusted}\n{}{}", lab_server("lab"), tenants(""));
        let gateway = Gateway::configured(&config).await;
        for attempt in 0..100 {
            let answer = login(&gateway, &format!("guess-{attempt}"), "203.0.113.7").await;
            assert_eq!(answer.status(), 401, "{attempt}");
        }
        let refused = login(&gateway, "one more guess", "198.51.100.9, 203.0.113.7").await;
        assert_eq!(refused.status(), 429);
        assert!(!header(&refused, "retry-after").is_empty());
        let body: Value = refused.json().await.expect("JSON");
        assert_eq!(body["error"]["data"]["limit"], "failed_logins", "{body}");
        let elsewhere = login(&gateway, "a guess", "203.0.113.8").await.status();
        assert_eq!(elsewhere == 401, is_believed, "{elsewhere}");
        let known = login(&gateway, ANA, "203.0.113.7").await.status();
        assert!(known != 401 && known != 429, "{known}");
        assert!(metric(&gateway, "jmg_limits_refusals_total", "", "failed_logins").await >= Some(1.0));
    }
}

#[tokio::test]
async fn the_audit_names_the_client_behind_a_trusted_proxy() {
    let home = Home::new();
    let file = home.path("gateway.toml");
    let trusted = "http.trusted_proxies = [\"127.0.0.1\"]\nstore.url = \"sqlite::memory:\"";
    fs::write(&file, format!("{trusted}\n{}{}", lab_server("lab"), tenants(""))).expect("a config");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    command.env("JMG__TELEMETRY__LOG_LEVEL", "info,audit=debug");
    let running = Running::start(command).await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_base_url",
        "_meta": { "io.modelcontextprotocol/protocolVersion": wire::MODERN_VERSION, "io.modelcontextprotocol/clientCapabilities": {} } } });
    let request = Client::new().post(running.url()).bearer_auth(ANA).json(&call);
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", wire::MODERN_VERSION);
    let request = request
        .header("mcp-method", "tools/call")
        .header("mcp-name", "get_base_url");
    let answer = request
        .header("x-forwarded-for", "2001:db8::7")
        .send()
        .await
        .expect("an answer");
    assert_eq!(answer.status(), 200);
    eventually("the record", async || running.logged("2001:db8::7").then_some(())).await;
}

#[tokio::test]
async fn streams_are_limited_and_given_back() {
    for era in ERAS {
        let gateway = gateway("max_streams = 1").await;
        let [ana, ben, cleo] = [ANA, BEN, CLEO].map(|token| Agent::with_token(&gateway, token, era));
        let (ana, ben, cleo) = (ana.await, ben.await, cleo.await);
        let open = Watcher::start(&ana, era, &[]).await;
        let refused = match era {
            Era::Legacy => ben.listen(None).await,
            Era::Modern => {
                ben.start(5, "subscriptions/listen", json!({ "notifications": {} }))
                    .await
            }
        };
        assert_eq!(refused.status(), 429);
        let body: Value = refused.json().await.expect("JSON");
        assert_eq!(body["error"]["data"]["limit"], "max_streams", "{body}");
        assert_eq!(base_url(&ben).await.status(), 200, "other requests go on");
        drop(Watcher::start(&cleo, era, &[]).await);
        assert_eq!(
            metric(&gateway, "jmg_limits_used", "loud", "max_streams").await,
            Some(1.0)
        );
        assert_eq!(
            metric(&gateway, "jmg_limits_max", "loud", "max_streams").await,
            Some(1.0)
        );
        drop(open);
        eventually("the stream is given back", async || {
            let used = metric(&gateway, "jmg_limits_used", "loud", "max_streams").await;
            (used == Some(0.0)).then_some(())
        })
        .await;
        drop(Watcher::start(&ben, era, &[]).await);
    }
}

#[tokio::test]
async fn sessions_of_a_tenant_are_limited() {
    let gateway = gateway("max_sessions = 2").await;
    let first = Agent::with_token(&gateway, ANA, Era::Legacy).await;
    let busy = Events::new(first.listen(None).await);
    let second = Agent::with_token(&gateway, ANA, Era::Legacy).await;
    let begin = |token: &str| wire::send(wire::post_without_token(&gateway, wire::initialize()).bearer_auth(token));
    let refused = begin(BEN).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert_eq!(refused.json()["error"]["data"]["limit"], "max_sessions");
    assert_eq!(begin(CLEO).await.status, 200);
    assert_eq!(begin(ANA).await.status, 200, "her own idle session makes room");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(second.send(list).await.status(), 404);
    drop(busy);
    eventually("requests give back what they hold", async || {
        let used = metric(&gateway, "jmg_limits_used", "loud", "max_requests_in_flight").await;
        (used == Some(0.0)).then_some(())
    })
    .await;
    let used = metric(&gateway, "jmg_limits_used", "loud", "max_sessions").await;
    assert_eq!(used, Some(2.0));
}

/// A request whose body is not all there yet.
async fn unfinished(gateway: &Gateway, token: &str, body: &str) -> TcpStream {
    let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    socket
        .write_all(&body.as_bytes()[..body.len() / 2])
        .await
        .expect("sent");
    socket
}

#[tokio::test]
async fn requests_and_bytes_under_way_are_limited() {
    let body = format!("{}{}", wire::initialize(), " ".repeat(3000));
    for (limits, limit) in [
        ("max_requests_in_flight = 1", "max_requests_in_flight"),
        ("max_bytes_held = 4096", "max_bytes_held"),
    ] {
        let gateway = gateway(limits).await;
        let mut slow = unfinished(&gateway, ANA, &body).await;
        eventually("the request is being read", async || {
            let used = metric(&gateway, "jmg_limits_used", "loud", limit).await;
            (used > Some(0.0)).then_some(())
        })
        .await;
        let send = |token: &str| wire::send(wire::post_without_token(&gateway, body.clone()).bearer_auth(token));
        let refused = send(BEN).await;
        assert_eq!(refused.status, 429, "{}", refused.text);
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(refused.json()["error"]["data"]["limit"], limit);
        assert_eq!(send(CLEO).await.status, 200);
        slow.write_all(&body.as_bytes()[body.len() / 2..]).await.expect("sent");
        let mut answer = String::new();
        slow.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        eventually("it is given back", async || {
            (send(BEN).await.status == 200).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_reload_applies_other_limits_and_forgets_nothing() {
    let home = Home::new();
    let file = home.path("gateway.toml");
    let write = |limits: &str| {
        let store = "store.url = \"sqlite::memory:\"\n";
        fs::write(&file, format!("{store}{}{}", lab_server("lab"), tenants(limits))).expect("a config");
    };
    write("requests_per_minute = 1\nburst = 10");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    let running = Running::start(command).await;
    let ana = Agent::connect_to(running.url(), ANA, Era::Modern).await;
    for expected in (0..10).rev() {
        assert_eq!(left(&base_url(&ana).await), expected);
    }
    assert_eq!(base_url(&ana).await.status(), 429);
    write("requests_per_minute = 1\nburst = 15");
    running.signal("-HUP");
    eventually("the config is read", async || running.logged("reloaded").then_some(())).await;
    for expected in (0..5).rev() {
        assert_eq!(left(&base_url(&ana).await), expected);
    }
    assert_eq!(base_url(&ana).await.status(), 429);
}

/// Calls while the flood is on, whatever comes of it; how many were let through and how many refused.
#[derive(Default)]
struct Flood {
    is_on: AtomicBool,
    passed: AtomicU32,
    refused: AtomicU32,
}

impl Flood {
    async fn of_calls(self: Arc<Self>, agent: Arc<Agent>, tool: &'static str, all: Vec<Value>) {
        for arguments in all.iter().cycle() {
            self.wait().await;
            let answer = call(&agent, tool, arguments.clone()).await;
            self.count(answer.status() != StatusCode::TOO_MANY_REQUESTS);
            let _ = answer.bytes().await;
        }
    }

    /// Larger messages than are read of somebody who is refused, who is cut off then.
    async fn of_bodies(self: Arc<Self>, url: String) {
        let http = Client::new();
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\"{}\"}}}}",
            "x".repeat(2_000_000)
        );
        loop {
            self.wait().await;
            let request = http.post(&url).bearer_auth(ANA).body(body.clone());
            let request = request.header("content-type", "application/json");
            let request = request.header("accept", "application/json, text/event-stream");
            let answer = request.send().await;
            self.count(answer.is_ok_and(|answer| answer.status() != StatusCode::TOO_MANY_REQUESTS));
        }
    }

    /// Sessions, and a stream of each.
    async fn of_sessions(self: Arc<Self>, url: String, token: &'static str) {
        let (http, mut streams) = (Client::new(), Vec::new());
        loop {
            self.wait().await;
            let request = http.post(&url).bearer_auth(token).body(wire::initialize());
            let request = request.header("content-type", "application/json");
            let request = request.header("accept", "application/json, text/event-stream");
            let answer = request.send().await.expect("an answer");
            let session = answer.headers().get("mcp-session-id").cloned();
            self.count(answer.status() == StatusCode::OK);
            if let Some(session) = session {
                let listen = http.get(&url).bearer_auth(token).header("accept", "text/event-stream");
                let stream = listen.header("mcp-session-id", session).send().await;
                streams.push(stream.expect("an answer"));
            }
        }
    }

    async fn wait(&self) {
        tokio::time::sleep(Duration::from_millis(2)).await;
        while !self.is_on.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn count(&self, is_passed: bool) {
        let counter = if is_passed { &self.passed } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Every kind of load that one tenant can make, and of those who have no token.
    fn of_everything(
        self: &Arc<Self>,
        gateway: &Gateway,
        agents: &[Arc<Agent>],
        paths: &[String],
    ) -> Vec<AbortOnDropHandle<()>> {
        let path = &paths[0];
        let insert =
            json!({ "path": path, "position": -1, "cells": [{ "type": "code", "content": "1" }], "exec": false });
        let kinds = [
            ("read_nb_cells", vec![json!({ "path": path })]),
            ("insert_nb_cells", vec![insert]),
            ("run_code", vec![json!({ "code": "sum(range(10**6))", "path": path })]),
            ("search_documents", vec![json!({ "query": "nothing has this" })]),
            ("list_documents", vec![json!({ "path_filter": "**/*.ipynb" })]),
            // A room each, and an image that is scaled.
            (
                "read_nb_cells",
                paths.iter().map(|path| json!({ "path": path })).collect(),
            ),
        ];
        let mut tasks = Vec::new();
        for (tool, all) in kinds {
            for agent in agents {
                let flood = Arc::clone(self).of_calls(Arc::clone(agent), tool, all.clone());
                tasks.push(AbortOnDropHandle::new(tokio::spawn(flood)));
            }
        }
        for token in [ANA, "a bad token"] {
            let flood = Arc::clone(self).of_sessions(gateway.url("/mcp"), token);
            tasks.push(AbortOnDropHandle::new(tokio::spawn(flood)));
        }
        let flood = Arc::clone(self).of_bodies(gateway.url("/mcp"));
        tasks.push(AbortOnDropHandle::new(tokio::spawn(flood)));
        tasks
    }
}

fn p95(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() * 95 / 100]
}

/// A notebook with a picture that has to be made smaller whenever it is read.
fn with_picture() -> String {
    let picture = image::DynamicImage::ImageRgb8(image::RgbImage::from_fn(1200, 1200, |x, y| {
        let [red, green, blue, _] = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)).to_le_bytes();
        image::Rgb([red, green, blue])
    }));
    let mut bytes = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).expect("an image");
    let mut notebook: Value = serde_json::from_str(&notebook(&["1"])).expect("JSON");
    let data = json!({ "image/png": BASE64_STANDARD.encode(bytes.into_inner()) });
    notebook["cells"][0]["outputs"] = json!([{ "output_type": "display_data", "data": data, "metadata": {} }]);
    notebook.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flood_of_everything_is_held_back_and_another_tenant_is_never_refused() {
    let limits =
        "requests_per_minute = 300\nburst = 20\nmax_streams = 5\nmax_sessions = 5\nmax_requests_in_flight = 20";
    let gateway = Gateway::configured(&format!("{}{}", lab_server("lab"), tenants(limits))).await;
    let folder = lab().folder();
    let picture = with_picture();
    let loud: Vec<String> = (0..20)
        .map(|n| folder.write(&format!("loud-{n}.ipynb"), &picture))
        .collect();
    let quiet = folder.write("quiet.ipynb", &notebook(&["x = 1"]));
    let mut agents = Vec::new();
    for (token, era) in [(ANA, Era::Legacy), (ANA, Era::Modern), (BEN, Era::Modern)] {
        agents.push(Arc::new(Agent::with_token(&gateway, token, era).await));
    }
    let cleo = Agent::with_token(&gateway, CLEO, Era::Modern).await;
    cleo.call("read_nb_cells", json!({ "path": quiet })).await.ok();
    let flood = Arc::new(Flood::default());
    let tasks = flood.of_everything(&gateway, &agents, &loud);
    // In turn, so that whatever else the machine does slows both.
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..12 {
        let is_on = round % 2 == 1;
        flood.is_on.store(is_on, Ordering::Relaxed);
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until {
            let begun = Instant::now();
            cleo.call("read_nb_cells", json!({ "path": quiet })).await.ok();
            let edit = json!({ "path": quiet, "index": 0, "old_text": "x", "new_text": "x", "exec": false });
            let edited = cleo.call("edit_nb_cell", edit).await;
            assert!(!edited.text().contains("too many"), "{}", edited.text());
            let times = if is_on { &mut beside } else { &mut alone };
            times.push(begun.elapsed());
        }
    }
    flood.is_on.store(false, Ordering::Relaxed);
    let (passed, refused) = (
        flood.passed.load(Ordering::Relaxed),
        flood.refused.load(Ordering::Relaxed),
    );
    drop(tasks);
    let calls = beside.len();
    let (alone, beside) = (p95(alone), p95(beside));
    println!(
        "flood: {passed} passed, {refused} refused; {calls} pairs of calls beside it, p95 {beside:?}, alone {alone:?}"
    );
    assert!(refused > passed, "{passed} passed, {refused} refused");
    assert!(calls > 10, "{calls}");
    // The flood's own clients share the processors with the gateway here; the benchmark `fairness` has the true figure.
    assert!(
        beside < alone.mul_f64(5.0) + Duration::from_millis(500),
        "{beside:?} beside it, {alone:?} alone"
    );
    let refusals = async |tenant: &str, limit: &str| {
        let counted = metric(&gateway, "jmg_limits_refusals_total", tenant, limit).await;
        counted.unwrap_or_default()
    };
    assert!(refusals("loud", "principal").await > 0.0);
    let metrics = get(&gateway, "/metrics").await.text;
    assert!(metrics.contains("reason=\"token_unknown\""), "{metrics}");
    assert!(refusals("quiet", "principal").await < 1.0);
    assert!(metric(&gateway, "jmg_limits_used", "loud", "max_streams").await <= Some(5.0));
    assert!(metric(&gateway, "jmg_limits_used", "quiet", "max_open_rooms").await >= Some(1.0));
    assert!(metric(&gateway, "jmg_limits_used", "loud", "max_concurrent_executions").await >= Some(0.0));
    let answer = cleo.call("run_code", json!({ "code": "6 * 7" })).await;
    assert!(answer.text().contains("42"), "{}", answer.text());
}
