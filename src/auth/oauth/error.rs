//! Errors as OAuth has them: a code for the client and a sentence for whoever reads it.

use store::StoreError;
use url::Url;

use super::upstream::UpstreamError;

/// Codes of RFC 6749, 7009, 7591 and 8707.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    AccessDenied,
    ConsentRequired,
    InvalidClient,
    InvalidClientMetadata,
    InvalidGrant,
    InvalidRedirectUri,
    InvalidRequest,
    InvalidScope,
    InvalidTarget,
    ServerError,
    TemporarilyUnavailable,
    UnsupportedGrantType,
    UnsupportedResponseType,
}

impl ErrorCode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AccessDenied => "access_denied",
            Self::ConsentRequired => "consent_required",
            Self::InvalidClient => "invalid_client",
            Self::InvalidClientMetadata => "invalid_client_metadata",
            Self::InvalidGrant => "invalid_grant",
            Self::InvalidRedirectUri => "invalid_redirect_uri",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::ServerError => "server_error",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
        }
    }
}

/// An error for a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {description}", code.as_str())]
pub struct OAuthError {
    pub code: ErrorCode,
    pub description: String,
}

impl OAuthError {
    pub(super) fn new(code: ErrorCode, description: impl Into<String>) -> Self {
        let description = description.into();
        Self { code, description }
    }

    /// A request that cannot be meant.
    pub fn request(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, description)
    }

    pub(super) fn grant(description: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidGrant, description)
    }

    /// Error of the gateway itself, whose cause is only logged.
    pub(super) fn internal() -> Self {
        Self::new(ErrorCode::ServerError, "the gateway failed; try again later")
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a login needs the store");
        let description = "the gateway cannot reach its store at this moment; try again later";
        Self::new(ErrorCode::TemporarilyUnavailable, description)
    }
}

impl From<UpstreamError> for OAuthError {
    fn from(error: UpstreamError) -> Self {
        let code = match error {
            UpstreamError::Denied(_) | UpstreamError::Forbidden(_) => ErrorCode::AccessDenied,
            UpstreamError::Unavailable(_) => ErrorCode::TemporarilyUnavailable,
            UpstreamError::Invalid(_) => ErrorCode::ServerError,
        };
        if code != ErrorCode::AccessDenied {
            tracing::warn!(?error, "a login failed at the upstream service");
        }
        Self::new(code, error.to_string())
    }
}

/// Reason why a browser gets no further in a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginRefusal {
    /// Shown to the person: whoever asked is not known well enough to be answered.
    Shown(OAuthError),
    /// Told to the client, at its redirect URI.
    Told(Url),
}

impl From<OAuthError> for LoginRefusal {
    fn from(error: OAuthError) -> Self {
        Self::Shown(error)
    }
}

impl From<StoreError> for LoginRefusal {
    fn from(error: StoreError) -> Self {
        Self::Shown(error.into())
    }
}

/// Something without which there can be no browser logins.
#[derive(Debug, thiserror::Error)]
#[error("auth.oauth needs {0}")]
pub struct SetupError(pub(super) &'static str);
