//! Reason why a room cannot be had.

use jupyter_client::JupyterError;

use crate::RoomError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(
        "too many documents are open and in use {whose} (limit {limit}); end one with end_nb_session, or try again later"
    )]
    Full { limit: usize, whose: &'static str },
    #[error("there is no fork {fork_id:?} any more; list_document_forks shows those that there are")]
    NoSuchFork { fork_id: String },
    #[error("nothing was changed: the forks of this gateway cannot be reached now ({why}); try again in a moment")]
    ForksUnavailable { why: String },
    #[error("this gateway keeps no forks")]
    NoForks,
}

impl PoolError {
    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Room(error) => error.is_transient(),
            Self::Full { .. } | Self::ForksUnavailable { .. } => true,
            Self::NoSuchFork { .. } | Self::NoForks => false,
        }
    }

    /// Returns whether the document breaks a limit.
    pub fn is_excess(&self) -> bool {
        matches!(self, Self::Room(error) if error.is_excess())
    }

    /// Returns whether there is no such document.
    pub fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::NoSuchFork { .. } | Self::Room(RoomError::Jupyter(JupyterError::NotFound { .. }))
        )
    }
}
