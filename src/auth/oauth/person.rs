//! People on the page of the gateway: it is a client of their own, to which nobody has to be asked to allow anything. Its
//! tokens stay in the gateway, and the upstream service is asked about the person whenever they are renewed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::Secret;
use parking_lot::Mutex;
use store::Redeemed;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::{
    Browser, ErrorCode, LoginRefusal, OAuth, OAuthError, Started,
    decision::Terms,
    scopes,
    secrets::digest,
    tokens::IssuedTokens,
    upstream::{Identity, UpstreamTokens},
};
use crate::types::PermissionSet;

/// Id of the page among clients; those that register themselves get longer ones.
const CLIENT_ID: &str = "console";

/// A person who is logged in, for as long as the upstream service knows them and nobody revokes it.
pub struct PersonLogin {
    inner: Arc<Inner>,
    tasks: TaskTracker,
}

struct Inner {
    oauth: Arc<OAuth>,
    held: Mutex<Held>,
    /// Has one request renew the tokens while others wait: a refresh token is good for once.
    renewing: Semaphore,
}

struct Held {
    access_token: Secret,
    refresh_token: Secret,
    /// Before the access token expires, so that what the person has open goes on.
    renew_at: Instant,
}

impl Held {
    fn new(tokens: &IssuedTokens) -> Self {
        let lifetime = Duration::from_secs(tokens.expires_in());
        Self {
            access_token: Secret::new(tokens.access_token()),
            refresh_token: Secret::new(tokens.refresh_token()),
            renew_at: Instant::now() + lifetime * 3 / 4,
        }
    }
}

impl PersonLogin {
    pub fn new(oauth: Arc<OAuth>, tokens: &IssuedTokens) -> Self {
        Self {
            inner: Arc::new(Inner {
                oauth,
                held: Mutex::new(Held::new(tokens)),
                renewing: Semaphore::new(1),
            }),
            tasks: TaskTracker::new(),
        }
    }

    /// The access token, which is renewed when that is due. `None` if the login is over.
    pub async fn access_token(&self) -> Option<Secret> {
        if self.inner.is_fresh() {
            return Some(self.inner.held.lock().access_token.clone());
        }
        // Whoever asks may leave meanwhile, and the next refresh token must not be lost.
        let inner = Arc::clone(&self.inner);
        self.tasks.spawn(async move { inner.renewed().await }).await.ok()?
    }

    /// Logs the person out.
    pub async fn end(&self) {
        let Inner { oauth, held, .. } = &*self.inner;
        let refresh_token = held.lock().refresh_token.clone();
        let ended = oauth.revoke_token(refresh_token.expose(), Some(CLIENT_ID)).await;
        if let Err(error) = ended {
            tracing::warn!(%error, "the login of a person cannot be revoked at this moment; it expires");
        }
    }
}

impl Inner {
    async fn renewed(&self) -> Option<Secret> {
        let _alone = self.renewing.acquire().await.ok()?;
        if !self.is_fresh() {
            let refresh_token = self.held.lock().refresh_token.clone();
            match self.oauth.refresh(CLIENT_ID, refresh_token.expose(), None).await {
                Ok(tokens) => *self.held.lock() = Held::new(&tokens),
                Err(error) if error.code == ErrorCode::InvalidGrant => return None,
                // The token may hold for a while longer, and is asked about as any other.
                Err(error) => tracing::warn!(%error, "the login of a person cannot be renewed at this moment"),
            }
        }
        Some(self.held.lock().access_token.clone())
    }

    fn is_fresh(&self) -> bool {
        self.held.lock().renew_at > Instant::now()
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
}
