//! Limits on the requests of callers. The seam for rate limits; there are none yet.

use std::time::{Duration, Instant};

/// Whom a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LimitKey<'a> {
    pub tenant: &'a str,
    pub principal: &'a str,
}

/// Decision whether a request may proceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Allowed,
    Denied { retry_after: Duration },
}

/// Counts requests and refuses those that are too many.
pub trait Limiter: Send + Sync {
    /// Counts a request of this cost, if it is allowed.
    fn check(&self, key: LimitKey<'_>, cost: u32, now: Instant) -> Decision;
}

/// Allows everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

impl Limiter for Unlimited {
    fn check(&self, _: LimitKey<'_>, _: u32, _: Instant) -> Decision {
        Decision::Allowed
    }
}
