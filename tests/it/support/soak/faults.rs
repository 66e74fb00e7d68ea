//! What goes wrong during a soak.

use std::time::Instant;

use super::{Dice, Site};

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
}

/// Has things die at random until it is time to stop, after which everything runs.
#[expect(
    clippy::await_holding_invalid_type,
    reason = "whoever wants what is being restarted waits for it"
)]
pub(super) async fn strike(site: &Site, mut dice: Dice, until: Instant) -> Faults {
    let mut faults = Faults::default();
    // Everything happens in a short run too.
    let mut first = [Fault::Jupyter, Fault::Gateway, Fault::Line].into_iter();
    loop {
        tokio::time::sleep(dice.millis(1500..6000)).await;
        if Instant::now() >= until {
            return faults;
        }
        site.weigh().await;
        match first.next().unwrap_or_else(|| Fault::random(&mut dice)) {
            Fault::Jupyter => {
                faults.jupyter_killed += 1;
                site.lab.lock().await.restart().await;
            }
            Fault::Gateway => {
                faults.gateway_killed += 1;
                if let Some(mut gateway) = site.gateway.lock().await.take() {
                    gateway.kill().await.expect("it was running");
                }
                site.start_gateway().await;
            }
            Fault::Line => {
                faults.lines_cut += 1;
                site.proxy.cut();
            }
        }
    }
}
