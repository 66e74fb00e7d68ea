//! The time as the driver last told it. The core never reads a clock, so that tests decide what time it is.

use std::time::{Duration, Instant, SystemTime};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: (Instant, SystemTime),
    now: Instant,
}

impl Clock {
    pub(crate) fn new(now: Instant, wall: SystemTime) -> Self {
        Self {
            started: (now, wall),
            now,
        }
    }

    /// Time never goes back.
    pub(crate) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// The time of day.
    pub(crate) fn wall(&self) -> SystemTime {
        self.wall_at(self.now)
    }

    /// The time of day at a moment.
    pub(crate) fn wall_at(&self, moment: Instant) -> SystemTime {
        self.started.1 + moment.saturating_duration_since(self.started.0)
    }

    pub(crate) fn since(&self, moment: Instant) -> Duration {
        self.now.saturating_duration_since(moment)
    }
}

#[cfg(test)]
impl Default for Clock {
    fn default() -> Self {
        Self::new(Instant::now(), SystemTime::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_as_it_is_told_and_never_back() {
        let (begin, wall, second) = (Instant::now(), SystemTime::UNIX_EPOCH, Duration::from_secs(1));
        let mut clock = Clock::new(begin, wall);
        clock.advance(begin + 2 * second);
        clock.advance(begin + second);
        assert_eq!((clock.since(begin), clock.wall()), (2 * second, wall + 2 * second));
    }
}
