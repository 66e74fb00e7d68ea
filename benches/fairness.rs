//! A tenant beside another that floods the gateway with every kind of load: 95 of 100 of its reads and edits must take
//! hardly longer than without. Both are measured in turn, so that whatever else the machine does slows both.

use std::{
    collections::VecDeque,
    io::Cursor,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use jupyter_mcp_gateway::{
    app::App,
    config::{Config, Env},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Builder,
    time::sleep,
};

use super::{
    gateway,
    lab::lab,
    overhead::{rounds, runtime},
    wire::{Connection, Era, TOKEN},
};

const NAME: &str = "fairness";
const LOUD: &str = "the-token-of-the-flood";
/// Documents and streams that the flood keeps opening.
const ROOMS: usize = 60;
/// Bytes of its largest messages.
const LARGE: usize = 3 * 1024 * 1024;
const ROUND: Duration = Duration::from_millis(400);
/// A client of the victim thinks so long between two calls.
const PAUSE: Duration = Duration::from_millis(2);
/// Clients of the flood for each kind of load, which ask again after so long.
const CLIENTS: usize = 4;
const FLOOD_PAUSE: Duration = Duration::from_millis(2);
const GOAL: f64 = 1.5;
/// Allowance for the processor time that the flood's own clients take.
const ALLOWANCE: Duration = Duration::from_millis(2);

#[derive(Default)]
struct Flood {
    is_on: AtomicBool,
    passed: AtomicU64,
    refused: AtomicU64,
}

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    if !wanted(NAME) {
        return;
    }
    let (gateways, floods) = (runtime("gateway"), runtime("flood"));
    let address = gateways.block_on(start());
    let folder = lab().folder();
    let flooded = folder.write("loud.ipynb", &with_picture());
    let calm = folder.write("quiet.ipynb", &cell(&json!([])));
    let flood = Arc::new(Flood::default());
    for (tool, arguments) in loads(&flooded) {
        for _ in 0..CLIENTS {
            floods.spawn(Arc::clone(&flood).of_calls(address, tool, arguments.clone()));
        }
    }
    floods.spawn(Arc::clone(&flood).of_sessions(address, LOUD));
    floods.spawn(Arc::clone(&flood).of_sessions(address, "a-token-of-nobody"));
    let rooms: Vec<String> = (0..ROOMS)
        .map(|number| folder.write(&format!("loud-{number}.ipynb"), &cell(&json!([]))))
        .collect();
    floods.spawn(Arc::clone(&flood).of_rooms(address, rooms));
    floods.spawn(Arc::clone(&flood).of_bodies(address));
    floods.spawn(Arc::clone(&flood).of_streams(address));
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime");
    client.block_on(measure(address, &calm, &flood));
    floods.shutdown_background();
    gateways.shutdown_background();
}

async fn start() -> SocketAddr {
    let token = |name: &str, tenant: &str, token: &str| {
        format!("[[auth.tokens]]\nname = \"{name}\"\ntenant = \"{tenant}\"\ntoken = \"{token}\"\n")
    };
    let config = format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"sqlite::memory:\"\n\
         [[servers]]\nname = \"lab\"\nurl = \"{}\"\ntoken = \"{}\"\n[[tenants]]\nname = \"loud\"\n\
         [[tenants]]\nname = \"quiet\"\nrequests_per_minute = 1000000\nburst = 1000000\n{}{}",
        lab().url(),
        lab().token(),
        token("flood", "loud", LOUD),
        token("calm", "quiet", TOKEN),
    );
    let env = Env::new();
    let config = Config::from_toml(&config, "bench.toml", &env).expect("a valid config");
    let app = App::bind(&config, &env, gateway::telemetry()).await.expect("a gateway");
    let address = app.address().expect("an address");
    tokio::spawn(app.run());
    address
}

/// Every kind of load that calls of tools make.
fn loads(path: &str) -> Vec<(&'static str, Value)> {
    let insert = json!({ "path": path, "position": -1, "cells": [{ "type": "code", "content": "1" }], "exec": false });
    vec![
        ("read_nb_cells", json!({ "path": path })),
        ("insert_nb_cells", insert),
        ("run_code", json!({ "path": path, "code": "sum(range(10**5))" })),
        ("search_documents", json!({ "query": "nothing has this" })),
        ("list_documents", json!({ "path_filter": "**/*.ipynb" })),
    ]
}

impl Flood {
    async fn of_calls(self: Arc<Self>, address: SocketAddr, tool: &'static str, arguments: Value) {
        let mut connection = Connection::open(address).await;
        let call = connection.prepare_call(Era::Modern, tool, &arguments).await;
        let call = as_flood(call);
        loop {
            self.exchange(&mut connection, &call).await;
        }
    }

    /// Opens one document after the other.
    async fn of_rooms(self: Arc<Self>, address: SocketAddr, paths: Vec<String>) {
        let mut connection = Connection::open(address).await;
        let mut calls = Vec::new();
        for path in paths {
            let read = json!({ "path": path });
            let call = connection.prepare_call(Era::Modern, "read_nb_cells", &read).await;
            calls.push(as_flood(call));
        }
        for call in calls.iter().cycle() {
            self.exchange(&mut connection, call).await;
        }
    }

    /// Sends the largest messages that are read.
    async fn of_bodies(self: Arc<Self>, address: SocketAddr) {
        let mut connection = Connection::open(address).await;
        let edit = json!({ "path": "none.ipynb", "index": 0, "old_text": "x".repeat(LARGE), "new_text": "y" });
        let call = connection.prepare_call(Era::Modern, "edit_nb_cell", &edit).await;
        let call = as_flood(call);
        loop {
            self.wait().await;
            // Whoever is refused while it still sends is cut off.
            self.send(address, &call).await;
        }
    }

