//! Copies of notebooks that are kept when they have run.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterError, JupyterServer, NewDocument};
use serde_json::Value;

use crate::core::execution::{Execution, Keep};

/// Names that are tried where another will do as well.
const MAX_NAMES: usize = 1000;

/// Writes the copy of an execution to the file where it is to be kept. What stands in the way is told with the end of the
/// execution.
pub(super) async fn keep_copy(server: Arc<JupyterServer>, execution: Arc<Execution>) {
    let Some((keep, notebook)) = execution.take_pending_copy() else {
        return;
    };
    match write_copy(&server, &keep, notebook).await {
        Ok(path) => execution.on_kept(&path),
        Err(error) => execution.add_remark(format!("the copy could not be kept: {error}")),
    }
}

/// Makes a file that does not exist yet.
async fn write_copy(server: &JupyterServer, keep: &Keep, notebook: Value) -> Result<DocPath, JupyterError> {
    let mut path = keep.path.clone();
    for number in 2..=MAX_NAMES {
        match server.create(&path, NewDocument::Notebook(notebook.clone())).await {
            Err(JupyterError::Exists { .. }) if keep.may_be_renamed => path = numbered(&keep.path, number),
            made => return made.map(|_| path),
        }
    }
    let made = server.create(&path, NewDocument::Notebook(notebook)).await;
    made.map(|_| path)
}

/// The path with a number before its ending.
fn numbered(path: &DocPath, number: usize) -> DocPath {
    let name = path.as_str();
    let stem = name.strip_suffix(".ipynb").unwrap_or(name);
    DocPath::parse(&format!("{stem}-{number}.ipynb")).unwrap_or_else(|_| path.clone())
}
