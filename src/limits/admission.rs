//! A request that was admitted, for as long as it is being answered.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;

use super::{
    Refusal, Reservation, Resource,
    bucket::Bucket,
    refusal::{POLICY, PRINCIPAL, STATE, TENANT},
    tenant::{Rates, TenantLimits},
};

pub struct Admission {
    tenant: Arc<TenantLimits>,
    rates: Arc<Rates>,
    principal: Arc<Bucket>,
    /// Requests that are left to the principal, and to all of its tenant.
    left: [AtomicU32; 2],
    place: Mutex<Reservation>,
    /// The body that is worked on, then the answer that is being sent.
    bytes: Mutex<Option<Reservation>>,
}

impl Admission {
    /// Counts a request at the lowest cost; what it costs is known when it was read.
    pub(super) fn new(tenant: Arc<TenantLimits>, principal: &Arc<str>, place: Resource) -> Result<Self, Refusal> {
        let place = Mutex::new(tenant.hold(place, 1)?);
        let admission = Self {
            rates: tenant.rates(),
            principal: tenant.principal(principal),
            tenant,
            left: [AtomicU32::default(), AtomicU32::default()],
            place,
            bytes: Mutex::default(),
        };
        admission.charge(1)?;
        Ok(admission)
    }

    /// Charges for what the request wants. Whoever is over their own rate takes nothing from their tenant's.
    pub fn charge(&self, cost: u32) -> Result<(), Refusal> {
        let policy = || self.rates.policy.clone();
        let left = self.principal.take(cost).map_err(|retry_after| {
            self.tenant.refused(Refusal::Principal {
                rate: self.principal.rate(),
                retry_after,
                policy: policy(),
            })
        })?;
        let left_to_tenant = self.rates.tenant.take(cost).map_err(|retry_after| {
            self.tenant.refused(Refusal::Tenant {
                rate: self.rates.tenant.rate(),
                retry_after,
                policy: policy(),
            })
        })?;
        self.left[0].store(left, Ordering::Relaxed);
        self.left[1].store(left_to_tenant, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the request one whose answer is a stream of notices without an end.
    pub fn become_stream(&self) -> Result<(), Refusal> {
        let stream = self.tenant.hold(Resource::Streams, 1)?;
        *self.place.lock() = stream;
        Ok(())
    }

    /// A place among the MCP sessions of the tenant.
    pub fn hold_session(&self) -> Result<Reservation, Refusal> {
        self.tenant.hold(Resource::Sessions, 1)
    }

    /// Counts a body that is about to be read.
    pub fn hold_body(&self, bytes: usize) -> Result<(), Refusal> {
        let held = self.tenant.hold(Resource::Bytes, bytes)?;
        *self.bytes.lock() = Some(held);
        Ok(())
    }

    /// Counts a body that was read, or an answer, in the place of what was counted before.
    pub fn set_bytes(&self, bytes: usize) {
        let held = self.tenant.hold_anyway(Resource::Bytes, bytes);
        *self.bytes.lock() = Some(held);
    }

    /// Adds the headers that tell a client how many requests it may still make.
    pub fn describe(&self, headers: &mut HeaderMap) {
        let state = |bucket: &Bucket, left: &AtomicU32| {
            let (rate, left) = (bucket.rate(), left.load(Ordering::Relaxed));
            (left, rate.seconds_for(rate.burst.saturating_sub(left)))
        };
        let (left, reset) = state(&self.principal, &self.left[0]);
        let (left_to_tenant, tenant_reset) = state(&self.rates.tenant, &self.left[1]);
        let state = format!("\"{PRINCIPAL}\";r={left};t={reset}, \"{TENANT}\";r={left_to_tenant};t={tenant_reset}");
        headers.insert(POLICY, self.rates.policy.clone());
        if let Ok(state) = HeaderValue::try_from(state) {
            headers.insert(STATE, state);
        }
    }
}
