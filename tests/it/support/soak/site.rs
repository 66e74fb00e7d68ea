//! Where a soak takes place: a JupyterLab, a line that can be cut, the gateway's own process, and who may use it.

use std::{
    collections::HashSet,
    fmt::Write,
    path::PathBuf,
    sync::{
        Mutex as SyncMutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use tempfile::TempDir;
use tokio::{
    process::Child,
    sync::{Mutex, RwLock},
};

use super::{
    super::{
        Agent, Era,
        command::gateway_command,
        eventually,
        gateway::server,
        jupyter::install_tls,
        notebook::{notebook, without_ids},
        own_lab::{OwnLab, free_port},
        process::{resident_bytes, send_signal},
        proxy::Proxy,
    },
    Plan,
    memory::Memory,
};

/// The token of somebody who asks for more than the limits allow.
pub(super) const LOUD: &str = "token-of-somebody-loud";

pub(super) struct Site {
    pub(super) lab: Mutex<OwnLab>,
    pub(super) proxy: Proxy,
    gateway: Mutex<Option<Child>>,
    port: u16,
    dir: TempDir,
    tenants: usize,
    /// The generation of each token; a token that is revoked is followed by the next.
    tokens: Vec<AtomicUsize>,
    /// Counts the gateways that were started or killed.
    gateways: AtomicUsize,
    pub(super) memory: SyncMutex<Memory>,
    /// Lock that agents have while they call; whoever wants them to pause takes it whole.
    pub(super) pause: RwLock<()>,
    /// By notebook.
    pub(super) promises: Vec<SyncMutex<Promises>>,
    pub(super) clients: SyncMutex<Clients>,
}

/// What must be in a notebook, and what must not.
#[derive(Debug, Default, Clone)]
pub(super) struct Promises {
    pub(super) inserted: HashSet<String>,
    pub(super) deleted: HashSet<String>,
}

/// What happened to clients.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// Calls in the middle of which they hung up.
    pub(super) cut: usize,
    /// Streams of calls that they took up again, to the answer.
    pub(super) resumed: usize,
    /// What should not have happened to somebody whose token is valid and whose gateway runs.
    pub(super) disturbed: Vec<String>,
}

/// What a connection depends on: it may end when one of them changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch {
    gateway: usize,
    token: usize,
}

impl Site {
    pub(super) async fn new(plan: &Plan) -> Self {
        let lab = OwnLab::start(&[]).await;
        for number in 0..plan.notebooks {
            let empty = notebook(&["first"]);
            let empty = match plan.minor {
                5.. => empty,
                minor => without_ids(&empty, minor),
            };
            lab.write(&path(number), &empty);
        }
        let site = Self {
            proxy: Proxy::to(&lab.address()).await,
            lab: Mutex::new(lab),
            gateway: Mutex::default(),
            port: free_port(),
            dir: tempfile::tempdir().expect("a folder"),
            tenants: plan.tenants,
            tokens: (0..plan.tokens).map(|_| AtomicUsize::default()).collect(),
            gateways: AtomicUsize::default(),
            memory: SyncMutex::default(),
            pause: RwLock::default(),
            promises: (0..plan.notebooks).map(|_| SyncMutex::default()).collect(),
            clients: SyncMutex::default(),
        };
        site.write_config(None).await;
        site.start_gateway().await;
        site
    }

    /// Writes the config, in which one token may have its successor beside it.
    async fn write_config(&self, renewed: Option<usize>) {
        let lab = server("lab", &self.proxy.url(), self.lab.lock().await.token());
        let mut config = format!(
            "[http]\nlisten = \"127.0.0.1:{}\"\nmax_connections_per_address = 4096\n\
             [mcp]\nmax_sessions_per_principal = 1000\n[store]\nurl = \"{}\"\n{lab}",
            self.port,
            self.store_url(),
        );
        for tenant in 0..self.tenants {
            let _ = write!(
                config,
                "[[tenants]]\nname = \"team-{tenant}\"\nrequests_per_minute = 1000000\nburst = 1000000\n"
            );
        }
        config += "[[tenants]]\nname = \"loud\"\nrequests_per_minute = 60\nburst = 20\n";
        let _ = write!(
            config,
            "[[auth.tokens]]\nname = \"loud\"\ntenant = \"loud\"\ntoken = \"{LOUD}\"\n"
        );
        for number in 0..self.tokens.len() {
            let current = self.generation(number);
            for generation in current..=current + usize::from(renewed == Some(number)) {
                let _ = write!(
                    config,
                    "[[auth.tokens]]\nname = \"agents-{number}-{generation}\"\ntenant = \"team-{}\"\ntoken = \"{}\"\n",
                    number % self.tenants,
                    token(number, generation)
                );
            }
        }
        std::fs::write(self.config(), config).expect("a file");
    }

