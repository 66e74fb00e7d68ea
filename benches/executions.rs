//! Executions beside the limit: the same code over a bare connection to the same kernel, and the same writes into the
//! same document by a bare client of its room. Both in turn, so that only the ratios say something.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use jupyter_client::{
    DocPath, JupyterServer, Secret, ServerOptions,
    kernel::{Channel, ExecuteRequest, KernelEvent, KernelLink},
};
use live_document::{CellWrite, CellWritten, Host, OutputsChange, Room, RoomKind, RunEnd};
use serde_json::{Value, json};
use tokio::{runtime::Builder, sync::mpsc::Receiver};

use super::{
    gateway,
    lab::{Folder, lab},
    overhead::{rounds, runtime},
    rooms::{Compared, Goal, header, micros, row},
    wire::{Connection, Era},
};

const AGENTS: usize = 32;
/// Number of runs in each round.
const RUNS: usize = 4;
/// Time for which many execute at once, again and again.
const WINDOW: Duration = Duration::from_secs(4);
/// Longest time that the server may be busy with earlier writes.
const SAVE_TIMEOUT: Duration = Duration::from_secs(4);
const PARTS: [&str; 5] = [
    "executions one",
    "executions output",
    "executions many",
    "executions apart",
    "executions shared",
];

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    let wanted = PARTS.map(wanted);
    if wanted == [false; PARTS.len()] {
        return;
    }
    let gateways = runtime("gateway");
    let address = gateways.block_on(gateway::start(lab().url(), lab().token()));
    let bench = Bench {
        gateway: address,
        server: server(),
        folder: lab().folder(),
    };
    let client = Builder::new_current_thread().enable_all().build().expect("a runtime");
    header("executions, medians");
    let [one, output, many, apart, shared] = wanted;
    client.block_on(async {
        if one {
            bench.one().await;
        }
        if output {
            bench.first_output().await;
        }
        if many {
            bench.many().await;
        }
        if apart {
            bench.apart().await;
        }
        if shared {
            bench.shared().await;
        }
    });
    println!();
    gateways.shutdown_background();
}

struct Bench {
    gateway: std::net::SocketAddr,
    server: Arc<JupyterServer>,
    folder: Folder,
}

/// A bare connection to a kernel.
struct BareKernel {
    link: KernelLink,
    events: Receiver<KernelEvent>,
}

/// A bare client of a notebook's kernel and of its document.
struct Bare {
    kernel: BareKernel,
    room: Room,
    cell: String,
    author: Arc<str>,
}

/// An agent that executes the same again and again.
struct Agent {
    connection: Connection,
    request: Vec<u8>,
}

impl Bench {
    async fn one(&self) {
        let path = self.notebook("one.ipynb", "1+1");
        let mut agent = self.agent("run_code", &json!({ "path": path, "code": "1+1" })).await;
        let mut cells = self
            .agent("execute_nb_cells", &json!({ "path": path, "ranges": [{ "start": 0 }] }))
            .await;
        let mut bare = self.bare(&path).await;
        let [mut code, mut stored, mut raw, mut raw_stored] = [const { Vec::new() }; 4];
        for round in 0..=rounds() * RUNS {
            let measured = [
                agent.execute().await,
                bare.kernel.execute("1+1").await,
                cells.execute().await,
                bare.execute_stored("1+1").await,
            ];
            if round > 0 {
                for (side, took) in [&mut code, &mut raw, &mut stored, &mut raw_stored]
                    .into_iter()
                    .zip(measured)
                {
                    side.push(took);
                }
            }
        }
        let p95 = |ours: &[f64], theirs: &[f64]| {
            let at = |values: &[f64]| {
                let mut sorted = values.to_vec();
                sorted.sort_by(f64::total_cmp);
                sorted[sorted.len() * 95 / 100]
            };
            Compared::new(vec![at(ours)], vec![at(theirs)])
        };
        row("run_code 1+1, p95, us", p95(&code, &raw), Goal::Ratio(1.25));
        row(
            "execute a stored cell, p95, us",
            p95(&stored, &raw_stored),
            Goal::Ratio(1.5),
        );
        row("run_code 1+1, us", Compared::new(code, raw), Goal::Ratio(1.25));
        row(
            "execute a stored cell, us",
            Compared::new(stored, raw_stored),
            Goal::Ratio(1.5),
        );
    }

