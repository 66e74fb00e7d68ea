//! Tokens of which something else says whose they are: asked once for all who bring the same token at the same time,
//! remembered by digest for a while, asked again about those in use, and cut off when they expire.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use jupyter_client::Secret;
use lru::LruCache;
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use super::{
    Principal, Tenants,
    method::{Credentials, Method, Outcome, Rejection, TokenDigest},
};

/// Refusals that are remembered.
const MAX_REFUSED: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Principals that are remembered; beyond it those are forgotten whom nothing is done for.
const MAX_ACCEPTED: usize = 20_000;
/// Questions at a time, each about another token: whoever invents tokens must not have all of them asked about.
const MAX_PENDING: usize = 256;
/// What expires while it is known is refused for this long: longer than those who check it may let it pass for the sake of
/// clocks that differ, which is of no concern to one that was seen in time.
const EXPIRED_FOR: Duration = Duration::from_secs(5 * 60);
/// Time after which a service that did not answer is asked again about a principal in use.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Something that can tell whose a token is.
pub trait Verifier: Send + Sync + 'static {
    /// Returns whether a token looks like one of its own, so that it may be shown it.
    fn is_mine(&self, bearer: &str) -> bool;

    /// Tells whose a token is. It must end by itself, within some seconds.
    fn verify(&self, bearer: &Secret) -> impl Future<Output = Outcome> + Send;
}

/// Times for which answers are valid.
#[derive(Debug, Clone, Copy)]
pub struct Freshness {
    /// Of an accepted token, unless it expires sooner.
    pub accepted: Duration,
    /// Of any other; zero remembers none.
    pub refused: Duration,
}

/// A method around a [`Verifier`].
pub struct Verified<V> {
    inner: Arc<Inner<V>>,
    tasks: TaskTracker,
}

struct Inner<V> {
    verifier: V,
    freshness: Freshness,
    tenants: Arc<Tenants>,
    state: Mutex<State>,
}

struct State {
    accepted: HashMap<TokenDigest, Accepted>,
    refused: LruCache<TokenDigest, (Outcome, Instant)>,
    pending: HashMap<TokenDigest, PendingAnswer>,
}

type PendingAnswer = Shared<BoxFuture<'static, Outcome>>;

struct Accepted {
    principal: Arc<Principal>,
    bearer: Secret,
    fresh_until: Instant,
    /// Not before then is it asked about again for the sake of what it has open.
    ask_again: Instant,
}

impl<V> Clone for Verified<V> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            tasks: self.tasks.clone(),
        }
    }
}

impl<V: Verifier> Verified<V> {
    pub fn new(verifier: V, freshness: Freshness, tenants: Arc<Tenants>) -> Self {
        let state = State {
            accepted: HashMap::new(),
            refused: LruCache::new(MAX_REFUSED),
            pending: HashMap::new(),
        };
        Self {
            inner: Arc::new(Inner {
                verifier,
                freshness,
                tenants,
                state: Mutex::new(state),
            }),
            tasks: TaskTracker::new(),
        }
    }

    pub fn verifier(&self) -> &V {
        &self.inner.verifier
    }

    /// Revokes the principals for whom that is wanted; returns whether there were any.
    pub fn revoke(&self, mut is_revoked: impl FnMut(&TokenDigest, &Principal) -> bool) -> bool {
        let mut state = self.inner.state.lock();
        let before = state.accepted.len();
        state.accepted.retain(|digest, accepted| {
            let revoked = is_revoked(digest, &accepted.principal);
            if revoked {
                accepted.principal.revoked().cancel();
            }
            !revoked
        });
        state.accepted.len() < before
    }

    /// The answer about a token, which is asked for unless somebody does already.
    fn ask(&self, digest: TokenDigest, bearer: &str) -> Option<PendingAnswer> {
        let mut state = self.inner.state.lock();
        if let Some(pending) = state.pending.get(&digest) {
            return Some(pending.clone());
        }
        if state.pending.len() >= MAX_PENDING {
            return None;
        }
        let (inner, bearer) = (Arc::clone(&self.inner), Secret::new(bearer));
        let asking = self.tasks.spawn(async move {
            let outcome = inner.verifier.verify(&bearer).await;
            inner.on_answer(digest, bearer, outcome)
        });
        let inner = Arc::clone(&self.inner);
        let pending = async move {
            asking.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a token could not be checked");
                inner.state.lock().pending.remove(&digest);
                Outcome::Unavailable
            })
        };
        let pending = pending.boxed().shared();
        state.pending.insert(digest, pending.clone());
        Some(pending)
    }
}

impl<V: Verifier> Method for Verified<V> {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Outcome {
        if !self.inner.verifier.is_mine(credentials.bearer) {
            return Outcome::NotMine;
        }
        if let Some(known) = self.inner.state.lock().known(&credentials.digest) {
            return known;
        }
        match self.ask(credentials.digest, credentials.bearer) {
            Some(pending) => pending.await,
            None => Outcome::Unavailable,
        }
    }

