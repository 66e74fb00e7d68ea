//! What can be learned of live-editing rooms over REST, without joining one.

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::{JupyterError, JupyterServer, room::RoomKind};
use crate::types::DocPath;

#[derive(Deserialize)]
struct FileId {
    id: String,
}

/// What a client needs to enter a room.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct DocumentSession {
    #[serde(rename = "fileId")]
    pub(crate) file_id: String,
    #[serde(rename = "sessionId")]
    pub(crate) session_id: String,
}

impl JupyterServer {
    /// Asks for a document's room. A file that does not exist gets one too; it fails when entered.
    pub(super) async fn document_session(&self, path: &DocPath, kind: RoomKind) -> Result<DocumentSession, JupyterError> {
        let request = self
            .request(Method::PUT, &format!("api/collaboration/session/{}", path.to_url_path()))
            .json(&json!({ "format": kind.format(), "type": kind.file_type() }));
        match self.json(request, path.as_str()).await {
            // The address is unknown to a server without the extension, as a page or as JSON.
            Err(JupyterError::NotFound { server, .. } | JupyterError::NotJupyter { server, status: 404, .. }) => {
                Err(JupyterError::NoCollaboration { server })
            }
            answer => answer,
        }
    }

    /// Whether somebody has the document open for live editing, or had it a minute ago.
    ///
    /// There is no endpoint that says so. Asking for a fork with a malformed body does: the server
    /// looks the room up first (404 if there is none) and only then reads the body (400), so nothing
    /// is made. Servers without collaboration, or older than its forks, have nothing to ask.
    pub async fn is_open_in_room(&self, path: &DocPath) -> Result<bool, JupyterError> {
        let Some(file_id) = self.file_id(path).await? else {
            return Ok(false);
        };
        let kinds: &[&str] = match path.is_notebook() {
            true => &["json:notebook", "text:file"],
            false => &["text:file"],
        };
        for kind in kinds {
            let probe = self
                .request(Method::PUT, &format!("api/collaboration/fork/{kind}:{file_id}"))
                .body("{");
            if self.answer(probe).await?.status() == StatusCode::BAD_REQUEST {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn file_id(&self, path: &DocPath) -> Result<Option<String>, JupyterError> {
        let request = self
            .request(Method::GET, "api/fileid/id")
            .query(&[("path", path.as_str())]);
        let response = self.answer(request).await?;
        if !response.status().is_success() {
            return Ok(None);
        }
        Ok(response.json::<FileId>().await.ok().map(|file| file.id))
    }
}
