//! The limits of one tenant: the rates of all its principals and of each of them, and what they hold at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use dashmap::DashMap;
use http::HeaderValue;
use parking_lot::RwLock;

use super::{
    Counts, Rate, Refusal, Reservation, Resource,
    bucket::Bucket,
    refusal::{PRINCIPAL, TENANT},
    resource::Gauge,
};
use crate::{
    config::TenantConfig,
    telemetry::{LimitUse, Metrics},
};

/// Number of principals of a tenant that may use all of their rate, unless the config says otherwise.
const PRINCIPALS_AT_FULL_RATE: u32 = 10;

pub(super) struct TenantLimits {
    name: Arc<str>,
    rates: RwLock<Arc<Rates>>,
    principals: DashMap<Arc<str>, Arc<Bucket>>,
    held: [Gauge; Resource::ALL.len()],
    /// Limits of executions and rooms, which the executor and the pool enforce.
    elsewhere: [AtomicUsize; 2],
    metrics: Metrics,
}

/// The rates that hold now.
pub(super) struct Rates {
    principal: Rate,
    pub(super) tenant: Bucket,
    /// Both, as a header tells them.
    pub(super) policy: HeaderValue,
}

impl TenantLimits {
    pub(super) fn new(name: Arc<str>, config: &TenantConfig, metrics: Metrics) -> Self {
        let (_, tenant) = rates(config);
        let limits = Self {
            name,
            rates: RwLock::new(Arc::new(Rates::new(config, Bucket::new(tenant)))),
            principals: DashMap::new(),
            held: Default::default(),
            elsewhere: Default::default(),
            metrics,
        };
        limits.set_limits(config);
        limits
    }

    /// Has other limits hold from now on, for what was used already too.
    pub(super) fn replace(&self, config: &TenantConfig) {
        self.set_limits(config);
        let (principal, tenant) = rates(config);
        {
            let mut rates = self.rates.write();
            if rates.principal == principal && rates.tenant.rate() == tenant {
                return;
            }
            *rates = Arc::new(Rates::new(config, rates.tenant.with_rate(tenant)));
        }
        for mut bucket in self.principals.iter_mut() {
            if bucket.rate() != principal {
                let replaced = bucket.with_rate(principal);
                *bucket = Arc::new(replaced);
            }
        }
    }

    fn set_limits(&self, config: &TenantConfig) {
        for resource in Resource::ALL {
            self.gauge(resource).set_max(resource.max(config));
        }
        self.elsewhere[0].store(config.max_concurrent_executions, Ordering::Relaxed);
        self.elsewhere[1].store(config.max_open_rooms, Ordering::Relaxed);
    }

    pub(super) fn rates(&self) -> Arc<Rates> {
        Arc::clone(&self.rates.read())
    }

    /// The bucket of a principal.
    pub(super) fn principal(&self, id: &Arc<str>) -> Arc<Bucket> {
        if let Some(bucket) = self.principals.get(id) {
            return Arc::clone(&bucket);
        }
        let new = || Arc::new(Bucket::new(self.rates().principal));
        Arc::clone(&self.principals.entry(Arc::clone(id)).or_insert_with(new))
    }

    pub(super) fn gauge(&self, resource: Resource) -> &Gauge {
        &self.held[resource as usize]
    }

    /// Takes a share of a resource, if there is enough.
    pub(super) fn hold(self: &Arc<Self>, resource: Resource, amount: usize) -> Result<Reservation, Refusal> {
        let gauge = self.gauge(resource);
        match gauge.try_take(amount) {
            true => Ok(Reservation::new(self, resource, amount)),
            false => Err(self.refused(Refusal::InUse {
                resource,
                max: gauge.max(),
            })),
        }
    }

    /// Takes a share of a resource, whatever the limit is: it is there already.
    pub(super) fn hold_anyway(self: &Arc<Self>, resource: Resource, amount: usize) -> Reservation {
        self.gauge(resource).take(amount);
        Reservation::new(self, resource, amount)
    }

    /// Counts a refusal.
    pub(super) fn refused(&self, refusal: Refusal) -> Refusal {
        self.metrics.limit_refused(&self.name, refusal.limit());
        refusal
    }

    /// Forgets principals whose buckets are full.
    pub(super) fn sweep(&self, now: Instant) {
        self.principals.retain(|_, bucket| !bucket.is_idle(now));
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn usage(&self, counts: Counts) -> Vec<LimitUse> {
        let limit = |limit, used, max| LimitUse {
            tenant: Arc::clone(&self.name),
            limit,
            used,
            max,
        };
        let held = Resource::ALL.into_iter().map(|resource| {
            let gauge = self.gauge(resource);
            limit(resource.key(), gauge.used(), gauge.max())
        });
        let [executions, rooms] = &self.elsewhere;
        let elsewhere = [
            limit(
                "max_concurrent_executions",
                counts.executions,
                executions.load(Ordering::Relaxed),
            ),
            limit("max_open_rooms", counts.rooms, rooms.load(Ordering::Relaxed)),
        ];
        held.chain(elsewhere).collect()
    }

    #[cfg(test)]
    pub(super) fn principals(&self) -> usize {
        self.principals.len()
    }
}

impl Rates {
    fn new(config: &TenantConfig, tenant: Bucket) -> Self {
        let (principal, of_all) = rates(config);
        let item = |name: &str, rate: Rate| format!("\"{name}\";q={};w={}", rate.burst, rate.window());
        let policy = format!("{}, {}", item(PRINCIPAL, principal), item(TENANT, of_all));
        Self {
            principal,
            tenant,
            policy: HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("")),
        }
    }
}

/// The rates of each principal and of all together.
fn rates(config: &TenantConfig) -> (Rate, Rate) {
    let principal = Rate {
        per_minute: config.requests_per_minute,
        burst: config.burst,
    };
    let together = |given: u32, each: u32| match given {
        0 => each.saturating_mul(PRINCIPALS_AT_FULL_RATE),
        given => given,
    };
    let tenant = Rate {
        per_minute: together(config.total_requests_per_minute, principal.per_minute),
        burst: together(config.total_burst, principal.burst),
    };
    (principal, tenant)
}
