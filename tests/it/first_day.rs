//! What an operator checks on the first day. Each check is a test, here or where its subject is:
//!
//! | check | tests |
//! | --- | --- |
//! | a bad config exits non-zero and is named; `check-config` agrees | `cli::a_bad_config_is_named_by_file_and_key_and_exits_with_64`, `deploy_files::configurations_pass_check_config` |
//! | no bind to others without authentication | `cli::an_open_door_is_refused` |
//! | liveness ignores dependencies, readiness names them | `edge::readiness_names_each_server_and_stays_ready_for_the_others`, `edge::without_its_store_the_gateway_is_unready_and_says_why` |
//! | SIGTERM drains; a rolling restart fails no short call | `serve::a_call_under_way_is_finished_before_it_leaves`, `serve::a_second_signal_means_now`, `a_rolling_restart_under_load_fails_no_short_call` |
//! | `kill -9` in a cell: a true end, and once | `executions_restarts::what_runs_when_the_gateway_is_killed_is_taken_up_by_the_next`, `jupyterhub_restarts` |
//! | nobody uses the session, task, event or handle of another | `sessions::somebody_elses_session_does_not_exist`, `resumption::unknown_and_foreign_events_do_not_exist`, `executions_scope`, `oauth::side_by_side` |
//! | a revoked token stops, open streams included | `revocation::who_is_removed_is_cut_off_at_once_and_nobody_else_is`, `token_commands`, `jupyterhub::tokens_hold_for_as_long_as_the_hub_says` |
//! | keys rotate without a restart | `openid`, `oauth::side_by_side` |
//! | 429 with `Retry-After` and a sentence | `limits::who_asks_too_much_is_told_when_to_come_again_and_nobody_else_is` |
//! | wrong Origin, Host, header: 403, 403, 400 | `edge::foreign_hosts_and_origins_are_refused_on_every_route`, `edge::a_request_has_one_host_and_one_origin`, `direct_calls::what_is_wrong_about_a_request_is_refused_on_either_way` |
//! | oversized body, header, nesting: 413, 431, 400, memory flat | `edge::what_is_too_large_or_too_deep_is_refused`, `what_is_too_large_or_too_deep_takes_no_memory` |
//! | a slow client blocks nobody; buffers are bounded | `who_does_not_read_answers_takes_no_memory_and_holds_up_nobody`, `resumption::a_reader_who_stalls_holds_up_nobody`, `connections` |
//! | keep-alive on streams, `X-Accel-Buffering: no` | `a_silent_stream_is_kept_alive_and_not_buffered` |
//! | no token, source or output in logs, spans, metrics | `secrets`, `telemetry` |
//! | one trace from `_meta` to the kernel | `telemetry::one_trace_leads_from_a_modern_client_to_the_kernel_by_grpc` and its like by HTTP |
//! | a row for every allow and deny | `audit`, `rules::every_call_of_every_tool_is_recorded`, `audit_floods` |
//! | reload is atomic | `serve::a_hangup_reads_tokens_again_whole_or_not_at_all`, `revocation`, `tls` |
//! | image and chart | `deploy_files`, `deploy_chart`, `make image-test` |

