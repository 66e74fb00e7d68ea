//! A client's description of itself, by registration or in a document (RFC 7591).

use serde::{Deserialize, Serialize};

use super::{super::redirect_uri, Client};
use crate::auth::shown_name;

const MAX_REDIRECT_URIS: usize = 10;

/// Members that count. All others are let pass and not kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Description {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_id: Option<String>,
    #[serde(default)]
    pub(super) client_name: Option<String>,
    #[serde(default)]
    pub(super) redirect_uris: Vec<String>,
    #[serde(default, skip_serializing)]
    grant_types: Option<Vec<String>>,
    #[serde(default, skip_serializing)]
    response_types: Option<Vec<String>>,
    #[serde(default, skip_serializing)]
    pub(super) token_endpoint_auth_method: Option<String>,
}

/// Defect of a description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    #[error("{0}")]
    RedirectUri(&'static str),
    #[error("{0}")]
    Other(&'static str),
}

impl Description {
    pub(super) fn check(&self) -> Result<(), DescriptionError> {
        if self.redirect_uris.is_empty() || self.redirect_uris.len() > MAX_REDIRECT_URIS {
            return Err(DescriptionError::RedirectUri(
                "between 1 and 10 redirect URIs are needed",
            ));
        }
        for uri in &self.redirect_uris {
            redirect_uri::check(uri).map_err(DescriptionError::RedirectUri)?;
        }
        let lacks = |given: &Option<Vec<String>>, needed: &str| {
            let given = given.as_ref();
            given.is_some_and(|given| !given.is_empty() && !given.iter().any(|given| given == needed))
        };
        if lacks(&self.grant_types, "authorization_code") {
            return Err(DescriptionError::Other("`grant_types` must contain authorization_code"));
        }
        if lacks(&self.response_types, "code") {
            return Err(DescriptionError::Other("`response_types` must contain code"));
        }
        Ok(())
    }

    /// The client that it describes; `host` vouches for it.
    pub(super) fn into_client(self, id: &str, host: Option<String>) -> Client {
        let fallback = host.as_deref().unwrap_or("a client without a name");
        Client {
            id: id.to_owned(),
            name: shown_name(self.client_name.as_deref().unwrap_or_default(), fallback),
            redirect_uris: self.redirect_uris,
            host,
        }
    }
}
