//! Things of which a tenant may have only so many at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use super::tenant::TenantLimits;
use crate::config::TenantConfig;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Requests that are being answered.
    Requests,
    /// Streams on which notices are awaited.
    Streams,
    /// MCP sessions, protocol up to 2025-11-25.
    Sessions,
    /// Bytes of bodies that are being worked on, and of answers that are being sent.
    Bytes,
    /// Images that are being scaled or wait for it.
    Images,
}

impl Resource {
    pub(super) const ALL: [Self; 5] = [Self::Requests, Self::Streams, Self::Sessions, Self::Bytes, Self::Images];

    /// The key of the tenant that sets the limit.
    pub fn key(self) -> &'static str {
        match self {
            Self::Requests => "max_requests_in_flight",
            Self::Streams => "max_streams",
            Self::Sessions => "max_sessions",
            Self::Bytes => "max_bytes_held",
            Self::Images => "max_images_in_work",
        }
    }

    pub(super) fn max(self, tenant: &TenantConfig) -> usize {
        match self {
            Self::Requests => tenant.max_requests_in_flight,
            Self::Streams => tenant.max_streams,
            Self::Sessions => tenant.max_sessions,
            Self::Bytes => tenant.max_bytes_held,
            Self::Images => tenant.max_images_in_work,
        }
    }

    /// The limit and what to do about it, in words for a model.
    pub(super) fn advice(self, max: usize) -> String {
        match self {
            Self::Requests => format!(
                "your tenant has {max} requests that are not answered yet; wait for answers before you send more"
            ),
            Self::Streams => {
                format!("your tenant has {max} open streams; close those that nobody reads before you open another")
            }
            Self::Sessions => format!(
                "your tenant has {max} busy MCP sessions; end one with DELETE, or use the protocol 2026-07-28, which needs none"
            ),
            Self::Bytes => format!(
                "your tenant has {max} bytes of requests and answers under way; send less at once, and read the answers"
            ),
            Self::Images => {
                format!("{max} images of your tenant wait to be scaled; ask again later, or with images=false")
            }
        }
    }
}

/// Use of one resource, and its limit.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    used: AtomicUsize,
    max: AtomicUsize,
}

impl Gauge {
    pub(super) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Takes some, if there is enough. Who has nothing may take anything, so that nobody is refused for ever.
    pub(super) fn try_take(&self, amount: usize) -> bool {
        let max = self.max();
        let take = |used: usize| {
            let sum = used.saturating_add(amount);
            (sum <= max || used == 0).then_some(sum)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// Takes some, whatever the limit is.
    pub(super) fn take(&self, amount: usize) {
        self.used.fetch_add(amount, Ordering::Relaxed);
    }

    fn give_back(&self, amount: usize) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }
}

/// A share of a resource, given back when dropped.
pub struct Reservation {
    tenant: Arc<TenantLimits>,
    resource: Resource,
    amount: usize,
}

impl Reservation {
    pub(super) fn new(tenant: &Arc<TenantLimits>, resource: Resource, amount: usize) -> Self {
        Self {
            tenant: Arc::clone(tenant),
            resource,
            amount,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.tenant.gauge(self.resource).give_back(self.amount);
    }
}
