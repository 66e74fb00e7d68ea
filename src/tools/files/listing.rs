//! `list_documents`: one directory, what the principal may not read left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document_url;
use crate::{
    jupyter::{Document, DocumentKind, JupyterServer},
    tools::{
        Block, Call, ToolError,
        output::{WithBlocks, to_json},
    },
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Directory (default: root)
    path: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Listing {
    documents: Vec<Entry>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    name: String,
    path: String,
    #[serde(rename = "type")]
    kind: DocumentKind,
    created: Option<String>,
    last_modified: Option<String>,
    size: Option<u64>,
    writable: bool,
    url: String,
}

pub(super) async fn list_documents(call: Call, arguments: Arguments) -> Result<WithBlocks<Listing>, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let directory = call.directory(arguments.path.as_deref())?;
    let entries = server.list_directory(&directory).await?;
    let mut documents: Vec<Entry> = entries
        .into_iter()
        .filter(|document| call.sees(&document.path, document.kind == DocumentKind::Directory))
        .map(|document| entry(server, document))
        .collect();
    documents.sort_by(|a, b| a.name.cmp(&b.name));
    // The text is a bare array, as the tool has always answered; structured content must be an object.
    let text = to_json(&documents).to_string();
    Ok(WithBlocks {
        value: Listing { documents },
        blocks: vec![Block::Text(text)],
    })
}

fn entry(server: &JupyterServer, document: Document) -> Entry {
    Entry {
        url: document_url(server, &document),
        name: document.name,
        path: document.path,
        kind: document.kind,
        created: document.created,
        last_modified: document.last_modified,
        size: document.size,
        writable: document.writable,
    }
}
