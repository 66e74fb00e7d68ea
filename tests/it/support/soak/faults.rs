//! Faults that are injected during a soak.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    super::{notebook::sources_on_disk, own_lab::OwnLab},
    Dice, Site, path,
};

/// Fault: what dies.
enum Fault {
    Jupyter,
    Gateway,
    Network,
}

impl Fault {
    fn random(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0..=5 => Self::Jupyter,
            6..=7 => Self::Gateway,
            _ => Self::Network,
        }
    }

    /// The process that is killed.
    fn process(&self) -> Option<Process> {
        match self {
            Self::Jupyter => Some(Process::Jupyter),
            Self::Gateway => Some(Process::Gateway),
            Self::Network => None,
        }
    }
}

/// Time that a file may take to have what was acknowledged.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Counts of what happened.
#[derive(Debug, Default)]
pub(super) struct Faults {
    jupyter_killed: usize,
    gateway_killed: usize,
    lines_cut: usize,
    /// Notebooks that Jupyter was killed over while it put the file of before in the place of one that it had written by half.
    files_put_back: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    Jupyter,
    Gateway,
}

/// Has things die at random until it is time to stop, after which everything runs.
#[expect(
    clippy::await_holding_invalid_type,
    reason = "whoever wants what is being restarted waits for it"
)]
pub(super) async fn strike(site: &Site, notebooks: usize, mut dice: Dice, until: Instant) -> Faults {
    let mut faults = Faults::default();
    let mut last = None;
    // Everything happens in a short run too.
    let mut first = [Fault::Jupyter, Fault::Gateway, Fault::Network].into_iter();
    loop {
        sleep(dice.millis(1500..6000)).await;
        if Instant::now() >= until {
            return faults;
        }
        site.weigh().await;
        let fault = first.next().unwrap_or_else(|| Fault::random(&mut dice));
        if let Some(process) = fault.process()
            && last.replace(process).is_some_and(|last| last != process)
        {
            saved(site, notebooks).await;
            sleep(dice.millis(0..1500)).await;
        }
        match fault {
            Fault::Jupyter => {
                faults.jupyter_killed += 1;
                let mut lab = site.lab.lock().await;
                lab.kill();
                faults.files_put_back += (0..notebooks).filter(|number| put_back(&lab, *number)).count();
                lab.restart().await;
            }
            Fault::Gateway => {
                faults.gateway_killed += 1;
                if let Some(mut gateway) = site.gateway.lock().await.take() {
                    gateway.kill().await.expect("it was running");
                }
                site.start_gateway().await;
            }
            Fault::Network => {
                faults.lines_cut += 1;
                site.proxy.cut();
            }
        }
    }
}

/// Has agents pause until everything that was acknowledged is in its file, as far as it is not lost. What only one process has
/// is gone with it, so that both must not be killed before that.
async fn saved(site: &Site, notebooks: usize) {
    let _pause = site.pause.write().await;
    let until = Instant::now() + TIMEOUT;
    while Instant::now() < until {
        let acknowledged = site.acknowledged.lock().await.clone();
        let files = site.files(notebooks).await;
        let is_saved = |number: usize| {
            let on_disk = sources_on_disk(&files[number]).unwrap_or_default();
            let on_disk: HashSet<String> = on_disk.into_iter().collect();
            acknowledged[number].is_subset(&on_disk)
        };
        if (0..notebooks).all(is_saved) {
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