    fn on_tenants_replaced(&self) {
        let mut state = self.inner.state.lock();
        // What was refused for want of a tenant may be accepted now.
        state.refused.clear();
        state.accepted.retain(|_, accepted| {
            let before = &accepted.principal;
            match self.inner.in_tenant_now(before) {
                Some(now) if now.includes_rights_of(before) => {
                    accepted.principal = now;
                    true
                }
                _ => {
                    before.revoked().cancel();
                    false
                }
            }
        });
    }

    fn sweep(&self) -> bool {
        let (now, time) = (Instant::now(), SystemTime::now());
        let mut ask = Vec::new();
        let mut has_revoked = false;
        let mut locked = self.inner.state.lock();
        let state = &mut *locked;
        state.accepted.retain(|digest, accepted| {
            if accepted.principal.is_expired(time) {
                accepted.principal.revoked().cancel();
                state.refused.put(*digest, expired(now));
            }
            if accepted.principal.revoked().is_cancelled() {
                has_revoked = true;
                return false;
            }
            if accepted.fresh_until > now {
                return true;
            }
            let is_in_use = accepted.principal.is_in_use();
            if is_in_use && accepted.ask_again <= now {
                accepted.ask_again = now + RETRY_INTERVAL;
                ask.push((*digest, accepted.bearer.clone()));
            }
            is_in_use
        });
        drop(locked);
        for (digest, bearer) in ask {
            self.ask(digest, bearer.expose());
        }
        has_revoked
    }
}

impl<V> Inner<V> {
    /// Remembers an answer, and makes up for what has changed while it was asked for.
    fn on_answer(&self, digest: TokenDigest, bearer: Secret, outcome: Outcome) -> Outcome {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.pending.remove(&digest);
        match outcome {
            Outcome::Accepted(principal) => {
                // The tenants may have been replaced meanwhile.
                let Some(principal) = self.in_tenant_now(&principal) else {
                    return Outcome::Unavailable;
                };
                let principal = state.take_over(&digest, principal);
                state.make_room();
                let fresh_until = now + self.freshness.accepted;
                let accepted = Accepted {
                    principal: Arc::clone(&principal),
                    bearer,
                    fresh_until,
                    ask_again: fresh_until,
                };
                state.accepted.insert(digest, accepted);
                Outcome::Accepted(principal)
            }
            Outcome::NotMine | Outcome::Rejected(_) => {
                if let Some(before) = state.accepted.remove(&digest) {
                    before.principal.revoked().cancel();
                }
                if !self.freshness.refused.is_zero() {
                    state
                        .refused
                        .put(digest, (outcome.clone(), now + self.freshness.refused));
                }
                outcome
            }
            // Whatever it has open goes on until somebody knows better.
            Outcome::Unavailable => Outcome::Unavailable,
        }
    }

    /// The same principal in its tenant as that is now; `None` if there is no such tenant any more.
    fn in_tenant_now(&self, principal: &Arc<Principal>) -> Option<Arc<Principal>> {
        let tenant = self.tenants.get(&principal.tenant.name)?;
        Some(match Arc::ptr_eq(&tenant, &principal.tenant) {
            true => Arc::clone(principal),
            false => Arc::new(principal.in_tenant(tenant)),
        })
    }
}

/// The answer about a token that has expired since it was accepted.
fn expired(now: Instant) -> (Outcome, Instant) {
    let rejected = Outcome::Rejected(Rejection::Invalid("it has expired"));
    (rejected, now + EXPIRED_FOR)
}

impl State {
    fn known(&mut self, digest: &TokenDigest) -> Option<Outcome> {
        let now = Instant::now();
        if let Some(accepted) = self.accepted.get(digest) {
            let principal = &accepted.principal;
            if principal.is_expired(SystemTime::now()) {
                principal.revoked().cancel();
                self.accepted.remove(digest);
                self.refused.put(*digest, expired(now));
            } else {
                let holds = accepted.fresh_until > now && !principal.revoked().is_cancelled();
                return holds.then(|| Outcome::Accepted(Arc::clone(principal)));
            }
        }
        let (outcome, until) = self.refused.get(digest)?;
        (*until > now).then(|| outcome.clone())
    }

    /// Has what is open in the name of a token's former principal go on with the new one, or ends it.
    fn take_over(&mut self, digest: &TokenDigest, principal: Arc<Principal>) -> Arc<Principal> {
        let Some(Accepted { principal: before, .. }) = self.accepted.remove(digest) else {
            return principal;
        };
        if before.revoked().is_cancelled() || !principal.includes_rights_of(&before) {
            before.revoked().cancel();
            return principal;
        }
        Arc::new(principal.in_place_of(&before))
    }

    fn make_room(&mut self) {
        if self.accepted.len() < MAX_ACCEPTED {
            return;
        }
        self.accepted.retain(|_, accepted| accepted.principal.is_in_use());
        // Whoever is cut off comes again.
        if self.accepted.len() >= MAX_ACCEPTED {
            for accepted in std::mem::take(&mut self.accepted).into_values() {
                accepted.principal.revoked().cancel();
            }
        }
    }
}

#[cfg(test)]
mod tests;
