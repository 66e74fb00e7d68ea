//! Faults that are injected during a soak.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use reqwest::{Client, StatusCode};
use serde_json::json;
use tokio::time::sleep;

use super::{
    super::{Era, agent::Agent, notebook::sources_on_disk, own_lab::OwnLab, wire::initialize_with},
    Dice, Plan,
    revocation::{Revocations, revoke},
    site::{LOUD, Site, path},
};

/// Fault: what dies, or who misbehaves.
#[derive(Clone, Copy)]
enum Fault {
    Jupyter,
    Gateway,
    Network,
    Revocation,
    Flood,
}

/// Each once, so that everything happens in a short run too.
const ALL: [Fault; 5] = [
    Fault::Jupyter,
    Fault::Revocation,
    Fault::Gateway,
    Fault::Flood,
    Fault::Network,
];

impl Fault {
    fn random(dice: &mut Dice) -> Self {
        match dice.below(20) {
            0..=7 => Self::Jupyter,
            8..=10 => Self::Gateway,
            11..=13 => Self::Network,
            14..=17 => Self::Revocation,
            _ => Self::Flood,
        }
    }

    /// The process that is killed.
    fn process(self) -> Option<Process> {
        match self {
            Self::Jupyter => Some(Process::Jupyter),
            Self::Gateway => Some(Process::Gateway),
            Self::Network | Self::Revocation | Self::Flood => None,
        }
    }
}

/// Time that a file may take to have what was acknowledged.
const TIMEOUT: Duration = Duration::from_secs(60);
const FLOOD: Duration = Duration::from_secs(2);
/// Those who flood at the same time, and how many requests each of them sends at least, however slow the machine is.
const LOUD_CLIENTS: usize = 12;
const LOUD_REQUESTS: usize = 8;

/// Counts of what happened.
#[derive(Debug, Default)]
pub(super) struct Faults {
    jupyter_killed: usize,
    gateway_killed: usize,
    lines_cut: usize,
    /// Notebooks that Jupyter was killed over while it put the file of before in the place of one that it had written by half.
    files_put_back: usize,
    pub(super) revocations: Revocations,
    floods: usize,
    /// Requests of floods that were answered, and that were refused.
    flood_answered: usize,
    flood_refused: usize,
    /// Floods of which nothing was refused.
    pub(super) floods_let_through: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    Jupyter,
    Gateway,
}

/// Has things go wrong at random until it is time to stop, after which everything runs. The gateway is not killed in the
/// second half of a long run: what it takes after a while is to be seen.
pub(super) async fn strike(site: &Site, plan: &Plan, mut dice: Dice, until: Instant) -> Faults {
    let mut faults = Faults::default();
    let (mut last, mut first) = (None, ALL.into_iter());
    let half = Instant::now() + Duration::from_secs(plan.seconds) / 2;
    loop {
        let next = first.next();
        let pause = if next.is_some() { 1500..3000 } else { 1500..6000 };
        sleep(dice.millis(pause)).await;
        if Instant::now() >= until {
            return faults;
        }
        let mut fault = next.unwrap_or_else(|| Fault::random(&mut dice));
        if next.is_none() && matches!(fault, Fault::Gateway) && Instant::now() > half {
            fault = Fault::Network;
        }
        if let Some(process) = fault.process()
            && last.replace(process).is_some_and(|last| last != process)
        {
            saved(site).await;
            sleep(dice.millis(0..1500)).await;
        }
        carry_out(site, fault, &mut dice, &mut faults).await;
    }
}

#[expect(
    clippy::await_holding_invalid_type,
    reason = "whoever wants what is being restarted waits for it"
)]
async fn carry_out(site: &Site, fault: Fault, dice: &mut Dice, faults: &mut Faults) {
    match fault {
        Fault::Jupyter => {
            faults.jupyter_killed += 1;
            let mut lab = site.lab.lock().await;
            lab.kill();
            let notebooks = 0..site.promises.len();
            faults.files_put_back += notebooks.filter(|number| put_back(&lab, *number)).count();
            lab.restart().await;
        }
        Fault::Gateway => {
            faults.gateway_killed += 1;
            site.kill_gateway().await;
            site.start_gateway().await;
        }
        Fault::Network => {
            faults.lines_cut += 1;
            site.proxy.cut();
        }
        Fault::Revocation => revoke(site, dice, &mut faults.revocations).await,
        Fault::Flood => flood(site, faults).await,
    }
}

/// Has agents pause until everything that was acknowledged is in its file, as far as it is not lost. What only one process has
/// is gone with it, so that both must not be killed before that.
async fn saved(site: &Site) {
    let _pause = site.pause.write().await;
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        let files = site.files().await;
        let is_saved = |number: usize| {
            let promises = site.promises[number].lock().expect("no panic").clone();
            let on_disk = sources_on_disk(&files[number]).unwrap_or_default();
            let on_disk: HashSet<String> = on_disk.into_iter().collect();
            promises.inserted.is_subset(&on_disk) && promises.deleted.is_disjoint(&on_disk)
        };
        if (0..files.len()).all(is_saved) {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Name that Jupyter gives the file of before while it writes another.
fn before(number: usize) -> String {
    format!(".~{}", path(number))
}

/// Puts the file of before in its place, as a person would have to, if Jupyter was killed just when it did so itself.
fn put_back(lab: &OwnLab, number: usize) -> bool {
    let (file, before) = (lab.file(&path(number)), lab.file(&before(number)));
    !file.exists() && std::fs::rename(before, file).is_ok()
}

/// Somebody sends requests as fast as they are answered.
async fn flood(site: &Site, faults: &mut Faults) {
    let until = Instant::now() + FLOOD;
    let clients = futures::future::join_all((0..LOUD_CLIENTS).map(|number| be_loud(site, number, until))).await;
    let (answered, refused) = clients.iter().fold((0, 0), |(answered, refused), client| {
        (answered + client.0, refused + client.1)
    });
    faults.floods += 1;
    faults.flood_answered += answered;
    faults.flood_refused += refused;
    faults.floods_let_through += usize::from(refused == 0);
}

/// How many requests of one client were answered, and how many were refused.
async fn be_loud(site: &Site, number: usize, until: Instant) -> (usize, usize) {
    let agent = Agent::try_connect(Client::new(), "test", &site.url(), LOUD, Era::Modern, json!({})).await;
    let agent = agent.expect("connecting needs no request");
    let (mut answered, mut refused) = (0, 0);
    while Instant::now() < until || answered + refused < LOUD_REQUESTS {
        let status = match number % 3 {
            0 => initialize(site).await,
            _ => {
                let read = json!({ "name": "read_nb_cells", "arguments": { "path": path(0) } });
                let response = agent.try_start(agent.new_id(), "tools/call", read).await;
                let response = response.expect("an answer");
                let status = response.status();
                let _ = response.bytes().await;
                status
            }
        };
        match status {
            StatusCode::TOO_MANY_REQUESTS => refused += 1,
            _ => answered += 1,
        }
    }
    (answered, refused)
}

/// Begins a session that nobody ends.
async fn initialize(site: &Site) -> StatusCode {
    let request = Client::new().post(site.url()).bearer_auth(LOUD);
    let request = request.header("accept", "application/json, text/event-stream");
    let answer = request.json(&initialize_with(&json!({}))).send().await;
    answer.expect("an answer").status()
}
