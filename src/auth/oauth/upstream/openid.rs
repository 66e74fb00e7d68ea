//! An OpenID provider: authorization code with PKCE and a nonce. Its refresh token, or else its userinfo, tells what is
//! true of a person later.

use std::sync::Arc;

use url::Url;

use super::{Begun, Identity, UpstreamError, UpstreamTokens, exchange::TokenAnswer};
use crate::{
    auth::{
        oauth::{OAuthSettings, pkce, secrets::new_secret},
        oidc::{Claims, DiscoveryError, Expected, Provider, TokenError, UserinfoError},
        shown_name,
    },
    config::JwtConfig,
};

/// Logins at a provider.
pub struct OpenIdLogins {
    pub(super) provider: Arc<Provider>,
    /// What its claims mean.
    config: JwtConfig,
    host: String,
}

impl From<DiscoveryError> for UpstreamError {
    fn from(error: DiscoveryError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<TokenError> for UpstreamError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Invalid(reason) => Self::Invalid(format!("its ID token is not accepted: {reason}")),
            TokenError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl From<UserinfoError> for UpstreamError {
    fn from(error: UserinfoError) -> Self {
        match error {
            UserinfoError::Refused => Self::Denied("invalid_token".to_owned()),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

impl OpenIdLogins {
    /// At the provider whose tokens are accepted.
    pub fn new(provider: Arc<Provider>, config: &JwtConfig) -> Self {
        let url = Url::parse(provider.issuer()).ok();
        let host = url.and_then(|url| url.host_str().map(str::to_owned));
        Self {
            host: host.unwrap_or_default(),
            provider,
            config: config.clone(),
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn issuer(&self) -> &str {
        self.provider.issuer()
    }

    pub(super) async fn begin(&self, settings: &OAuthSettings, state: &str) -> Result<Begun, UpstreamError> {
        let metadata = self.provider.metadata().await?;
        let endpoint = metadata.authorization_endpoint.clone();
        let mut url = endpoint.ok_or_else(|| lacks("authorization_endpoint"))?;
        let (nonce, verifier) = (new_secret(), new_secret());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &settings.client_id)
            .append_pair("redirect_uri", &settings.callback())
            .append_pair("scope", &settings.scopes.join(" "))
            .append_pair("state", state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &pkce::challenge(&verifier))
            .append_pair("code_challenge_method", "S256");
        Ok(Begun { url, nonce, verifier })
    }

    pub(super) async fn finish(
        &self,
        settings: &OAuthSettings,
        code: &str,
        verifier: &str,
        nonce: &str,
    ) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        let callback = settings.callback();
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &callback),
            ("code_verifier", verifier),
        ];
        let answer = self.request_tokens(settings, &form).await?;
        let id_token = answer.id_token.as_deref();
        let id_token = id_token.ok_or_else(|| UpstreamError::Invalid("there is no ID token".to_owned()))?;
        let expected = Expected::Id {
            client: &settings.client_id,
            nonce: Some(nonce),
        };
        let claims = self.provider.validate(id_token, &expected).await?;
        // A provider that says nothing has granted what it was asked for.
        let granted = answer.scope.clone().unwrap_or_else(|| settings.scopes.join(" "));
        let identity = self.identity(&claims, &granted, None);
        let has_userinfo = self.provider.metadata().await?.userinfo_endpoint.is_some();
        Ok((identity, kept(answer, None, has_userinfo)))
    }

    pub(super) async fn renew(
        &self,
        settings: &OAuthSettings,
        before: &Identity,
        tokens: &UpstreamTokens,
    ) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        let Some(refresh_token) = tokens.refresh_token.as_deref() else {
            let claims = match tokens.access_token.as_deref() {
                Some(access_token) => self.provider.userinfo(access_token).await?,
                None => None,
            };
            return Ok((self.renewed(claims, None, before)?, tokens.clone()));
        };
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        let answer = self.request_tokens(settings, &form).await?;
        let expected = Expected::Id {
            client: &settings.client_id,
            nonce: None,
        };
        let claims = match (answer.id_token.as_deref(), answer.access_token.as_deref()) {
            (Some(id_token), _) => Some(self.provider.validate(id_token, &expected).await?),
            (None, Some(access_token)) => self.provider.userinfo(access_token).await?,
            (None, None) => None,
        };
        let identity = self.renewed(claims, answer.scope.as_deref(), before)?;
        Ok((identity, kept(answer, Some(refresh_token), false)))
    }

    /// A person as they are now, or as before if the provider says nothing of them.
    fn renewed(
        &self,
        claims: Option<Claims>,
        granted: Option<&str>,
        before: &Identity,
    ) -> Result<Identity, UpstreamError> {
        let Some(claims) = claims else {
            return Ok(before.clone());
        };
        match claims.subject() == Some(&before.subject) {
            true => Ok(self.identity(&claims, granted.unwrap_or(&before.scope), Some(before))),
            false => Err(UpstreamError::Denied("another subject".to_owned())),
        }
    }

    fn identity(&self, claims: &Claims, granted: &str, before: Option<&Identity>) -> Identity {
        let subject = claims.subject().unwrap_or_default();
        let known_as = before.map_or(subject, |before| &before.name);
        let name = claims.text(&self.config.name_claim).unwrap_or(known_as);
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let tenants = owned(claims.names(&self.config.tenant_claim));
        let mut scope = owned(claims.words(&self.config.permissions_claim)).join(" ");
        if scope.is_empty() && self.config.permissions_claim == "scope" {
            // What describes a person has no scope: it is beside that.
            granted.clone_into(&mut scope);
        }
        Identity {
            issuer: self.provider.issuer().to_owned(),
            subject: subject.to_owned(),
            name: shown_name(name, subject),
            tenants,
            scope,
        }
    }
}

/// The tokens to keep. Those of a provider may rotate.
fn kept(answer: TokenAnswer, before: Option<&str>, has_userinfo: bool) -> UpstreamTokens {
    let refresh_token = answer.refresh_token.or_else(|| before.map(str::to_owned));
    let access_token = answer.access_token.filter(|_| refresh_token.is_none() && has_userinfo);
    UpstreamTokens {
        refresh_token,
        access_token,
        expires_at: None,
    }
}

pub(super) fn lacks(endpoint: &str) -> UpstreamError {
    UpstreamError::Invalid(format!("its discovery document has no {endpoint}"))
}
