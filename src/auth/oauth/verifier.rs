//! Access tokens of the gateway as a method of authentication. The store says whether one holds, also one that another
//! replica has issued or revoked.

use std::{sync::Arc, time::Duration};

use jupyter_client::Secret;
use store::{AccessToken, Store};

use super::{scopes, secrets::digest, tokens::ACCESS_PREFIX, upstream::Identity};
use crate::{
    auth::{
        PathRules, Principal, Tenants,
        method::{Outcome, Rejection},
        scope_of,
        verified::{Freshness, Verified, Verifier},
    },
    types::{Permission, PermissionSet},
};

/// Whose token is revoked is cut off within seconds. One that is unknown stays unknown: it cannot be guessed.
const FRESHNESS: Freshness = Freshness {
    accepted: Duration::from_secs(2),
    refused: Duration::from_secs(10),
};

/// Finds the principals of access tokens.
pub struct OAuthTokens {
    store: Store,
    tenants: Arc<Tenants>,
    everywhere: PathRules,
}

impl OAuthTokens {
    pub fn new(store: Store, tenants: Arc<Tenants>) -> Result<Verified<Self>, globset::Error> {
        let tokens = Self {
            store,
            tenants: Arc::clone(&tenants),
            everywhere: PathRules::new(&["**".to_owned()])?,
        };
        Ok(Verified::new(tokens, FRESHNESS, tenants))
    }

    fn principal(&self, found: &AccessToken) -> Outcome {
        let Ok(identity) = serde_json::from_str::<Identity>(&found.grant.identity) else {
            return Outcome::Rejected(Rejection::Invalid("it was issued by another version; log in again"));
        };
        let Some(tenant) = identity.tenant(&self.tenants) else {
            let message = "your account belongs to no tenant of this gateway any more";
            return Outcome::Rejected(Rejection::Forbidden(message.to_owned()));
        };
        let granted = scopes::permissions(&found.scope).intersection(scopes::permissions(&identity.scope));
        if granted == PermissionSet::default() {
            return Outcome::Rejected(Rejection::InsufficientScope(scope_of(Permission::Read)));
        }
        let id = identity.principal_id();
        let principal = Principal::new(&id, &identity.name, tenant, granted, self.everywhere.clone());
        Outcome::Accepted(Arc::new(principal.expiring_at(found.expires_at)))
    }
}

impl Verifier for OAuthTokens {
    fn is_mine(&self, bearer: &str) -> bool {
        bearer.starts_with(ACCESS_PREFIX)
    }

    async fn verify(&self, bearer: &Secret) -> Outcome {
        match self.store.oauth_access_token(&digest(bearer.expose())).await {
            Ok(Some(found)) => self.principal(&found),
            Ok(None) => Outcome::Rejected(Rejection::Invalid("it has expired or was revoked")),
            Err(error) => {
                tracing::error!(%error, "an access token cannot be looked up");
                Outcome::Unavailable
            }
        }
    }
}
