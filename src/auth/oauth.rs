//! The authorization server of browser logins: a person logs in at the upstream service, allows a client to act for
//! them, and the client gets tokens of the gateway. Authorization code with PKCE only. Knows nothing of HTTP: the edge
//! hands over what clients and browsers sent, and shows or sends what comes back.
//!
//! ```text
//! client ──authorize──▶ login (upstream) ──callback──▶ login (consent) ──decide──▶ grant ──token──▶ tokens
//! ```

mod clients;
mod decision;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod login;
mod metadata;
mod parameters;
mod person;
mod pkce;
mod redirect_uri;
mod scopes;
mod sealing;
mod secrets;
mod settings;
mod tokens;
mod upstream;
mod verifier;

use std::sync::Arc;

use store::Store;

pub use clients::{DocumentError, RegistrationError};
pub use error::{ErrorCode, LoginRefusal, OAuthError, SetupError};
pub use login::{Browser, Consent, LoggedIn, Started};
pub use person::PersonLogin;
pub use settings::OAuthSettings;
pub use tokens::{IssuedTokens, NewLogin};
pub use upstream::{HubLogins, OpenIdLogins, Upstream};
pub use verifier::OAuthTokens;

use self::{clients::Clients, sealing::Sealer};
use super::Tenants;

/// The authorization server.
pub struct OAuth {
    settings: OAuthSettings,
    store: Store,
    clients: Clients,
    upstream: Upstream,
    sealer: Sealer,
    tenants: Arc<Tenants>,
}

impl OAuth {
    pub fn new(settings: OAuthSettings, upstream: Upstream, store: Store, tenants: Arc<Tenants>) -> Self {
        Self {
            clients: Clients::new(&settings, store.clone()),
            sealer: Sealer::new(settings.encryption_key.expose()),
            settings,
            upstream,
            store,
            tenants,
        }
    }

    /// The service at which people log in, as they call it.
    pub fn upstream_name(&self) -> &str {
        self.upstream.name()
    }

    /// The settings that the edge needs to know, too.
    pub fn settings(&self) -> &OAuthSettings {
        &self.settings
    }
}
