//! Binary files, of which text can give only the kind and size.

use jupyter_client::{DocPath, Document, DocumentKind, JupyterServer};

use super::Beginning;
use crate::{
    tools::ToolError,
    types::{MAX_DOCUMENT_BYTES, document_uri},
};

/// Characters that are examined to tell text from binary data.
const MAX_SNIFFED: usize = 64 * 1024;

/// Reason why a file cannot be opened as text, if it is binary.
pub(super) async fn explained(server: &JupyterServer, path: &DocPath) -> Option<ToolError> {
    let file = server.document(path).await.ok()?;
    let is_file = file.kind == DocumentKind::File;
    let is_binary = is_file && Beginning::read(server, path, MAX_SNIFFED).await.ok()?.text.is_none();
    is_binary.then(|| refusal(server.name(), &file))
}

/// Says what a binary file is, and how to read it.
pub(super) fn refusal(server: &str, file: &Document) -> ToolError {
    let mime = file.mimetype.as_deref().unwrap_or("application/octet-stream");
    let size = file.size.unwrap_or_default();
    let how = match size <= MAX_DOCUMENT_BYTES {
        true => format!("read it as resource {}", document_uri(server, &file.path)),
        false => "it is too large to be read here, and code that runs can read it".to_owned(),
    };
    let why = format!(
        "{:?} is a binary file ({mime}, {size} bytes), not text; {how}",
        file.path
    );
    ToolError::argument("path", why)
}
