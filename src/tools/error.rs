//! Errors of tools: a kind for the dashboards and a sentence for the model, which says what to do next.

use executor::ExecutionError;
use jupyter_client::{JupyterError, PathError, UnknownServer, UrlError, counted};
use live_document::{EditError, RoomError, pool::PoolError};

use super::{call::Unanswered, kernel::InspectError};
use crate::{
    audit::Unauditable,
    auth::AccessError,
    error::{ClientError, ErrorKind},
    forks::ForkError,
    history::HistoryError,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    #[error("argument `{argument}`: {why}")]
    Argument { argument: String, why: String },
    #[error("unknown argument `{argument}`; {advice}")]
    UnknownArgument { argument: String, advice: String },
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("{0}; nothing was changed; exec=false makes the change without executing")]
    NoExec(AccessError),
    #[error(transparent)]
    Server(#[from] UnknownServer),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Jupyter(#[from] JupyterError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(
        "{} running or waiting in {path:?}; wait with get_execution, or use cancel_execution first",
        counted(*.count, "execution")
    )]
    Executing { path: String, count: usize },
    #[error("{path:?} was renamed to {to:?} on Jupyter server `{server}`; use that path")]
    Renamed { server: String, path: String, to: String },
    #[error("{why}; open now: {open}")]
    Full { why: PoolError, open: String },
    #[error("the notebook of execution {id:?} was moved out of your path rules; its outputs cannot be shown")]
    MovedAway { id: String },
    #[error(
        "execution {id:?} is run by another gateway behind the same address, which this call did not reach; nothing was changed. Make the same call again"
    )]
    RunElsewhere { id: String },
    #[error(transparent)]
    Fork(ForkError),
    #[error(
        "{what}: your edits are under review and go to a fork that a person merges, which this cannot; nothing was changed. Propose it to the person, or edit the document instead"
    )]
    Reviewed { what: String },
    #[error("nothing says who may use this tool, so nobody may; tell an operator")]
    NoRules,
    #[error("{}", .0.message)]
    Unanswered(Box<Unanswered>),
    #[error(
        "{by} did not allow this (rule {rules}): nothing was run and nothing was changed. Do not try it in another way; ask the person what they want instead"
    )]
    NotApproved { by: String, rules: String },
    #[error(
        "the edit was made and nothing was run: others typed there meanwhile, so that the code is not what the person allowed; read the cell, and execute it to ask again"
    )]
    NotAsAllowed,
    #[error("only servers of a JupyterHub can be started, and you did not log in with one")]
    NoHub,
    #[error(transparent)]
    Unauditable(#[from] Unauditable),
    #[error("the gateway is shutting down; try again when it is back")]
    Stopping,
    /// Another failure, in the words for one caller.
    #[error("{message}")]
    Advised { message: String, kind: ErrorKind },
}

impl ToolError {
    pub(super) fn argument(argument: &str, why: impl Into<String>) -> Self {
        Self::Argument {
            argument: argument.to_owned(),
            why: why.into(),
        }
    }
}

impl ToolError {
    /// The rule that forbids the call, if it failed for that.
    pub fn denied_by(&self) -> Option<&'static str> {
        match self {
            Self::Access(error) | Self::NoExec(error) => Some(error.rule()),
            Self::MovedAway { .. } => Some("paths"),
            Self::Reviewed { .. } => Some("review"),
            Self::NoRules => Some("unknown"),
            Self::Unanswered(_) | Self::NotApproved { .. } | Self::NotAsAllowed => Some("approvals"),
            Self::Unauditable(_) => Some(Unauditable::RULE),
            _ => None,
        }
    }
}

impl From<ForkError> for ToolError {
    fn from(error: ForkError) -> Self {
        match error {
            ForkError::Pool(error) => Self::Pool(error),
            ForkError::Room(error) => Self::Room(error),
            ForkError::Jupyter(error) => Self::Jupyter(error),
            error => Self::Fork(error),
        }
    }
}

impl From<EditError> for ToolError {
    fn from(error: EditError) -> Self {
        Self::Room(error.into())
    }
}

impl ClientError for ToolError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Argument { .. }
            | Self::UnknownArgument { .. }
            | Self::Path(_)
            | Self::Server(_)
            | Self::Url(_)
            | Self::NoHub => ErrorKind::InvalidArgument,
            Self::Access(_)
            | Self::NoExec(_)
            | Self::MovedAway { .. }
            | Self::Reviewed { .. }
            | Self::NoRules
            | Self::Unanswered(_)
            | Self::NotApproved { .. }
            | Self::NotAsAllowed => ErrorKind::Forbidden,
            Self::Fork(error) => error.kind(),
            Self::Jupyter(error) => error.kind(),
            Self::Room(error) => error.kind(),
            Self::Renamed { .. } => ErrorKind::NotFound,
            Self::Pool(error) | Self::Full { why: error, .. } => error.kind(),
            Self::Execution(error) => error.kind(),
            Self::Inspect(error) => error.kind(),
            Self::History(error) => error.kind(),
            Self::Unauditable(error) => error.kind(),
            Self::Executing { .. } | Self::RunElsewhere { .. } => ErrorKind::Conflict,
            Self::Stopping => ErrorKind::Upstream,
            Self::Advised { kind, .. } => *kind,
        }
    }
}
