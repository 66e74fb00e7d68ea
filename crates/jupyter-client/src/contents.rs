//! Jupyter's contents API: documents and directories by path.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant, SystemTime},
};

use dashmap::DashSet;
use futures::{StreamExt, stream};
use reqwest::{Method, RequestBuilder, header::RANGE};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    JupyterError, JupyterServer, RoomKind,
    limits::{MAX_CONTENT_BYTES, MAX_DOCUMENT_BYTES},
};
use crate::DocPath;

/// Number of directories of one server that are read at once while a tree is walked.
const PARALLEL_LISTINGS: usize = 8;
/// Waits before a notebook is read again that could not be read as one: Jupyter empties the file when it begins to save it.
const UNTIL_WRITTEN: [Duration; 3] = [
    Duration::from_millis(50),
    Duration::from_millis(150),
    Duration::from_millis(400),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    Notebook,
    File,
    Directory,
}

/// A document as Jupyter describes it, with or without its content.
#[derive(Debug, Clone, Deserialize)]
pub struct Document {
    pub name: String,
    pub path: String,
    #[serde(rename = "type")]
    pub kind: DocumentKind,
    pub created: Option<String>,
    pub last_modified: Option<String>,
    pub size: Option<u64>,
    #[serde(default)]
    pub writable: bool,
    pub mimetype: Option<String>,
    pub format: Option<String>,
    /// Present only if it was asked for.
    #[serde(default)]
    pub hash: Option<String>,
    #[serde(default)]
    content: Value,
}

/// The content of a document, by what can be done with it.
#[derive(Debug, Clone)]
pub enum Content {
    Text(String),
    Notebook(Value),
    /// Base64, as Jupyter sends what is not text.
    Binary(String),
    Directory(Vec<Document>),
}

/// Content to be written to a path.
#[derive(Debug, Clone)]
pub enum NewDocument {
    Notebook(Value),
    Text(String),
    Base64(String),
    Directory,
}

impl Document {
    /// The time at which it was last written, if Jupyter gives it in a known form.
    pub fn written(&self) -> Option<SystemTime> {
        humantime::parse_rfc3339_weak(self.last_modified.as_deref()?).ok()
    }

    /// Returns whether it is too large to be handled as a whole, live or not.
    pub fn is_large(&self) -> bool {
        self.kind != DocumentKind::Directory && self.size.is_some_and(|size| size > MAX_DOCUMENT_BYTES)
    }

    /// Refuses one that is too large to be handled as a whole.
    pub fn require_size(&self, server: &str) -> Result<(), JupyterError> {
        const MEGABYTE: u64 = 1024 * 1024;
        match self.is_large() {
            true => Err(JupyterError::LargeDocument {
                server: server.to_owned(),
                path: self.path.clone(),
                megabytes: self.size.unwrap_or_default() / MEGABYTE,
                limit: MAX_DOCUMENT_BYTES / MEGABYTE,
            }),
            false => Ok(()),
        }
    }

    pub fn into_content(self) -> Content {
        match (self.kind, self.content) {
            (DocumentKind::Notebook, notebook) => Content::Notebook(notebook),
            (DocumentKind::Directory, entries) => {
                Content::Directory(serde_json::from_value(entries).unwrap_or_default())
            }
            (DocumentKind::File, Value::String(mut text)) if self.format.as_deref() == Some("base64") => {
                // Jupyter breaks base64 into lines, as mail does.
                text.retain(|character| !character.is_ascii_whitespace());
                Content::Binary(text)
            }
            (DocumentKind::File, Value::String(text)) => Content::Text(text),
            (DocumentKind::File, other) => Content::Text(other.to_string()),
        }
    }
}

impl JupyterServer {
    /// A document without its content.
    pub async fn document(&self, path: &DocPath) -> Result<Document, JupyterError> {
        self.get_contents(path, &[("content", "0")]).await
    }

    /// A document without its content, but with the hash of its file.
    pub async fn document_with_hash(&self, path: &DocPath) -> Result<Document, JupyterError> {
        self.get_contents(path, &[("content", "0"), ("hash", "1")]).await
    }

