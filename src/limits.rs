//! Limits of callers: how fast they may ask, and how much of the gateway a tenant may hold at once. Counted in this
//! process, per tenant, so that the load of one never is in the way of another.

mod addresses;
mod admission;
mod bucket;
mod refusal;
mod resource;
mod tenant;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

pub use addresses::AddressLimit;
pub use admission::Admission;
pub use bucket::Rate;
pub use refusal::Refusal;
pub use resource::{Reservation, Resource};

use self::{addresses::AddressCounts, tenant::TenantLimits};
use crate::{
    config::TenantConfig,
    telemetry::{LimitUse, Metrics},
};

/// Interval at which callers are forgotten who have been quiet for long.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);

/// The limits of all tenants, and of addresses from which nobody could log in.
pub struct Limits {
    tenants: RwLock<HashMap<Arc<str>, Arc<TenantLimits>>>,
    addresses: [AddressCounts; AddressLimit::ALL.len()],
    metrics: Metrics,
    counts: OnceLock<CountsOf>,
}

/// Tells what others count for a tenant.
type CountsOf = Box<dyn Fn(&str) -> Counts + Send + Sync>;

/// Numbers of what those count themselves who have it, for a tenant.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub executions: usize,
    pub rooms: usize,
}

impl Limits {
    pub fn new(tenants: &[TenantConfig], metrics: Metrics) -> Arc<Self> {
        let limits = Arc::new(Self {
            tenants: RwLock::default(),
            addresses: AddressLimit::ALL.map(AddressCounts::new),
            metrics: metrics.clone(),
            counts: OnceLock::new(),
        });
        limits.replace(tenants);
        let watched = Arc::downgrade(&limits);
        metrics.watch_limits(move || watched.upgrade().map(|limits| limits.usage()).unwrap_or_default());
        limits
    }

    /// Has metrics tell what others count for each tenant, too.
    pub fn watch(&self, counts: impl Fn(&str) -> Counts + Send + Sync + 'static) {
        let _ = self.counts.set(Box::new(counts));
    }

    /// Puts the limits of another config in the place of those there are. What was used stays used.
    pub fn replace(&self, tenants: &[TenantConfig]) {
        let mut current = self.tenants.write();
        let replaced = tenants.iter().map(|config| {
            let name: Arc<str> = config.name.as_str().into();
            let limits = match current.get(&name) {
                Some(limits) => Arc::clone(limits),
                None => Arc::new(TenantLimits::new(Arc::clone(&name), config, self.metrics.clone())),
            };
            limits.replace(config);
            (name, limits)
        });
        *current = replaced.collect();
    }

    /// Admits a request of a principal, which holds a place for a request or for a stream while it is answered.
    pub fn admit(&self, tenant: &str, principal: &Arc<str>, place: Resource) -> Result<Admission, Refusal> {
        Admission::new(self.tenant(tenant), principal, place)
    }

    /// Takes a share of what a tenant may have at once.
    pub fn hold(&self, tenant: &str, resource: Resource, amount: usize) -> Result<Reservation, Refusal> {
        self.tenant(tenant).hold(resource, amount)
    }

    /// Counts a login that failed; an error if there were too many from that address.
    pub fn on_failed_login(&self, address: IpAddr) -> Result<(), Refusal> {
        self.count_address(AddressLimit::FailedLogins, address)
    }

    /// Counts what an address does; an error if it does so too often.
    pub fn count_address(&self, limit: AddressLimit, address: IpAddr) -> Result<(), Refusal> {
        let counted = self.addresses[limit as usize].count(address, Instant::now());
        counted.inspect_err(|refusal| self.metrics.limit_refused("", refusal.limit()))
    }

    /// Forgets now and then who has been quiet for so long that it makes no difference, until `stop` is cancelled.
    pub async fn sweep_regularly(limits: Weak<Self>, stop: CancellationToken) {
        while stop
            .run_until_cancelled(tokio::time::sleep(SWEEP_INTERVAL))
            .await
            .is_some()
        {
            match limits.upgrade() {
                Some(limits) => limits.sweep(Instant::now()),
                None => return,
            }
        }
    }

    fn sweep(&self, now: Instant) {
        for counts in &self.addresses {
            counts.sweep(now);
        }
        for tenant in self.tenants.read().values() {
            tenant.sweep(now);
        }
    }

    /// The limits of a tenant. One that a reload has removed meanwhile is let finish with the usual ones.
    fn tenant(&self, name: &str) -> Arc<TenantLimits> {
        if let Some(limits) = self.tenants.read().get(name) {
            return Arc::clone(limits);
        }
        let limits = TenantLimits::new(name.into(), &TenantConfig::default(), self.metrics.clone());
        Arc::new(limits)
    }

    /// The use that a tenant makes of each limit at this moment.
    pub fn usage_of(&self, tenant: &str) -> Vec<LimitUse> {
        let counts = self.counts.get().map(|counts| counts(tenant));
        self.tenant(tenant).usage(counts.unwrap_or_default())
    }

    fn usage(&self) -> Vec<LimitUse> {
        let tenants: Vec<_> = self.tenants.read().values().cloned().collect();
        let counts = |tenant: &TenantLimits| self.counts.get().map(|counts| counts(tenant.name()));
        tenants
            .iter()
            .flat_map(|tenant| tenant.usage(counts(tenant).unwrap_or_default()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
