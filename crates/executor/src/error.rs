//! Errors of executing, as opposed to errors of the executed code.

use jupyter_client::{JupyterError, counted, kernel::KernelError};
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
    #[error("your tenant is already running {}, its limit: {running}; {advice}", counted(*.limit, "execution"))]
    Limit {
        limit: usize,
        running: String,
        advice: &'static str,
    },
    #[error(
        "you have {what} waiting, which is the limit ({waiting}); wait for them, or end some with cancel_execution"
    )]
    Waiting { what: String, waiting: String },
    #[error("you have no execution {id:?}; list_executions shows yours")]
    Unknown { id: String },
    #[error("execution {id:?} is not asking for input; get_execution shows its state")]
    NoQuestion { id: String },
    #[error("the gateway's store cannot be read: {why}; try again later")]
    Store { why: String },
}

impl ExecutionError {
    /// Returns whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Jupyter(error) | Self::Kernel(KernelError::Jupyter(error)) => error.is_transient(),
            _ => false,
        }
    }
}

impl From<StoreError> for ExecutionError {
    fn from(error: StoreError) -> Self {
        Self::Store { why: error.to_string() }
    }
}
