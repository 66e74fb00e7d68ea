//! Clients: those that registered themselves, and those whose id is the URL of a document about them. All are public:
//! none has a secret, and each proves with PKCE that it is the one that asked.

mod addresses;
mod description;
mod document;
mod registration;

use serde::{Deserialize, Serialize};
use store::Store;

pub use document::DocumentError;
pub use registration::RegistrationError;

use self::{description::Description, document::Documents};
use super::{ErrorCode, OAuthError, OAuthSettings, redirect_uri};

/// A client that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    /// As it calls itself.
    pub(super) name: String,
    pub(super) redirect_uris: Vec<String>,
    /// The host that vouches for it, if its id is a URL.
    pub(super) host: Option<String>,
}

impl Client {
    pub(super) fn may_redirect_to(&self, uri: &str) -> bool {
        let mut registered = self.redirect_uris.iter();
        registered.any(|registered| redirect_uri::is_match(registered, uri))
    }
}

/// Finds clients.
pub(super) struct Clients {
    store: Store,
    documents: Documents,
}

impl Clients {
    pub(super) fn new(settings: &OAuthSettings, store: Store) -> Self {
        let documents = Documents::new(settings.allow_private_client_metadata);
        Self { store, documents }
    }

    /// The client of an id.
    pub(super) async fn find(&self, client_id: &str) -> Result<Client, OAuthError> {
        if document::is_url(client_id) {
            let found = self.documents.client(client_id).await;
            return found.map_err(|error| {
                let description = format!("the document about the client cannot be used: {error}");
                OAuthError::new(ErrorCode::InvalidClient, description)
            });
        }
        let unknown = || {
            let description = "the client is not known here, or its registration has expired; have it register again";
            OAuthError::new(ErrorCode::InvalidClient, description)
        };
        let metadata = self.store.oauth_client(client_id).await?.ok_or_else(unknown)?;
        let described: Description = serde_json::from_str(&metadata).map_err(|_| unknown())?;
        Ok(described.into_client(client_id, None))
    }
}

/// Reads what a client says of itself, as a registration and as a document.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzz(body: &[u8]) {
    let described = registration::read(body);
    if let Ok(described) = described {
        for uri in &described.redirect_uris {
            assert!(redirect_uri::check(uri).is_ok(), "{uri}");
        }
        let client = described.into_client("id", None);
        assert!(!client.name.is_empty() && client.name.chars().all(|character| !character.is_control()));
    }
    document::fuzz(body);
}
