//! Metadata of the authorization server (RFC 8414).

use serde_json::{Value, json};

use super::{OAuth, scopes};

impl OAuth {
    /// The document at `/.well-known/oauth-authorization-server`.
    pub fn server_metadata(&self) -> Value {
        let settings = &self.settings;
        json!({
            "issuer": settings.issuer(),
            "authorization_endpoint": settings.endpoint("authorize"),
            "token_endpoint": settings.endpoint("token"),
            "registration_endpoint": settings.endpoint("register"),
            "revocation_endpoint": settings.endpoint("revoke"),
            "scopes_supported": scopes::supported(),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
        })
    }
}
