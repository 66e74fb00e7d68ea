//! The gateway's binary while it serves, and a home of its own to run in.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use jupyter_mcp_gateway::app::lab::{Venv, VenvSpec};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::Child,
    task::JoinHandle,
};

use super::{
    TIMEOUT,
    command::{Ended, gateway_command},
    jupyter::install_tls,
    process::send_signal,
    within,
};

/// A port that nobody listens on, and no other place to find packages.
pub const OFFLINE: [(&str, &str); 6] = [
    ("PIP_INDEX_URL", "http://127.0.0.1:9/simple"),
    ("PIP_NO_INDEX", "1"),
    ("PIP_FIND_LINKS", ""),
    ("PIP_CONFIG_FILE", "/dev/null"),
    ("PIP_RETRIES", "0"),
    ("PIP_NO_CACHE_DIR", "1"),
];

/// The last line of what a person reads at start.
const LAST_LINE: &str = "asyncio.run(main())";

/// A home directory that goes with the test and whatever Jupyter leaves in it. The environment of
/// `--with-jupyter` is there already.
pub struct Home {
    dir: tempfile::TempDir,
    environment: PathBuf,
    python: PathBuf,
}

impl Home {
    pub fn new() -> Self {
        let venv = Venv::ensure(&VenvSpec::lab(), &mut |line| println!("{line}")).expect("JupyterLab's environment");
        let dir = tempfile::tempdir().expect("a home");
        let cache = dir.path().join("cache");
        std::fs::create_dir_all(&cache).expect("a cache");
        let environment = cache.join(venv.dir().file_name().expect("a name"));
        std::os::unix::fs::symlink(venv.dir(), &environment).expect("a link to the environment");
        Self {
            dir,
            environment,
            python: venv.python(),
        }
    }

    /// A path in the home, its parent folders made.
    pub fn path(&self, inner: &str) -> PathBuf {
        let path = self.dir.path().join(inner);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("folders");
        path
    }

    /// Removes the environment, as if somebody had emptied the cache.
    pub fn remove_environment(&self) {
        std::fs::remove_file(&self.environment).expect("the link");
    }

    /// `serve` on a free port, without a network for pip.
    pub fn serve(&self) -> Command {
        self.serve_on("127.0.0.1:0")
    }

    /// `serve` at an address, without a network for pip.
    pub fn serve_on(&self, address: &str) -> Command {
        let mut command = gateway_command();
        command
            .args(["serve", "--listen", address])
            .envs(OFFLINE)
            .env("HOME", self.dir.path())
            .env("JMG_CACHE_DIR", self.dir.path().join("cache"))
            // Version managers find their Pythons from the home.
            .env("JMG_PYTHON", &self.python)
            .env_remove("XDG_DATA_HOME")
            .current_dir(self.dir.path());
        command
    }

    /// `serve` in front of one JupyterLab.
    pub fn serve_for(&self, url: &str, token: &str) -> Command {
        let mut command = self.serve();
        command.env("JUPYTERLAB_URL", url).env("JUPYTERLAB_TOKEN", token);
        command
    }

    /// `serve` with a JupyterLab on the folder `notebooks`.
    pub fn serve_with_jupyter(&self) -> Command {
        let mut command = self.serve();
        command.arg("--with-jupyter").arg(self.dir.path().join("notebooks"));
        command
    }
}

/// A gateway that has said where it listens. It is killed if the test gives up on it.
pub struct Running {
    child: Child,
    pub said: String,
    more: JoinHandle<String>,
    log: Arc<Mutex<String>>,
    logging: JoinHandle<()>,
}

impl Running {
    pub async fn start(mut command: Command) -> Self {
        install_tls();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = child.stderr.take().expect("its log");
        let logging = tokio::spawn(follow(stderr, Arc::clone(&log)));
        let mut stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut said = String::new();
        while !said.trim_end().ends_with(LAST_LINE) {
            let read = within(TIMEOUT, "a line of the gateway", stdout.read_line(&mut said)).await;
            let read = read.expect("text");
            let log = || log.lock().expect("the log").clone();
            assert!(read > 0, "the gateway has left: {said}{}", log());
        }
        let more = tokio::spawn(async move {
            let mut rest = String::new();
            stdout.read_to_string(&mut rest).await.expect("text");
            rest
        });
        Self {
            child,
            said,
            more,
            log,
            logging,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// The text after a label at the start of a line.
    pub fn value(&self, label: &str) -> &str {
        let mut lines = self.said.lines().map(str::trim_start);
        lines
            .find_map(|line| line.strip_prefix(label))
            .unwrap_or_else(|| panic!("no {label}: {}", self.said))
            .trim()
    }

    pub fn url(&self) -> &str {
        self.value("MCP URL ")
    }

    pub fn token(&self) -> &str {
        self.value("Token ")
    }

    pub fn logged(&self, text: &str) -> bool {
        self.log().contains(text)
    }

    pub fn log(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    pub fn signal(&self, name: &str) {
        send_signal(name, self.pid());
    }

    /// Waits until it has left.
    pub async fn ended(mut self) -> Ended {
        let status = within(TIMEOUT, "the gateway's end", self.child.wait()).await;
        let status = status.expect("its end");
        self.logging.await.expect("its log");
        Ended {
            code: status.code(),
            stdout: self.said + &self.more.await.expect("its output"),
            stderr: self.log.lock().expect("the log").clone(),
        }
    }
}

async fn follow(stream: impl AsyncRead + Unpin, log: Arc<Mutex<String>>) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut log = log.lock().expect("the log");
        log.push_str(&line);
        log.push('\n');
    }
}
