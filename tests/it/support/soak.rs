//! Agents of several tenants that insert, run and delete cells with unique marks while things die at random, lines are cut,
//! tokens are revoked and somebody floods the gateway, and a count of what is lost, doubled or under another id in the end.

mod client;
mod faults;
mod judge;
mod memory;
mod outcome;
mod revocation;
mod site;
mod worker;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use self::site::Site;
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
    /// Percentage of calls in the middle of which the client hangs up.
    pub cut_percent: u64,
    pub tenants: usize,
    /// Tokens of all tenants; agents share them.
    pub tokens: usize,
    /// Longest time that an agent thinks between two calls, in milliseconds.
    pub pause: u64,
    /// Cells that an agent leaves in the notebooks; then it deletes its oldest.
    pub cells: usize,
}

impl Plan {
    /// A plan whose numbers the environment may change (`JMG_SOAK_AGENTS` and so on).
    pub fn from_env(default: Self) -> Self {
        let number = |name: &str, default: u64| {
            let given = std::env::var(format!("JMG_SOAK_{name}")).ok();
            given.map_or(default, |text| text.parse().expect("a number"))
        };
        let small = |name: &str, default: usize| usize::try_from(number(name, default as u64)).expect("small");
        Self {
            agents: small("AGENTS", default.agents),
            notebooks: small("NOTEBOOKS", default.notebooks),
            seconds: number("SECONDS", default.seconds),
            seed: number("SEED", default.seed),
            minor: default.minor,
            executed_percent: number("EXECUTED", default.executed_percent),
            cut_percent: number("CUT", default.cut_percent),
            tenants: small("TENANTS", default.tenants),
            tokens: small("TOKENS", default.tokens),
            pause: number("PAUSE", default.pause),
            cells: small("CELLS", default.cells),
        }
    }
}

/// Numbers that look random and follow from a seed (SplitMix64).
#[derive(Debug, Clone)]
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a limit.
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).expect("small")
    }

    fn millis(&mut self, range: std::ops::Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.below(range.end - range.start))
    }
}

/// Carries a plan out and counts.
pub async fn run(plan: &Plan) -> Outcome {
    println!("{plan:?}");
    let site = Arc::new(Site::new(plan).await);
    site.weigh().await;
    let stop = CancellationToken::new();
    let workers: Vec<_> = (0..plan.agents)
        .map(|number| tokio::spawn(worker::work(Arc::clone(&site), plan.clone(), number, stop.clone())))
        .collect();
    let weighing = tokio::spawn(memory::follow(Arc::clone(&site), stop.clone()));
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    let faults = faults::strike(&site, plan, Dice::new(plan.seed), until).await;
    stop.cancel();
    let mut requests = Vec::new();
    for worker in workers {
        requests.extend(worker.await.expect("no panic"));
    }
    weighing.await.expect("no panic");
    println!("{faults:?}");
    let mut outcome = judge::judge(&site, plan, requests).await;
    outcome.late_cut_offs = faults.revocations.late;
    outcome.floods_let_through = faults.floods_let_through;
    outcome.memory = site.memory.lock().expect("no panic").clone();
    println!("{}", outcome.memory);
    outcome
}
