//! Files of any kind by their path, which are what tools for text and notebooks cannot show.

use jupyter_client::{Content, DocPath, DocumentKind, JupyterError};
use live_document::RoomKind;
use serde_json::Map;

use super::{
    Body, ResourceError, View,
    read::{ReadBody, named},
};
use crate::types::MAX_DOCUMENT_BYTES;

const MEGABYTE: u64 = 1024 * 1024;

impl View {
    /// A file: text as it stands now, anything else as bytes. What must not be seen does not exist.
    pub(super) async fn read_document(&self, server: &str, path: &str) -> Result<ReadBody, ResourceError> {
        let server = self.servers.iter().find(|known| known.name() == server);
        let (Some(server), Ok(path)) = (server, DocPath::parse_file(path)) else {
            return Err(ResourceError::DOCUMENT);
        };
        if !self.sees(server.name(), &path) {
            return Err(ResourceError::DOCUMENT);
        }
        let document = match server.document(&path).await {
            Err(JupyterError::NotFound { .. }) => return Err(ResourceError::DOCUMENT),
            document => document?,
        };
        let size = document.size.unwrap_or_default();
        match document.kind {
            DocumentKind::Directory => return Err(ResourceError::DOCUMENT),
            _ if size > MAX_DOCUMENT_BYTES => {
                return Err(ResourceError::Large {
                    path: path.to_string(),
                    megabytes: size.div_ceil(MEGABYTE),
                    limit: MAX_DOCUMENT_BYTES / MEGABYTE,
                });
            }
            // They have addresses of their own.
            DocumentKind::Notebook => return Err(ResourceError::NOTEBOOK),
            DocumentKind::File => {}
        }
        let mime = document.mimetype.clone();
        let metadata = named(&document.name, &format!("{path} on {}", server.name()), Map::new());
        // What people and agents typed last is in the room and not yet in the file.
        let open = self.pool.lease_open(server.name(), &path, RoomKind::Text);
        if let Some(room) = open {
            let (_, text) = room.text();
            return Ok((
                mime.unwrap_or_else(|| "text/plain".to_owned()),
                Body::Text(text),
                metadata,
            ));
        }
        let (default, body) = match server.document_with_content(&path).await?.into_content() {
            Content::Binary(base64) => ("application/octet-stream", Body::Blob(base64)),
            Content::Text(text) => ("text/plain", Body::Text(text)),
            Content::Notebook(_) | Content::Directory(_) => return Err(ResourceError::DOCUMENT),
        };
        Ok((mime.unwrap_or_else(|| default.to_owned()), body, metadata))
    }
}
