//! Access tokens of the gateway as a method of authentication. The store says whether one holds, also one that another
//! replica has issued or revoked.

use std::{sync::Arc, time::Duration};

use jupyter_client::Secret;
use store::AccessToken;

use super::{OAuth, Upstream, scopes, secrets::digest, tokens::ACCESS_PREFIX, upstream::Identity};
use crate::{
    auth::{
        PathRules, Principal,
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
    oauth: Arc<OAuth>,
    everywhere: PathRules,
}

impl OAuthTokens {
    pub fn new(oauth: Arc<OAuth>) -> Result<Verified<Self>, globset::Error> {
        let tenants = Arc::clone(&oauth.tenants);
        let tokens = Self {
            oauth,
            everywhere: PathRules::new(&["**".to_owned()])?,
        };
        Ok(Verified::new(tokens, FRESHNESS, tenants))
    }

    async fn principal(&self, found: &AccessToken) -> Outcome {
        let invalid = |why| Outcome::Rejected(Rejection::Invalid(why));
        let Ok(identity) = serde_json::from_str::<Identity>(&found.grant.identity) else {
            return invalid("it was issued by another version; log in again");
        };
        if !self.oauth.upstream.is_of(&identity) {
            return invalid("it was issued for another login service; log in again");
        }
        let granted = scopes::permissions(&found.scope);
        let mut ends = found.expires_at;
        let principal = match &self.oauth.upstream {
            Upstream::OpenId(_) => match self.of_claims(&identity, granted) {
                Ok(principal) => principal,
                Err(rejection) => return Outcome::Rejected(rejection),
            },
            Upstream::Hub(hub) => {
                let Some(tokens) = self.oauth.open_tokens(&found.grant) else {
                    return invalid("what belongs to it was encrypted under another key; log in again");
                };
                ends = tokens.expires_at.map_or(ends, |end| end.min(ends));
                match hub.principal_of(&tokens).await {
                    Outcome::Accepted(principal) => {
                        let own = principal.permissions();
                        principal.narrowed_to(granted).that_can_ask_for(own)
                    }
                    refused => return refused,
                }
            }
        };
        if principal.permissions() == PermissionSet::default() {
            return Outcome::Rejected(Rejection::InsufficientScope(scope_of(Permission::Read)));
        }
        let ends = principal.expires_at().map_or(ends, |end| end.min(ends));
        Outcome::Accepted(Arc::new(principal.expiring_at(ends)))
    }

    /// The principal of somebody who is known by the claims of a provider.
    fn of_claims(&self, identity: &Identity, granted: PermissionSet) -> Result<Principal, Rejection> {
        let tenant = identity.tenant(&self.oauth.tenants).ok_or_else(|| {
            let message = "your account belongs to no tenant of this gateway any more";
            Rejection::Forbidden(message.to_owned())
        })?;
        let own = scopes::permissions(&identity.scope);
        let (id, granted) = (identity.principal_id(), granted.intersection(own));
        let principal = Principal::new(&id, &identity.name, tenant, granted, self.everywhere.clone());
        Ok(principal.that_can_ask_for(own))
    }
}

impl Verifier for OAuthTokens {
    fn is_mine(&self, bearer: &str) -> bool {
        bearer.starts_with(ACCESS_PREFIX)
    }

    async fn verify(&self, bearer: &Secret) -> Outcome {
        match self.oauth.store.oauth_access_token(&digest(bearer.expose())).await {
            Ok(Some(found)) => self.principal(&found).await,
            Ok(None) => Outcome::Rejected(Rejection::Invalid("it has expired or was revoked")),
            Err(error) => {
                tracing::error!(%error, "an access token cannot be looked up");
                Outcome::Unavailable
            }
        }
    }
}
