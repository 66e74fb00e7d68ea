//! The kernel of a notebook, by Jupyter's sessions. People in JupyterLab and the gateway share it.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{JupyterError, JupyterServer, RunningKernel};
use crate::DocPath;

const SESSIONS: &str = "api/sessions";
/// The directory in the paths of sessions that belong to no document. None need have this name: Jupyter starts the kernel
/// of a path that does not exist in the nearest directory above it.
const PRIVATE: &str = "jupyter-mcp-gateway";
/// Age up to which a list of sessions is good enough for callers that only double-check.
pub const SESSIONS_FRESH: Duration = Duration::from_secs(1);

/// A notebook, or another document, with its kernel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NotebookSession {
    pub id: String,
    /// As Jupyter spells it.
    pub path: String,
    pub kernel: RunningKernel,
}

impl NotebookSession {
    /// The document's path, if it is one.
    pub fn doc_path(&self) -> Option<DocPath> {
        // JupyterLab marks shared documents of older versions with a drive.
        let spelled = self.path.strip_prefix("RTC:").unwrap_or(&self.path);
        DocPath::parse(spelled).ok()
    }

    /// Returns whether its kernel was started for an agent by a gateway, and not for a document.
    pub fn is_private(&self) -> bool {
        let mut parts = self.path.rsplit('/');
        let (name, directory) = (parts.next().unwrap_or_default(), parts.next());
        let id = name.len().checked_sub(36).and_then(|at| name.get(at..));
        directory == Some(PRIVATE) && id.is_some_and(|id| uuid::Uuid::try_parse(id).is_ok())
    }

    pub fn is_of(&self, path: &DocPath) -> bool {
        self.doc_path().as_ref() == Some(path)
    }
}

impl JupyterServer {
    pub async fn sessions(&self) -> Result<Vec<NotebookSession>, JupyterError> {
        let sessions: Vec<Value> = self.json(self.request(Method::GET, SESSIONS), SESSIONS).await?;
        // A session whose kernel is gone has none for a moment.
        let with_kernel = |session| serde_json::from_value(session).ok();
        Ok(sessions.into_iter().filter_map(with_kernel).collect())
    }

    /// The session of a document. Two are there if JupyterLab and the gateway started one at the same time, for
    /// JupyterLab names the document only afterwards; then people's is the one that counts.
    pub async fn session_of(&self, path: &DocPath) -> Result<Option<NotebookSession>, JupyterError> {
        let sessions = self.sessions().await?;
        let of_path = sessions.into_iter().filter(|session| session.is_of(path));
        Ok(self.best_of(of_path))
    }

