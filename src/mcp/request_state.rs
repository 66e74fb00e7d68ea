//! `requestState` of calls that are answered with a question: which execution the client's retry takes up, encrypted and
//! authenticated. It opens only for the principal and the call that it was made for, and only for a while. The key lives
//! as long as the process, so a restart makes every state that was handed out before invalid.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rmcp::model::JsonObject;
use sha2::{Digest, Sha256};

/// Bytes of the deadline, in milliseconds since the key was made.
const DEADLINE_LEN: usize = 8;
/// Longer ones were not made here.
const MAX_LENGTH: usize = 1024;

/// Seals and opens states under one key.
#[derive(Clone)]
pub(super) struct RequestStates(Arc<Sealer>);

struct Sealer {
    key: LessSafeKey,
    /// States sealed so far: no nonce is used twice.
    sealed: AtomicU64,
    since: Instant,
}

/// The call that a state belongs to.
#[derive(Clone)]
pub(super) struct CallBinding([u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestStateError {
    #[error(
        "`params.requestState` is not valid for this call: it was changed, belongs to another call or caller, or the \
         gateway has restarted since; list_executions shows what became of the first call, and a call without \
         requestState starts anew"
    )]
    Invalid,
    #[error(
        "`params.requestState` has expired; list_executions shows what became of the first call, and a call without \
         requestState starts anew"
    )]
    Expired,
}

impl CallBinding {
    /// Binds to who calls which tool with which arguments.
    pub(super) fn new(principal: &str, tool: &str, arguments: &JsonObject) -> Self {
        let mut digest = Sha256::new();
        for part in [principal, tool] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        // Members are sorted, so that their order does not matter.
        digest.update(serde_json::to_vec(arguments).unwrap_or_default());
        Self(digest.finalize().into())
    }
}

impl RequestStates {
    /// Makes a key of its own.
    #[expect(
        clippy::expect_used,
        reason = "without randomness there are no secrets, and the key has the cipher's length"
    )]
    pub(super) fn new() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system supplies randomness");
        let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("BUG: the key has another length");
        Self(Arc::new(Sealer {
            key: LessSafeKey::new(key),
            sealed: AtomicU64::new(0),
            since: Instant::now(),
        }))
    }

    /// The state by which a call takes up an execution within `ttl`. None if it cannot be sealed.
    pub(super) fn seal(&self, execution_id: &str, call: &CallBinding, ttl: Duration, now: Instant) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        let number = self.0.sealed.fetch_add(1, Ordering::Relaxed);
        nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
        let mut body = self.0.millis(now).saturating_add(millis(ttl)).to_be_bytes().to_vec();
        body.extend_from_slice(execution_id.as_bytes());
        let key = &self.0.key;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(call.0), &mut body)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &body].concat()))
    }

    /// The execution that a state names.
    pub(super) fn open(&self, state: &str, call: &CallBinding, now: Instant) -> Result<String, RequestStateError> {
        let invalid = RequestStateError::Invalid;
        if state.len() > MAX_LENGTH {
            return Err(invalid);
        }
        let mut bytes = URL_SAFE_NO_PAD.decode(state).map_err(|_| invalid)?;
        let (nonce, sealed) = bytes.split_first_chunk_mut::<NONCE_LEN>().ok_or(invalid)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.key.open_in_place(nonce, Aad::from(call.0), sealed);
        let opened: &[u8] = opened.map_err(|_| invalid)?;
        let (deadline, execution_id) = opened.split_first_chunk::<DEADLINE_LEN>().ok_or(invalid)?;
        if self.0.millis(now) > u64::from_be_bytes(*deadline) {
            return Err(RequestStateError::Expired);
        }
        String::from_utf8(execution_id.to_vec()).map_err(|_| invalid)
    }
}

impl Sealer {
    fn millis(&self, now: Instant) -> u64 {
        millis(now.saturating_duration_since(self.since))
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const TTL: Duration = Duration::from_secs(60);
    const ID: &str = "3f0c7c7e-execution";

    fn call(principal: &str, tool: &str, arguments: serde_json::Value) -> CallBinding {
        CallBinding::new(principal, tool, arguments.as_object().expect("an object"))
    }

    fn own_call() -> CallBinding {
        call("token:ana", "run_code", json!({ "code": "input()" }))
    }

    #[test]
    fn a_state_opens_for_its_own_call_alone() {
        let (states, now) = (RequestStates::new(), Instant::now());
        let state = states.seal(ID, &own_call(), TTL, now).expect("sealed");
        assert_eq!(states.open(&state, &own_call(), now), Ok(ID.to_owned()));
        for other in [
            call("token:ben", "run_code", json!({ "code": "input()" })),
            call("token:ana", "execute_nb_cells", json!({ "code": "input()" })),
            call("token:ana", "run_code", json!({ "code": "input() " })),
            call("token:anar", "un_code", json!({ "code": "input()" })),
        ] {
            assert_eq!(states.open(&state, &other, now), Err(RequestStateError::Invalid));
        }
        let restarted = RequestStates::new();
        assert_eq!(
            restarted.open(&state, &own_call(), now),
            Err(RequestStateError::Invalid)
        );
    }

    #[test]
    fn a_state_ends_at_its_deadline() {
        let (states, now) = (RequestStates::new(), Instant::now());
        let state = states.seal(ID, &own_call(), TTL, now).expect("sealed");
        assert!(states.open(&state, &own_call(), now + TTL).is_ok());
        let late = now + TTL + Duration::from_millis(1);
        assert_eq!(states.open(&state, &own_call(), late), Err(RequestStateError::Expired));
    }

    #[test]
    fn a_state_cannot_be_read_and_two_are_never_alike() {
        let (states, now) = (RequestStates::new(), Instant::now());
        let state = || states.seal(ID, &own_call(), TTL, now).expect("sealed");
        let (first, second) = (state(), state());
        assert_ne!(first, second);
        let bytes = URL_SAFE_NO_PAD.decode(&first).expect("base64");
        let shows = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(!shows(ID) && !shows("execution") && !shows("ana"));
    }

    proptest! {
        #[test]
        fn a_state_that_was_changed_is_refused(index in any::<prop::sample::Index>(), flipped in 1_u8..) {
            let (states, now) = (RequestStates::new(), Instant::now());
            let state = states.seal(ID, &own_call(), TTL, now).expect("sealed");
            let mut bytes = URL_SAFE_NO_PAD.decode(&state).expect("base64");
            let index = index.index(bytes.len());
            bytes[index] ^= flipped;
            let changed = URL_SAFE_NO_PAD.encode(&bytes);
            prop_assert_eq!(states.open(&changed, &own_call(), now), Err(RequestStateError::Invalid));
            bytes.truncate(index);
            let cut = URL_SAFE_NO_PAD.encode(&bytes);
            prop_assert_eq!(states.open(&cut, &own_call(), now), Err(RequestStateError::Invalid));
        }

        #[test]
        fn what_was_never_sealed_is_refused(state in ".{0,2000}") {
            let states = RequestStates::new();
            prop_assert_eq!(states.open(&state, &own_call(), Instant::now()), Err(RequestStateError::Invalid));
        }
    }
}
