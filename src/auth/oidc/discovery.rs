//! The discovery document of a provider: OpenID Connect Discovery 1.0.

use reqwest::Client;
use serde::{Deserialize, Deserializer, de::Error};
use url::Url;

use crate::auth::outbound::{self, OutboundError};

const WELL_KNOWN: &str = ".well-known/openid-configuration";

/// A provider's metadata.
#[derive(Debug, Clone, Deserialize)]
pub struct Metadata {
    pub issuer: String,
    #[serde(deserialize_with = "url")]
    pub jwks_uri: Url,
    #[serde(default, deserialize_with = "optional_url")]
    pub authorization_endpoint: Option<Url>,
    #[serde(default, deserialize_with = "optional_url")]
    pub token_endpoint: Option<Url>,
    #[serde(default, deserialize_with = "optional_url")]
    pub revocation_endpoint: Option<Url>,
    #[serde(default, deserialize_with = "optional_url")]
    pub userinfo_endpoint: Option<Url>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    #[serde(default)]
    pub code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Vec<String>,
}

/// Reason why there is no usable discovery document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    #[error("the discovery document of the issuer cannot be read: {0}")]
    Unread(OutboundError),
    #[error("the discovery document names another issuer ({0:?}); `issuer` must be written exactly as there")]
    OtherIssuer(String),
    #[error("the discovery document has an endpoint without TLS, although the issuer has TLS")]
    Downgraded,
}

impl Metadata {
    pub(super) async fn fetch(client: &Client, issuer: &str) -> Result<Self, DiscoveryError> {
        let url = format!("{}/{WELL_KNOWN}", issuer.trim_end_matches('/'));
        let metadata: Self = outbound::json(client.get(url)).await.map_err(DiscoveryError::Unread)?;
        metadata.check(issuer)
    }

    fn check(self, issuer: &str) -> Result<Self, DiscoveryError> {
        if self.issuer != issuer {
            return Err(DiscoveryError::OtherIssuer(self.issuer));
        }
        let endpoints = [
            Some(&self.jwks_uri),
            self.authorization_endpoint.as_ref(),
            self.token_endpoint.as_ref(),
            self.revocation_endpoint.as_ref(),
            self.userinfo_endpoint.as_ref(),
        ];
        let is_secure = |url: &Url| url.scheme() == "https";
        if issuer.starts_with("https:") && !endpoints.into_iter().flatten().all(is_secure) {
            return Err(DiscoveryError::Downgraded);
        }
        Ok(self)
    }
}

fn url<'de, D: Deserializer<'de>>(value: D) -> Result<Url, D::Error> {
    Url::parse(&String::deserialize(value)?).map_err(D::Error::custom)
}

fn optional_url<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(value)?;
    text.map(|text| Url::parse(&text).map_err(D::Error::custom)).transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_of_its_issuer_and_stays_with_tls() {
        let checked = |issuer: &str, keys: &str| {
            let document = json!({ "issuer": "https://a.example.org", "jwks_uri": keys, "more": [] });
            let metadata: Metadata = serde_json::from_value(document).expect("a document");
            metadata.check(issuer).map(drop)
        };
        let keys = "https://keys.example.org/jwks";
        assert_eq!(checked("https://a.example.org", keys), Ok(()));
        let other = DiscoveryError::OtherIssuer("https://a.example.org".to_owned());
        assert_eq!(checked("https://a.example.org/", keys), Err(other));
        let plain = "http://keys.example.org/jwks";
        assert_eq!(checked("https://a.example.org", plain), Err(DiscoveryError::Downgraded));
    }
}
