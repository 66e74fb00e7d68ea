//! A JupyterHub, at which people log in as at any of its services. The token that it gives for a person is what their
//! servers are used with, as a token is that they bring themselves.

use std::sync::Arc;

use jupyter_client::{HubError, HubService, Secret};

use super::{Begun, HUB, Identity, UpstreamError, UpstreamTokens};
use crate::auth::{
    Credentials, HubTokens, Method, Outcome, Principal, Rejection, Verifier,
    oauth::{OAuthSettings, pkce, scopes, secrets::new_secret},
};

/// Logins at a Hub.
pub struct HubLogins {
    tokens: HubTokens,
}

impl HubLogins {
    /// At the Hub whose tokens are accepted.
    pub fn new(tokens: HubTokens) -> Self {
        Self { tokens }
    }

    pub(super) fn begin(&self, settings: &OAuthSettings, state: &str) -> Begun {
        let verifier = new_secret();
        let mut url = self.tokens.verifier().hub().authorize_url();
        // Without a scope the Hub gives what the service may have of the person's.
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &settings.client_id)
            .append_pair("redirect_uri", &settings.callback())
            .append_pair("state", state)
            .append_pair("code_challenge", &pkce::challenge(&verifier))
            .append_pair("code_challenge_method", "S256");
        Begun {
            url,
            nonce: String::new(),
            verifier,
        }
    }

    pub(super) async fn finish(
        &self,
        settings: &OAuthSettings,
        code: &str,
        verifier: &str,
    ) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        let service = HubService {
            client_id: settings.client_id.clone(),
            secret: settings.client_secret.clone(),
            redirect_uri: settings.callback(),
        };
        let hub = self.tokens.verifier().hub();
        let (token, expires_at) = hub.redeem(&service, code, verifier).await.map_err(refused)?;
        self.identify(UpstreamTokens {
            refresh_token: None,
            access_token: Some(token.expose().to_owned()),
            expires_at,
        })
        .await
    }

    pub(super) async fn renew(&self, tokens: &UpstreamTokens) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        self.identify(tokens.clone()).await
    }

    /// Asks the Hub whose a token is, whatever it said before.
    async fn identify(&self, tokens: UpstreamTokens) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        let Some(token) = tokens.access_token.as_deref() else {
            return Err(UpstreamError::Denied("no token".to_owned()));
        };
        let principal = match self.tokens.verifier().verify(&Secret::new(token)).await {
            Outcome::Accepted(principal) => principal,
            Outcome::NotMine => return Err(UpstreamError::Denied("invalid_token".to_owned())),
            Outcome::Rejected(Rejection::Forbidden(sentence)) => return Err(UpstreamError::Forbidden(sentence)),
            Outcome::Rejected(why) => return Err(UpstreamError::Forbidden(why.to_string())),
            Outcome::Unavailable => return Err(UpstreamError::Unavailable("no answer".to_owned())),
        };
        Ok((identity(&principal), tokens))
    }

    /// The principal of a person's token. The Hub is asked as seldom as about any token.
    pub(in crate::auth::oauth) async fn principal_of(&self, tokens: &UpstreamTokens) -> Outcome {
        let ended = "JupyterHub does not accept this login any more; log in again";
        let Some(token) = &tokens.access_token else {
            return Outcome::Rejected(Rejection::Invalid(ended));
        };
        match self.tokens.authenticate(Credentials::new(token)).await {
            Outcome::NotMine | Outcome::Rejected(Rejection::Invalid(_)) => Outcome::Rejected(Rejection::Invalid(ended)),
            outcome => outcome,
        }
    }
}

fn identity(principal: &Arc<Principal>) -> Identity {
    let subject = principal.id.strip_prefix("hub:").unwrap_or(&principal.id);
    Identity {
        issuer: HUB.to_owned(),
        subject: subject.to_owned(),
        name: principal.name.clone(),
        tenants: vec![principal.tenant.name.clone()],
        scope: scopes::scopes(principal.permissions()),
    }
}

fn refused(error: HubError) -> UpstreamError {
    match error {
        HubError::Token { .. } => UpstreamError::Invalid(
            "it refuses the gateway; an operator must check auth.oauth.client_id and its secret".to_owned(),
        ),
        error @ (HubError::Refused { .. } | HubError::NotFound | HubError::NotAHub { .. }) => {
            UpstreamError::Invalid(error.to_string())
        }
        error => UpstreamError::Unavailable(error.to_string()),
    }
}
