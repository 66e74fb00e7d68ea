//! The way into live-editing rooms, as far as it goes over REST.

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::{JupyterError, JupyterServer, RoomKind};
use crate::DocPath;

/// The ids that a client needs to enter a room.
#[derive(Debug, Clone, Deserialize)]
pub struct DocumentSession {
    #[serde(rename = "fileId")]
    pub file_id: String,
    #[serde(rename = "sessionId")]
    pub session_id: String,
}

impl JupyterServer {
    /// Asks for a document's room. A file that does not exist gets one too; it fails when entered.
    pub async fn document_session(&self, path: &DocPath, kind: RoomKind) -> Result<DocumentSession, JupyterError> {
        let request = self
            .request(
                Method::PUT,
                &format!("api/collaboration/session/{}", path.to_url_path()),
            )
            .json(&json!({ "format": kind.format(), "type": kind.file_type() }));
        match self.json(request, path.as_str()).await {
            // The address is unknown to a server without the extension, as a page or as JSON.
            Err(
                JupyterError::NotFound { server, .. }
                | JupyterError::NotJupyter {
                    server, status: 404, ..
                },
            ) => Err(JupyterError::NoCollaboration { server }),
            answer => answer,
        }
    }

    /// Returns whether the server keeps a timeline of documents, as jupyter-collaboration does since its version 3. Asking for one
    /// would make the server read all of it; a method that no timeline has tells as well.
    pub async fn has_timeline(&self) -> bool {
        let request = self.request(Method::HEAD, "api/collaboration/timeline/-");
        let answer = request.send().await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::METHOD_NOT_ALLOWED)
    }

    /// The id of a file, if the server has given it one.
    pub async fn file_id_of(&self, path: &DocPath) -> Result<String, JupyterError> {
        let request = self.request(Method::GET, "api/fileid/id");
        let request = request.query(&[("path", path.as_str())]);
        let found: FileId = self.json(request, path.as_str()).await?;
        Ok(found.id)
    }

    /// The path of a file; it keeps its id when it is renamed and loses it when it is deleted.
    pub async fn path_of_file(&self, file_id: &str, subject: &str) -> Result<DocPath, JupyterError> {
        let request = self.request(Method::GET, "api/fileid/path").query(&[("id", file_id)]);
        let gone = || JupyterError::NotFound {
            server: self.name().to_owned(),
            path: subject.to_owned(),
        };
        match self.json::<FilePath>(request, subject).await {
            Ok(found) => DocPath::parse(&found.path).map_err(|_| gone()),
            // This part of Jupyter says so on a web page.
            Err(JupyterError::NotJupyter { status: 404, .. }) => Err(gone()),
            Err(error) => Err(error),
        }
    }
}

#[derive(Deserialize)]
struct FilePath {
    path: String,
}

#[derive(Deserialize)]
struct FileId {
    id: String,
}
