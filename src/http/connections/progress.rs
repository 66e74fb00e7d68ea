//! Progress of a connection: what its client owes, by when, and which gives way first. No clock or socket of its own.

use tokio::time::Instant;

use super::{CloseReason, Timeouts};

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Progress {
    opened: Instant,
    stage: Stage,
    is_http2: bool,
    /// A request with a token that is known here has come.
    is_authenticated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No byte has come.
    Silent,
    /// A request has begun to come.
    Receiving { since: Instant },
    Answering {
        /// Arrival of the oldest request under way.
        since: Instant,
        requests: usize,
    },
    /// Everything is answered.
    Idle { since: Instant },
}

/// Rank by which a connection gives way to another, and since when it has it.
pub(super) type EvictionRank = (u8, Instant);

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            opened: now,
            stage: Stage::Silent,
            is_http2: false,
            is_authenticated: false,
        }
    }

    pub(super) fn on_handshake(&mut self, now: Instant) {
        self.opened = now;
    }

    pub(super) fn on_bytes(&mut self, now: Instant) {
        match self.stage {
            Stage::Silent => self.stage = Stage::Receiving { since: self.opened },
            // Over HTTP/2 they may be an answer to a ping, and say nothing of a request.
            Stage::Idle { .. } if !self.is_http2 => self.stage = Stage::Receiving { since: now },
            _ => {}
        }
    }

    pub(super) fn on_request(&mut self, is_http2: bool, now: Instant) {
        self.is_http2 = is_http2;
        self.stage = match self.stage {
            Stage::Answering { since, requests } => Stage::Answering {
                since,
                requests: requests + 1,
            },
            _ => Stage::Answering {
                since: now,
                requests: 1,
            },
        };
    }

    pub(super) fn on_answered(&mut self, now: Instant) {
        if let Stage::Answering { since, requests } = self.stage {
            self.stage = match requests {
                0 | 1 => Stage::Idle { since: now },
                _ => Stage::Answering {
                    since,
                    requests: requests - 1,
                },
            };
        }
    }

    pub(super) fn on_authenticated(&mut self) {
        self.is_authenticated = true;
    }

    /// The time at which the connection is closed unless something happens before, and the reason.
    pub(super) fn deadline(&self, timeouts: &Timeouts) -> Option<(Instant, CloseReason)> {
        match self.stage {
            Stage::Silent => Some((self.opened + timeouts.first_byte, CloseReason::FirstByte)),
            Stage::Receiving { since } => Some((since + timeouts.headers, CloseReason::Headers)),
            // A stream of somebody who is known may last as long as they want.
            Stage::Answering { .. } if self.is_authenticated => None,
            Stage::Answering { since, .. } => Some((since + timeouts.anonymous, CloseReason::Anonymous)),
            Stage::Idle { since } => Some((since + timeouts.idle, CloseReason::Idle)),
        }
    }

    /// The smallest gives way first; none if the connection is in use.
    pub(super) fn eviction_rank(&self, timeouts: &Timeouts, now: Instant) -> Option<EvictionRank> {
        match self.stage {
            Stage::Silent => Some((0, self.opened)),
            Stage::Receiving { since } => Some((0, since)),
            Stage::Idle { since } => Some((if self.is_authenticated { 3 } else { 1 }, since)),
            // What needs no token is answered at once, unless the client does not read it.
            Stage::Answering { since, .. } => {
                let is_stalled = !self.is_authenticated && now - since >= timeouts.first_byte;
                is_stalled.then_some((2, since))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seconds(start: Instant, after: u64) -> Instant {
        start + Duration::from_secs(after)
    }

    /// Seconds after the start at which it is closed, and why.
    fn due(progress: &Progress, start: Instant) -> Option<(u64, CloseReason)> {
        let (at, why) = progress.deadline(&Timeouts::default())?;
        Some(((at - start).as_secs(), why))
    }

    #[test]
    fn every_step_has_its_time() {
        let start = Instant::now();
        let mut progress = Progress::new(start);
        assert_eq!(due(&progress, start), Some((10, CloseReason::FirstByte)));
        progress.on_bytes(seconds(start, 9));
        progress.on_bytes(seconds(start, 14));
        assert_eq!(
            due(&progress, start),
            Some((15, CloseReason::Headers)),
            "byte by byte as well"
        );
        progress.on_request(false, seconds(start, 14));
        assert_eq!(due(&progress, start), Some((74, CloseReason::Anonymous)));
        progress.on_authenticated();
        assert_eq!(due(&progress, start), None, "a stream of somebody known");
        progress.on_answered(seconds(start, 100));
        assert_eq!(due(&progress, start), Some((175, CloseReason::Idle)));
        progress.on_bytes(seconds(start, 110));
        assert_eq!(due(&progress, start), Some((125, CloseReason::Headers)));
    }

    #[test]
    fn pings_do_not_begin_a_request_of_http2() {
        let start = Instant::now();
        let mut progress = Progress::new(start);
        progress.on_bytes(start);
        for _ in 0..2 {
            progress.on_request(true, start);
        }
        progress.on_answered(seconds(start, 1));
        assert_eq!(due(&progress, start), Some((60, CloseReason::Anonymous)));
        progress.on_answered(seconds(start, 2));
        progress.on_bytes(seconds(start, 22));
        assert_eq!(due(&progress, start), Some((77, CloseReason::Idle)));
    }

    #[test]
    fn whoever_is_in_use_stays() {
        let start = Instant::now();
        let rank = |progress: &Progress, after| {
            let rank = progress.eviction_rank(&Timeouts::default(), seconds(start, after));
            rank.map(|(rank, _)| rank)
        };
        let mut progress = Progress::new(start);
        assert_eq!(rank(&progress, 0), Some(0));
        progress.on_request(false, start);
        assert_eq!((rank(&progress, 1), rank(&progress, 30)), (None, Some(2)));
        progress.on_answered(start);
        assert_eq!(rank(&progress, 1), Some(1));
        progress.on_authenticated();
        assert_eq!(rank(&progress, 1), Some(3));
        progress.on_request(false, start);
        assert_eq!(rank(&progress, 1000), None);
    }
}
