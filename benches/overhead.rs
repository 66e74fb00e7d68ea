//! One tool call through the gateway beside the same call to a bare rmcp server, in both eras, with one
//! client and with many. Both are measured in turn, in many short rounds, so that whatever else the
//! machine does slows both; what counts is the median of the rounds' ratios.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures::future::join_all;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use super::{
    bare, gateway,
    wire::{Connection, Era},
};

const ROUND: Duration = Duration::from_millis(100);
const DEFAULT_ROUNDS: usize = 40;
const CASES: [(Era, usize); 4] = [(Era::Legacy, 1), (Era::Legacy, 32), (Era::Modern, 1), (Era::Modern, 32)];
/// Longest time of a call, as a multiple of one to a bare server.
const GOAL: f64 = 1.3;
const TOOL: &str = "get_base_url";

struct Server {
    /// Also the name of its threads, by which its processor time is found.
    name: &'static str,
    address: SocketAddr,
}

struct Client {
    connection: Connection,
    call: Vec<u8>,
}

/// Results of one server in all rounds.
#[derive(Default)]
struct Tally {
    latencies: Vec<Duration>,
    /// Seconds per call, round by round.
    time_per_call: Vec<f64>,
    /// Seconds of processor time that the server took per call, round by round.
    cpu_per_call: Vec<f64>,
}

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    let cases: Vec<_> = CASES.into_iter().filter(|case| wanted(&name_of(*case))).collect();
    if cases.is_empty() {
        return;
    }
    let (bare_runtime, gateway_runtime) = (runtime("bare"), runtime("gateway"));
    let gateway = gateway_runtime.block_on(gateway::start("http://127.0.0.1:9/", ""));
    let client_runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("{TOOL}, median of {} rounds of {ROUND:?} each\n", rounds());
    println!(
        "{:<20} {:<8} {:>9} {:>9} {:>9} {:>12}",
        "overhead", "server", "calls/s", "p50 us", "p95 us", "cpu us/call"
    );
    for case in cases {
        let servers = [
            Server {
                name: "bare",
                address: bare_runtime.block_on(bare::start(case.0)),
            },
            Server {
                name: "gateway",
                address: gateway,
            },
        ];
        let tallies = client_runtime.block_on(measure(case, &servers));
        print(&name_of(case), &servers, tallies);
    }
    println!();
    // Its tasks never end by themselves.
    gateway_runtime.shutdown_background();
    bare_runtime.shutdown_background();
}

fn name_of((era, clients): (Era, usize)) -> String {
    format!("overhead {} {clients}", era.as_str())
}

pub(crate) fn rounds() -> usize {
    let given = std::env::var("BENCH_ROUNDS").ok();
    given.map_or(DEFAULT_ROUNDS, |rounds| {
        rounds.parse().expect("BENCH_ROUNDS is a number")
    })
}

/// As the binary's own: as many workers as there are processors.
pub(crate) fn runtime(name: &str) -> Runtime {
    Builder::new_multi_thread()
        .thread_name(name)
        .enable_all()
        .build()
        .expect("a runtime")
}

async fn measure((era, clients): (Era, usize), servers: &[Server; 2]) -> [Tally; 2] {
    let mut sides = Vec::new();
    for server in servers {
        sides.push(join_all((0..clients).map(|_| connect(server, era))).await);
    }
    let mut tallies = [Tally::default(), Tally::default()];
    // The first round warms up and is forgotten. Which server goes first changes, since the second
    // finds the processor as the first has left it.
    for round in 0..=rounds() {
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let mut ignored = Tally::default();
            let tally = if round == 0 { &mut ignored } else { &mut tallies[side] };
            load(&servers[side], &mut sides[side], tally).await;
        }
    }
    tallies
}

async fn connect(server: &Server, era: Era) -> Client {
    let mut connection = Connection::open(server.address).await;
    let call = connection.prepare_call(era, TOOL, &json!({})).await;
    let answer = connection.exchange(&call).await;
    assert!(
        answer.contains(r#""structuredContent":{"base_url":"http://127.0.0.1:9","server":"lab"}"#),
        "{} answered: {answer}",
        server.name
    );
    Client { connection, call }
}

/// Lets all clients call, each as fast as it is answered, for one round.
async fn load(server: &Server, clients: &mut [Client], tally: &mut Tally) {
    let cpu_before = cpu_time(server.name);
    let started = Instant::now();
    let latencies = join_all(clients.iter_mut().map(|client| client.call_until(started + ROUND))).await;
    let took = started.elapsed();
    let cpu = cpu_time(server.name).saturating_sub(cpu_before);
    let calls: usize = latencies.iter().map(Vec::len).sum();
    tally.latencies.extend(latencies.into_iter().flatten());
    tally.time_per_call.push(per_call(took, calls));
    tally.cpu_per_call.push(per_call(cpu, calls));
}

impl Client {
    async fn call_until(&mut self, deadline: Instant) -> Vec<Duration> {
        let mut latencies = Vec::new();
        let mut now = Instant::now();
        while now < deadline {
            self.connection.exchange(&self.call).await;
            let done = Instant::now();
            latencies.push(done - now);
            now = done;
        }
        latencies
    }
}

/// The processor time that threads of this name have used so far; zero where the system does not tell.
fn cpu_time(thread_name: &str) -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let read = |file: &str| std::fs::read_to_string(thread.path().join(file)).ok();
        if read("comm")?.trim() != thread_name {
            return None;
        }
        read("schedstat")?.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

fn print(case: &str, servers: &[Server; 2], mut tallies: [Tally; 2]) {
    let ratio = |pick: fn(&Tally) -> &Vec<f64>| {
        let [bare, gateway] = &tallies;
        median(
            pick(gateway)
                .iter()
                .zip(pick(bare))
                .map(|(ours, theirs)| ours / theirs)
                .collect(),
        )
    };
    let cost = ratio(|tally| &tally.time_per_call);
    let cpu_cost = ratio(|tally| &tally.cpu_per_call);
    for (server, tally) in servers.iter().zip(&mut tallies) {
        tally.latencies.sort_unstable();
        println!(
            "{:<20} {:<8} {:>9.0} {:>9.0} {:>9.0} {:>12.1}",
            case.trim_start_matches("overhead "),
            server.name,
            1.0 / median(tally.time_per_call.clone()),
            micros(tally.latencies[tally.latencies.len() / 2]),
            micros(tally.latencies[tally.latencies.len() * 95 / 100]),
            median(tally.cpu_per_call.clone()) * 1e6,
        );
    }
    let verdict = if cost <= GOAL { "met" } else { "MISSED" };
    println!(
        "{:<20} time per call {cost:.2}x (goal {GOAL}x: {verdict}), processor time {cpu_cost:.2}x",
        ""
    );
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn per_call(time: Duration, calls: usize) -> f64 {
    time.as_secs_f64() / f64::from(u32::try_from(calls.max(1)).unwrap_or(u32::MAX))
}
