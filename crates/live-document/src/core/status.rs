//! The states of a room, and what may go wrong in one.

use jupyter_client::JupyterError;

use super::EditError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomStatus {
    Connected,
    Reconnecting,
    /// The room is over, and why.
    Disconnected(RoomError),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoomError {
    #[error(transparent)]
    Jupyter(#[from] JupyterError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("{path:?} was closed in the gateway; try again to reopen it")]
    Closed { path: String },
    #[error(
        "the connection to {path:?} on Jupyter server `{server}` is down and being restored; nothing was changed, try again in a moment"
    )]
    Reconnecting { server: String, path: String },
    #[error(
        "Jupyter server `{server}` lost this edit of {path:?} when it restarted, and somebody has changed the same place since; read it again and repeat the edit"
    )]
    Lost { server: String, path: String },
    #[error(
        "Jupyter server `{server}` cannot write {path:?}: the file is read-only, and nothing was changed; copy it with copy_document and edit the copy"
    )]
    WriteProtected { server: String, path: String },
    #[error(
        "Jupyter server `{server}` did not write {path:?}, and does not say why; its log does: the disk may be full, or the file gone"
    )]
    NotSaved { server: String, path: String },
    #[error(
        "this is a fork of {path:?}, which has no file to be saved; merge_document_fork takes it over into the document"
    )]
    NoFile { path: String },
    #[error("Jupyter server `{server}` cannot open {path:?}: {why}")]
    Refused { server: String, path: String, why: String },
    #[error(
        "{path:?} on Jupyter server `{server}` breaks a limit of the gateway and was closed: {why}; repair it in JupyterLab, or replace the whole content of the file"
    )]
    Excess { server: String, path: String, why: String },
    #[error("too many edits of {path:?} wait for Jupyter server `{server}`; try again in a moment")]
    Busy { server: String, path: String },
}

impl RoomError {
    /// Returns whether the document breaks a limit, so that it cannot be opened until somebody changes it.
    pub fn is_excess(&self) -> bool {
        matches!(
            self,
            Self::Excess { .. }
                | Self::Jupyter(
                    JupyterError::LargeDocument { .. } | JupyterError::TooDeep { .. } | JupyterError::TooLarge { .. }
                )
        )
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Jupyter(error) => error.is_transient(),
            Self::Closed { .. } | Self::Reconnecting { .. } | Self::Busy { .. } => true,
            Self::Edit(_)
            | Self::Lost { .. }
            | Self::WriteProtected { .. }
            | Self::NotSaved { .. }
            | Self::NoFile { .. }
            | Self::Refused { .. }
            | Self::Excess { .. } => false,
        }
    }
}
