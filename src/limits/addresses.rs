//! Limits by client address, for requests of unknown callers: failed logins, and the steps of a browser login. Bounded,
//! however many addresses there are.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::Refusal;
use crate::types::ClientAddress;

/// Counted in windows and not averaged, since nobody needs to fail again and again.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are told apart; all others count as one.
const MAX_ADDRESSES: usize = 65_536;
/// A flood from many addresses must not have all of them looked through for each.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Kind of request that is limited by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressLimit {
    FailedLogins,
    /// Browser logins that are begun.
    Logins,
    /// Clients that register themselves.
    Registrations,
    /// Requests for tokens; many clients may be behind one address.
    Tokens,
}

impl AddressLimit {
    pub(super) const ALL: [Self; 4] = [Self::FailedLogins, Self::Logins, Self::Registrations, Self::Tokens];

    /// As metrics and programs know it.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::FailedLogins => "failed_logins",
            Self::Logins => "browser_logins",
            Self::Registrations => "client_registrations",
            Self::Tokens => "token_requests",
        }
    }

    /// Highest number within the window.
    fn max(self) -> u32 {
        match self {
            Self::FailedLogins | Self::Logins => 100,
            Self::Registrations => 20,
            Self::Tokens => 600,
        }
    }
}

/// Counts one thing by address.
pub(super) struct AddressCounts {
    limit: AddressLimit,
    max_addresses: usize,
    counted: Mutex<Counted>,
}

struct Counted {
    by_address: HashMap<Option<ClientAddress>, Window>,
    swept: Instant,
}

/// Number of requests of an address since the first one.
struct Window {
    since: Instant,
    times: u32,
}

impl AddressCounts {
    pub(super) fn new(limit: AddressLimit) -> Self {
        Self::of_addresses(limit, MAX_ADDRESSES)
    }

    fn of_addresses(limit: AddressLimit, max_addresses: usize) -> Self {
        Self {
            limit,
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
        let window = counted.by_address.entry(key).or_insert(Window { since: now, times: 0 });
        let passed = now.saturating_duration_since(window.since);
        if passed >= WINDOW {
            *window = Window { since: now, times: 0 };
        }
        if window.times < self.limit.max() {
            window.times += 1;
            return Ok(());
        }
        Err(Refusal::Address {
            limit: self.limit,
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
        let (logins, start) = (AddressCounts::new(AddressLimit::FailedLogins), Instant::now());
        for attempt in 0..AddressLimit::FailedLogins.max() {
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
        let (logins, now) = (
            AddressCounts::of_addresses(AddressLimit::FailedLogins, 10),
            Instant::now(),
        );
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
