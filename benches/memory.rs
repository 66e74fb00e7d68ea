//! What the binary takes from the machine: time to start, and resident memory as sessions come and go.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use super::wire::{Connection, TOKEN, get};

const STARTS: usize = 9;
const SESSIONS: usize = 1000;
/// Idle sessions are looked for now and then, so that they outlive their time a little.
const SWEEP_PATIENCE: Duration = Duration::from_secs(40);
/// Free pages are returned little by little over ten seconds.
const REST: Duration = Duration::from_secs(15);

/// A running gateway of this build; ends with the value.
struct Gateway {
    child: Child,
    address: SocketAddr,
    started_in: Duration,
    _folder: tempfile::TempDir,
}

pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    println!("{:<44} {:>9} {:>9}", "memory", "measured", "goal");
    let mut starts: Vec<_> = (0..STARTS).map(|_| Gateway::start("30m").started_in).collect();
    starts.sort_unstable();
    row("start until healthy, ms", millis(starts[STARTS / 2]), Some(100.0));
    runtime.block_on(closed_by_clients());
    runtime.block_on(closed_when_idle());
}

async fn closed_by_clients() {
    let gateway = Gateway::start("30m");
    row("RSS at start, MB", gateway.rss(), Some(25.0));
    let mut connection = Connection::open(gateway.address).await;
    let sessions = open_sessions(&mut connection).await;
    row("RSS with 1,000 idle sessions, MB", gateway.rss(), Some(100.0));
    for session in sessions {
        connection.close_session(&session).await;
    }
    gateway.wait_until_no_session(&mut connection).await;
    row("RSS after clients closed them, MB", gateway.rss_at_rest().await, None);
    open_sessions(&mut connection).await;
    row("RSS with 1,000 idle sessions again, MB", gateway.rss(), None);
}

async fn closed_when_idle() {
    let gateway = Gateway::start("1s");
    let mut connection = Connection::open(gateway.address).await;
    open_sessions(&mut connection).await;
    row("RSS with 1,000 sessions that time out, MB", gateway.rss(), None);
    let waited = gateway.wait_until_no_session(&mut connection).await;
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

impl Gateway {
    fn start(session_idle_timeout: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = free_address();
        let config = write_config(&folder, address, session_idle_timeout);
        let began = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_jupyter-mcp-gateway"))
            .arg("serve")
            .arg("--config")
            .arg(config)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        while !is_healthy(address) {
            assert!(began.elapsed() < Duration::from_secs(30), "the gateway does not start");
            std::thread::sleep(Duration::from_micros(500));
        }
        Self {
            child,
            address,
            started_in: began.elapsed(),
            _folder: folder,
        }
    }

    /// Resident memory in megabytes.
    fn rss(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("Linux's /proc");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kibibytes.expect("a number") * 1024.0 / 1e6
    }

    /// The same after the allocator had time to return what is free.
    async fn rss_at_rest(&self) -> f64 {
        tokio::time::sleep(REST).await;
        self.rss()
    }

    async fn wait_until_no_session(&self, connection: &mut Connection) -> Duration {
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
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

fn write_config(folder: &tempfile::TempDir, address: SocketAddr, session_idle_timeout: &str) -> PathBuf {
    let config = format!(
        "[http]\nlisten = \"{address}\"\n\
         [mcp]\nmax_sessions_per_principal = 5000\nsession_idle_timeout = \"{session_idle_timeout}\"\n\
         [[servers]]\nname = \"lab\"\nurl = \"http://127.0.0.1:9/\"\n\
         [[tenants]]\nname = \"all\"\nrequests_per_minute = 1000000\nburst = 1000000\n\
         [[auth.tokens]]\nname = \"agent\"\ntenant = \"all\"\ntoken = \"{TOKEN}\"\n"
    );
    let path = folder.path().join("gateway.toml");
    fs::write(&path, config).expect("the config is written");
    path
}

fn is_healthy(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let mut start = [0; 12];
    let asked = stream.write_all(&get("/healthz"));
    asked.and_then(|()| stream.read_exact(&mut start)).is_ok() && start.ends_with(b"200")
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
