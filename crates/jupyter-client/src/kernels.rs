//! Kernels as processes: started, interrupted, restarted, shut down.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use super::{JupyterError, JupyterServer};
use crate::{DocPath, Starter};

/// Jupyter answers only when a kernel has started, which takes its time where many do at once. To give up earlier
/// would leave behind a kernel that nobody asked for any more.
const KERNEL_START_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RunningKernel {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub execution_state: String,
    /// Number of connected clients, where the server says so. Jupyter counts below zero when it sees one leave twice.
    #[serde(default)]
    pub connections: Option<i64>,
    /// As Jupyter spells the time.
    #[serde(default)]
    pub last_activity: Option<String>,
}

impl JupyterServer {
    /// Starts a kernel that belongs to no notebook; without a name it is the server's default, without a
    /// directory it runs in the server's root.
    pub async fn start_kernel(
        &self,
        name: Option<&str>,
        directory: Option<&DocPath>,
    ) -> Result<RunningKernel, JupyterError> {
        let mut body = json!({ "path": directory.map_or("", DocPath::as_str) });
        if let Some(name) = name {
            body["name"] = name.into();
        }
        let request = self.patient(self.request(Method::POST, "api/kernels").json(&body));
        match self.start(request, "api/kernels").await {
            Err(error) => Err(self.explain_start(error, name).await),
            started => started,
        }
    }

    pub async fn kernels(&self) -> Result<Vec<RunningKernel>, JupyterError> {
        self.json(self.request(Method::GET, "api/kernels"), "api/kernels").await
    }

    /// A kernel by its id, if it exists.
    pub async fn kernel(&self, id: &str) -> Result<Option<RunningKernel>, JupyterError> {
        let request = self.request(Method::GET, &format!("api/kernels/{id}"));
        match self.json(request, id).await {
            Ok(kernel) => Ok(Some(kernel)),
            Err(JupyterError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn interrupt_kernel(&self, id: &str) -> Result<(), JupyterError> {
        let request = self.request(Method::POST, &format!("api/kernels/{id}/interrupt"));
        let answer = self.send(request, id).await;
        answer.map(drop).map_err(|error| self.name_kernel(error, id))
    }

    /// Restarts a kernel, which keeps its id, and waits until it answers.
    pub async fn restart_kernel(&self, id: &str) -> Result<RunningKernel, JupyterError> {
        let request = self.patient(self.request(Method::POST, &format!("api/kernels/{id}/restart")));
        let answer = self.json(request, id).await;
        answer.map_err(|error| self.name_kernel(error, id))
    }

    /// Ends a kernel. One that does not exist is ended already.
    pub async fn shutdown_kernel(&self, id: &str) -> Result<(), JupyterError> {
        let request = self.request(Method::DELETE, &format!("api/kernels/{id}"));
        match self.send(request, id).await {
            Ok(_) | Err(JupyterError::NotFound { .. }) => {
                self.kernel_starts.on_shut_down(id);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Notes for whom the gateway started a kernel; none if it did not.
    pub fn record_starter(&self, kernel_id: &str, starter: &Starter) {
        self.kernel_starts.record_starter(kernel_id, starter);
    }

    /// The one for whom the gateway started a kernel, if it did so since its own start.
    pub fn starter_of(&self, kernel_id: &str) -> Option<Starter> {
        self.kernel_starts.starter_of(kernel_id)
    }

    /// Sends a request that starts a kernel, when another one may be started.
    pub(super) async fn start<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        what: &str,
    ) -> Result<T, JupyterError> {
        let _permit = self.kernel_starts.permit().await;
        self.json(request, what).await
    }

    /// A request that starts a kernel.
    pub(super) fn patient(&self, request: RequestBuilder) -> RequestBuilder {
        request.timeout(self.kernel_timeout())
    }

    /// Time limit of what waits for a kernel that starts, as the opening of its socket does.
    pub(super) fn kernel_timeout(&self) -> Duration {
        KERNEL_START_TIMEOUT.max(self.request_timeout())
    }

    pub(super) fn no_kernel(&self, id: &str) -> JupyterError {
        JupyterError::NoKernel {
            server: self.name().to_owned(),
            kernel: id.to_owned(),
        }
    }

    /// Makes of something that was not found the kernel that it is.
    pub(super) fn name_kernel(&self, error: JupyterError, id: &str) -> JupyterError {
        match error {
            JupyterError::NotFound { .. } => self.no_kernel(id),
            error => error,
        }
    }

    /// A kernel that cannot be started may be one that the server does not have; it says so in several ways.
    pub(super) async fn explain_start(&self, error: JupyterError, name: Option<&str>) -> JupyterError {
        let (JupyterError::Refused { .. } | JupyterError::NotJupyter { .. }, Some(name)) = (&error, name) else {
            return error;
        };
        match self.kernelspecs().await {
            Ok(specs) if specs.iter().all(|spec| spec.name != name) => {
                let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
                JupyterError::UnknownKernelspec {
                    server: self.name().to_owned(),
                    name: name.to_owned(),
                    available: names.join(", "),
                }
            }
            _ => error,
        }
    }
}
