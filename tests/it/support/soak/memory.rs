//! Memory of the gateways of a soak, over their lives.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::site::Site;

const INTERVAL: Duration = Duration::from_secs(2);

/// What the gateways took, one after the other.
#[derive(Clone, Default)]
pub struct Memory {
    /// The number of the gateway, the time and the bytes.
    samples: Vec<(usize, Instant, usize)>,
}

impl Memory {
    pub(super) fn add(&mut self, gateway: usize, bytes: usize) {
        self.samples.push((gateway, Instant::now(), bytes));
    }

    pub fn peak(&self) -> usize {
        self.samples
            .iter()
            .map(|(_, _, bytes)| *bytes)
            .max()
            .unwrap_or_default()
    }

    /// What the last gateway took, and how long it lived: at its start, after a third, after two thirds, at its end.
    pub fn of_last(&self) -> (Duration, [usize; 4]) {
        let last = self.samples.last().map(|(gateway, _, _)| *gateway);
        let own: Vec<_> = self.samples.iter().filter(|(it, _, _)| Some(*it) == last).collect();
        let (Some(first), Some(end)) = (own.first(), own.last()) else {
            return Default::default();
        };
        let lived = end.1 - first.1;
        let after = |thirds: u32| {
            own.iter()
                .find(|it| it.1 - first.1 >= lived * thirds / 3)
                .unwrap_or(end)
                .2
        };
        (lived, [first.2, after(1), after(2), end.2])
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lived, sizes) = self.of_last();
        let [start, third, two_thirds, end] = sizes.map(|bytes| bytes >> 20);
        write!(
            f,
            "memory of the last gateway, which lived {lived:.0?}: {start} MB at its start, {third} MB after a third, \
             {two_thirds} MB after two, {end} MB at its end; {} MB at most of any",
            self.peak() >> 20
        )
    }
}

/// Weighs the gateway again and again until told to stop.
pub(super) async fn follow(site: Arc<Site>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_some() {
        site.weigh().await;
    }
}
