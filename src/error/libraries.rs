//! The kinds of what the libraries under `crates/` report: their errors are written for callers too.

use executor::ExecutionError;
use jupyter_client::{JupyterError, kernel::KernelError};
use live_document::{EditError, RoomError, pool::PoolError};

use super::{ClientError, ErrorKind};

impl ClientError for JupyterError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Credentials { .. }
            | Self::Token { .. }
            | Self::HubToken { .. }
            | Self::Stopped { .. }
            | Self::NotJupyter { .. }
            | Self::NoCollaboration { .. } => ErrorKind::Upstream,
            Self::NotFound { .. } | Self::NoKernel { .. } => ErrorKind::NotFound,
            Self::UnknownKernelspec { .. } => ErrorKind::InvalidArgument,
            Self::TooDeep { .. } | Self::TooLarge { .. } | Self::LargeDocument { .. } => ErrorKind::Limit,
            Self::Exists { .. } => ErrorKind::Conflict,
            Self::Refused { status, .. } => match status {
                0..500 => ErrorKind::InvalidArgument,
                _ => ErrorKind::Upstream,
            },
        }
    }
}

impl ClientError for KernelError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Jupyter(error) => error.kind(),
            Self::TooLarge { .. } => ErrorKind::InvalidArgument,
            Self::Reconnecting { .. } | Self::Closed { .. } => ErrorKind::Upstream,
        }
    }
}

impl ClientError for RoomError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Jupyter(error) => error.kind(),
            Self::WriteProtected { .. } => ErrorKind::Forbidden,
            Self::Edit(EditError::Stale { .. } | EditError::Refused(_) | EditError::UnknownRevision { .. })
            | Self::Lost { .. } => ErrorKind::Conflict,
            Self::NoFile { .. } | Self::Edit(_) => ErrorKind::InvalidArgument,
            Self::Closed { .. } | Self::Reconnecting { .. } | Self::Refused { .. } | Self::NotSaved { .. } => {
                ErrorKind::Upstream
            }
            Self::Busy { .. } | Self::Excess { .. } => ErrorKind::Limit,
        }
    }
}

impl ClientError for PoolError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Room(error) => error.kind(),
            Self::Full { .. } => ErrorKind::Limit,
            Self::NoSuchFork { .. } => ErrorKind::NotFound,
            Self::ForksUnavailable { .. } | Self::NoForks => ErrorKind::Upstream,
        }
    }
}

impl ClientError for ExecutionError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Jupyter(error) => error.kind(),
            Self::Kernel(error) => error.kind(),
            Self::Document(error) => error.kind(),
            Self::Limit { .. } | Self::Waiting { .. } => ErrorKind::Limit,
            Self::Unknown { .. } => ErrorKind::NotFound,
            Self::NoQuestion { .. } => ErrorKind::Conflict,
            Self::Store { .. } => ErrorKind::Upstream,
        }
    }
}
