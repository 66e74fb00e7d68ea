//! Schedule of writing a run's outputs to its notebook and to the store. Does no I/O.

use std::time::Duration;

use tokio::time::Instant;

use crate::policy::{BUSY_ROOM_INTERVAL, SMALL_OUTPUTS, STORE_INTERVAL, WRITE_INTERVAL};

/// The times of one run's writes.
#[derive(Debug, Default)]
pub(crate) struct OutputThrottle {
    /// Time of the next write, if something changed.
    due: Option<Instant>,
    written_at: Option<Instant>,
    stored_at: Option<Instant>,
}

impl OutputThrottle {
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(crate) fn has_written(&self) -> bool {
        self.written_at.is_some()
    }

    /// Records that outputs changed. The first change is due at once, those that follow closely are gathered; after the end of
    /// a run each write also costs the store one.
    pub(crate) fn on_change(&mut self, now: Instant, pause: Duration, ended_bytes: Option<usize>) {
        let interval = ended_bytes.map_or(WRITE_INTERVAL, store_interval);
        let soon = now + pause;
        let due = self.written_at.map_or(soon, |last| (last + interval).max(soon));
        self.set_due(due);
    }

    /// Makes a write due, at the latest then.
    pub(crate) fn set_due(&mut self, due: Instant) {
        self.due = Some(self.due.map_or(due, |at| at.min(due)));
    }

    /// Takes the write if it is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// Takes the write, due or not, if there is one.
    pub(crate) fn take(&mut self) -> bool {
        self.due.take().is_some()
    }

    pub(crate) fn on_written(&mut self, now: Instant) {
        self.written_at = Some(now);
    }

    /// Records that earlier writes of the notebook have not even been sent, so that what is new is gathered for a while.
    pub(crate) fn on_delayed(&mut self, now: Instant) {
        self.set_due(now + BUSY_ROOM_INTERVAL);
    }

    /// Takes the chance to store outputs that no notebook has, which would be lost with this process; returns whether it is time.
    pub(crate) fn take_store(&mut self, now: Instant, bytes: usize) -> bool {
        let is_due = self.stored_at.is_none_or(|last| now - last >= store_interval(bytes));
        if is_due {
            self.stored_at = Some(now);
        }
        is_due
    }
}

/// The interval at which outputs of a size are stored.
fn store_interval(bytes: usize) -> Duration {
    match bytes < SMALL_OUTPUTS {
        true => WRITE_INTERVAL,
        false => STORE_INTERVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_change_is_due_at_once_and_those_after_it_are_gathered() {
        let (mut throttle, start) = (OutputThrottle::default(), Instant::now());
        throttle.on_change(start, Duration::ZERO, None);
        assert!(throttle.take_due(start) && !throttle.take_due(start));
        throttle.on_written(start);
        for milliseconds in 1..10 {
            throttle.on_change(start + Duration::from_millis(milliseconds), Duration::ZERO, None);
        }
        assert_eq!(throttle.due(), Some(start + WRITE_INTERVAL));
        throttle.on_change(start, Duration::ZERO, Some(SMALL_OUTPUTS));
        assert_eq!(throttle.due(), Some(start + WRITE_INTERVAL), "the earlier one stays");
        assert!(throttle.take());
        throttle.on_change(start, Duration::ZERO, Some(SMALL_OUTPUTS));
        assert_eq!(throttle.due(), Some(start + STORE_INTERVAL));
    }
}
