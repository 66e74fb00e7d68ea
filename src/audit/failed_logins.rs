//! Refused logins, of which anybody can make any number: the first from an address are records of their own, and what
//! follows within a minute is one record that tells how many there were.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant, SystemTime},
};

use crate::types::ClientAddress;

/// Counted in windows, as the limit on failed logins is.
const WINDOW: Duration = Duration::from_secs(60);
/// Records of their own in a window, for an address and a reason...
const SINGLE: u32 = 10;
/// ...and for all together.
const SINGLE_OF_ALL: u32 = 500;
/// Pairs of address and reason that are told apart; what comes from further addresses is counted by reason alone.
const MAX_COUNTED: usize = 1024;

/// The refused logins of a window.
#[derive(Debug, Default)]
pub(super) struct FailedLogins {
    began: Option<Instant>,
    single: u32,
    counts: HashMap<(Option<ClientAddress>, &'static str), Count>,
}

#[derive(Debug, Default)]
struct Count {
    single: u32,
    repeated: Option<Repeated>,
}

/// Logins that are recorded as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repeated {
    pub(super) address: Option<IpAddr>,
    pub(super) reason: &'static str,
    pub(super) count: u64,
    pub(super) first: SystemTime,
    pub(super) last: SystemTime,
}

impl FailedLogins {
    /// Takes a refused login; returns whether it is to be recorded by itself.
    pub(super) fn take(&mut self, address: Option<IpAddr>, reason: &'static str, now: (Instant, SystemTime)) -> bool {
        self.began.get_or_insert(now.0);
        let key = (address.map(ClientAddress::of), reason);
        let has_place = self.counts.len() < MAX_COUNTED || self.counts.contains_key(&key);
        let (key, address) = if has_place {
            (key, address)
        } else {
            ((None, reason), None)
        };
        let count = self.counts.entry(key).or_default();
        if has_place && count.single < SINGLE && self.single < SINGLE_OF_ALL {
            count.single += 1;
            self.single += 1;
            return true;
        }
        let repeated = count.repeated.get_or_insert(Repeated {
            address,
            reason,
            count: 0,
            first: now.1,
            last: now.1,
        });
        repeated.count += 1;
        repeated.last = now.1;
        false
    }

    /// Ends the window if it is over.
    pub(super) fn end_if_over(&mut self, now: Instant) -> Vec<Repeated> {
        match self.began {
            Some(began) if now.saturating_duration_since(began) >= WINDOW => self.end(),
            _ => Vec::new(),
        }
    }

    /// Ends the window, and says what was counted in it.
    pub(super) fn end(&mut self) -> Vec<Repeated> {
        let ended = std::mem::take(self);
        ended.counts.into_values().filter_map(|count| count.repeated).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn the_first_are_told_one_by_one_and_the_rest_by_their_number() {
        let (mut logins, start, time) = (FailedLogins::default(), Instant::now(), SystemTime::now());
        let mut single = 0;
        for n in 0..5000 {
            let passed = Duration::from_millis(n);
            single += u32::from(logins.take(Some(address(1)), "token_unknown", (start + passed, time + passed)));
        }
        assert!(
            logins.take(Some(address(2)), "token_unknown", (start, time)),
            "another address"
        );
        assert!(
            logins.take(Some(address(1)), "token_missing", (start, time)),
            "another reason"
        );
        assert_eq!(single, SINGLE);
        assert_eq!(logins.end_if_over(start + Duration::from_secs(59)), []);
        let told = logins.end_if_over(start + WINDOW);
        let expected = Repeated {
            address: Some(address(1)),
            reason: "token_unknown",
            count: 5000 - u64::from(SINGLE),
            first: time + Duration::from_millis(u64::from(SINGLE)),
            last: time + Duration::from_millis(4999),
        };
        assert_eq!(told, [expected]);
        assert!(
            logins.take(Some(address(1)), "token_unknown", (start, time)),
            "a minute later"
        );
        assert_eq!(logins.end(), []);
    }

    #[test]
    fn however_many_addresses_there_are_few_records_come_of_them() {
        let (mut logins, now) = (FailedLogins::default(), (Instant::now(), SystemTime::now()));
        let mut told: u64 = 0;
        for n in 0..100_000 {
            told += u64::from(logins.take(Some(address(n)), "token_unknown", now));
        }
        assert_eq!(told, u64::from(SINGLE_OF_ALL));
        let repeated = logins.end();
        assert!(repeated.len() <= MAX_COUNTED + 1, "{}", repeated.len());
        told += repeated.iter().map(|repeated| repeated.count).sum::<u64>();
        assert_eq!(told, 100_000);
        assert!(repeated.iter().any(|repeated| repeated.address.is_none()));
    }
}
