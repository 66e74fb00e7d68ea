//! Dynamic registration (RFC 7591). Anybody may register, so that a registration is small, means little and ends by
//! itself: nobody learns anything by it, and nobody is let in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use store::{RegisteredClient, StoreError};

use super::{
    super::{ErrorCode, OAuth, OAuthError, secrets::new_secret},
    Clients,
    description::{Description, DescriptionError},
};

/// Registrations that are kept.
const MAX_CLIENTS: usize = 10_000;
/// Time for which an unused registration is kept.
const UNUSED_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// Reason why a client is not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    #[error("the body is not the JSON of a client's metadata")]
    Malformed,
    #[error("{0}")]
    Metadata(#[from] DescriptionError),
    #[error(
        "there are too many registered clients; use the URL of a client metadata document as client_id, or try later"
    )]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<RegistrationError> for OAuthError {
    fn from(error: RegistrationError) -> Self {
        let code = match error {
            RegistrationError::Malformed | RegistrationError::Metadata(DescriptionError::Other(_)) => {
                ErrorCode::InvalidClientMetadata
            }
            RegistrationError::Metadata(DescriptionError::RedirectUri(_)) => ErrorCode::InvalidRedirectUri,
            RegistrationError::TooMany => ErrorCode::TemporarilyUnavailable,
            RegistrationError::Store(error) => return error.into(),
        };
        Self::new(code, error.to_string())
    }
}

impl OAuth {
    /// Registers a client, and tells it what it is registered as.
    pub async fn register(&self, body: &[u8]) -> Result<Value, RegistrationError> {
        self.clients.register(body).await
    }
}

/// What a client says of itself that wants to be registered.
pub(super) fn read(body: &[u8]) -> Result<Description, RegistrationError> {
    if !jupyter_client::is_shallow_json(body) {
        return Err(RegistrationError::Malformed);
    }
    let described: Description = serde_json::from_slice(body).map_err(|_| RegistrationError::Malformed)?;
    described.check()?;
    Ok(described)
}

impl Clients {
    async fn register(&self, body: &[u8]) -> Result<Value, RegistrationError> {
        let client = read(body)?.into_client(&new_secret(), None);
        let now = SystemTime::now();
        let metadata = json!({ "client_name": client.name, "redirect_uris": client.redirect_uris });
        let registered = RegisteredClient {
            client_id: client.id.clone(),
            metadata: metadata.to_string(),
            expires_at: now + UNUSED_TTL,
        };
        if !self.store.add_oauth_client(&registered, MAX_CLIENTS).await? {
            return Err(RegistrationError::TooMany);
        }
        Ok(json!({
            "client_id": client.id,
            "client_id_issued_at": now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            "client_name": client.name,
            "redirect_uris": client.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            // Whatever it asked for: nobody gets a secret here.
            "token_endpoint_auth_method": "none",
        }))
    }
}
