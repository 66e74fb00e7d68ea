//! The gateway's binary as a process of its own, to see what it takes from the machine.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::wire::{TOKEN, get};

/// Free pages are returned little by little over ten seconds.
pub(crate) const REST: Duration = Duration::from_secs(15);

/// A running gateway of this build; ends with the value.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) started_in: Duration,
    _folder: TempDir,
}

impl Gateway {
    pub(crate) fn start(session_idle_timeout: &str, url: &str, token: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = free_address();
        let config = write_config(&folder, address, session_idle_timeout, url, token);
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
    pub(crate) fn rss(&self) -> f64 {
        rss_of(self.child.id())
    }

    /// The same after the allocator had time to return what is free.
    pub(crate) async fn rss_at_rest(&self) -> f64 {
        tokio::time::sleep(REST).await;
        self.rss()
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

fn write_config(folder: &TempDir, address: SocketAddr, session_idle_timeout: &str, url: &str, token: &str) -> PathBuf {
    let config = format!(
        "[http]\nlisten = \"{address}\"\n\
         [mcp]\nmax_sessions_per_principal = 5000\nsession_idle_timeout = \"{session_idle_timeout}\"\n\
         [[servers]]\nname = \"lab\"\nurl = \"{url}\"\ntoken = \"{token}\"\n\
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

/// A process' resident memory in megabytes.
pub(crate) fn rss_of(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("Linux's /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kibibytes.expect("a number") * 1024.0 / 1e6
}
