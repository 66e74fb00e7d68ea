//! What goes wrong during a soak.

use std::{collections::HashSet, time::Instant};

use super::{
    super::{notebook::sources_on_disk, own_lab::OwnLab},
    Dice, Site, path,
};

/// What dies.
enum Fault {
    Jupyter,
    Gateway,
    Line,
}

impl Fault {
    fn random(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0..=5 => Self::Jupyter,
            6..=7 => Self::Gateway,
            _ => Self::Line,
        }
    }
}

/// How often what happened.
#[derive(Debug, Default)]
pub(super) struct Faults {
    jupyter_killed: usize,
    gateway_killed: usize,
    lines_cut: usize,
    /// Notebooks that Jupyter was killed over while it put the file of before in the place of one that it had written by half.
    files_put_back: usize,
}

/// A process that was killed, and what the files had then.
#[derive(Debug)]
pub(super) struct Death {
    pub(super) at: Instant,
    /// When it was there again.
    pub(super) back: Instant,
    pub(super) whose: Process,
    /// The sources of all cells, by notebook.
    pub(super) on_disk: Vec<HashSet<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    Jupyter,
    Gateway,
}

/// Has things die at random until it is time to stop, after which everything runs.
#[expect(
    clippy::await_holding_invalid_type,
    reason = "whoever wants what is being restarted waits for it"
)]
pub(super) async fn strike(site: &Site, notebooks: usize, mut dice: Dice, until: Instant) -> (Faults, Vec<Death>) {
    let mut faults = Faults::default();
    let mut deaths = Vec::new();
    // Everything happens in a short run too.
    let mut first = [Fault::Jupyter, Fault::Gateway, Fault::Line].into_iter();
    loop {
        tokio::time::sleep(dice.millis(1500..6000)).await;
        if Instant::now() >= until {
            return (faults, deaths);
        }
        site.weigh().await;
        match first.next().unwrap_or_else(|| Fault::random(&mut dice)) {
            Fault::Jupyter => {
                faults.jupyter_killed += 1;
                let mut lab = site.lab.lock().await;
                lab.kill();
                deaths.push(Death::now(Process::Jupyter, &lab, notebooks));
                faults.files_put_back += (0..notebooks).filter(|number| put_back(&lab, *number)).count();
                lab.restart().await;
            }
            Fault::Gateway => {
                faults.gateway_killed += 1;
                if let Some(mut gateway) = site.gateway.lock().await.take() {
                    gateway.kill().await.expect("it was running");
                }
                let lab = site.lab.lock().await;
                deaths.push(Death::now(Process::Gateway, &lab, notebooks));
                drop(lab);
                site.start_gateway().await;
            }
            Fault::Line => {
                faults.lines_cut += 1;
                site.proxy.cut();
                continue;
            }
        }
        if let Some(death) = deaths.last_mut() {
            death.back = Instant::now();
        }
    }
}

impl Death {
    fn now(whose: Process, lab: &OwnLab, notebooks: usize) -> Self {
        let on_disk = |number: usize| {
            // Of a file that is being written the one of before is still there under another name.
            let file = sources_on_disk(&lab.file(&path(number)));
            let sources = file.or_else(|| sources_on_disk(&lab.file(&before(number))));
            sources.unwrap_or_default().into_iter().collect()
        };
        Self {
            at: Instant::now(),
            back: Instant::now(),
            whose,
            on_disk: (0..notebooks).map(on_disk).collect(),
        }
    }
}

/// What Jupyter calls the file of before while it writes another.
fn before(number: usize) -> String {
    format!(".~{}", path(number))
}

/// Puts the file of before in its place, as a person would have to, if Jupyter was killed just when it did so itself.
fn put_back(lab: &OwnLab, number: usize) -> bool {
    let (file, before) = (lab.file(&path(number)), lab.file(&before(number)));
    !file.exists() && std::fs::rename(before, file).is_ok()
}
