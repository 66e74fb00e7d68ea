//! Settings of the authorization server, from the config.

use std::time::Duration;

use jupyter_client::Secret;
use url::Url;

use super::SetupError;
use crate::config::{Config, Env};

/// Settings of browser logins.
#[derive(Debug, Clone)]
pub struct OAuthSettings {
    /// URL at which browsers reach the gateway; ends with a slash.
    pub public_url: Url,
    pub access_ttl: Duration,
    pub refresh_ttl: Duration,
    pub allow_private_client_metadata: bool,
    pub(super) client_id: String,
    /// Empty for a public client.
    pub(super) client_secret: Secret,
    pub(super) scopes: Vec<String>,
    pub(super) encryption_key: Secret,
}

impl OAuthSettings {
    /// The settings of a validated config; none if browser logins are not enabled.
    pub fn from_config(config: &Config, env: &Env) -> Result<Option<Self>, SetupError> {
        let oauth = &config.auth.oauth;
        if !oauth.enabled {
            return Ok(None);
        }
        let public_url = config.http.public_url.clone();
        let secrets = oauth.secrets(env).map_err(|_| SetupError("its secrets"))?;
        Ok(Some(Self {
            public_url: public_url.ok_or(SetupError("http.public_url"))?,
            access_ttl: oauth.access_ttl,
            refresh_ttl: oauth.refresh_ttl,
            allow_private_client_metadata: oauth.allow_private_client_metadata,
            client_id: oauth.client_id.clone(),
            client_secret: secrets.client_secret,
            scopes: oauth.scopes.clone(),
            encryption_key: secrets.encryption_key,
        }))
    }

    /// The authorization server, as its tokens and answers name it.
    pub fn issuer(&self) -> &str {
        self.public_url.as_str().trim_end_matches('/')
    }

    /// Resource for which tokens are issued (RFC 8707).
    pub fn resource(&self) -> String {
        format!("{}mcp", self.public_url)
    }

    /// The URL of an endpoint.
    pub fn endpoint(&self, name: &str) -> String {
        format!("{}oauth/{name}", self.public_url)
    }

    /// URL to which the upstream provider sends browsers back.
    pub(super) fn callback(&self) -> String {
        self.endpoint("callback")
    }

    /// Returns whether a `resource` is what tokens are for. One that is left out can be meant by nothing else.
    pub(super) fn is_resource(&self, resource: Option<&str>) -> bool {
        resource.is_none_or(|resource| resource.trim_end_matches('/') == self.resource())
    }
}
