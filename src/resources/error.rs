//! Why a resource cannot be had.

use crate::{
    auth::AccessError,
    error::{ClientError, ErrorKind},
    execution::ExecutionError,
    jupyter::room::RoomError,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    #[error(
        "Unknown resource: {uri}; addresses start with notebook:// or file:///notebooks/, see resources/templates/list"
    )]
    Unknown { uri: String },
    #[error("Unknown format: {format}; allowed: srcmd, json, cells, cells/{{cell_id}}, executions/{{execution_id}}")]
    Format { format: String },
    #[error("{what} not found; {hint}")]
    NotFound { what: &'static str, hint: &'static str },
    #[error("the cursor is not one of this list; start again without it")]
    Cursor,
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
}

impl ResourceError {
    pub(super) const NOTEBOOK: Self = Self::NotFound {
        what: "Notebook",
        hint: "it may have been closed; notebook://list has those that are open, and using one with a tool opens it",
    };
    pub(super) const CURRENT: Self = Self::NotFound {
        what: "No notebook for current session: a notebook in use",
        hint: "use one with a tool, e.g. read_nb_cells, and it is the current one",
    };
    pub(super) const CELL: Self = Self::NotFound {
        what: "Cell",
        hint: "the notebook's /cells has the ids of those it has",
    };
    pub(super) const EXECUTION: Self = Self::NotFound {
        what: "Execution",
        hint: "list_executions shows those there are",
    };
    pub(super) const WATCHED_EXECUTION: Self = Self::NotFound {
        what: "Execution to watch",
        hint: "watch its notebook, which changes while cells run",
    };
    pub(super) const TEMPLATE: Self = Self::NotFound {
        what: "Template",
        hint: "resources/list shows those there are",
    };
}

impl ClientError for ResourceError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } | Self::Format { .. } | Self::Cursor => ErrorKind::InvalidArgument,
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::Access(_) => ErrorKind::Forbidden,
            Self::Room(error) => error.kind(),
            Self::Execution(error) => error.kind(),
        }
    }
}
