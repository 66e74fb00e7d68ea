//! People on the page of the gateway: it is a client of their own, to which nobody has to be asked to allow anything. Its
//! tokens stay in the gateway, and the upstream service is asked about the person whenever they are renewed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::Mutex;

use super::{
    Browser, ErrorCode, LoginRefusal, OAuth, OAuthError, Started,
    decision::Terms,
    scopes,
    secrets::digest,
    tokens::IssuedTokens,
    upstream::{Identity, UpstreamTokens},
};
use crate::types::PermissionSet;
use store::Redeemed;

/// Id of the page among clients; those that register themselves get longer ones.
const CLIENT_ID: &str = "console";

/// A person who is logged in, for as long as the upstream service knows them and nobody revokes it.
pub struct PersonLogin {
    oauth: Arc<OAuth>,
    held: Mutex<Held>,
}

struct Held {
    tokens: IssuedTokens,
    /// Before the access token expires, so that what the person has open goes on.
    renew_at: Instant,
}

impl Held {
    fn new(tokens: IssuedTokens) -> Self {
        let lifetime = Duration::from_secs(tokens.expires_in());
        Self {
            tokens,
            renew_at: Instant::now() + lifetime * 3 / 4,
        }
    }
}

impl PersonLogin {
    pub fn new(oauth: Arc<OAuth>, tokens: IssuedTokens) -> Self {
        Self {
            oauth,
            held: Mutex::new(Held::new(tokens)),
        }
    }

    /// The access token, which is renewed when that is due. `None` if the login is over.
    pub async fn access_token(&self) -> Option<String> {
        let mut held = self.held.lock().await;
        if held.renew_at <= Instant::now() {
            match self.oauth.renew_for_person(&held.tokens).await {
                Ok(tokens) => *held = Held::new(tokens),
                Err(error) if error.code == ErrorCode::InvalidGrant => return None,
                // The token may hold for a while longer, and is asked about as any other.
                Err(error) => tracing::warn!(%error, "the login of a person cannot be renewed at this moment"),
            }
        }
        Some(held.tokens.access_token().to_owned())
    }

    /// Logs the person out.
    pub async fn end(&self) {
        let held = self.held.lock().await;
        if let Err(error) = self.oauth.revoke_of_person(&held.tokens).await {
            tracing::warn!(%error, "the login of a person cannot be revoked at this moment; it expires");
        }
    }
}

impl OAuth {
    /// Begins a login of a person for themselves.
    pub async fn authorize_person(&self, browser: Browser) -> Result<Started, LoginRefusal> {
        self.begin(None, browser).await
    }

    /// Tokens for a person who has logged in for themselves.
    pub(super) async fn issue_to_person(
        &self,
        identity: &Identity,
        tokens: &UpstreamTokens,
        granted: PermissionSet,
    ) -> Result<IssuedTokens, OAuthError> {
        let terms = Terms {
            redirect_uri: String::new(),
            challenge: String::new(),
            scope: scopes::scopes(granted),
        };
        let code = self.grant(CLIENT_ID, &terms, identity, tokens).await?;
        match self.store.redeem_oauth_code(&digest(&code)).await? {
            Redeemed::Granted(grant) => self.issue_first(&grant, terms.scope).await,
            Redeemed::Unknown | Redeemed::Reused => Err(OAuthError::internal()),
        }
    }

    async fn renew_for_person(&self, tokens: &IssuedTokens) -> Result<IssuedTokens, OAuthError> {
        self.refresh(CLIENT_ID, tokens.refresh_token(), None).await
    }

    async fn revoke_of_person(&self, tokens: &IssuedTokens) -> Result<(), OAuthError> {
        self.revoke_token(tokens.refresh_token(), Some(CLIENT_ID)).await
    }
}