    /// The same as of a moment ago. Whoever makes sure that nothing changed shares one look with all others who do,
    /// since it costs Jupyter more the more kernels there are.
    #[expect(
        clippy::await_holding_invalid_type,
        reason = "whoever comes meanwhile waits for this look, and not for one of their own"
    )]
    pub async fn recent_session_of(&self, path: &DocPath) -> Result<Option<NotebookSession>, JupyterError> {
        let mut recent = self.recent_sessions.lock().await;
        let changed = self.kernels_changed().unwrap_or(Duration::MAX);
        let is_fresh = |(looked, _): &(Instant, Vec<NotebookSession>)| looked.elapsed() < SESSIONS_FRESH.min(changed);
        if !recent.as_ref().is_some_and(is_fresh) {
            *recent = Some((Instant::now(), self.sessions().await?));
        }
        let sessions = recent.iter().flat_map(|(_, sessions)| sessions);
        Ok(self.best_of(sessions.filter(|session| session.is_of(path)).cloned()))
    }

    fn best_of(&self, sessions: impl Iterator<Item = NotebookSession>) -> Option<NotebookSession> {
        sessions.min_by_key(|session| self.kernel_starts.is_own(&session.kernel.id))
    }

    /// The kernel that runs for a document, if one does. Starts none.
    pub async fn kernel_of(&self, path: &DocPath) -> Result<Option<RunningKernel>, JupyterError> {
        Ok(self.session_of(path).await?.map(|session| session.kernel))
    }

    /// Adopts the session that a notebook has, or starts one with this kernel, or with the server's
    /// default one, in the notebook's directory.
    pub async fn start_session(
        &self,
        path: &DocPath,
        kernel_name: Option<&str>,
    ) -> Result<NotebookSession, JupyterError> {
        let start = self.adopt_or_start(path, kernel_name);
        self.kernel_starts.session(path, start).await
    }

    async fn adopt_or_start(&self, path: &DocPath, kernel_name: Option<&str>) -> Result<NotebookSession, JupyterError> {
        if let Some(session) = self.session_of(path).await? {
            return Ok(session);
        }
        let kernel = kernel_name.map_or_else(|| json!({}), |name| json!({ "name": name }));
        let body = json!({ "path": path.as_str(), "name": path.name(), "type": "notebook", "kernel": kernel });
        let request = self.patient(self.request(Method::POST, SESSIONS).json(&body));
        let started: NotebookSession = match self.start(request, path.as_str()).await {
            Err(error) => return Err(self.explain_start(error, kernel_name).await),
            Ok(started) => started,
        };
        self.kernel_starts.record_own(&started.kernel.id);
        match self.session_of(path).await {
            Ok(Some(peoples)) if peoples.id != started.id => {
                tracing::info!(%path, "using the kernel that a person started at the same time");
                // Nobody has used the other one yet.
                let _ = self.shutdown_kernel(&started.kernel.id).await;
                Ok(peoples)
            }
            _ => Ok(started),
        }
    }

    /// Starts a kernel that belongs to no document, in a directory, with a session by whose name people find it among what
    /// runs.
    pub async fn start_private_session(
        &self,
        name: &str,
        directory: &DocPath,
        kernel_name: Option<&str>,
    ) -> Result<NotebookSession, JupyterError> {
        let plain: String = name
            .chars()
            .map(|c| if c.is_alphanumeric() || c == '-' { c } else { '_' })
            .collect();
        let slash = if directory.is_root() { "" } else { "/" };
        let path = format!("{directory}{slash}{PRIVATE}/{plain}-{}", uuid::Uuid::new_v4());
        let kernel = kernel_name.map_or_else(|| json!({}), |name| json!({ "name": name }));
        let body = json!({ "path": path, "name": name, "type": "console", "kernel": kernel });
        let request = self.patient(self.request(Method::POST, SESSIONS).json(&body));
        let started: NotebookSession = match self.start(request, SESSIONS).await {
            Err(error) => return Err(self.explain_start(error, kernel_name).await),
            Ok(started) => started,
        };
        self.kernel_starts.record_own(&started.kernel.id);
        Ok(started)
    }

    /// Ends a kernel that the gateway started for a notebook which has another one now, unless somebody uses it.
    pub async fn retire_kernel(&self, kernel_id: &str, path: &DocPath) {
        if !self.kernel_starts.is_own(kernel_id) {
            return;
        }
        match self.shut_down_unused(kernel_id, path).await {
            Ok(true) => {
                tracing::info!(%path, kernel = kernel_id, "shut down the kernel that the notebook had before");
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, %path, "cannot shut down the kernel that the notebook had before"),
        }
    }

    async fn shut_down_unused(&self, kernel_id: &str, path: &DocPath) -> Result<bool, JupyterError> {
        let Some(kernel) = self.kernel(kernel_id).await? else {
            return Ok(false);
        };
        let sessions = self.sessions().await?;
        let is_shared = sessions
            .iter()
            .any(|session| session.kernel.id == kernel_id && !session.is_of(path));
        // One connection is the gateway's own.
        let is_heard = kernel.connections.is_some_and(|connections| connections > 1);
        if is_shared || is_heard || kernel.execution_state == "busy" {
            return Ok(false);
        }
        self.shutdown_kernel(kernel_id).await?;
        Ok(true)
    }

    /// Gives a session a new kernel and ends its old one.
    pub async fn change_kernel(&self, session_id: &str, kernel_name: &str) -> Result<NotebookSession, JupyterError> {
        let body = json!({ "kernel": { "name": kernel_name } });
        let changed = match self.change_session(session_id, &body).await {
            Err(error) => return Err(self.explain_start(error, Some(kernel_name)).await),
            Ok(changed) => changed,
        };
        self.kernel_starts.record_own(&changed.kernel.id);
        Ok(changed)
    }

    /// Ends a session and with it its kernel, as JupyterLab's "Shut Down Kernel" does. One that does not exist is ended
    /// already.
    pub async fn end_session(&self, session: &NotebookSession) -> Result<(), JupyterError> {
        let request = self.request(Method::DELETE, &format!("{SESSIONS}/{}", session.id));
        match self.send(request, &session.id).await {
            Ok(_) | Err(JupyterError::NotFound { .. } | JupyterError::Refused { status: 410, .. }) => {
                self.kernel_starts.on_shut_down(&session.kernel.id);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a kernel that runs the one of a path. The kernel that a session had ends.
    pub async fn bind_kernel(
        &self,
        path: &DocPath,
        session: Option<&NotebookSession>,
        kernel_id: &str,
    ) -> Result<NotebookSession, JupyterError> {
        let kernel = json!({ "id": kernel_id });
        if let Some(session) = session {
            return self.change_session(&session.id, &json!({ "kernel": kernel })).await;
        }
        let kind = if path.is_notebook() { "notebook" } else { "console" };
        let body = json!({ "path": path.as_str(), "name": path.name(), "type": kind, "kernel": kernel });
        let request = self.request(Method::POST, SESSIONS).json(&body);
        self.json(self.patient(request), path.as_str()).await
    }

    /// Tells Jupyter that the notebook of a session has another path now.
    pub async fn rename_session(&self, session_id: &str, path: &DocPath) -> Result<NotebookSession, JupyterError> {
        let body = json!({ "path": path.as_str(), "name": path.name() });
        self.change_session(session_id, &body).await
    }

    async fn change_session(&self, session_id: &str, body: &Value) -> Result<NotebookSession, JupyterError> {
        let request = self.request(Method::PATCH, &format!("{SESSIONS}/{session_id}"));
        self.json(self.patient(request.json(body)), session_id).await
    }
}
