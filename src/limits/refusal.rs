//! Refusals of requests that are too many, in words for a model and as values of headers.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, header::RETRY_AFTER};

use super::{AddressLimit, Rate, Resource};

/// Names and values by draft-ietf-httpapi-ratelimit-headers-11.
pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
pub(super) const STATE: HeaderName = HeaderName::from_static("ratelimit");
/// Names of the policies.
pub(super) const PRINCIPAL: &str = "principal";
pub(super) const TENANT: &str = "tenant";
/// Time after which something may have been given back.
const RETRY_HELD: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    #[error(
        "too many requests: you may send {} at once and {} per minute, where running code or searching counts as several; \
         wait {} s, then send this request again", .rate.burst, .rate.per_minute, seconds(*.retry_after)
    )]
    Principal {
        rate: Rate,
        retry_after: Duration,
        policy: HeaderValue,
    },
    #[error(
        "too many requests of all agents of your tenant together: they may send {} at once and {} per minute; \
         wait {} s, then send this request again", .rate.burst, .rate.per_minute, seconds(*.retry_after)
    )]
    Tenant {
        rate: Rate,
        retry_after: Duration,
        policy: HeaderValue,
    },
    #[error("{} and wait {} s before you try again", too_often(*.limit), seconds(*.retry_after))]
    Address { limit: AddressLimit, retry_after: Duration },
    #[error("{} ({})", .resource.advice(*.max), .resource.key())]
    InUse { resource: Resource, max: usize },
}

impl Refusal {
    /// The limit that was reached, as metrics and programs know it.
    pub fn limit(&self) -> &'static str {
        match self {
            Self::Principal { .. } => PRINCIPAL,
            Self::Tenant { .. } => TENANT,
            Self::Address { limit, .. } => limit.key(),
            Self::InUse { resource, .. } => resource.key(),
        }
    }

    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Principal { retry_after, .. }
            | Self::Tenant { retry_after, .. }
            | Self::Address { retry_after, .. } => *retry_after,
            Self::InUse { .. } => RETRY_HELD,
        }
    }

    /// Adds the headers that tell a client when to come again.
    pub fn describe(&self, headers: &mut HeaderMap) {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds(self.retry_after())));
        if let Self::Principal { policy, .. } | Self::Tenant { policy, .. } = self {
            headers.insert(POLICY, policy.clone());
            let state = format!("\"{}\";r=0;t={}", self.limit(), seconds(self.retry_after()));
            if let Ok(state) = HeaderValue::try_from(state) {
                headers.insert(STATE, state);
            }
        }
    }
}

/// Says what an address does too often, and what to do.
fn too_often(limit: AddressLimit) -> &'static str {
    match limit {
        AddressLimit::FailedLogins => "too many failed logins from your address; check the token of the client",
        AddressLimit::Logins => "too many logins begun from your address; finish one of them",
        AddressLimit::Registrations => {
            "too many clients registered from your address; use the registration that you have"
        }
        AddressLimit::Tokens => "too many requests for tokens from your address; use those that you have",
    }
}

/// Rounded up, so that who waits so long is not refused again.
fn seconds(time: Duration) -> u64 {
    let seconds = time.as_millis().div_ceil(1000);
    u64::try_from(seconds).unwrap_or(u64::MAX).max(1)
}