    /// A document with its content, unless it is too large to be handled as a whole.
    pub async fn document_with_content(&self, path: &DocPath) -> Result<Document, JupyterError> {
        self.document(path).await?.require_size(self.name())?;
        let mut waits = UNTIL_WRITTEN.iter();
        loop {
            let read = self.get_contents(path, &[("content", "1")]).await;
            match (&read, waits.next()) {
                (Err(error), Some(wait)) if is_half_written(error) => sleep(*wait).await,
                _ => return read,
            }
        }
    }

    /// The first bytes of a file of any size, as many as are asked for or as it has.
    pub async fn beginning(&self, path: &DocPath, bytes: usize) -> Result<Vec<u8>, JupyterError> {
        let request = self
            .request(Method::GET, &format!("files/{}", path.to_url_path()))
            .header(RANGE, format!("bytes=0-{}", bytes.saturating_sub(1)));
        let mut beginning = Vec::new();
        // A server that does not know of ranges sends all of it, which is then given up.
        let take = |chunk: &[u8]| {
            beginning.extend_from_slice(chunk);
            match beginning.len() < bytes {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        self.take_chunks(request, path, take).await?;
        beginning.truncate(bytes);
        Ok(beginning)
    }

    /// Gives a file of any size piece by piece to `take`, until that has enough or the file ends. Returns whether it ended.
    pub async fn read_through(
        &self,
        path: &DocPath,
        within: Duration,
        take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<bool, JupyterError> {
        let request = self.request(Method::GET, &format!("files/{}", path.to_url_path()));
        self.take_chunks(request.timeout(within), path, take).await
    }

    async fn take_chunks(
        &self,
        request: RequestBuilder,
        path: &DocPath,
        mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<bool, JupyterError> {
        let started = Instant::now();
        let mut response = self.send(request, path.as_str()).await?;
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.transport_error(&error, started))?
        {
            if take(&chunk).is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The entries of a directory; a file is an error that says so.
    pub async fn list_directory(&self, path: &DocPath) -> Result<Vec<Document>, JupyterError> {
        let directory = self
            .get_contents(path, &[("content", "1"), ("type", "directory")])
            .await?;
        match directory.into_content() {
            Content::Directory(entries) => Ok(entries),
            _ => Err(self.refused(400, format!("{path:?} is not a directory"))),
        }
    }

    /// The entries of several directories, read side by side, in the order asked for.
    pub async fn list_directories(&self, paths: Vec<DocPath>) -> Vec<(DocPath, Result<Vec<Document>, JupyterError>)> {
        let listing = |path: DocPath| async move {
            let entries = self.list_directory(&path).await;
            (path, entries)
        };
        stream::iter(paths)
            .map(listing)
            .buffered(PARALLEL_LISTINGS)
            .collect()
            .await
    }

    pub async fn exists(&self, path: &DocPath) -> Result<bool, JupyterError> {
        match self.document(path).await {
            Ok(_) => Ok(true),
            Err(JupyterError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes a new document. Jupyter itself would silently replace one that exists, or that another call is about to make.
    pub async fn create(&self, path: &DocPath, document: NewDocument) -> Result<Document, JupyterError> {
        let exists = || JupyterError::Exists {
            server: self.name().to_owned(),
            path: path.to_string(),
        };
        let _claim = self.creations.claim(path).ok_or_else(exists)?;
        if self.exists(path).await? {
            return Err(exists());
        }
        self.check_parent(path).await?;
        self.write(path, document).await
    }

    async fn check_parent(&self, path: &DocPath) -> Result<(), JupyterError> {
        let parent = path.parent();
        match self.exists(&parent).await? {
            true => Ok(()),
            false => Err(self.refused(
                404,
                format!("directory {parent:?} does not exist; make it first with create_document(type=\"directory\")"),
            )),
        }
    }

    pub async fn delete(&self, path: &DocPath) -> Result<(), JupyterError> {
        let request = self.request(Method::DELETE, &contents_url(path));
        self.send_no_content(request, path.as_str()).await
    }

    pub async fn rename(&self, from: &DocPath, to: &DocPath) -> Result<(), JupyterError> {
        // When a directory without an id of its own is renamed, Jupyter loses track of what is open below
        // it; asking for a session gives it one. Servers without live documents have nothing to lose.
        let _ = self.document_session(from, RoomKind::of(from)).await;
        let request = self
            .request(Method::PATCH, &contents_url(from))
            .json(&json!({ "path": to.as_str() }));
        match self.json::<Document>(request, from.as_str()).await {
            // A conflict is about the path that is taken, not the one that moves.
            Err(JupyterError::Exists { server, .. }) => Err(JupyterError::Exists {
                server,
                path: to.to_string(),
            }),
            Err(missing @ JupyterError::NotFound { .. }) => {
                self.check_parent(to).await?;
                Err(missing)
            }
            result => result.map(drop),
        }
    }

    /// Copies a file byte for byte. Jupyter's own copy picks the name itself and rewrites notebooks.
    pub async fn copy(&self, from: &DocPath, to: &DocPath) -> Result<(), JupyterError> {
        let original = self.document(from).await?;
        if original.kind == DocumentKind::Directory {
            return Err(self.refused(400, format!("{from:?} is a directory; copy its files one by one")));
        }
        original.require_size(self.name())?;
        let bytes = self
            .get_contents(from, &[("content", "1"), ("type", "file"), ("format", "base64")])
            .await?;
        match bytes.into_content() {
            Content::Binary(base64) => self.create(to, NewDocument::Base64(base64)).await.map(drop),
            _ => Err(self.refused(500, format!("Jupyter sent no content for {from:?}"))),
        }
    }

    async fn get_contents(&self, path: &DocPath, query: &[(&str, &str)]) -> Result<Document, JupyterError> {
        let request = self.request(Method::GET, &contents_url(path)).query(query);
        self.json_within(MAX_CONTENT_BYTES, request, path.as_str()).await
    }

    /// Writes a file, whatever is there. Never for a document that may be open in a room.
    pub async fn write(&self, path: &DocPath, document: NewDocument) -> Result<Document, JupyterError> {
        let body = match document {
            NewDocument::Notebook(content) => json!({ "type": "notebook", "format": "json", "content": content }),
            NewDocument::Text(content) => json!({ "type": "file", "format": "text", "content": content }),
            NewDocument::Base64(content) => json!({ "type": "file", "format": "base64", "content": content }),
            NewDocument::Directory => json!({ "type": "directory" }),
        };
        let request = self.request(Method::PUT, &contents_url(path)).json(&body);
        self.json(request, path.as_str()).await
    }

    fn refused(&self, status: u16, message: String) -> JupyterError {
        JupyterError::Refused {
            server: self.name().to_owned(),
            status,
            message,
        }
    }
}

/// Paths at which documents are being made.
#[derive(Default)]
pub(crate) struct Creations(DashSet<DocPath>);

/// A path at which a document is being made, free again when dropped.
struct Claim<'a> {
    claims: &'a DashSet<DocPath>,
    path: &'a DocPath,
}

impl Creations {
    /// A path for one who makes a document there, unless another does.
    fn claim<'a>(&'a self, path: &'a DocPath) -> Option<Claim<'a>> {
        let claims = &self.0;
        // Lazily, since one that is made is also dropped.
        claims.insert(path.clone()).then(|| Claim { claims, path })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.remove(self.path);
    }
}

fn contents_url(path: &DocPath) -> String {
    format!("api/contents/{}", path.to_url_path())
}

/// Whether a notebook was perhaps read while it was being written: Jupyter finds it empty, or fails in its own ways.
fn is_half_written(error: &JupyterError) -> bool {
    match error {
        JupyterError::Refused {
            status: 400, message, ..
        } => message.contains("Unreadable Notebook"),
        JupyterError::Refused { status, .. } => *status == 500,
        _ => false,
    }
}