    /// Keeps more streams open than there may be.
    async fn of_streams(self: Arc<Self>, address: SocketAddr) {
        let params = json!({
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
            "notifications": { "resourcesListChanged": true },
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params }).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {LOUD}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut open = VecDeque::new();
        loop {
            self.wait().await;
            open.push_back(self.send(address, &request).await);
            if open.len() > ROOMS {
                open.pop_front();
            }
        }
    }

    /// Sends a request on a connection of its own, and reads how it is answered.
    async fn send(&self, address: SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("the server accepts");
        let _ = stream.write_all(request.as_bytes()).await;
        let mut head = [0; 12];
        let read = stream.read_exact(&mut head).await;
        self.count(read.is_err() || head != *b"HTTP/1.1 200");
        stream
    }

    async fn exchange(&self, connection: &mut Connection, call: &str) {
        self.wait().await;
        let is_refused = connection.exchange(call.as_bytes()).await.starts_with("HTTP/1.1 429");
        self.count(is_refused);
    }

    async fn of_sessions(self: Arc<Self>, address: SocketAddr, token: &str) {
        let mut connection = Connection::open(address).await;
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "flood", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        loop {
            self.wait().await;
            let is_refused = !connection
                .exchange(request.as_bytes())
                .await
                .starts_with("HTTP/1.1 200");
            self.count(is_refused);
        }
    }

    async fn wait(&self) {
        sleep(FLOOD_PAUSE).await;
        while !self.is_on.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn count(&self, is_refused: bool) {
        let counter = if is_refused { &self.refused } else { &self.passed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A request with the token of the flood.
fn as_flood(call: Vec<u8>) -> String {
    String::from_utf8(call).expect("text").replace(TOKEN, LOUD)
}

async fn measure(address: SocketAddr, path: &str, flood: &Flood) {
    let mut connection = Connection::open(address).await;
    let read = connection
        .prepare_call(Era::Modern, "read_nb_cells", &json!({ "path": path }))
        .await;
    let mut edits = Vec::new();
    for (old, new) in [("left", "right"), ("right", "left")] {
        let edit = json!({ "path": path, "index": 0, "old_text": old, "new_text": new, "exec": false });
        edits.push(connection.prepare_call(Era::Modern, "edit_nb_cell", &edit).await);
    }
    let mut edits = edits.iter().cycle();
    let (mut reads_alone, mut edits_alone) = (Vec::new(), Vec::new());
    let (mut reads_beside, mut edits_beside) = (Vec::new(), Vec::new());
    for round in 0..=rounds() {
        for is_on in [false, true] {
            flood.is_on.store(is_on, Ordering::Relaxed);
            sleep(Duration::from_millis(50)).await;
            let until = Instant::now() + ROUND;
            while Instant::now() < until {
                let read = timed(&mut connection, &read).await;
                let edit = timed(&mut connection, edits.next().expect("there are two")).await;
                // The first round warms up and is forgotten.
                if round > 0 {
                    let (reads, edits) = match is_on {
                        true => (&mut reads_beside, &mut edits_beside),
                        false => (&mut reads_alone, &mut edits_alone),
                    };
                    reads.push(read);
                    edits.push(edit);
                }
                sleep(PAUSE).await;
            }
        }
    }
    flood.is_on.store(false, Ordering::Relaxed);
    let (passed, refused) = (
        flood.passed.load(Ordering::Relaxed),
        flood.refused.load(Ordering::Relaxed),
    );
    println!("{NAME}: p95 beside a tenant that floods ({passed} of its requests let through, {refused} refused)\n");
    print("reads", reads_alone, reads_beside);
    print("edits", edits_alone, edits_beside);
    println!();
}

async fn timed(connection: &mut Connection, call: &[u8]) -> Duration {
    let begun = Instant::now();
    let answer = connection.exchange(call).await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && !answer.contains("\"isError\":true"),
        "{answer}"
    );
    begun.elapsed()
}

fn print(what: &str, alone: Vec<Duration>, beside: Vec<Duration>) {
    let (alone, beside) = (p95(alone), p95(beside));
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();
    let is_met = beside <= alone.mul_f64(GOAL) + ALLOWANCE;
    let verdict = if is_met { "met" } else { "MISSED" };
    println!("{what:<20} alone {alone:?}, beside {beside:?}: {ratio:.2}x (goal {GOAL}x and {ALLOWANCE:?}: {verdict})");
}

fn p95(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() * 95 / 100).copied().unwrap_or_default()
}

/// A notebook with one code cell and these outputs.
fn cell(outputs: &Value) -> String {
    json!({
        "cells": [{ "cell_type": "code", "id": "only", "source": "left", "metadata": {}, "execution_count": null, "outputs": outputs }],
        "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
    })
    .to_string()
}

/// One with a picture that has to be scaled whenever it is read.
fn with_picture() -> String {
    let pixel = |x: u32, y: u32| {
        let [red, green, blue, _] = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)).to_le_bytes();
        image::Rgb([red, green, blue])
    };
    let picture = image::DynamicImage::ImageRgb8(image::RgbImage::from_fn(1200, 1200, pixel));
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, image::ImageFormat::Png).expect("an image");
    let data = json!({ "image/png": BASE64_STANDARD.encode(bytes.into_inner()) });
    cell(&json!([{ "output_type": "display_data", "data": data, "metadata": {} }]))
}