    /// From the request until somebody else in the notebook has the first output, beside when the kernel sent it.
    async fn first_output(&self) {
        let source = "import time; print(time.time_ns(), flush=True); time.sleep(0.1)";
        let path = self.notebook("output.ipynb", source);
        let mut agent = self
            .agent("execute_nb_cells", &json!({ "path": path, "ranges": [{ "start": 0 }] }))
            .await;
        let mut bare = self.bare(&path).await;
        let [mut ours, mut theirs] = [Vec::new(), Vec::new()];
        for _ in 0..rounds() * RUNS {
            let (room, cell) = (bare.room.clone(), bare.cell.clone());
            let before = room.outputs_of(&cell);
            let started = Instant::now();
            let seen = async {
                until_output(&room, &cell, before.as_deref().unwrap_or_default()).await;
                started.elapsed()
            };
            let sent = async {
                until_stream(&mut bare.kernel.events).await;
                started.elapsed()
            };
            let (seen, sent, _) = tokio::join!(seen, sent, agent.execute());
            ours.push(micros(seen));
            theirs.push(micros(sent));
            while bare.kernel.events.try_recv().is_ok() {}
        }
        row(
            "first output until another has it, us",
            Compared::new(ours, theirs),
            Goal::Ratio(1.3),
        );
    }

    async fn many(&self) {
        let (mut agents, mut bares) = (Vec::new(), Vec::new());
        for number in 0..AGENTS {
            let path = self.notebook(&format!("many-{number}.ipynb"), "1+1");
            let execute = json!({ "path": path, "ranges": [{ "start": 0 }] });
            agents.push(self.agent("execute_nb_cells", &execute).await);
            bares.push(self.bare(&path).await);
        }
        let [mut ours, mut theirs] = [Vec::new(), Vec::new()];
        for round in 0..=rounds().div_ceil(4) {
            let started = Instant::now();
            let count = again_and_again(&mut agents, async |agent| agent.execute().await).await;
            let by_agents = per_execution(started, count, &bares).await;
            let started = Instant::now();
            let count = again_and_again(&mut bares, async |bare| bare.execute_stored("1+1").await).await;
            let by_bares = per_execution(started, count, &bares).await;
            if round > 0 {
                ours.push(by_agents);
                theirs.push(by_bares);
            }
        }
        let compared = Compared::new(ours, theirs);
        row(
            "32 agents on 32 notebooks, us per execution",
            compared,
            Goal::Ratio(1.25),
        );
    }

    /// The same beside kernels to kernels of their own, over which nothing is written into any notebook.
    async fn apart(&self) {
        let (mut agents, mut kernels) = (Vec::new(), Vec::new());
        for _ in 0..AGENTS {
            kernels.push(self.bare_kernel().await);
        }
        for number in 0..AGENTS {
            let path = self.notebook(&format!("apart-{number}.ipynb"), "1+1");
            let execute = json!({ "path": path, "ranges": [{ "start": 0 }] });
            agents.push(self.agent("execute_nb_cells", &execute).await);
        }
        let [mut ours, mut theirs] = [Vec::new(), Vec::new()];
        for round in 0..=rounds().div_ceil(4) {
            let started = Instant::now();
            let count = again_and_again(&mut agents, async |agent| agent.execute().await).await;
            ours.push(micros(started.elapsed()) / count);
            // The server saves the notebooks after the last change.
            tokio::time::sleep(SAVE_TIMEOUT).await;
            let started = Instant::now();
            let count = again_and_again(&mut kernels, async |kernel| kernel.execute("1+1").await).await;
            theirs.push(micros(started.elapsed()) / count);
            if round == 0 {
                let first = Compared::new(std::mem::take(&mut ours), std::mem::take(&mut theirs));
                row("32 agents beside bare kernels, first seconds", first, Goal::None);
            }
        }
        let compared = Compared::new(ours, theirs);
        row("32 agents beside bare kernels, us", compared, Goal::Ratio(1.25));
    }