    fn config(&self) -> PathBuf {
        self.dir.path().join("gateway.toml")
    }

    pub(super) fn store_url(&self) -> String {
        store::file_url(&self.dir.path().join("gateway.db"))
    }

    pub(super) async fn start_gateway(&self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("a log");
        let mut command = gateway_command();
        command
            .args(["serve", "--config"])
            .arg(self.config())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        let child = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary runs");
        *self.gateway.lock().await = Some(child);
        let health = format!("http://127.0.0.1:{}/healthz", self.port);
        install_tls();
        eventually("the gateway serves", async || {
            reqwest::get(&health).await.ok().filter(|answer| answer.status() == 200)
        })
        .await;
        self.gateways.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) async fn kill_gateway(&self) {
        self.gateways.fetch_add(1, Ordering::SeqCst);
        let gateway = self.gateway.lock().await.take();
        if let Some(mut gateway) = gateway {
            gateway.kill().await.expect("it was running");
        }
    }

    /// Where the gateways log to; a person who looks for a cause can name a file that stays (`JMG_SOAK_LOG`).
    fn log(&self) -> PathBuf {
        match std::env::var_os("JMG_SOAK_LOG") {
            Some(file) => file.into(),
            None => self.dir.path().join("gateway.log"),
        }
    }

    pub(super) async fn files(&self) -> Vec<PathBuf> {
        let lab = self.lab.lock().await;
        (0..self.promises.len()).map(|number| lab.file(&path(number))).collect()
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Why the gateway that runs has closed connections of clients, and how often.
    pub(super) async fn closed_connections(&self) -> String {
        let metrics = reqwest::get(self.url().replace("/mcp", "/metrics"))
            .await
            .expect("an answer");
        let metrics = metrics.text().await.expect("text");
        let closed = metrics
            .lines()
            .filter(|line| line.starts_with("jmg_http_connections_closed_total{"));
        closed.collect::<Vec<_>>().join(", ")
    }

    /// An agent with the valid one of a number's tokens.
    pub(super) async fn agent(&self, number: usize, era: Era) -> Agent {
        Agent::connect_to(&self.url(), &self.token(number), era).await
    }

    pub(super) fn tokens(&self) -> usize {
        self.tokens.len()
    }

    fn generation(&self, number: usize) -> usize {
        self.tokens[number].load(Ordering::SeqCst)
    }

    pub(super) fn token(&self, number: usize) -> String {
        token(number, self.generation(number))
    }

    pub(super) fn epoch(&self, number: usize) -> Epoch {
        Epoch {
            gateway: self.gateways.load(Ordering::SeqCst),
            token: self.generation(number),
        }
    }

    /// Has the next generation of a token accepted beside the current one, which nobody takes any more.
    pub(super) async fn renew_token(&self, number: usize) {
        self.write_config(Some(number)).await;
        let reloads = self.reloads();
        self.hang_up().await;
        eventually("the config is read", async || (self.reloads() > reloads).then_some(())).await;
        self.tokens[number].fetch_add(1, Ordering::SeqCst);
        self.write_config(None).await;
    }

    /// Sends the signal on which the gateway reads its config again.
    pub(super) async fn hang_up(&self) {
        let pid = self.gateway.lock().await.as_ref().and_then(Child::id);
        send_signal("-HUP", pid.expect("it runs"));
    }

    fn reloads(&self) -> usize {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        log.matches("reloaded tokens and tenants").count()
    }

    pub(super) fn disturbed(&self, what: String) {
        self.clients.lock().expect("no panic").disturbed.push(what);
    }

    /// Takes down how much memory the gateway takes now.
    pub(super) async fn weigh(&self) {
        // Whoever kills it takes it away first.
        let gateway = self.gateway.lock().await;
        if let Some(pid) = gateway.as_ref().and_then(Child::id) {
            let number = self.gateways.load(Ordering::SeqCst);
            let bytes = resident_bytes(pid);
            self.memory.lock().expect("no panic").add(number, bytes);
        }
    }
}

pub(super) fn path(number: usize) -> String {
    format!("soak-{number}.ipynb")
}

fn token(number: usize, generation: usize) -> String {
    format!("token-of-agents-{number}-{generation}")
}
