//! Failed logins by client address. Bounded, however many addresses there are.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::Refusal;
use crate::types::ClientAddress;

/// Failed logins of one address within the window. Counted and not averaged, since nobody needs to fail again and again.
const MAX_FAILURES: u32 = 100;
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are told apart; all others count as one.
const MAX_ADDRESSES: usize = 65_536;
/// A flood from many addresses must not have all of them looked through for each.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct FailedLogins {
    max_addresses: usize,
    counted: Mutex<Counted>,
}

struct Counted {
    by_address: HashMap<Option<ClientAddress>, Window>,
    swept: Instant,
}

/// The failures of an address since the first of them.
struct Window {
    since: Instant,
    failures: u32,
}

impl Default for FailedLogins {
    fn default() -> Self {
        Self::new(MAX_ADDRESSES)
    }
}

impl FailedLogins {
    fn new(max_addresses: usize) -> Self {
        Self {
            max_addresses,
            counted: Mutex::new(Counted {
                by_address: HashMap::new(),
                swept: Instant::now(),
            }),
        }
    }

    pub(super) fn count(&self, address: IpAddr, now: Instant) -> Result<(), Refusal> {
        let mut counted = self.counted.lock();
        let key = counted.place_for(address, self.max_addresses, now);
        let window = counted.by_address.entry(key).or_insert(Window {
            since: now,
            failures: 0,
        });
        let passed = now.saturating_duration_since(window.since);
        if passed >= WINDOW {
            *window = Window {
                since: now,
                failures: 0,
            };
        }
        if window.failures < MAX_FAILURES {
            window.failures += 1;
            return Ok(());
        }
        Err(Refusal::FailedLogins {
            retry_after: WINDOW.saturating_sub(passed),
        })
    }

    pub(super) fn sweep(&self, now: Instant) {
        self.counted.lock().sweep(now);
    }
}

impl Counted {
    /// The key of an address, or that of all for whom there is no place.
    fn place_for(&mut self, address: IpAddr, max: usize, now: Instant) -> Option<ClientAddress> {
        let key = Some(ClientAddress::of(address));
        let is_full = |counted: &Self| counted.by_address.len() >= max && !counted.by_address.contains_key(&key);
        if is_full(self) && now.saturating_duration_since(self.swept) >= MIN_SWEEP_INTERVAL {
            self.sweep(now);
        }
        key.filter(|_| !is_full(self))
    }

    fn sweep(&mut self, now: Instant) {
        self.swept = now;
        self.by_address
            .retain(|_, window| now.saturating_duration_since(window.since) < WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn an_address_has_so_many_failed_logins_in_a_minute_and_no_more() {
        let (logins, start) = (FailedLogins::default(), Instant::now());
        for attempt in 0..MAX_FAILURES {
            let now = start + Duration::from_millis(500) * attempt;
            assert!(logins.count(address(1), now).is_ok(), "{attempt}");
        }
        let refused = logins.count(address(1), start + Duration::from_secs(55));
        let refused = refused.expect_err("one more");
        assert_eq!(
            (refused.limit(), refused.retry_after()),
            ("failed_logins", Duration::from_secs(5))
        );
        assert!(logins.count(address(2), start).is_ok());
        assert!(logins.count(address(1), start + Duration::from_secs(60)).is_ok());
    }

    #[test]
    fn however_many_addresses_there_are_few_are_kept() {
        let (logins, now) = (FailedLogins::new(10), Instant::now());
        for last in 0..200 {
            let _ = logins.count(address(last), now);
        }
        assert!(logins.counted.lock().by_address.len() <= 11);
        assert!(
            logins.count(address(201), now).is_err(),
            "those without a place count as one"
        );
        assert!(logins.count(address(0), now).is_ok(), "who has one goes on");
        let later = now + WINDOW;
        assert!(logins.count(address(201), later).is_ok());
        logins.sweep(later + WINDOW);
        assert!(logins.counted.lock().by_address.is_empty());
    }
}