    /// Many agents with a cell each in one notebook, beside a bare connection that sends the kernel all of it at once.
    async fn shared(&self) {
        let path = self.notebook_of("shared.ipynb", "1+1", AGENTS);
        let mut agents = Vec::new();
        for number in 0..AGENTS {
            let execute = json!({ "path": path, "ranges": [{ "start": number }] });
            agents.push(self.agent("execute_nb_cells", &execute).await);
        }
        let mut kernel = self.bare_kernel().await;
        let [mut ours, mut theirs] = [Vec::new(), Vec::new()];
        for round in 0..=rounds().div_ceil(4) {
            let started = Instant::now();
            let count = again_and_again(&mut agents, async |agent| agent.execute().await).await;
            let by_agents = micros(started.elapsed()) / count;
            tokio::time::sleep(SAVE_TIMEOUT).await;
            let started = Instant::now();
            let mut count = 0_u32;
            while started.elapsed() < WINDOW {
                count += kernel.execute_all("1+1", AGENTS).await;
            }
            if round > 0 {
                ours.push(by_agents);
                theirs.push(micros(started.elapsed()) / f64::from(count));
            }
        }
        let compared = Compared::new(ours, theirs);
        row(
            "32 agents on one notebook, us per execution",
            compared,
            Goal::Ratio(1.25),
        );
    }

    /// A bare connection to a new kernel.
    async fn bare_kernel(&self) -> BareKernel {
        let started = self.server.start_kernel(None, None).await.expect("a kernel");
        let session = uuid::Uuid::new_v4().to_string();
        let (link, events) = KernelLink::connect(Arc::clone(&self.server), &started.id, &session)
            .await
            .expect("a connection");
        let mut kernel = BareKernel { link, events };
        kernel.execute("1").await;
        kernel
    }

    fn notebook(&self, name: &str, source: &str) -> String {
        self.notebook_of(name, source, 1)
    }

    fn notebook_of(&self, name: &str, source: &str, cells: usize) -> String {
        let cell = |number| json!({ "id": format!("c{number}"), "cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": null });
        let cells: Vec<Value> = (0..cells).map(cell).collect();
        let notebook = json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
        self.folder.write(name, &notebook.to_string())
    }

    /// Connects an agent and lets it execute once, so that the kernel is there.
    async fn agent(&self, tool: &str, arguments: &Value) -> Agent {
        let mut connection = Connection::open(self.gateway).await;
        let request = connection.prepare_call(Era::Modern, tool, arguments).await;
        let mut agent = Agent { connection, request };
        agent.execute().await;
        agent
    }

    async fn bare(&self, path: &str) -> Bare {
        let path = DocPath::parse(path).expect("a path");
        let kernel = self.server.kernel_of(&path).await.expect("sessions").expect("a kernel");
        let session = uuid::Uuid::new_v4().to_string();
        let (link, events) = KernelLink::connect(Arc::clone(&self.server), &kernel.id, &session)
            .await
            .expect("a connection");
        let room = Room::open(
            Arc::new(Host::new(Arc::clone(&self.server))),
            &path,
            RoomKind::Notebook,
            Duration::from_secs(60),
        )
        .await
        .expect("a room");
        Bare {
            kernel: BareKernel { link, events },
            room,
            cell: "c0".to_owned(),
            author: "bare".into(),
        }
    }
}

