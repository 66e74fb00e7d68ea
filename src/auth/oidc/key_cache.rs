//! The keys of a provider, kept: fetched by one at a time, anew for a key that is not known and now and then. While the
//! provider does not answer, the keys that are known go on.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use super::{
    Source,
    keys::{Choice, KeySet},
    token::{Header, TokenError},
};
use crate::auth::outbound::{self, OutboundError};

/// Interval at which keys may be fetched because of a key that is not known: anybody can invent one.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(30);
/// Interval at which a provider that did not answer is asked again.
const FAILURE_INTERVAL: Duration = Duration::from_secs(5);
/// Age at which keys are fetched anew, so that one that was withdrawn is accepted no longer.
const MAX_AGE: Duration = Duration::from_secs(10 * 60);

pub(super) struct KeyCache {
    source: Arc<Source>,
    state: Arc<Mutex<State>>,
    tasks: TaskTracker,
}

type Fetch = Shared<BoxFuture<'static, Result<(), String>>>;

#[derive(Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    fetch: Option<Fetch>,
    times: Times,
    /// Reason why the last fetch failed.
    failure: Option<String>,
}

/// Time at which keys were fetched.
#[derive(Default)]
struct Times {
    fetched: Option<Instant>,
    failed: Option<Instant>,
    fetched_for_unknown: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// The keys are what is needed.
    Use,
    /// Likewise, and newer ones are fetched meanwhile.
    UseAndRefresh,
    Fetch,
    /// Nothing may be fetched now.
    Wait,
}

impl Times {
    fn decide(&self, has_keys: bool, has_key: bool, now: Instant) -> Decision {
        let within = |time: Option<Instant>, span| time.is_some_and(|time| now.saturating_duration_since(time) < span);
        let has_just_failed = within(self.failed, FAILURE_INTERVAL);
        match (has_key, has_just_failed) {
            (true, false) if !within(self.fetched, MAX_AGE) => Decision::UseAndRefresh,
            (true, _) => Decision::Use,
            (false, true) => Decision::Wait,
            (false, false) if has_keys && within(self.fetched_for_unknown, UNKNOWN_KEY_INTERVAL) => Decision::Wait,
            (false, false) => Decision::Fetch,
        }
    }
}

impl KeyCache {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            state: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// The keys, among them that of a token if the provider has it.
    pub(super) async fn with_key(&self, header: &Header) -> Result<Arc<KeySet>, TokenError> {
        let fetch = {
            let mut state = self.state.lock();
            let has_key = |keys: &Arc<KeySet>| !matches!(header.choose(keys), Choice::Unknown);
            let known = state.keys.clone();
            let decision = state
                .times
                .decide(known.is_some(), known.as_ref().is_some_and(has_key), Instant::now());
            match (decision, known) {
                (Decision::Use, Some(keys)) => return Ok(keys),
                (Decision::UseAndRefresh, Some(keys)) => {
                    drop(self.fetch(&mut state));
                    return Ok(keys);
                }
                (Decision::Wait, known) => return state.known_or_failure(known),
                (Decision::Fetch | Decision::Use | Decision::UseAndRefresh, known) => {
                    if known.is_some() {
                        state.times.fetched_for_unknown = Some(Instant::now());
                    }
                    self.fetch(&mut state)
                }
            }
        };
        fetch.await.map_err(TokenError::Unavailable)?;
        let state = self.state.lock();
        state.known_or_failure(state.keys.clone())
    }

    /// Fetches the keys.
    pub(super) async fn refresh(&self) -> Result<(), TokenError> {
        let fetch = self.fetch(&mut self.state.lock());
        fetch.await.map_err(TokenError::Unavailable)
    }

    /// The fetch that is under way, or a new one. It goes on when nobody waits for it any longer.
    fn fetch(&self, state: &mut State) -> Fetch {
        if let Some(fetch) = &state.fetch {
            return fetch.clone();
        }
        let (source, shared) = (Arc::clone(&self.source), Arc::clone(&self.state));
        let fetching = self.tasks.spawn(async move {
            let fetched = source.fetch_keys().await;
            shared.lock().on_fetched(fetched)
        });
        let fetch = async move { fetching.await.unwrap_or_else(|error| Err(error.to_string())) };
        let fetch = fetch.boxed().shared();
        state.fetch = Some(fetch.clone());
        fetch
    }
}

impl State {
    fn on_fetched(&mut self, fetched: Result<KeySet, String>) -> Result<(), String> {
        let now = Instant::now();
        self.fetch = None;
        match fetched {
            Ok(keys) => {
                self.keys = Some(Arc::new(keys));
                self.times.fetched = Some(now);
                self.times.failed = None;
                self.failure = None;
                Ok(())
            }
            Err(why) => {
                if self.failure.as_ref() != Some(&why) {
                    tracing::warn!(%why, "the keys of the OpenID provider cannot be fetched");
                }
                self.times.failed = Some(now);
                // The next attempt must not have to wait longer because this one came to nothing.
                self.times.fetched_for_unknown = None;
                self.failure = Some(why.clone());
                Err(why)
            }
        }
    }

    /// Without a key and without an answer nobody can tell whether there is such a key.
    fn known_or_failure(&self, known: Option<Arc<KeySet>>) -> Result<Arc<KeySet>, TokenError> {
        match (&self.failure, known) {
            (None, Some(keys)) => Ok(keys),
            (failure, _) => Err(TokenError::Unavailable(failure.clone().unwrap_or_default())),
        }
    }
}

impl Source {
    async fn fetch_keys(&self) -> Result<KeySet, String> {
        let url = self.jwks_url().await.map_err(|error| error.to_string())?;
        let unread = |error: OutboundError| format!("the key set of the issuer cannot be read: {error}");
        let document = outbound::json(self.client.get(url)).await.map_err(unread)?;
        KeySet::parse(document).ok_or_else(|| "the key set of the issuer is none".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fetched_when_that_may_help_and_not_too_often() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut times = Times::default();
        assert_eq!(times.decide(false, false, at(0)), Decision::Fetch);
        times.fetched = Some(at(0));
        assert_eq!(times.decide(true, true, at(1)), Decision::Use);
        assert_eq!(times.decide(true, false, at(1)), Decision::Fetch, "rotated at once");
        times.fetched = Some(at(1));
        times.fetched_for_unknown = Some(at(1));
        assert_eq!(times.decide(true, false, at(30)), Decision::Wait);
        assert_eq!(times.decide(true, false, at(31)), Decision::Fetch);
        assert_eq!(times.decide(true, true, at(602)), Decision::UseAndRefresh);
        times.failed = Some(at(602));
        assert_eq!(times.decide(true, true, at(603)), Decision::Use);
        assert_eq!(times.decide(true, false, at(603)), Decision::Wait);
        assert_eq!(times.decide(false, false, at(603)), Decision::Wait);
        assert_eq!(times.decide(true, false, at(607)), Decision::Fetch);
    }
}
