//! Ways to tell who calls, and the order in which they are asked.

use std::{fmt, sync::Arc};

use super::Principal;
use crate::config::token::sha256;

/// Tokens with all groups of a large company in them have some kilobytes.
const MAX_BEARER_BYTES: usize = 16 * 1024;

/// Credentials of a request.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    pub(super) bearer: &'a str,
    pub(super) digest: TokenDigest,
}

/// The SHA-256 digest by which a token is known.
pub type TokenDigest = [u8; 32];

impl<'a> Credentials<'a> {
    /// The token of `Authorization`, empty if there is none.
    pub fn new(bearer: &'a str) -> Self {
        let digest = sha256(bearer);
        Self { bearer, digest }
    }
}

/// Verdict of one method on credentials.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// They are not of a kind that it knows; another method may.
    NotMine,
    Accepted(Arc<Principal>),
    /// They are of its kind and good for nothing here.
    Rejected(Rejection),
    /// The service that it depends on does not answer.
    Unavailable,
}

/// Reason why credentials are not accepted by the method that knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejection {
    /// They do not hold: what is wrong with them, and nothing of what would be right.
    Invalid(&'static str),
    /// They hold, and whoever they belong to may use nothing here: a sentence that says why.
    Forbidden(String),
    /// They hold, and were issued without this scope, which is the least that is needed.
    InsufficientScope(&'static str),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(reason) => write!(f, "the bearer token is not accepted: {reason}"),
            Self::Forbidden(sentence) => f.write_str(sentence),
            Self::InsufficientScope(scope) => write!(f, "the bearer token was issued without the scope {scope}"),
        }
    }
}

/// One way to tell who calls. Methods are told apart by an enum rather than by trait objects, so that asking one costs
/// no memory.
pub trait Method: Send + Sync {
    fn authenticate(&self, credentials: Credentials<'_>) -> impl Future<Output = Outcome> + Send;

    /// Called when the tenants were replaced: principals that may do less now are revoked.
    fn on_tenants_replaced(&self) {}

    /// Revokes principals that have expired, and has those asked about again that are in use. Called about every second;
    /// returns whether any was revoked.
    fn sweep(&self) -> bool {
        false
    }
}

/// Reason why nobody was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("no bearer token was sent")]
    Missing,
    #[error("unknown bearer token")]
    Unknown,
    #[error("{0}")]
    Rejected(Rejection),
    #[error("whether the bearer token holds cannot be told at this moment")]
    Unavailable,
}

/// Asks one method after the other. The first that knows such credentials decides: a method that cannot decide now must
/// not leave that to one that would accept less.
pub(super) async fn first_decision<M: Method>(
    methods: &[M],
    credentials: Credentials<'_>,
) -> Result<Arc<Principal>, AuthError> {
    if credentials.bearer.is_empty() {
        return Err(AuthError::Missing);
    }
    if credentials.bearer.len() > MAX_BEARER_BYTES {
        return Err(AuthError::Rejected(Rejection::Invalid("it is too large")));
    }
    for method in methods {
        match method.authenticate(credentials).await {
            Outcome::NotMine => {}
            Outcome::Accepted(principal) => return Ok(principal),
            Outcome::Rejected(reason) => return Err(AuthError::Rejected(reason)),
            Outcome::Unavailable => return Err(AuthError::Unavailable),
        }
    }
    Err(AuthError::Unknown)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    struct Says(Outcome);

    impl Method for Says {
        async fn authenticate(&self, _: Credentials<'_>) -> Outcome {
            self.0.clone()
        }
    }

    fn refusal(bearer: &str, outcomes: Vec<Outcome>) -> Option<AuthError> {
        let methods: Vec<Says> = outcomes.into_iter().map(Says).collect();
        let decision = first_decision(&methods, Credentials::new(bearer));
        decision.now_or_never().expect("nothing to wait for").err()
    }

    #[test]
    fn the_first_method_that_knows_the_credentials_decides() {
        use Outcome::{NotMine, Unavailable};
        let old = || Rejection::Invalid("it has expired");
        let rejected = || Outcome::Rejected(old());
        assert_eq!(refusal("", vec![rejected()]), Some(AuthError::Missing));
        assert_eq!(refusal("t", vec![]), Some(AuthError::Unknown));
        assert_eq!(refusal("t", vec![NotMine, NotMine]), Some(AuthError::Unknown));
        assert_eq!(
            refusal("t", vec![NotMine, rejected(), Unavailable]),
            Some(AuthError::Rejected(old()))
        );
        assert_eq!(
            refusal("t", vec![Unavailable, rejected()]),
            Some(AuthError::Unavailable)
        );
        let large = "x".repeat(MAX_BEARER_BYTES + 1);
        let too_large = AuthError::Rejected(Rejection::Invalid("it is too large"));
        assert_eq!(refusal(&large, vec![Unavailable]), Some(too_large));
    }
}