impl Agent {
    /// Microseconds until the answer.
    async fn execute(&mut self) -> f64 {
        let started = Instant::now();
        let answer = self.connection.exchange(&self.request).await;
        let took = started.elapsed();
        assert!(answer.contains(r#""status":"completed""#), "{answer}");
        micros(took)
    }
}

impl BareKernel {
    async fn execute(&mut self, code: &str) -> f64 {
        while self.events.try_recv().is_ok() {}
        let started = Instant::now();
        self.request(code).await;
        micros(started.elapsed())
    }

    /// Sends the same code several times at once, and waits until the kernel has run it all; how often it ran.
    async fn execute_all(&mut self, code: &str, times: usize) -> u32 {
        let mut executed = 0;
        let mut unfinished = HashMap::new();
        for _ in 0..times {
            let id = uuid::Uuid::new_v4().to_string();
            self.link.execute(&id, &request_of(code)).await.expect("it is sent");
            unfinished.insert(id, 2);
        }
        while !unfinished.is_empty() {
            let Some(KernelEvent::Message(message)) = self.events.recv().await else {
                panic!("the line to the kernel was cut");
            };
            let is_end = match message.msg_type.as_str() {
                "execute_reply" => true,
                "status" => message.content["execution_state"] == "idle",
                _ => false,
            };
            if !is_end {
                continue;
            }
            let parent = message.parent_id.unwrap_or_default();
            if let Some(ends) = unfinished.get_mut(&parent) {
                *ends -= 1;
                if *ends == 0 {
                    unfinished.remove(&parent);
                    executed += 1;
                }
            }
        }
        executed
    }

    /// Runs code until the kernel has replied and is idle; returns its result as an output.
    async fn request(&mut self, code: &str) -> Value {
        let id = uuid::Uuid::new_v4().to_string();
        self.link.execute(&id, &request_of(code)).await.expect("it is sent");
        let (mut replied, mut idle, mut result) = (false, false, Value::Null);
        while !(replied && idle) {
            let Some(KernelEvent::Message(message)) = self.events.recv().await else {
                panic!("the connection to the kernel was cut");
            };
            if message.parent_id.as_ref() != Some(&id) {
                continue;
            }
            match message.msg_type.as_str() {
                "execute_reply" => replied = true,
                "status" => idle |= message.content["execution_state"] == "idle",
                "execute_result" => {
                    result = json!({ "output_type": "execute_result", "data": message.content["data"], "metadata": {}, "execution_count": 1 });
                }
                _ => {}
            }
        }
        result
    }
}

fn request_of(code: &str) -> ExecuteRequest {
    ExecuteRequest {
        code: code.to_owned(),
        silent: false,
        store_history: true,
        allow_stdin: false,
        stop_on_error: false,
    }
}

impl Bare {
    /// The same with what JupyterLab would write into the document.
    async fn execute_stored(&mut self, code: &str) -> f64 {
        while self.kernel.events.try_recv().is_ok() {}
        let started = Instant::now();
        self.write(&CellWrite {
            begin: true,
            ..CellWrite::default()
        });
        let result = self.kernel.request(code).await;
        let outputs = OutputsChange {
            push: vec![result],
            ..OutputsChange::default()
        };
        self.write(&CellWrite {
            outputs: Some(outputs),
            ..CellWrite::default()
        });
        let end = RunEnd {
            execution_count: Some(1),
        };
        self.write(&CellWrite {
            end: Some(end),
            ..CellWrite::default()
        });
        micros(started.elapsed())
    }

    fn write(&self, write: &CellWrite) {
        self.written(write);
    }

    fn written(&self, write: &CellWrite) -> Option<CellWritten> {
        let written = self.room.write_cell(&self.author, "bare", &self.cell, write);
        written.expect("the room is open")
    }

    /// Waits until the server has what was written, by writing once more.
    async fn settled(&self) {
        let begin = CellWrite {
            begin: true,
            ..CellWrite::default()
        };
        if let Some(written) = self.written(&begin) {
            written.acknowledgement.arrived().await;
        }
    }
}

/// Microseconds of an execution among many, until the server has taken in all that was written too, so that neither side
/// leaves work to the other.
async fn per_execution(started: Instant, count: f64, bares: &[Bare]) -> f64 {
    join_all(bares.iter().map(Bare::settled)).await;
    micros(started.elapsed()) / count
}

/// Runs per second of all of them together.
async fn again_and_again<T>(all: &mut [T], run: impl AsyncFn(&mut T) -> f64) -> f64 {
    let started = Instant::now();
    let repeat = async |one: &mut T| {
        let mut count = 0_u32;
        while started.elapsed() < WINDOW {
            run(one).await;
            count += 1;
        }
        count
    };
    let counts = join_all(all.iter_mut().map(repeat)).await;
    f64::from(counts.iter().sum::<u32>())
}

/// Waits until the cell has an output that it did not have before.
async fn until_output(room: &Room, cell: &str, before: &[Value]) {
    let mut changes = room.changes();
    loop {
        let outputs = room.outputs_of(cell).unwrap_or_default();
        if !outputs.is_empty() && outputs != before {
            return;
        }
        changes.changed().await.expect("the room is open");
    }
}

async fn until_stream(events: &mut Receiver<KernelEvent>) {
    while let Some(event) = events.recv().await {
        if matches!(&event, KernelEvent::Message(message) if message.channel == Channel::Iopub && message.msg_type == "stream")
        {
            return;
        }
    }
}

fn server() -> Arc<JupyterServer> {
    let url = lab().url().parse().expect("a URL");
    let options = ServerOptions::new("lab", url, Secret::new(lab().token()));
    Arc::new(JupyterServer::new(&options, Arc::new(())).expect("a client"))
}
