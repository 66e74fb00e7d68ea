//! OpenID providers: where their endpoints are, the keys they sign with, and what a token of theirs says. Knows nothing
//! of principals; callers make those of the claims.

mod claims;
mod crypto;
mod discovery;
mod key_cache;
mod keys;
mod token;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::Secret;
use parking_lot::Mutex;
use reqwest::Client;
use url::{Host, Url};

pub use self::{
    claims::{Claims, Expected},
    discovery::{DiscoveryError, Metadata},
    token::{TokenError, is_jwt},
};
use self::{key_cache::KeyCache, token::Header};
use super::outbound::{self, OutboundError};

/// Age at which the discovery document is read anew.
const METADATA_AGE: Duration = Duration::from_secs(10 * 60);

/// Why a provider does not say who somebody is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserinfoError {
    /// It knows the token, or whose it is, no longer.
    #[error("the provider does not accept the access token")]
    Refused,
    #[error("the userinfo of the provider cannot be read: {0}")]
    Unread(OutboundError),
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
}

/// One OpenID provider.
pub struct Provider {
    source: Arc<Source>,
    keys: KeyCache,
    /// For development: a secret that tokens may be signed with, too.
    secret: Option<Secret>,
}

/// URLs of the provider's documents.
struct Source {
    issuer: String,
    /// `None` asks the discovery document.
    jwks_url: Option<Url>,
    client: Client,
    metadata: Mutex<Option<(Arc<Metadata>, Instant)>>,
}

impl Provider {
    /// The provider of an issuer, which is compared byte by byte with what tokens say.
    pub fn new(issuer: &str, jwks_url: Option<Url>, secret: Option<Secret>) -> Result<Self, reqwest::Error> {
        crypto::install();
        let source = Arc::new(Source {
            issuer: issuer.to_owned(),
            jwks_url,
            client: outbound::client(is_local(issuer))?,
            metadata: Mutex::default(),
        });
        Ok(Self {
            keys: KeyCache::new(Arc::clone(&source)),
            source,
            secret,
        })
    }

    pub fn issuer(&self) -> &str {
        &self.source.issuer
    }

    /// The client for requests to the provider: bounded in time, never redirected.
    pub fn client(&self) -> &Client {
        &self.source.client
    }

    /// The discovery document, at most some minutes old. While the provider does not answer, the last one.
    pub async fn metadata(&self) -> Result<Arc<Metadata>, DiscoveryError> {
        self.source.metadata().await
    }

    /// Checks the signature of a token and that it holds now, for whom is expected.
    pub async fn validate(&self, token: &str, expected: &Expected<'_>) -> Result<Claims, TokenError> {
        let header = Header::parse(token)?;
        if header.is_symmetric() {
            let secret = self.secret.as_ref().ok_or(token::NOT_ACCEPTED)?;
            return header.validate_with_secret(token, secret, self.issuer(), expected);
        }
        let keys = self.keys.with_key(&header).await?;
        header.validate(token, &keys, self.issuer(), expected)
    }

    /// What the provider says at this moment of whoever has an access token of its own; `None` if it tells nobody.
    pub async fn userinfo(&self, access_token: &str) -> Result<Option<Claims>, UserinfoError> {
        let Some(endpoint) = self.metadata().await?.userinfo_endpoint.clone() else {
            return Ok(None);
        };
        let request = self.client().get(endpoint).bearer_auth(access_token);
        match outbound::json(request).await {
            Ok(claims) => Ok(Some(Claims::new(claims))),
            Err(OutboundError::Status(401 | 403)) => Err(UserinfoError::Refused),
            Err(error) => Err(UserinfoError::Unread(error)),
        }
    }

    /// Fetches the keys, so that the first token need not wait for them; an error says what is wrong with the provider.
    pub async fn warm_up(&self) -> Result<(), TokenError> {
        self.keys.refresh().await
    }
}

impl Source {
    async fn metadata(&self) -> Result<Arc<Metadata>, DiscoveryError> {
        let known = self.metadata.lock().clone();
        if let Some((metadata, since)) = &known
            && since.elapsed() < METADATA_AGE
        {
            return Ok(Arc::clone(metadata));
        }
        match Metadata::fetch(&self.client, &self.issuer).await {
            Ok(fetched) => {
                let fetched = Arc::new(fetched);
                *self.metadata.lock() = Some((Arc::clone(&fetched), Instant::now()));
                Ok(fetched)
            }
            Err(error) => match known {
                Some((metadata, _)) => Ok(metadata),
                None => Err(error),
            },
        }
    }

    /// The URL of the key set.
    async fn jwks_url(&self) -> Result<Url, DiscoveryError> {
        match &self.jwks_url {
            Some(url) => Ok(url.clone()),
            None => Ok(self.metadata().await?.jwks_uri.clone()),
        }
    }
}

/// Returns whether a provider runs on this machine, so that no proxy leads to it.
fn is_local(issuer: &str) -> bool {
    let Ok(url) = Url::parse(issuer) else {
        return false;
    };
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
