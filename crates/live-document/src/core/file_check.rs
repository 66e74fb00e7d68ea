//! Schedule of checks whether the file of an open document is still in its place: changes on disk must be asked for,
//! which must not cost a busy server more than it is worth. Does no I/O.

use std::time::{Duration, Instant};

use super::policy::{MIN_TRUST, STEADY_CALLS};

/// Times of a document's last use and of the last check of its file.
#[derive(Debug)]
pub(crate) struct FileCheck {
    checked: Instant,
    used: Instant,
    /// Number of calls in a row.
    streak: u32,
}

/// Treatment of the file by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// True if the document is in steady use: then the check runs beside the call, and not before it.
    pub(crate) is_steady: bool,
    /// Time since the file was last known to be in its place.
    pub(crate) age: Duration,
    /// Time for which that is trusted.
    pub(crate) trust: Duration,
}

impl Call {
    pub(crate) fn is_due(self) -> bool {
        self.age >= self.trust
    }
}

impl FileCheck {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            checked: now,
            used: now,
            streak: 0,
        }
    }

    /// Records a call. A busy server, whose files are trusted for long, is slow to answer calls too.
    pub(crate) fn record_call(&mut self, trust: Duration, now: Instant) -> Call {
        let is_in_a_row = now.saturating_duration_since(self.used) < (trust / 3).max(MIN_TRUST);
        self.used = now;
        self.streak = if is_in_a_row { self.streak.saturating_add(1) } else { 0 };
        let is_steady = self.streak > STEADY_CALLS;
        Call {
            is_steady,
            age: now.saturating_duration_since(self.checked),
            trust: if is_steady { trust } else { MIN_TRUST },
        }
    }

    /// Records the start of a check, if one is still due.
    pub(crate) fn take_due(&mut self, trust: Duration, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.checked) >= trust;
        if is_due {
            self.checked = now;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::policy::MAX_TRUST;

    #[test]
    fn steady_use_is_many_calls_in_a_row() {
        let mut now = Instant::now();
        let mut file = FileCheck::new(now);
        let steady = |file: &mut FileCheck, trust: Duration, now: Instant| file.record_call(trust, now).is_steady;
        assert!((0..STEADY_CALLS).all(|_| !steady(&mut file, MIN_TRUST, now)));
        assert!(steady(&mut file, MIN_TRUST, now) && steady(&mut file, MIN_TRUST, now));
        now += MIN_TRUST;
        assert!(!steady(&mut file, 2 * MIN_TRUST, now), "it was idle");
        assert!((0..=STEADY_CALLS).any(|_| steady(&mut file, MIN_TRUST, now)));
        now += MIN_TRUST;
        assert!(steady(&mut file, MAX_TRUST, now), "so is everybody on a busy server");
    }

    #[test]
    fn a_file_is_looked_at_when_it_is_not_trusted_any_more_and_once() {
        let now = Instant::now();
        let mut file = FileCheck::new(now);
        assert!(!file.record_call(MAX_TRUST, now).is_due());
        let later = now + MIN_TRUST;
        assert!(
            file.record_call(MAX_TRUST, later).is_due(),
            "before a call that comes alone"
        );
        assert!(file.take_due(MIN_TRUST, later) && !file.take_due(MIN_TRUST, later));
        assert!(!file.record_call(MAX_TRUST, later).is_due());
    }
}
