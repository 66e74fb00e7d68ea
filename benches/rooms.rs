//! Live documents beside the limit: a bare client in the same rooms of a real JupyterLab, and a document
//! in memory behind a bare HTTP server. Both are measured in turn, so that whatever else the machine
//! does slows both; what counts are the ratios.

mod bare;
mod limit;
mod peer;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use self::peer::Peer;
use super::{
    gateway,
    lab::{Folder, lab},
    overhead::{median, rounds, runtime},
    process::Gateway,
    wire::{Connection, Era, get},
};

pub(crate) use bare::{is_bare_child, run_bare_child};

const ROUND: Duration = Duration::from_millis(100);
const CLIENTS: usize = 32;
/// Number of slow measurements, which take milliseconds and need Jupyter, for each round of quick ones.
const EDITS: usize = 2;
const OPENINGS: usize = 12;
const OPEN_ROOMS: usize = 20;

/// Where everything is.
struct Bench {
    gateway: SocketAddr,
    limits: Runtime,
    folder: Folder,
}

/// A measurement beside its limit: the medians of both, and of the ratios of what was measured
/// together, which differ where the machine was busy with something else for a while.
#[derive(Clone, Copy)]
pub(crate) struct Compared {
    ours: f64,
    theirs: f64,
    ratio: f64,
}

impl Compared {
    pub(crate) fn new(ours: Vec<f64>, theirs: Vec<f64>) -> Self {
        let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs);
        Self {
            ratio: median(ratios.collect()),
            ours: median(ours),
            theirs: median(theirs),
        }
    }

    /// Microseconds per call as calls per second.
    fn per_second(self) -> Self {
        Self {
            ours: 1e6 / self.ours,
            theirs: 1e6 / self.theirs,
            ratio: 1.0 / self.ratio,
        }
    }
}

/// Criterion by which a measurement is judged.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// At most so many times the limit.
    Ratio(f64),
    /// At least so much, whatever the limit.
    AtLeast(f64),
    /// Only to be seen.
    None,
}

const PARTS: [&str; 4] = ["rooms reads", "rooms edits", "rooms openings", "rooms memory"];

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    let wanted = PARTS.map(wanted);
    if wanted == [false; PARTS.len()] {
        return;
    }
    let (limits, gateways) = (runtime("limit"), runtime("gateway"));
    let gateway = gateways.block_on(gateway::start(lab().url(), lab().token()));
    let bench = Bench {
        gateway,
        limits,
        folder: lab().folder(),
    };
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime");
    header("rooms, medians");
    let [reads, edits, openings, memory] = wanted;
    client.block_on(async {
        if reads {
            bench.reads().await;
        }
        if edits {
            bench.edits().await;
        }
        if openings {
            bench.openings().await;
        }
        if memory {
            bench.memory().await;
        }
    });
    println!();
    // Their tasks never end by themselves.
    gateways.shutdown_background();
    bench.limits.shutdown_background();
}

impl Bench {
    async fn reads(&self) {
        let path = self.write("read.ipynb", 500);
        let limit = self.serve_limit(&path).await;
        let one = json!({ "path": path, "ranges": [{ "start": 250 }] });
        let all = json!({ "path": path });
        let compared = self.compare_reads(1, &one, limit, "/cells?start=250&end=251").await;
        row("read one cell of 500, us", compared, Goal::Ratio(3.0));
        let compared = self.compare_reads(1, &all, limit, "/cells").await;
        row("read all of 500, us", compared, Goal::Ratio(2.0));
        let compared = self
            .compare_reads(CLIENTS, &one, limit, "/cells?start=250&end=251")
            .await;
        row(
            "read one cell of 500, 32 clients, calls/s",
            compared.per_second(),
            Goal::AtLeast(8000.0),
        );
        let (small, large) = (self.write("small.ipynb", 5), self.write("large.ipynb", 5000));
        let read = |path: &str, start: usize| json!({ "path": path, "ranges": [{ "start": start }] });
        let mut small = self.caller("read_nb_cells", &read(&small, 3)).await;
        let mut large = self.caller("read_nb_cells", &read(&large, 4000)).await;
        let compared = in_turn(std::slice::from_mut(&mut large), std::slice::from_mut(&mut small)).await;
        row("read one cell of 5,000 beside one of 5, us", compared, Goal::Ratio(1.5));
    }

    /// Microseconds per read, of the gateway and of the limit.
    async fn compare_reads(&self, clients: usize, arguments: &Value, limit: SocketAddr, target: &str) -> Compared {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..clients {
            ours.push(self.caller("read_nb_cells", arguments).await);
            theirs.push(Caller {
                connection: Connection::open(limit).await,
                request: get(target),
            });
        }
        in_turn(&mut ours, &mut theirs).await
    }

