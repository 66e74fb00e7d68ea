//! Errors of a Jupyter server, in words that tell the caller or the operator what to check.

use crate::MAX_NESTING;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JupyterError {
    #[error(
        "Jupyter server `{server}` at {url} cannot be reached ({why}); check that it is running and that its url is right"
    )]
    Unreachable { server: String, url: String, why: String },
    #[error(
        "Jupyter server `{server}` did not answer within {seconds} s; it may be busy or hung: try again, or have it restarted"
    )]
    Timeout { server: String, seconds: u64 },
    #[error(
        "Jupyter server `{server}` refused the gateway's token (HTTP {status}); an operator must correct the token configured for it"
    )]
    Credentials { server: String, status: u16 },
    #[error("Jupyter server `{server}` refused your token (HTTP {status}); give connect_notebook the right `token`")]
    Token { server: String, status: u16 },
    #[error(
        "Jupyter server `{server}` refused your JupyterHub token (HTTP {status}); it needs a token with the scope `access:servers` for this server"
    )]
    HubToken { server: String, status: u16 },
    #[error("Jupyter server `{server}` is not running; start it with start_server(server={server:?}), then try again")]
    Stopped { server: String },
    #[error(
        "Jupyter server `{server}` answered with {what} instead of JSON (HTTP {status}); an operator must check its url: it may lack the base path, or lead to a login page"
    )]
    NotJupyter { server: String, status: u16, what: String },
    #[error("{path:?} does not exist on Jupyter server `{server}`; list_documents shows what does")]
    NotFound { server: String, path: String },
    #[error(
        "{path:?} already exists on Jupyter server `{server}`; choose another path, or use overwrite_document to replace its content"
    )]
    Exists { server: String, path: String },
    #[error(
        "Jupyter server `{server}` has no live documents; an operator must install the Python package `jupyter-collaboration` there and restart it"
    )]
    NoCollaboration { server: String },
    #[error(
        "kernel `{kernel}` no longer exists on Jupyter server `{server}`: it was shut down, or the server restarted; run again to start a new one"
    )]
    NoKernel { server: String, kernel: String },
    #[error("Jupyter server `{server}` has no kernel named {name:?}; it can start: {available}")]
    UnknownKernelspec {
        server: String,
        name: String,
        available: String,
    },
    #[error(
        "{path:?} on Jupyter server `{server}` is nested more than {MAX_NESTING} levels deep, which the gateway does not read; repair or replace the file"
    )]
    TooDeep { server: String, path: String },
    #[error(
        "Jupyter server `{server}` sent more than {limit} MB for {path:?}, which is the limit; run code that reads the file in parts"
    )]
    TooLarge { server: String, path: String, limit: usize },
    #[error(
        "{path:?} on Jupyter server `{server}` is too large to open ({megabytes} MB, limit {limit} MB); the beginning of a text file can still be read, and running code can read any part"
    )]
    LargeDocument {
        server: String,
        path: String,
        megabytes: u64,
        limit: u64,
    },
    #[error("Jupyter server `{server}` refused this (HTTP {status}): {message}")]
    Refused {
        server: String,
        status: u16,
        message: String,
    },
}

impl JupyterError {
    /// Returns whether a retry may succeed: the server was not reached, or failed temporarily.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Stopped { .. } => true,
            // A proxy in front of a server that is just being started answers in its place.
            Self::NotJupyter { status, .. } | Self::Refused { status, .. } => *status >= 500,
            _ => false,
        }
    }
}
