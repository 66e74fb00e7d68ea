//! Errors of resources.

use executor::ExecutionError;
use jupyter_client::JupyterError;
use live_document::RoomError;

use crate::{
    auth::AccessError,
    error::{ClientError, ErrorKind},
    history::HistoryError,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    #[error(
        "Unknown resource: {uri}; addresses start with notebook://, file:///notebooks/, file:///documents/ or skill://, see resources/templates/list"
    )]
    Foreign { uri: String },
    #[error(
        "Unknown resource: {uri}; there are notebook://list, notebook://current, notebook://activity, notebook://templates/{{name}}, \
         notebook://{{session_id}}/{{notebook_id}}, alone or with /srcmd, /json, /cells, /cells/{{cell_id}}, \
         /cells/{{cell_id}}/outputs/{{number}}, /executions/{{execution_id}}, /history, /history/{{version_id}} or \
         /diff/{{from}}..{{to}}, and file:///notebooks/{{session_id}}/ with notebook.src.md, notebook.ipynb or \
         cells/{{filename}}, and file:///documents/{{server}}/{{path}}"
    )]
    Unknown { uri: String },
    #[error(
        "Unknown format: {format}; allowed: srcmd, json, cells, cells/{{cell_id}}, cells/{{cell_id}}/outputs/{{number}}, executions/{{execution_id}}, \
         history, history/{{version_id}}, diff/{{from}}..{{to}}"
    )]
    Format { format: String },
    #[error("{what} not found; {hint}")]
    NotFound { what: &'static str, hint: &'static str },
    #[error("No notebook for current session; reading one, e.g. with read_nb_cells, makes it the current one")]
    NoCurrent,
    #[error("unknown cursor; list again without it")]
    Cursor,
    #[error("{path:?} has {megabytes} MB, and at most {limit} MB can be read; code that runs can read all of it")]
    Large { path: String, megabytes: u64, limit: u64 },
    #[error(transparent)]
    Jupyter(#[from] JupyterError),
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl ResourceError {
    pub(super) const NOTEBOOK: Self = Self::NotFound {
        what: "Notebook",
        hint: "it may have been closed; notebook://list shows open notebooks, and using one with a tool opens it",
    };
    pub(super) const DOCUMENT: Self = Self::NotFound {
        what: "Document",
        hint: "list_documents shows those that you may read",
    };
    pub(super) const WATCHED_DOCUMENT: Self = Self::NotFound {
        what: "Document to watch",
        hint: "only open notebooks can be watched",
    };
    pub(super) const CELL: Self = Self::NotFound {
        what: "Cell",
        hint: "the notebook's /cells shows their ids",
    };
    pub(super) const OUTPUT: Self = Self::NotFound {
        what: "Output",
        hint: "the first output of a cell is 0; the notebook's /cells shows them",
    };
    pub(super) const EXECUTION: Self = Self::NotFound {
        what: "Execution",
        hint: "list_executions shows yours",
    };
    pub(super) const WATCHED_EXECUTION: Self = Self::NotFound {
        what: "Execution to watch",
        hint: "watch its notebook, which changes while cells run",
    };
    pub(super) const SKILL: Self = Self::NotFound {
        what: "Skill",
        hint: "resources/list shows the skills",
    };
    pub(super) const TEMPLATE: Self = Self::NotFound {
        what: "Template",
        hint: "resources/list shows the templates",
    };
}

impl ClientError for ResourceError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Foreign { .. } | Self::Format { .. } | Self::Cursor => ErrorKind::InvalidArgument,
            Self::Unknown { .. } | Self::NotFound { .. } | Self::NoCurrent => ErrorKind::NotFound,
            Self::Large { .. } => ErrorKind::Limit,
            Self::Jupyter(error) => error.kind(),
            Self::Access(_) => ErrorKind::Forbidden,
            Self::Room(error) => error.kind(),
            Self::Execution(error) => error.kind(),
            Self::History(error) => error.kind(),
        }
    }
}
