//! Errors of the history, in words for callers.

use store::StoreError;

use crate::error::{ClientError, ErrorKind};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    #[error("history is switched off on this gateway; an operator can switch it on with `store.history`")]
    Off,
    #[error("nothing is recorded of {path:?} yet; its history begins when it is first read or edited by tools")]
    Nothing { path: String },
    #[error("{path:?} has no version or revision {name:?}{known}; get_document_history lists them")]
    Unknown { path: String, name: String, known: String },
    #[error("version {version:?} cannot be read: {why}; choose another with get_document_history")]
    Damaged { version: String, why: String },
    #[error("{0}")]
    NothingToUndo(String),
    #[error("the document is changed so often that this could not be done; nothing was changed; try again")]
    Busy,
    #[error("the history cannot be used now: {why}; nothing was changed; editing goes on, try again later")]
    Store { why: String },
}

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> Self {
        Self::Store { why: error.to_string() }
    }
}

impl ClientError for HistoryError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Off => ErrorKind::Forbidden,
            Self::Nothing { .. } | Self::Unknown { .. } => ErrorKind::NotFound,
            Self::NothingToUndo(_) | Self::Busy => ErrorKind::Conflict,
            Self::Damaged { .. } => ErrorKind::Internal,
            Self::Store { .. } => ErrorKind::Upstream,
        }
    }
}