use std::{
    fs,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{
    Agent, Era, Gateway, TIMEOUT, TOKEN,
    agent::ERAS,
    eventually,
    gateway::{everything, lab_server},
    lab,
    notebook::{cells_on_disk, notebook},
    own_lab::free_port,
    process::resident_bytes,
    running::{Home, Running},
    wire::{MODERN_VERSION, initialize},
    within,
};

const MEBIBYTE: usize = 1024 * 1024;

/// `serve` with a config that lets everybody ask as often as they like.
fn serve(home: &Home, address: &str) -> Command {
    let file = home.path("gateway.toml");
    let tenant = everything().replacen(
        "name = \"all\"\n",
        "name = \"all\"\nrequests_per_minute = 1000000\nburst = 1000000\nmax_requests_in_flight = 1000\n",
        1,
    );
    let store = store::file_url(&home.path("gateway.db"));
    fs::write(&file, format!("store.url = \"{store}\"\n{}{tenant}", lab_server("lab"))).unwrap();
    let mut command = home.serve_on(address);
    command.arg("--config").arg(&file);
    command
}

/// A call of a tool as a client of the newest protocol makes it.
fn tool_call(http: &Client, url: &str, tool: &str, arguments: &Value) -> RequestBuilder {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    http.post(url)
        .bearer_auth(TOKEN)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", MODERN_VERSION)
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .json(&call)
}

/// Two gateways on one store, of which a load balancer uses those that are in rotation. It sends a request once: only one that
/// no gateway has accepted goes to the other.
struct Balancer {
    addresses: [String; 2],
    in_rotation: [AtomicBool; 2],
    calls: AtomicUsize,
}

impl Balancer {
    async fn call(&self, http: &Client, number: usize, tool: &str, arguments: &Value) -> Value {
        let turn = number % 2;
        let is_in = |at: &usize| self.in_rotation[*at].load(Ordering::SeqCst);
        let first = [turn, 1 - turn].into_iter().find(is_in).expect("one is in rotation");
        for at in [first, 1 - first] {
            let url = format!("http://{}/mcp", self.addresses[at]);
            match tool_call(http, &url, tool, arguments).send().await {
                Ok(answer) => {
                    assert_eq!(answer.status(), 200, "{tool}");
                    self.calls.fetch_add(1, Ordering::Relaxed);
                    return answer.json().await.expect("a whole answer");
                }
                Err(error) => assert!(error.is_connect(), "{tool} was cut off: {error:?}"),
            }
        }
        panic!("no gateway is there");
    }

    /// Waits until so much was done again, that whatever is wrong would have shown.
    async fn goes_on(&self) {
        let before = self.calls.load(Ordering::Relaxed);
        eventually("more calls are answered", async || {
            (self.calls.load(Ordering::Relaxed) > before + 40).then_some(())
        })
        .await;
    }
}

/// Reads and edits until it is over; what it has put into the notebook.
async fn work(balancer: Arc<Balancer>, client: usize, path: String, is_over: Arc<AtomicBool>) -> Vec<String> {
    let http = Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let mut inserted = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        let number = inserted.len();
        let word = format!("cell {number} of client {client}");
        let cells = json!([{ "type": "markdown", "content": word }]);
        let insert = json!({ "path": path, "position": -1, "cells": cells, "exec": false });
        for (tool, arguments) in [("get_base_url", json!({})), ("insert_nb_cells", insert)] {
            let answer = balancer.call(&http, client + number, tool, &arguments).await;
            assert!(answer["result"]["isError"] != true, "{tool}: {answer}");
        }
        inserted.push(word);
    }
    inserted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_under_load_fails_no_short_call() {
    let (home, folder) = (Home::new(), lab().folder());
    let path = folder.write("n.ipynb", &notebook(&[]));
    let addresses = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let mut gateways = Vec::new();
    for address in &addresses {
        gateways.push(Some(Running::start(serve(&home, address)).await));
    }
    let balancer = Arc::new(Balancer {
        addresses: addresses.clone(),
        in_rotation: [true, true].map(AtomicBool::new),
        calls: AtomicUsize::new(0),
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (balancer, is_over) = (Arc::clone(&balancer), Arc::clone(&is_over));
            tokio::spawn(work(balancer, client, path.clone(), is_over))
        })
        .collect();
    for (at, address) in addresses.iter().enumerate() {
        balancer.goes_on().await;
        // As an orchestrator does it: out of rotation, a moment for whoever is on the way, and then the signal.
        balancer.in_rotation[at].store(false, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(200)).await;
        let leaving = gateways[at].take().unwrap();
        leaving.signal("-TERM");
        let ended = leaving.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        balancer.goes_on().await;
        gateways[at] = Some(Running::start(serve(&home, address)).await);
        balancer.in_rotation[at].store(true, Ordering::SeqCst);
    }
    balancer.goes_on().await;
    is_over.store(true, Ordering::SeqCst);
    let mut inserted = Vec::new();
    for client in clients {
        inserted.extend(client.await.expect("no call failed"));
    }
    inserted.sort();
    let http = Client::new();
    let save = tool_call(
        &http,
        &format!("http://{}/mcp", addresses[0]),
        "save_document",
        &json!({ "path": path }),
    );
    assert_eq!(save.send().await.unwrap().status(), 200);
    eventually("every cell is there once", async || {
        let cells = cells_on_disk(&lab().root().join(&path))?;
        let mut sources: Vec<&str> = cells.iter().map(|cell| cell.source.as_str()).collect();
        sources.sort_unstable();
        (sources == inserted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_is_too_large_or_too_deep_takes_no_memory() {
    let home = Home::new();
    let gateway = Running::start(serve(&home, "127.0.0.1:0")).await;
    // Each on a connection of its own: those that are refused in the middle of a body are closed.
    let http = Client::builder().pool_max_idle_per_host(0).build().unwrap();
    let post = |body: reqwest::Body| {
        let request = http.post(gateway.url()).bearer_auth(TOKEN).body(body);
        let request = request.header("content-type", "application/json");
        request.header("accept", "application/json, text/event-stream")
    };
    let attack = async || {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}"#,
            "[".repeat(3 * MEBIBYTE)
        );
        let chunks = futures::stream::iter((0..8).map(|_| Ok::<_, std::io::Error>(vec![b'y'; MEBIBYTE])));
        let filler = post(initialize().into()).header("x-filler", "z".repeat(40_000));
        for (request, status) in [
            (post(reqwest::Body::wrap_stream(chunks)), 413),
            (filler, 431),
            (post(deep.into()), 400),
        ] {
            // A connection that is closed while a body is on its way may take the answer along.
            if let Ok(answer) = request.send().await {
                assert_eq!(answer.status(), status);
            } else {
                assert_eq!(status, 413);
            }
        }
    };
    for _ in 0..5 {
        attack().await;
    }
    let before = resident_bytes(gateway.pid());
    for _ in 0..40 {
        attack().await;
    }
    let after = resident_bytes(gateway.pid());
    assert!(
        after < before + 32 * MEBIBYTE,
        "{} MiB, then {}",
        before / MEBIBYTE,
        after / MEBIBYTE
    );
    assert_eq!(post(initialize().into()).send().await.unwrap().status(), 200);
}

/// Number of calls of tools that were answered.
async fn answered_calls(gateway: &Running) -> usize {
    let metrics = reqwest::get(gateway.url().replace("/mcp", "/metrics")).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let is_count = |line: &&str| {
        line.starts_with("mcp_server_operation_duration_seconds_count") && line.contains("get_document_content")
    };
    let counts = metrics.lines().filter(is_count);
    counts
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

#[tokio::test]
async fn who_does_not_read_answers_takes_no_memory_and_holds_up_nobody() {
    const SLOW: usize = 10;
    const REQUESTS: usize = 200;
    let (home, folder) = (Home::new(), lab().folder());
    let line = "x".repeat(1000);
    let text = folder.write("large.md", &vec![line; 40].join("\n"));
    let gateway = Running::start(serve(&home, "127.0.0.1:0")).await;
    let address = gateway
        .url()
        .trim_start_matches("http://")
        .trim_end_matches("/mcp")
        .to_owned();
    let read = json!({ "path": text });
    let agent = Agent::connect_to(gateway.url(), TOKEN, Era::Modern).await;
    agent.call("get_document_content", read.clone()).await.ok();
    let before = resident_bytes(gateway.pid());
    let built = tool_call(&Client::new(), gateway.url(), "get_document_content", &read)
        .build()
        .unwrap();
    let body = String::from_utf8(built.body().unwrap().as_bytes().unwrap().to_vec()).unwrap();
    let headers: String = built
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()))
        .collect();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    // Each asks for some eight megabytes, and takes nothing but the first byte.
    let slow = (0..SLOW).map(|_| {
        let (address, request) = (address.clone(), request.repeat(REQUESTS));
        async move {
            let mut socket = TcpStream::connect(&address).await.unwrap();
            let sending = socket.write_all(request.as_bytes());
            // Whoever reads no answers gets no more requests read.
            let _ = tokio::time::timeout(Duration::from_secs(2), sending).await;
            let mut first = [0];
            within(TIMEOUT, "an answer", socket.read_exact(&mut first))
                .await
                .unwrap();
            socket
        }
    });
    let slow = join_all(slow).await;
    // They are answered until what is between them and the gateway is full.
    let mut answered = answered_calls(&gateway).await;
    eventually("no more is answered", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = std::mem::replace(&mut answered, answered_calls(&gateway).await);
        (before == answered).then_some(())
    })
    .await;
    assert!(answered < SLOW * REQUESTS, "{answered}");
    for _ in 0..50 {
        let began = Instant::now();
        agent.call("get_document_content", read.clone()).await.ok();
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
    let after = resident_bytes(gateway.pid());
    // All of the answers would be more than 150 MiB.
    assert!(
        after < before + 50 * MEBIBYTE,
        "{} MiB, then {}",
        before / MEBIBYTE,
        after / MEBIBYTE
    );
    drop(slow);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive_and_not_buffered() {
    let gateway = Gateway::start().await;
    let streams = ERAS.map(async |era| {
        let agent = Agent::connect(&gateway, era).await;
        let stream = match era {
            Era::Legacy => agent.listen(None).await,
            Era::Modern => {
                let nothing = json!({ "notifications": { "resourcesListChanged": true } });
                agent.start(5, "subscriptions/listen", nothing).await
            }
        };
        assert_eq!(stream.headers()["x-accel-buffering"], "no", "{era:?}");
        assert!(
            stream.headers()["cache-control"].to_str().unwrap().contains("no-"),
            "{era:?}"
        );
        stream
    });
    let mut streams = join_all(streams).await;
    let kept = streams.iter_mut().map(async |stream| {
        let mut said = String::new();
        while !said.lines().any(|line| line.starts_with(':')) {
            let chunk = within(TIMEOUT, "a sign of life", stream.chunk()).await.unwrap();
            said += &String::from_utf8_lossy(&chunk.expect("the stream goes on"));
        }
    });
    join_all(kept).await;
}
