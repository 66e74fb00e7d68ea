//! Costs of the binary itself: time to start, and resident memory as sessions come and go.

use std::time::{Duration, Instant};

use super::{
    process::Gateway,
    wire::{Connection, get},
};

const STARTS: usize = 9;
const SESSIONS: usize = 1000;
/// A server that is down: none is needed for sessions.
const NOWHERE: &str = "http://127.0.0.1:9/";
/// Idle sessions are looked for now and then, so that they outlive their time a little.
const SWEEP_PATIENCE: Duration = Duration::from_secs(40);
pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    println!("{:<44} {:>9} {:>9}", "memory", "measured", "goal");
    let mut starts: Vec<_> = (0..STARTS)
        .map(|_| Gateway::start("30m", NOWHERE, "").started_in)
        .collect();
    starts.sort_unstable();
    row("start until healthy, ms", millis(starts[STARTS / 2]), Some(100.0));
    runtime.block_on(closed_by_clients());
    runtime.block_on(closed_when_idle());
}

async fn closed_by_clients() {
    let gateway = Gateway::start("30m", NOWHERE, "");
    row("RSS at start, MB", gateway.rss(), Some(25.0));
    let mut connection = Connection::open(gateway.address).await;
    let sessions = open_sessions(&mut connection).await;
    row("RSS with 1,000 idle sessions, MB", gateway.rss(), Some(100.0));
    for session in sessions {
        connection.close_session(&session).await;
    }
    wait_until_no_session(&mut connection).await;
    row("RSS after clients closed them, MB", gateway.rss_at_rest().await, None);
    open_sessions(&mut connection).await;
    row("RSS with 1,000 idle sessions again, MB", gateway.rss(), None);
}

async fn closed_when_idle() {
    let gateway = Gateway::start("1s", NOWHERE, "");
    let mut connection = Connection::open(gateway.address).await;
    open_sessions(&mut connection).await;
    row("RSS with 1,000 sessions that time out, MB", gateway.rss(), None);
    let waited = wait_until_no_session(&mut connection).await;
    row("seconds until the last was closed", waited.as_secs_f64(), None);
    row("RSS after they timed out, MB", gateway.rss_at_rest().await, None);
}

async fn open_sessions(connection: &mut Connection) -> Vec<String> {
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(connection.open_session().await);
    }
    sessions
}

async fn wait_until_no_session(connection: &mut Connection) -> Duration {
    let began = Instant::now();
    while !connection
        .exchange(&get("/metrics"))
        .await
        .lines()
        .any(|line| line.starts_with("jmg_mcp_sessions") && line.ends_with(" 0"))
    {
        assert!(began.elapsed() < SWEEP_PATIENCE, "sessions stay open");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    began.elapsed()
}

fn row(what: &str, measured: f64, goal: Option<f64>) {
    let (goal, verdict) = match goal {
        Some(goal) if measured <= goal => (goal.to_string(), "met"),
        Some(goal) => (goal.to_string(), "MISSED"),
        None => (String::new(), ""),
    };
    println!("{what:<44} {measured:>9.1} {goal:>9} {verdict}");
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
