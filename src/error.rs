//! The kinds of failure, shared by all layers. Below `mcp` nobody speaks of HTTP statuses or JSON-RPC codes: a tool that
//! failed answers with the error's text, and the kind is what logs and dashboards tell it by.

mod libraries;
mod nearest;

use std::fmt;

pub(crate) use nearest::nearest;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller sent something that cannot be meant.
    InvalidArgument,
    /// The named thing does not exist, or its existence is hidden from this caller.
    NotFound,
    /// The caller lacks a permission, or a path rule forbids it.
    Forbidden,
    /// The state of the world forbids it now: exists already, is open, changed meanwhile.
    Conflict,
    /// A Jupyter server cannot be used: down, slow, or refusing the gateway's own token.
    Upstream,
    /// A limit of the gateway.
    Limit,
    /// A defect of the gateway.
    Internal,
}

impl ErrorKind {
    /// The label under which dashboards count it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::Conflict => "conflict",
            Self::Upstream => "upstream",
            Self::Limit => "limit",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error whose `Display` was written for the caller: it holds no secrets and says what to do.
/// Only such errors may be shown outside; anything else is a fixed text and a log line.
pub trait ClientError: std::error::Error {
    fn kind(&self) -> ErrorKind;
}
