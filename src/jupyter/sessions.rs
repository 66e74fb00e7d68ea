//! Which kernel a notebook has, by Jupyter's sessions.

use reqwest::Method;
use serde::Deserialize;

use super::{JupyterError, JupyterServer};
use crate::types::DocPath;

#[derive(Debug, Clone, Deserialize)]
pub struct RunningKernel {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub execution_state: String,
}

#[derive(Deserialize)]
struct KernelSession {
    path: String,
    kernel: Option<RunningKernel>,
}

impl JupyterServer {
    /// The kernel that runs for a document, if one does. Starts none.
    pub async fn kernel_of(&self, path: &DocPath) -> Result<Option<RunningKernel>, JupyterError> {
        let sessions: Vec<KernelSession> = self
            .json(self.request(Method::GET, "api/sessions"), "api/sessions")
            .await?;
        let session = sessions
            .into_iter()
            .find(|session| DocPath::parse(&session.path).as_ref() == Ok(path));
        Ok(session.and_then(|session| session.kernel))
    }
}
