//! What can go wrong with a Jupyter server, in words that tell the caller or the operator what to check.

use crate::MAX_NESTING;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JupyterError {
    #[error(
        "Jupyter server `{server}` at {url} cannot be reached ({why}); check that it runs and that its url is right"
    )]
    Unreachable { server: String, url: String, why: String },
    #[error(
        "Jupyter server `{server}` did not answer within {seconds} s; it may be busy or hung: try again, or have it restarted"
    )]
    Timeout { server: String, seconds: u64 },
    #[error(
        "Jupyter server `{server}` refused the gateway's own credentials (HTTP {status}); an operator must check the token configured for it"
    )]
    Credentials { server: String, status: u16 },
    #[error(
        "Jupyter server `{server}` refused the token that it was connected with (HTTP {status}); give connect_notebook the right `token`"
    )]
    Token { server: String, status: u16 },
    #[error(
        "Jupyter server `{server}` answered with {what} instead of JSON (HTTP {status}); is its url that of a Jupyter server, the base path included, or that of a login page?"
    )]
    NotJupyter { server: String, status: u16, what: String },
    #[error("{path:?} does not exist on Jupyter server `{server}`; list_documents shows what does")]
    NotFound { server: String, path: String },
    #[error(
        "{path:?} already exists on Jupyter server `{server}`; choose another path, or use overwrite_document to replace its content"
    )]
    Exists { server: String, path: String },
    #[error(
        "Jupyter server `{server}` has no live documents: have the Python package `jupyter-collaboration` installed there and the server restarted"
    )]
    NoCollaboration { server: String },
    #[error(
        "kernel `{kernel}` does not exist any more on Jupyter server `{server}`: it was shut down or the server restarted; run again to start a new one"
    )]
    NoKernel { server: String, kernel: String },
    #[error("Jupyter server `{server}` has no kernel named {name:?}; it can start: {available}")]
    UnknownKernelspec {
        server: String,
        name: String,
        available: String,
    },
    #[error(
        "{path:?} on Jupyter server `{server}` has values that are nested more than {MAX_NESTING} levels deep, which the gateway does not read; have the file repaired or replaced"
    )]
    TooDeep { server: String, path: String },
    #[error(
        "what Jupyter server `{server}` answers about {path:?} is larger than {limit} MB, which is as much as the gateway takes at once; code that runs can read it in parts"
    )]
    TooLarge { server: String, path: String, limit: usize },
    #[error(
        "{path:?} on Jupyter server `{server}` has {megabytes} MB, and documents of more than {limit} MB are not opened; the beginning of a text file can be read all the same, and code that runs can read any part of any file"
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
    /// Whether the same may succeed in a moment, because it failed on the way to the server or in its trouble.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            // A proxy in front of a server that is just being started answers in its place.
            Self::NotJupyter { status, .. } | Self::Refused { status, .. } => *status >= 500,
            _ => false,
        }
    }
}
