//! Where people log in: the OpenID provider of `[auth.jwt]`, or the JupyterHub of `[auth.jupyterhub]`.

mod exchange;
mod hub;
mod openid;

use std::{sync::Arc, time::SystemTime};

use serde::{Deserialize, Serialize};
use url::Url;

pub use self::{hub::HubLogins, openid::OpenIdLogins};
use super::{OAuthSettings, parameters::Parameters};
use crate::auth::{Tenant, Tenants};

/// Longest code of an error that is repeated.
const MAX_CODE_CHARS: usize = 60;
/// Issuer of those who are known by their name in the Hub.
const HUB: &str = "hub";

/// A service at which people log in.
pub enum Upstream {
    OpenId(Box<OpenIdLogins>),
    Hub(HubLogins),
}

/// A login that begins there.
pub(super) struct Begun {
    pub(super) url: Url,
    /// Empty where there is none.
    pub(super) nonce: String,
    pub(super) verifier: String,
}

/// A person, as the service knows them.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) issuer: String,
    pub(super) subject: String,
    pub(super) name: String,
    /// Names of tenants that they may belong to; the first that there is counts.
    pub(super) tenants: Vec<String>,
    /// Scopes that the service gives them.
    pub(super) scope: String,
}

impl Identity {
    /// The id of the person's principal, the same as by the service's own tokens.
    pub(super) fn principal_id(&self) -> String {
        match self.issuer.as_str() {
            HUB => format!("{HUB}:{}", self.subject),
            issuer => format!("{issuer}|{}", self.subject),
        }
    }

    /// The tenant that a person belongs to.
    pub(super) fn tenant(&self, tenants: &Tenants) -> Option<Arc<Tenant>> {
        self.tenants.iter().find_map(|name| tenants.get(name))
    }
}

/// Tokens of the service that are kept.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct UpstreamTokens {
    pub(super) refresh_token: Option<String>,
    /// Kept where it is the only way to ask about the person, and where it is what their servers are used with.
    #[serde(default)]
    pub(super) access_token: Option<String>,
    /// When that expires, as far as it matters.
    #[serde(default)]
    pub(super) expires_at: Option<SystemTime>,
}

impl UpstreamTokens {
    pub(super) fn is_empty(&self) -> bool {
        self.refresh_token.is_none() && self.access_token.is_none()
    }
}

/// Reason why nobody is logged in there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UpstreamError {
    #[error("the login service refused it ({0})")]
    Denied(String),
    /// A sentence for the person.
    #[error("{0}")]
    Forbidden(String),
    #[error("the login service cannot be used at this moment")]
    Unavailable(String),
    #[error("the login service answered what it should not: {0}")]
    Invalid(String),
}

impl Upstream {
    /// As people call it.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::OpenId(provider) => provider.host(),
            Self::Hub(_) => "JupyterHub",
        }
    }

    /// Begins a login: where the browser goes, and what has to come back.
    pub(super) async fn begin(&self, settings: &OAuthSettings, state: &str) -> Result<Begun, UpstreamError> {
        match self {
            Self::OpenId(provider) => provider.begin(settings, state).await,
            Self::Hub(hub) => Ok(hub.begin(settings, state)),
        }
    }

    /// The code with which a browser was sent back.
    pub(super) fn code<'a>(&self, parameters: &'a Parameters) -> Result<&'a str, UpstreamError> {
        let issuer = parameters.get("iss");
        let is_other = |issuer: &str| matches!(self, Self::OpenId(provider) if provider.issuer() != issuer);
        if issuer.is_some_and(is_other) {
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

    /// Finishes a login: who it is, and the service's tokens.
    pub(super) async fn finish(
        &self,
        settings: &OAuthSettings,
        code: &str,
        verifier: &str,
        nonce: &str,
    ) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        match self {
            Self::OpenId(provider) => provider.finish(settings, code, verifier, nonce).await,
            Self::Hub(hub) => hub.finish(settings, code, verifier).await,
        }
    }

    /// Asks what is true of a person now, as far as the service gave a token by which that can be told.
    pub(super) async fn renew(
        &self,
        settings: &OAuthSettings,
        identity: &Identity,
        tokens: &UpstreamTokens,
    ) -> Result<(Identity, UpstreamTokens), UpstreamError> {
        if !self.is_of(identity) {
            return Err(UpstreamError::Denied("another login service".to_owned()));
        }
        match self {
            Self::OpenId(provider) => provider.renew(settings, identity, tokens).await,
            Self::Hub(hub) => hub.renew(tokens).await,
        }
    }

    /// Returns whether somebody has logged in at this service.
    pub(super) fn is_of(&self, identity: &Identity) -> bool {
        match self {
            Self::OpenId(provider) => provider.issuer() == identity.issuer,
            Self::Hub(_) => identity.issuer == HUB,
        }
    }
}

/// A code of an error as it may be repeated.
fn shown_code(code: &str) -> String {
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || "_-.".contains(*character);
    code.chars().filter(is_plain).take(MAX_CODE_CHARS).collect()
}
