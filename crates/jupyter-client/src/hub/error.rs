//! Reason why a Hub did not do what it was asked for.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    #[error("JupyterHub cannot be reached ({0})")]
    Unreachable(String),
    #[error("JupyterHub did not answer in time")]
    Timeout,
    /// It does not know the token, or the token may not do this.
    #[error("JupyterHub refused the token (HTTP {status})")]
    Token { status: u16 },
    #[error("JupyterHub has no such user or server")]
    NotFound,
    /// It takes no more at the moment.
    #[error("JupyterHub is busy: {message}")]
    Busy {
        message: String,
        /// In seconds.
        retry_after: Option<u64>,
    },
    #[error("JupyterHub refused this: {message}")]
    Refused { message: String },
    #[error("JupyterHub failed (HTTP {status}): {message}")]
    Failed { status: u16, message: String },
    /// A server could not be started, in the words of the Hub.
    #[error("{0}")]
    Spawn(String),
    /// The Hub stopped telling how far a start is.
    #[error("JupyterHub stopped telling how far the start is")]
    Silent,
    #[error("what answered is not the API of a JupyterHub (HTTP {status}); an operator must check its url")]
    NotAHub { status: u16 },
    #[error("the answer of JupyterHub is too large")]
    TooLarge,
    #[error("the answer of JupyterHub is nested more than {limit} levels deep")]
    TooDeep { limit: usize },
}
