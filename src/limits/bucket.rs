//! A bucket of requests: how many may come at once, and how fast it fills again.

use std::{
    num::NonZeroU32,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use governor::{
    Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
    state::{InMemoryState, NotKeyed},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Requests that may come on average, and at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub per_minute: u32,
    pub burst: u32,
}

impl Rate {
    /// Seconds in which so many requests are allowed again.
    pub(super) fn seconds_for(self, requests: u32) -> u64 {
        (u64::from(requests) * MINUTE.as_secs()).div_ceil(u64::from(self.per_minute.max(1)))
    }

    /// Seconds in which an empty bucket is full again.
    pub(super) fn window(self) -> u64 {
        self.seconds_for(self.burst).max(1)
    }

    pub(super) fn quota(self) -> Quota {
        let burst = at_least_one(self.burst);
        let quota = Quota::with_period(MINUTE / self.per_minute.max(1));
        quota
            .unwrap_or_else(|| Quota::per_minute(NonZeroU32::MIN))
            .allow_burst(burst)
    }
}

pub(super) struct Bucket {
    rate: Rate,
    limiter: RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>,
    started: Instant,
    /// Milliseconds after the start.
    last_used: AtomicU64,
}

impl Bucket {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            limiter: RateLimiter::direct(rate.quota()).with_middleware(),
            started: Instant::now(),
            last_used: AtomicU64::default(),
        }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Takes requests out, and returns how many are left; an error with the time to wait if there are too few. A
    /// request that costs more than the whole bucket needs a full one.
    pub(super) fn take(&self, requests: u32) -> Result<u32, Duration> {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(now, Ordering::Relaxed);
        match self.limiter.check_n(at_least_one(requests.min(self.rate.burst))) {
            Ok(Ok(left)) => Ok(left.remaining_burst_capacity()),
            Ok(Err(not_until)) => Err(not_until.wait_time_from(self.limiter.clock().now())),
            Err(_) => Err(MINUTE),
        }
    }

    /// Another bucket with this rate, from which as many requests are gone.
    pub(super) fn with_rate(&self, rate: Rate) -> Self {
        let other = Self::new(rate);
        let used = match self.limiter.check() {
            Ok(left) => self.rate.burst.saturating_sub(left.remaining_burst_capacity() + 1),
            Err(_) => self.rate.burst,
        };
        if used > 0 {
            let _ = other.take(used);
        }
        other
    }

    /// Returns whether it has been full again for a while, so that a new one would be the same.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        let last_used = Duration::from_millis(self.last_used.load(Ordering::Relaxed));
        let unused = now.saturating_duration_since(self.started).saturating_sub(last_used);
        unused > Duration::from_secs(self.rate.window()) + MINUTE
    }
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}
