//! Tokens that operators revoke while the gateway runs, as the store has them: every gateway that uses it honours them.

use std::{sync::Arc, time::Duration};

use store::{RevokedToken, Store};
use tokio::time::sleep;

use crate::{
    auth::{Authenticator, TokenDigest},
    config::token::from_hex,
};

/// Interval at which the store is asked: who is revoked is to be cut off within five seconds.
const INTERVAL: Duration = Duration::from_secs(2);

/// Has the authenticator refuse what is revoked, for ever. While the store does not answer, what was known holds.
pub(super) async fn follow(store: Store, authenticator: Arc<Authenticator>, mut known: Vec<RevokedToken>) {
    loop {
        sleep(INTERVAL).await;
        match store.revoked_tokens().await {
            Ok(revoked) if revoked != known => {
                authenticator.revoke(&digests(&revoked));
                tracing::info!(tokens = revoked.len(), "tokens were revoked");
                known = revoked;
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, "the store cannot tell which tokens were revoked"),
        }
    }
}

pub(super) fn digests(revoked: &[RevokedToken]) -> Vec<TokenDigest> {
    revoked.iter().filter_map(|token| from_hex(&token.digest)).collect()
}
