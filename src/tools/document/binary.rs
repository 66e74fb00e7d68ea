//! Binary files, of which only their kind and size can be told as text.

use jupyter_client::{Document, DocumentKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::{BYTES, Beginning, DocumentContent};
use crate::{
    tools::Call,
    types::{MAX_DOCUMENT_BYTES, document_uri},
};

/// Characters that are looked at to tell text from what is none.
const MAX_SNIFFED: usize = 64 * 1024;

#[derive(Serialize, JsonSchema)]
pub(super) struct BinaryFile {
    mimetype: String,
    /// Address of the resource that has its bytes
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
}

/// What there is to say of a file that cannot be opened as text, if it is binary.
pub(super) async fn described(call: &Call, server: Option<&str>, path: &str) -> Option<DocumentContent> {
    let (server, path) = (call.server(server).ok()?, call.file(path).ok()?);
    let file = server.document(&path).await.ok()?;
    let is_file = file.kind == DocumentKind::File;
    let is_binary = is_file && Beginning::read(server, &path, MAX_SNIFFED).await.ok()?.text.is_none();
    is_binary.then(|| content(server.name(), &file))
}

pub(super) fn content(server: &str, file: &Document) -> DocumentContent {
    let mimetype = file
        .mimetype
        .as_deref()
        .unwrap_or("application/octet-stream")
        .to_owned();
    let size = usize::try_from(file.size.unwrap_or_default()).unwrap_or(usize::MAX);
    let is_readable = file.size.unwrap_or_default() <= MAX_DOCUMENT_BYTES;
    let resource = is_readable.then(|| document_uri(server, &file.path));
    let how = match &resource {
        Some(uri) => format!("read it as resource {uri}"),
        None => "it is too large to be read here, and code that runs can read it".to_owned(),
    };
    DocumentContent {
        content: format!("[binary file: {mimetype}, {size} bytes; {how}]"),
        truncated: true,
        content_length: size,
        revision: String::new(),
        content_unit: Some(BYTES),
        people: Vec::new(),
        binary: Some(BinaryFile { mimetype, resource }),
    }
}
