//! The provider at which people log in: the OpenID provider of `[auth.jwt]`, by authorization code with PKCE and a nonce.

mod exchange;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use self::exchange::TokenAnswer;
use super::{OAuthSettings, parameters::Parameters, pkce, secrets::new_secret};
use crate::auth::{
    Tenant, Tenants,
    oidc::{Claims, DiscoveryError, Expected, Metadata, Provider, TokenError},
    shown_name,
};

/// Longest code of an error that is repeated.
const MAX_CODE_CHARS: usize = 60;

/// The provider, and what the gateway is there.
pub(super) struct Upstream {
    provider: Arc<Provider>,
    settings: OAuthSettings,
}

/// A login that begins at the provider.
pub(super) struct Begun {
    pub(super) url: Url,
    pub(super) nonce: String,
    pub(super) verifier: String,
}

/// A person, as the provider knows them.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) name: String,
    /// Names of tenants that they may belong to; the first that there is counts.
    pub(super) tenants: Vec<String>,
    /// Scopes that the provider gives them.
    pub(super) scope: String,
}

impl Identity {
    /// The id of the person's principal, the same as by the provider's own tokens.
    pub(super) fn principal_id(&self) -> String {
        format!("{}|{}", self.issuer, self.subject)
    }

    /// The tenant that a person belongs to.
    pub(super) fn tenant(&self, tenants: &Tenants) -> Option<Arc<Tenant>> {
        self.tenants.iter().find_map(|name| tenants.get(name))
    }
}

/// Tokens of the provider that are kept.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct UpstreamTokens {
    pub(super) refresh_token: Option<String>,
}

/// Reason why nobody is logged in at the provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UpstreamError {
    #[error("the login provider refused it ({0})")]
    Denied(String),
    #[error("the login provider cannot be used at this moment")]
    Unavailable(String),
    #[error("the login provider answered what it should not: {0}")]
    Invalid(String),
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

impl Upstream {
    pub(super) fn new(settings: &OAuthSettings, provider: Arc<Provider>) -> Self {
        Self {
            provider,
            settings: settings.clone(),
        }
    }

    /// Begins a login: where the browser goes, and what has to come back.
    pub(super) async fn begin(&self, state: &str) -> Result<Begun, UpstreamError> {
        let metadata = self.provider.metadata().await?;
        let endpoint = metadata.authorization_endpoint.clone();
        let mut url = endpoint.ok_or_else(|| lacks("authorization_endpoint"))?;
        let (nonce, verifier) = (new_secret(), new_secret());
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", &self.settings.callback())
            .append_pair("scope", &self.settings.scopes.join(" "))
            .append_pair("state", state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &pkce::challenge(&verifier))
            .append_pair("code_challenge_method", "S256");
        Ok(Begun { url, nonce, verifier })
    }

    /// The code with which the provider has sent a browser back.
    pub(super) fn code<'a>(&self, parameters: &'a Parameters) -> Result<&'a str, UpstreamError> {
        let issuer = parameters.get("iss");
        if issuer.is_some_and(|issuer| issuer != self.provider.issuer()) {
            return Err(UpstreamError::Invalid(
                "the answer is that of another provider".to_owned(),
            ));
        }
        if let Some(error) = parameters.get("error") {
            return Err(UpstreamError::Denied(shown_code(error)));
        }
        let code = parameters.get("code");
        code.ok_or_else(|| UpstreamError::Invalid("there is no code".to_owned()))
    }

    /// Finishes a login: who it is, and the tokens of the provider.
    pub(super) async fn finish(
        &self,
        code: &str,
        verifier: &str,
        nonce: &str,
    ) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        let callback = self.settings.callback();
        let answer = self
            .request_tokens(&[
                ("grant_type", "authorization_code"),
                ("code", code),
                ("redirect_uri", &callback),
                ("code_verifier", verifier),
            ])
            .await?;
        let id_token = answer.id_token.as_deref();
        let id_token = id_token.ok_or_else(|| UpstreamError::Invalid("there is no ID token".to_owned()))?;
        let client = &self.settings.client_id;
        let claims = self
            .provider
            .validate(id_token, &Expected::Id { client, nonce })
            .await?;
        let identity = self.identity(&claims, &answer);
        let refresh_token = answer.refresh_token;
        Ok((identity, UpstreamTokens { refresh_token }))
    }

    /// Asks whether a person may still log in, if the provider gave a token by which that can be told. Its tokens rotate.
    pub(super) async fn renew(&self, tokens: &UpstreamTokens) -> Result<UpstreamTokens, UpstreamError> {
        let Some(refresh_token) = tokens.refresh_token.as_deref() else {
            return Ok(UpstreamTokens::default());
        };
        let answer = self
            .request_tokens(&[("grant_type", "refresh_token"), ("refresh_token", refresh_token)])
            .await?;
        Ok(UpstreamTokens {
            refresh_token: answer.refresh_token.or_else(|| Some(refresh_token.to_owned())),
        })
    }

    fn identity(&self, claims: &Claims, answer: &TokenAnswer) -> Identity {
        let provider = &self.settings.provider;
        let subject = claims.subject().unwrap_or_default();
        let name = claims.text(&provider.name_claim).unwrap_or(subject);
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let tenants = owned(claims.names(&provider.tenant_claim));
        let mut scope = owned(claims.words(&provider.permissions_claim)).join(" ");
        if scope.is_empty() && provider.permissions_claim == "scope" {
            // ID tokens have no scope: it is beside them.
            scope = answer.scope.clone().unwrap_or_default();
        }
        Identity {
            issuer: self.provider.issuer().to_owned(),
            subject: subject.to_owned(),
            name: shown_name(name, subject),
            tenants,
            scope,
        }
    }

    async fn token_endpoint(&self) -> Result<(Arc<Metadata>, Url), UpstreamError> {
        let metadata = self.provider.metadata().await?;
        let endpoint = metadata.token_endpoint.clone();
        let endpoint = endpoint.ok_or_else(|| lacks("token_endpoint"))?;
        Ok((metadata, endpoint))
    }
}

fn lacks(endpoint: &str) -> UpstreamError {
    UpstreamError::Invalid(format!("its discovery document has no {endpoint}"))
}

/// A code of an error as it may be repeated.
fn shown_code(code: &str) -> String {
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || "_-.".contains(*character);
    code.chars().filter(is_plain).take(MAX_CODE_CHARS).collect()
}
