//! Status of a server: whether it can be used right now.

use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;

use super::{JupyterError, JupyterServer};

/// A health question must be answered well before an operator's probe gives up.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Status of a reachable server.
#[derive(Debug, Clone, Deserialize)]
pub struct ServerStatus {
    pub version: String,
}

impl JupyterServer {
    /// Asks for the version, then with the token for the kernelspecs' sake: `/api` alone answers anybody.
    pub async fn status(&self) -> Result<ServerStatus, JupyterError> {
        let version = self.request(Method::GET, "api").timeout(TIMEOUT);
        let authorised = self.request(Method::GET, "api/status").timeout(TIMEOUT);
        let (version, authorised) = tokio::join!(self.json(version, "api"), self.send(authorised, "api/status"));
        authorised?;
        version
    }
}
