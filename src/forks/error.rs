//! Failures of forks, in sentences that say what to do next.

use jupyter_client::{DocPath, JupyterError, counted};
use live_document::{RoomError, pool::PoolError};

use store::{ForkRecord, StoreError};

use super::{MAX_OF_DOCUMENT, MAX_OF_PRINCIPAL};
use crate::error::{ClientError, ErrorKind};

/// Forks that a failure names.
const MAX_NAMED: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    #[error("there is no fork {fork_id:?} of {path:?}; {known}")]
    Unknown {
        fork_id: String,
        path: String,
        known: String,
    },
    #[error("fork {fork_id:?} was merged or discarded meanwhile; list_document_forks shows those that there are")]
    Gone { fork_id: String },
    #[error("{path:?} has {why}; merge or discard one first: {known}")]
    TooMany { path: String, why: String, known: String },
    #[error("{path:?} is too large for a fork: more than {limit} bytes; work in a copy made with copy_document")]
    TooLarge { path: String, limit: usize },
    #[error(
        "fork {fork_id:?} of {path} was made in JupyterLab, where it is merged or discarded; fork_document makes one to work in"
    )]
    OfPeople { fork_id: String, path: String },
    #[error("what was kept of fork {fork_id:?} cannot be read; discard it with discard_document_fork")]
    Unreadable { fork_id: String },
    #[error("forks cannot be kept now ({why}), and nothing was changed; try again in a moment")]
    Store { why: String },
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error(transparent)]
    Jupyter(#[from] JupyterError),
}

impl ForkError {
    pub(super) fn unknown(fork_id: &str, path: &DocPath, known: &[ForkRecord]) -> Self {
        Self::Unknown {
            fork_id: fork_id.chars().take(100).collect(),
            path: path.to_string(),
            known: match known.is_empty() {
                true => "it has no forks; fork_document makes one".to_owned(),
                false => format!("known: {}", named(known)),
            },
        }
    }

    pub(super) fn too_many(path: &DocPath, known: &[ForkRecord], own: usize) -> Self {
        let why = match own >= MAX_OF_PRINCIPAL {
            true => format!("{} of yours (limit {MAX_OF_PRINCIPAL})", counted(own, "fork")),
            false => format!("{} (limit {MAX_OF_DOCUMENT})", counted(known.len(), "fork")),
        };
        Self::TooMany {
            path: path.to_string(),
            why,
            known: named(known),
        }
    }
}

fn named(forks: &[ForkRecord]) -> String {
    let name = |fork: &ForkRecord| match fork.title.as_deref().unwrap_or_default() {
        "" => format!("{} (by {})", fork.fork_id, fork.author_name),
        title => format!("{} ({title:?} by {})", fork.fork_id, fork.author_name),
    };
    let names: Vec<String> = forks.iter().take(MAX_NAMED).map(name).collect();
    match forks.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

impl From<StoreError> for ForkError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "forks cannot be kept");
        Self::Store { why: error.to_string() }
    }
}

impl ClientError for ForkError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } | Self::Gone { .. } | Self::OfPeople { .. } => ErrorKind::NotFound,
            Self::TooMany { .. } | Self::TooLarge { .. } => ErrorKind::Limit,
            Self::Unreadable { .. } | Self::Store { .. } => ErrorKind::Upstream,
            Self::Pool(error) => error.kind(),
            Self::Room(error) => error.kind(),
            Self::Jupyter(error) => error.kind(),
        }
    }
}
