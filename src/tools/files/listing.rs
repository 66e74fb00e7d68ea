//! `list_documents`: one directory or, with a filter, the files of a whole tree; what the principal may not read left out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Walk, document_url};
use crate::{
    jupyter::{Document, DocumentKind, JupyterServer, room::RoomKind},
    tools::{
        Block, Call, ToolError,
        output::{WithBlocks, json_text},
    },
    types::{DocPath, Toolset},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Directory (default: root)
    path: Option<String>,
    path_filter: Option<String>,
    /// e.g. markdown
    file_type: Option<String>,
    #[schemars(extend("default" = 50))]
    max_results: Option<usize>,
    server: Option<String>,
}

const DEFAULT_MAX_RESULTS: usize = 50;

#[derive(Serialize, JsonSchema)]
pub(super) struct Listing {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
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
    /// Whether it is open for live editing in this gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    collaborative: Option<bool>,
}

pub(super) async fn list_documents(call: Call, arguments: Arguments) -> Result<WithBlocks<Listing>, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let filters = (&arguments.path_filter, &arguments.file_type, arguments.max_results);
    // Who speaks only the vocabulary of the filters means a whole tree, also without any.
    let means_tree = arguments.path.is_none() && call.offers(Toolset::Collab) && !call.offers(Toolset::Files);
    if means_tree || !matches!(filters, (None, None, None)) {
        return list_tree(&call, server, &arguments).await;
    }
    let directory = call.directory(arguments.path.as_deref())?;
    let entries = server.list_directory(&directory).await?;
    let mut documents: Vec<Entry> = entries
        .into_iter()
        .filter(|document| call.sees(&document.path, document.kind == DocumentKind::Directory))
        .map(|document| entry(server, document))
        .collect();
    documents.sort_by(|a, b| a.name.cmp(&b.name));
    // The text is a bare array, as the tool has always answered; structured content must be an object.
    let text = json_text(&documents);
    Ok(WithBlocks {
        value: Listing {
            description: None,
            documents,
        },
        blocks: vec![Block::Text(text)],
    })
}

/// The files below a path, notebooks left aside unless they are asked for, and whether each is open.
async fn list_tree(
    call: &Call,
    server: &JupyterServer,
    arguments: &Arguments,
) -> Result<WithBlocks<Listing>, ToolError> {
    let walk = match (&arguments.path, &arguments.path_filter) {
        (Some(_), Some(_)) => {
            let why = "give either `path`, a directory, or `path_filter`, what paths begin with";
            return Err(ToolError::argument("path_filter", why));
        }
        (Some(directory), None) => Walk::below(call.directory(Some(directory))?),
        (None, filter) => Walk::beginning_with(call, filter.as_deref())?,
    };
    let file_type = arguments.file_type.as_deref().unwrap_or("file");
    let picks = |document: &Document| has_type(document, file_type);
    let mut found = walk.find(call, server, picks).await?;
    let description = found.cut(arguments.max_results.unwrap_or(DEFAULT_MAX_RESULTS), "documents");
    let documents = found.documents.into_iter().map(|document| Entry {
        collaborative: Some(is_open(call, server, &document)),
        ..entry(server, document)
    });
    let value = Listing {
        description: Some(description),
        documents: documents.collect(),
    };
    let blocks = vec![Block::Text(json_text(&value))];
    Ok(WithBlocks { value, blocks })
}

/// Whether a document is open for live editing in this gateway.
pub(in crate::tools) fn is_open(call: &Call, server: &JupyterServer, document: &Document) -> bool {
    DocPath::parse(&document.path)
        .is_ok_and(|path| call.pool().find(server.name(), &path, RoomKind::of(&path)).is_some())
}

/// Whether a document is of a type: a file of any kind, text, markdown, or what its name ends with; or what is no file.
fn has_type(document: &Document, wanted: &str) -> bool {
    let is_markdown = || {
        ["md", "markdown"]
            .iter()
            .any(|ending| has_extension(&document.name, ending))
    };
    let is_text = || {
        document
            .mimetype
            .as_deref()
            .is_some_and(|mime| mime.starts_with("text/"))
    };
    let is_file = document.kind == DocumentKind::File;
    match wanted {
        "notebook" | "ipynb" | ".ipynb" => document.kind == DocumentKind::Notebook,
        "directory" => document.kind == DocumentKind::Directory,
        _ if !is_file => false,
        "file" => true,
        "text" => is_text() || is_markdown(),
        "markdown" => is_markdown(),
        extension => has_extension(&document.name, extension.trim_start_matches('.')),
    }
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| ending.eq_ignore_ascii_case(extension))
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
        collaborative: None,
    }
}
