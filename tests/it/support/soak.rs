//! Agents that insert cells with unique marks while things die at random, and a count of what is lost, doubled or under
//! another id in the end.

mod faults;
mod outcome;
mod worker;

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::{
    process::Child,
    sync::{Mutex, RwLock},
};
use tokio_util::sync::CancellationToken;

use super::{
    Agent, Era, TOKEN,
    command::gateway_command,
    eventually,
    gateway::{everything, server},
    notebook::notebook,
    own_lab::{OwnLab, free_port},
    process::resident_bytes,
    proxy::Proxy,
};
pub use outcome::Outcome;

/// Plan of a soak test: what is done, and for how long.
#[derive(Debug, Clone)]
pub struct Plan {
    pub agents: usize,
    pub notebooks: usize,
    pub seconds: u64,
    /// Everything that is random follows from it, but for the timing of other processes.
    pub seed: u64,
    /// The minor version of the notebooks' format; before 5 files have no ids of cells.
    pub minor: u32,
    /// Percentage of cells that are executed.
    pub executed_percent: u64,
}

impl Plan {
    /// A plan whose numbers the environment may change (`JMG_SOAK_AGENTS` and so on).
    pub fn from_env(default: Self) -> Self {
        let number = |name: &str, default: u64| {
            let given = std::env::var(format!("JMG_SOAK_{name}")).ok();
            given.map_or(default, |text| text.parse().expect("a number"))
        };
        let small = |number: u64| usize::try_from(number).expect("small");
        Self {
            agents: small(number("AGENTS", default.agents as u64)),
            notebooks: small(number("NOTEBOOKS", default.notebooks as u64)),
            seconds: number("SECONDS", default.seconds),
            seed: number("SEED", default.seed),
            minor: default.minor,
            executed_percent: number("EXECUTED", default.executed_percent),
        }
    }
}

/// Numbers that look random and follow from a seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.below(range.end - range.start))
    }
}

/// A JupyterLab, a line that can be cut, and the gateway's own process behind it.
struct Site {
    lab: Mutex<OwnLab>,
    proxy: Proxy,
    gateway: Mutex<Option<Child>>,
    port: u16,
    dir: TempDir,
    /// The most memory that a gateway took so far.
    peak: Mutex<usize>,
    /// Lock that agents have while they call; whoever wants them to pause takes it whole.
    pause: RwLock<()>,
    /// The marks that were acknowledged, by notebook.
    acknowledged: Mutex<Vec<HashSet<String>>>,
}

impl Site {
    async fn new(plan: &Plan) -> Self {
        let lab = OwnLab::start(&[]).await;
        for number in 0..plan.notebooks {
            let empty = notebook(&["first"]);
            let empty = match plan.minor {
                5.. => empty,
                minor => super::notebook::without_ids(&empty, minor),
            };
            lab.write(&path(number), &empty);
        }
        let site = Self {
            proxy: Proxy::to(&lab.address()).await,
            lab: Mutex::new(lab),
            gateway: Mutex::default(),
            port: free_port(),
            dir: tempfile::tempdir().expect("a folder"),
            peak: Mutex::default(),
            pause: RwLock::default(),
            acknowledged: Mutex::new(vec![HashSet::new(); plan.notebooks]),
        };
        site.start_gateway().await;
        site
    }

    async fn start_gateway(&self) {
        let token = self.lab.lock().await.token();
        let config = format!(
            "[http]\nlisten = \"127.0.0.1:{}\"\n[store]\nurl = \"sqlite://{}\"\n{}{}",
            self.port,
            self.dir.path().join("gateway.db").display(),
            server("lab", &self.proxy.url(), token),
            everything().replace(
                "name = \"all\"",
                "name = \"all\"\nrequests_per_minute = 100000\nburst = 10000"
            ),
        );
        let file = self.dir.path().join("gateway.toml");
        std::fs::write(&file, config).expect("a file");
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .expect("a log");
        let mut command = gateway_command();
        command
            .args(["serve", "--config"])
            .arg(&file)
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        let child = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()
            .expect("the binary runs");
        *self.gateway.lock().await = Some(child);
        let health = format!("http://127.0.0.1:{}/healthz", self.port);
        super::jupyter::install_tls();
        eventually("the gateway serves", async || {
            reqwest::get(&health).await.ok().filter(|answer| answer.status() == 200)
        })
        .await;
    }

    /// Where the gateways log to; a person who looks for a cause can name a file that stays (`JMG_SOAK_LOG`).
    fn log(&self) -> PathBuf {
        match std::env::var_os("JMG_SOAK_LOG") {
            Some(file) => file.into(),
            None => self.dir.path().join("gateway.log"),
        }
    }

    async fn files(&self, notebooks: usize) -> Vec<PathBuf> {
        let lab = self.lab.lock().await;
        (0..notebooks).map(|number| lab.file(&path(number))).collect()
    }

    async fn agent(&self) -> Agent {
        Agent::connect_to(&format!("http://127.0.0.1:{}/mcp", self.port), TOKEN, Era::Modern).await
    }

    /// Memory that the gateway takes now; the largest is remembered.
    async fn weigh(&self) -> usize {
        let pid = self.gateway.lock().await.as_ref().and_then(Child::id);
        let bytes = pid.map_or(0, resident_bytes);
        let mut peak = self.peak.lock().await;
        *peak = bytes.max(*peak);
        bytes
    }
}

fn path(number: usize) -> String {
    format!("soak-{number}.ipynb")
}

/// Carries a plan out and counts.
pub async fn run(plan: &Plan) -> Outcome {
    println!("{plan:?}");
    let site = Arc::new(Site::new(plan).await);
    let before = site.weigh().await;
    let stop = CancellationToken::new();
    let workers: Vec<_> = (0..plan.agents)
        .map(|number| tokio::spawn(worker::work(Arc::clone(&site), plan.clone(), number, stop.clone())))
        .collect();
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    let faults = faults::strike(&site, plan.notebooks, Dice::new(plan.seed), until).await;
    stop.cancel();
    let mut requests = Vec::new();
    for worker in workers {
        requests.extend(worker.await.expect("no panic"));
    }
    let outcome = outcome::judge(&site, plan, requests).await;
    let after = site.weigh().await;
    println!(
        "{faults:?}; memory of the gateway: {} MB before, {} MB after, {} MB at most",
        before >> 20,
        after >> 20,
        *site.peak.lock().await >> 20
    );
    Outcome {
        peak_bytes: *site.peak.lock().await,
        ..outcome
    }
}
