//! A JupyterLab of one test's own, which can be killed and come back under the same address.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use jupyter_mcp_gateway::app::lab::{Lab, LabLog, LabOptions};
use tempfile::TempDir;

use super::{lab::venv, process::send_signal};

const TOKEN: &str = "token-of-a-lab-of-its-own";

pub struct OwnLab {
    lab: Option<Lab>,
    port: u16,
    root: TempDir,
    state: TempDir,
    arguments: Vec<String>,
}

impl OwnLab {
    pub async fn start(arguments: &[&str]) -> Self {
        let mut own = Self {
            lab: None,
            port: free_port(),
            root: tempfile::tempdir().expect("a folder for notebooks"),
            state: tempfile::tempdir().expect("a folder for state"),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        };
        own.restart().await;
        own
    }

    /// Starts it again after a kill.
    pub async fn restart(&mut self) {
        self.kill();
        let mut options = LabOptions::new(self.root.path());
        options.token = Some(TOKEN.to_owned());
        options.port = Some(self.port);
        options.ready_timeout = super::TIMEOUT;
        options.log = LabLog::File(self.state.path().join("jupyter.log"));
        options.state_dir = Some(self.state.path().to_owned());
        options.extra_args.clone_from(&self.arguments);
        let starting = tokio::task::spawn_blocking(move || Lab::start(&venv(), options));
        self.lab = Some(starting.await.expect("no panic").expect("JupyterLab"));
    }

    /// Has the server do nothing any more, as one that hangs.
    pub fn pause(&self) {
        send_signal("-STOP", self.lab.as_ref().expect("it runs").pid());
    }

    /// Ends the server without a chance to save anything.
    pub fn kill(&mut self) {
        if let Some(lab) = self.lab.take() {
            // `Lab` kills when dropped.
            drop(lab);
        }
    }

    /// Loses what Jupyter remembers of live documents, but not which file has which id.
    pub fn forget_documents(&self) {
        for file in walk(self.state.path()) {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("ystore.db") {
                std::fs::remove_file(&file).expect("removed");
            }
        }
    }

    /// Loses what Jupyter noted down of live documents since a moment, as if it had been killed while its notes lagged behind.
    pub fn forget_since(&self, moment: SystemTime) {
        let since = moment.duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64();
        // Older versions have no checkpoints.
        let script = "import sqlite3, sys\nnotes = sqlite3.connect(sys.argv[1])\ntables = [name for name, in notes.execute(\"SELECT name FROM sqlite_master WHERE type = 'table'\")]\nfor table in {'yupdates', 'ycheckpoints'} & set(tables):\n    notes.execute(f'DELETE FROM {table} WHERE timestamp > ?', (float(sys.argv[2]),))\nnotes.commit()";
        for file in walk(self.state.path()) {
            if file.file_name().is_some_and(|name| name == "ystore.db") {
                let mut python = Command::new(venv().python());
                let done = python.args(["-c", script]).arg(&file).arg(since.to_string()).status();
                assert!(done.expect("Python").success());
            }
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    #[expect(clippy::unused_self, reason = "it reads as a question to the server")]
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.file(name), content).expect("a file");
    }
}

/// A port below those that the system gives to outgoing connections, so that nobody takes it while
/// its server is down.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 9000).expect("small");
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let ports = || Some(20_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000);
    std::iter::from_fn(ports).take(1000).find(free).expect("a free port")
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] })
        .collect()
}
