//! How executing fails before or beside the code that is executed.

use jupyter_client::{JupyterError, kernel::KernelError};
use live_document::pool::PoolError;
use store::StoreError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    #[error(transparent)]
    Jupyter(#[from] JupyterError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Document(PoolError),
    #[error("{limit} executions of your tenant are running, which is its limit: {running}; {advice}")]
    Limit {
        limit: usize,
        running: String,
        advice: &'static str,
    },
    #[error(
        "{what} of yours wait to run, which is the limit: {waiting}; end some with cancel_execution, or wait for them"
    )]
    Waiting { what: String, waiting: String },
    #[error("there is no execution {id:?} of yours; list_executions shows those there are")]
    Unknown { id: String },
    #[error("execution {id:?} does not ask for input at the moment")]
    NoQuestion { id: String },
    #[error("the gateway's store cannot be read: {why}; try again later")]
    Store { why: String },
}

impl ExecutionError {
    /// Whether the same may succeed in a moment.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Jupyter(error) | Self::Kernel(KernelError::Jupyter(error)) => error.may_pass(),
            _ => false,
        }
    }
}

impl From<StoreError> for ExecutionError {
    fn from(error: StoreError) -> Self {
        Self::Store { why: error.to_string() }
    }
}
