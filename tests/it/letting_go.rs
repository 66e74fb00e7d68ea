//! What many sessions and open notebooks take is given back when they are closed: counted, not weighed, since what
//! the allocator keeps of it is its own business.

use std::fs;

use futures::{StreamExt, stream};
use serde_json::json;

use crate::support::{
    Agent, Era, TOKEN, Watcher, eventually,
    gateway::{everything, lab_server},
    jupyter::install_tls,
    lab,
    notebook::notebook,
    process::resident_bytes,
    running::{Home, Running},
};

const SESSIONS: usize = 200;
const ROOMS: usize = 40;
/// One of so many sessions has its notices followed.
const FOLLOWED: usize = 4;
const AT_ONCE: usize = 16;
/// Connections to Jupyter that may be kept, and their tasks.
const WAITING: f64 = 24.0;

/// A number that the environment may change, for a thousand sessions and a hundred rooms (`JMG_TEST_SESSIONS`, `JMG_TEST_ROOMS`).
fn size(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The sum of all samples of a metric.
fn sum(scraped: &str, name: &str) -> f64 {
    let of_name = |line: &&str| line.split(['{', ' ']).next() == Some(name);
    let values = scraped
        .lines()
        .filter(of_name)
        .filter_map(|line| line.rsplit(' ').next());
    values.filter_map(|value| value.parse::<f64>().ok()).sum()
}

/// What there is of each thing that must not stay.
#[derive(Debug, Clone, Copy)]
struct Counts {
    sessions: f64,
    rooms: f64,
    limits: f64,
    connections: f64,
    tasks: f64,
    files: f64,
}

impl Counts {
    async fn of(gateway: &Running) -> Self {
        install_tls();
        let url = gateway.url().replace("/mcp", "/metrics");
        let answer = reqwest::get(url).await.expect("an answer");
        let scraped = answer.text().await.expect("text");
        let sum = |name| sum(&scraped, name);
        Self {
            sessions: sum("jmg_mcp_sessions"),
            rooms: sum("jmg_rooms"),
            limits: sum("jmg_limits_used"),
            connections: sum("jmg_http_connections"),
            tasks: sum("jmg_tokio_tasks"),
            files: sum("process_unix_file_descriptor_count"),
        }
    }

    /// Nothing is left, and of what is always there no more than before, but for connections to Jupyter that wait a while for
    /// other requests.
    fn is_back_at(&self, before: &Self) -> bool {
        self.sessions + self.rooms + self.limits < 0.5
            && self.connections < 1.5
            && self.tasks <= before.tasks + WAITING
            && self.files <= before.files + WAITING
    }
}

/// Has agents call a tool for each path, by turns.
async fn call_for_each(tool: &'static str, agents: &[Agent], paths: &[String]) {
    let calls = paths.iter().enumerate().map(|(number, path)| async move {
        let agent = &agents[number % agents.len()];
        agent.call(tool, json!({ "path": path })).await.ok()
    });
    let calls: Vec<_> = calls.collect();
    stream::iter(calls).buffer_unordered(AT_ONCE).count().await;
}

/// Sessions and rooms that are opened, used and closed.
async fn come_and_go(gateway: &Running, paths: &[String], sessions: usize) -> Counts {
    let agents: Vec<Agent> = stream::iter(0..sessions)
        .map(|_| Agent::connect_to(gateway.url(), TOKEN, Era::Legacy))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut watchers = Vec::new();
    for agent in agents.iter().step_by(FOLLOWED) {
        watchers.push(Watcher::start(agent, Era::Legacy, &[]).await);
    }
    call_for_each("read_nb_cells", &agents, paths).await;
    let most = Counts::of(gateway).await;
    call_for_each("end_nb_session", &agents, paths).await;
    let closed = stream::iter(&agents).map(Agent::close).buffer_unordered(AT_ONCE);
    assert!(closed.all(async |status| status == 204).await);
    most
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_streams_and_rooms_leave_nothing_behind() {
    let (home, folder) = (Home::new(), lab().folder());
    let (sessions, rooms) = (size("JMG_TEST_SESSIONS", SESSIONS), size("JMG_TEST_ROOMS", ROOMS));
    let paths: Vec<String> = (0..rooms)
        .map(|number| folder.write(&format!("{number}.ipynb"), &notebook(&["zero", "one"])))
        .collect();
    let limits = "name = \"all\"\nrequests_per_minute = 1000000\nburst = 1000000";
    let config = format!(
        "[http]\nmax_connections_per_address = 4096\n[mcp]\nmax_sessions_per_principal = 2000\n[store]\nurl = \"sqlite::memory:\"\n{}{}",
        lab_server("lab"),
        everything().replacen("name = \"all\"", limits, 1)
    );
    let file = home.path("gateway.toml");
    fs::write(&file, config).expect("a config");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    let gateway = Running::start(command).await;

    // What is made once, for the server and for the first of its documents, stays, and connections do for a while.
    come_and_go(&gateway, &paths[..AT_ONCE], AT_ONCE).await;
    let before = eventually("the first ones are gone", async || {
        let now = Counts::of(&gateway).await;
        now.is_back_at(&now).then_some(now)
    })
    .await;
    let started = resident_bytes(gateway.pid());

    let most = come_and_go(&gateway, &paths, sessions).await;
    let at_most = resident_bytes(gateway.pid());
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let expected = (sessions as f64, rooms as f64);
    assert_eq!((most.sessions, most.rooms), expected, "{most:?}");
    let mut last = most;
    eventually("everything is given back", async || {
        last = Counts::of(&gateway).await;
        last.is_back_at(&before).then_some(())
    })
    .await;
    println!(
        "before: {before:?}, at most: {most:?}, after: {last:?}; memory: {} MB, {} MB, {} MB",
        started >> 20,
        at_most >> 20,
        resident_bytes(gateway.pid()) >> 20
    );
}