    async fn edits(&self) {
        row(
            "edit until another has it, 500 cells, us",
            self.edit_until_seen(500).await,
            Goal::Ratio(1.2),
        );
        row(
            "insert until the server has it, 500 cells, us",
            self.insert_until_echoed(500).await,
            Goal::Ratio(1.3),
        );
        let small = self.edit_until_seen(5).await;
        let large = self.edit_until_seen(5000).await;
        row("edit one cell of 5, us", small, Goal::None);
        row("edit one cell of 5,000, us", large, Goal::None);
        // The server's own work grows with the document, so that a bare client's edits slow down too.
        let growth = |large: f64, small: f64| Compared {
            ours: large,
            theirs: small,
            ratio: large / small,
        };
        row(
            "edit one of 5,000 beside one of 5, us",
            growth(large.ours, small.ours),
            Goal::Ratio(1.5),
        );
        row(
            "the same by a bare client, us",
            growth(large.theirs, small.theirs),
            Goal::None,
        );
    }

    /// Microseconds until a second client has an edit: of an agent, and of a bare client.
    async fn edit_until_seen(&self, cells: usize) -> Compared {
        let path = self.write(&format!("edit-{cells}.ipynb"), cells);
        let (mut editor, mut watcher) = (Peer::join(&path).await, Peer::join(&path).await);
        let mut connection = Connection::open(self.gateway).await;
        // A cell for each, so that neither edits what it has not seen.
        let (at, at_peer) = (cells / 2, cells / 2 + 1);
        let [mut ours, mut theirs] = [Vec::new(), Vec::new()];
        for round in 0..=rounds() * EDITS {
            let content = format!("agent = {round}");
            let arguments = json!({ "path": path, "modifications": [{ "range": { "start": at }, "content": content }], "exec": false });
            let call = connection
                .prepare_call(Era::Modern, "modify_nb_cells", &arguments)
                .await;
            let started = Instant::now();
            let (seen, answer) = tokio::join!(watcher.until_source(at, &content), connection.exchange(&call));
            assert!(answer.contains(r#""acknowledged":true"#), "{answer}");
            let by_agent = seen - started;
            editor.drain().await;
            let content = format!("person = {round}");
            let started = Instant::now();
            editor.set_source(at_peer, &content).await;
            let by_peer = watcher.until_source(at_peer, &content).await - started;
            // The first opens the room.
            if round > 0 {
                ours.push(micros(by_agent));
                theirs.push(micros(by_peer));
            }
        }
        Compared::new(ours, theirs)
    }

    /// Microseconds until the server has an inserted cell: of an agent, and of a bare client.
    async fn insert_until_echoed(&self, cells: usize) -> Compared {
        let path = self.write("insert.ipynb", cells);
        let mut editor = Peer::join(&path).await;
        let mut connection = Connection::open(self.gateway).await;
        let at = cells / 2;
        let insert = json!({ "path": path, "position": at, "cells": [{ "content": "x = 1" }], "exec": false });
        let delete = json!({ "path": path, "ranges": [{ "start": at }] });
        let insert = connection.prepare_call(Era::Modern, "insert_nb_cells", &insert).await;
        let delete = connection.prepare_call(Era::Modern, "delete_nb_cells", &delete).await;
        let [mut ours, mut theirs] = [Vec::new(), Vec::new()];
        for round in 0..=rounds() * EDITS {
            let started = Instant::now();
            let answer = connection.exchange(&insert).await;
            let by_agent = started.elapsed();
            assert!(answer.contains(r#""acknowledged":true"#), "{answer}");
            connection.exchange(&delete).await;
            editor.drain().await;
            let started = Instant::now();
            editor.insert(at, "x = 1").await;
            editor.until_echoed().await;
            let by_peer = started.elapsed();
            editor.delete(at).await;
            editor.until_echoed().await;
            if round > 0 {
                ours.push(micros(by_agent));
                theirs.push(micros(by_peer));
            }
        }
        Compared::new(ours, theirs)
    }

    /// Documents that nobody has open, so that Jupyter must load them from disk too.
    async fn openings(&self) {
        let mut connection = Connection::open(self.gateway).await;
        let [mut ours, mut theirs] = [Vec::new(), Vec::new()];
        for round in 0..=OPENINGS {
            let path = self.write(&format!("open-{round}.ipynb"), 500);
            let arguments = json!({ "path": path, "ranges": [{ "start": 0 }] });
            let call = connection.prepare_call(Era::Modern, "read_nb_cells", &arguments).await;
            let started = Instant::now();
            let answer = connection.exchange(&call).await;
            let by_agent = started.elapsed();
            assert!(answer.contains(r#""cell_count":500"#), "{answer}");
            let path = self.write(&format!("open-bare-{round}.ipynb"), 500);
            let started = Instant::now();
            let peer = Peer::join(&path).await;
            let by_peer = started.elapsed();
            assert_eq!(peer.cell_count(), 500);
            if round > 0 {
                ours.push(micros(by_agent));
                theirs.push(micros(by_peer));
            }
        }
        row("open 500 cells, us", Compared::new(ours, theirs), Goal::Ratio(1.1));
    }

    /// Measures the memory of an open room beside that of a bare document.
    async fn memory(&self) {
        let update = Peer::join(&self.write("whole.ipynb", 500)).await.whole();
        let bare = bare::megabytes_each(&update, OPEN_ROOMS);
        let gateway = Gateway::start("30m", lab().url(), lab().token());
        let mut connection = Connection::open(gateway.address).await;
        let mut before = 0.0;
        for room in 0..=OPEN_ROOMS {
            let path = self.write(&format!("memory-{room}.ipynb"), 500);
            let arguments = json!({ "path": path, "ranges": [{ "start": 0 }] });
            let call = connection.prepare_call(Era::Modern, "read_nb_cells", &arguments).await;
            let answer = connection.exchange(&call).await;
            assert!(answer.contains(r#""cell_count":500"#), "{answer}");
            if room == 0 {
                before = gateway.rss_at_rest().await;
            }
        }
        let rooms = f64::from(u32::try_from(OPEN_ROOMS).expect("few"));
        let each = (gateway.rss_at_rest().await - before) / rooms;
        let compared = Compared::new(vec![each * 1e3], vec![bare * 1e3]);
        row("RSS of an open room of 500 cells, kB", compared, Goal::Ratio(1.3));
    }

    fn write(&self, name: &str, cells: usize) -> String {
        self.folder.write(name, &notebook(cells))
    }

    /// The document in memory, behind HTTP.
    async fn serve_limit(&self, path: &str) -> SocketAddr {
        let update = Peer::join(path).await.whole();
        self.limits
            .spawn(async move { limit::start(&update).await })
            .await
            .expect("the limit starts")
    }

    async fn caller(&self, tool: &str, arguments: &Value) -> Caller {
        let mut connection = Connection::open(self.gateway).await;
        let request = connection.prepare_call(Era::Modern, tool, arguments).await;
        let answer = connection.exchange(&request).await;
        assert!(answer.contains(r#""isError":false"#), "{answer}");
        Caller { connection, request }
    }
}

/// A client that asks the same again and again.
struct Caller {
    connection: Connection,
    request: Vec<u8>,
}

impl Caller {
    async fn call_until(&mut self, deadline: Instant) -> usize {
        let mut calls = 0;
        while Instant::now() < deadline {
            self.connection.exchange(&self.request).await;
            calls += 1;
        }
        calls
    }
}

/// Microseconds per call of two groups of clients, which take turns.
async fn in_turn(ours: &mut [Caller], theirs: &mut [Caller]) -> Compared {
    let mut times = [Vec::new(), Vec::new()];
    let sides = [ours, theirs];
    for round in 0..=rounds() {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let started = Instant::now();
            let clients = sides[side].iter_mut();
            let calls = join_all(clients.map(|client| client.call_until(started + ROUND))).await;
            let calls = f64::from(u32::try_from(calls.iter().sum::<usize>()).expect("few"));
            // The first round warms up.
            if round > 0 {
                times[side].push(micros(started.elapsed()) / calls);
            }
        }
    }
    let [ours, theirs] = times;
    Compared::new(ours, theirs)
}

/// A notebook as people make them: most cells are code that has run, some are text.
fn notebook(cells: usize) -> String {
    let cell = |index: usize| match index % 4 {
        3 => json!({
            "id": format!("cell-{index}"), "cell_type": "markdown", "metadata": {},
            "source": format!("## Step {index}\n\nWhat the next cells do, and why they do it in this way."),
        }),
        _ => json!({
            "id": format!("cell-{index}"), "cell_type": "code", "metadata": {}, "execution_count": index,
            "source": format!("result_{index} = compute(data, step={index})\nprint(result_{index}.describe())"),
            "outputs": [{ "output_type": "stream", "name": "stdout", "text": format!("count {index}\nmean  0.5\nstd   0.1\n") }],
        }),
    };
    let cells: Vec<Value> = (0..cells).map(cell).collect();
    json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string()
}

pub(crate) fn header(title: &str) {
    println!(
        "{title:<52} {:>10} {:>10} {:>7} {:>8}",
        "measured", "limit", "ratio", "goal"
    );
}

pub(crate) fn row(what: &str, compared: Compared, goal: Goal) {
    let Compared { ours, theirs, ratio } = compared;
    let verdict = |met| if met { "met" } else { "MISSED" };
    let (goal, verdict) = match goal {
        Goal::Ratio(most) => (format!("{most}x"), verdict(ratio <= most)),
        Goal::AtLeast(least) => (least.to_string(), verdict(ours >= least)),
        Goal::None => (String::new(), ""),
    };
    println!("{what:<52} {ours:>10.0} {theirs:>10.0} {ratio:>7.2} {goal:>8} {verdict}");
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
