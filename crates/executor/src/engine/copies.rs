//! Runs of copies of notebooks, each in a kernel of its own that ends with it.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterServer};
use store::ExecutionKind;

use super::{Claim, Engine};
use crate::{Execution, ExecutionError, NotebookCopy, driver::Command};

impl Engine {
    /// Runs a copy of a notebook, which itself stays as it is. A cell that fails is the last.
    pub async fn run_copy(
        &self,
        claim: &Claim,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        copy: NotebookCopy,
    ) -> Result<Arc<Execution>, ExecutionError> {
        let notebook = self.identify(server, path).await;
        let kernel_name = copy.kernel_name.clone();
        let (cells, pending_copy) = copy.into_runs(self.shared.settings.max_output_bytes);
        let mut execution = Execution::new(claim.owner.clone(), server.name(), Some(notebook), cells);
        (execution.kind, execution.kernel_name) = (ExecutionKind::Copy, Some(kernel_name));
        execution.gate.clone_from(&claim.gate);
        execution.lock().pending_copy = pending_copy;
        let execution = self.admit(claim, execution)?;
        // Each has a driver of its own, which is of no use when it has left.
        self.drivers.retain(|_, inbox| !inbox.is_closed());
        let command = Command::Submit(Arc::clone(&execution), None);
        self.submit(server, &execution, command).await;
        Ok(execution)
    }
}
