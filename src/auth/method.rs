//! Ways to tell who calls, and the order in which they are asked.

use std::sync::Arc;

use super::Principal;

/// Credentials of a request.
#[derive(Debug, Clone, Copy)]
pub struct Credentials<'a> {
    /// The token of `Authorization`, empty if there is none.
    pub bearer: &'a str,
}

/// Verdict of one method on credentials.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// They are not of a kind that it knows; another method may.
    NotMine,
    Accepted(Arc<Principal>),
    /// They are of its kind and do not hold.
    Rejected(&'static str),
    /// The service that it depends on does not answer.
    Unavailable,
}

/// One way to tell who calls. Methods are told apart by an enum rather than by trait objects, so that asking one costs
/// no memory.
pub trait Method: Send + Sync {
    fn authenticate(&self, credentials: Credentials<'_>) -> impl Future<Output = Outcome> + Send;
}

/// Why nobody was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("no bearer token was sent")]
    Missing,
    #[error("unknown bearer token")]
    Unknown,
    #[error("the bearer token is not accepted: {0}")]
    Rejected(&'static str),
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
        let decision = first_decision(&methods, Credentials { bearer });
        decision.now_or_never().expect("nothing to wait for").err()
    }

    #[test]
    fn the_first_method_that_knows_the_credentials_decides() {
        use Outcome::{NotMine, Rejected, Unavailable};
        assert_eq!(refusal("", vec![Rejected("old")]), Some(AuthError::Missing));
        assert_eq!(refusal("t", vec![]), Some(AuthError::Unknown));
        assert_eq!(refusal("t", vec![NotMine, NotMine]), Some(AuthError::Unknown));
        assert_eq!(
            refusal("t", vec![NotMine, Rejected("old"), Unavailable]),
            Some(AuthError::Rejected("old"))
        );
        assert_eq!(
            refusal("t", vec![Unavailable, Rejected("old")]),
            Some(AuthError::Unavailable)
        );
    }
}
