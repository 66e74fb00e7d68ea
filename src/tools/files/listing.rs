//! `list_documents`: one directory or, with a filter, the files of a whole tree; what the principal may not read left out.

use std::fmt;

use jupyter_client::{DocPath, Document, DocumentKind, JupyterServer, Links};
use live_document::RoomKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Walk, file_type::has_type};
use crate::{
    tools::{
        Block, Call, ToolError,
        output::{ToolReply, json_text},
    },
    types::Toolset,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Directory (default: root)
    path: Option<String>,
    /// What paths contain, or a glob such as *.csv
    path_filter: Option<String>,
    /// file, text, image, markdown, notebook, directory, or an ending such as csv
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
    /// Directories that were not read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
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

pub(super) async fn list_documents(call: Call, arguments: Arguments) -> Result<ToolReply<Listing>, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    // Who speaks only the vocabulary of the filters means a whole tree, also without any.
    let means_tree = arguments.path.is_none() && call.offers(Toolset::Collab) && !call.offers(Toolset::Files);
    if means_tree || arguments.path_filter.is_some() || arguments.file_type.is_some() {
        return list_tree(&call, server, &arguments).await;
    }
    list_directory(&call, server, &arguments).await
}

/// All that is in one directory.
async fn list_directory(
    call: &Call,
    server: &JupyterServer,
    arguments: &Arguments,
) -> Result<ToolReply<Listing>, ToolError> {
    let directory = call.directory(arguments.path.as_deref())?;
    let mut entries = server.list_directory(&directory).await?;
    entries.retain(|document| call.sees(&document.path, document.kind == DocumentKind::Directory));
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let (all, max_results) = (entries.len(), arguments.max_results.unwrap_or(DEFAULT_MAX_RESULTS));
    entries.truncate(max_results);
    let links = server.links().await;
    let documents: Vec<Entry> = entries.into_iter().map(|document| entry(&links, document)).collect();
    let description = (all > documents.len())
        .then(|| format!("Found {all} documents (showing first {max_results} results); max_results={all} shows all"));
    let text = match call.faces().structured {
        // A bare array, as the tool has always answered; structured content must be an object.
        true => json_text(&documents),
        false => lines(&documents),
    };
    let texts = [Some(text), description.clone()];
    Ok(ToolReply::in_blocks(
        texts.into_iter().flatten().map(Block::Text).collect(),
        Listing {
            description,
            documents,
            skipped: Vec::new(),
        },
    ))
}

/// The files below a path, notebooks left aside unless they are asked for, and whether each is open.
async fn list_tree(
    call: &Call,
    server: &JupyterServer,
    arguments: &Arguments,
) -> Result<ToolReply<Listing>, ToolError> {
    let walk = match (&arguments.path, &arguments.path_filter) {
        (Some(_), Some(_)) => {
            let why = "give either `path`, a directory, or `path_filter`, what paths contain";
            return Err(ToolError::argument("path_filter", why));
        }
        (Some(directory), None) => Walk::below(call.directory(Some(directory))?),
        (None, filter) => Walk::filtered(call, filter.as_deref())?,
    };
    let file_type = arguments.file_type.as_deref().unwrap_or("file");
    let picks = |document: &Document| has_type(document, file_type);
    let mut found = walk.find(call, server, picks).await?;
    let description = found.cut(arguments.max_results.unwrap_or(DEFAULT_MAX_RESULTS), "document");
    let links = server.links().await;
    let documents = found.documents.into_iter().map(|document| Entry {
        collaborative: Some(is_open(call, server, &document)),
        ..entry(&links, document)
    });
    let value = Listing {
        description: Some(description),
        documents: documents.collect(),
        skipped: found.skipped,
    };
    let text = match call.faces().structured {
        true => json_text(&value),
        false => {
            let skipped = value.skipped.iter().map(|why| format!("not listed: {why}"));
            let parts = value
                .description
                .iter()
                .cloned()
                .chain([lines(&value.documents)])
                .chain(skipped);
            parts.collect::<Vec<_>>().join("\n")
        }
    };
    Ok(ToolReply::in_blocks(vec![Block::Text(text)], value))
}

/// A line for each document, for readers of text only.
fn lines(documents: &[Entry]) -> String {
    match documents.is_empty() {
        true => "Nothing there".to_owned(),
        false => documents.iter().map(Entry::to_string).collect::<Vec<_>>().join("\n"),
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match (self.kind, self.size) {
            (DocumentKind::Directory, _) => f.write_str("/")?,
            (_, Some(size)) => write!(f, "  {size} bytes")?,
            (_, None) => {}
        }
        if let Some(modified) = &self.last_modified {
            write!(f, "  {}", modified.get(..16).unwrap_or(modified))?;
        }
        let marks = [
            (!self.writable, "read-only"),
            (self.collaborative == Some(true), "open"),
        ];
        marks
            .iter()
            .filter(|(is, _)| *is)
            .try_for_each(|(_, mark)| write!(f, "  {mark}"))
    }
}

/// Returns whether a document is open for live editing in this gateway.
pub(in crate::tools) fn is_open(call: &Call, server: &JupyterServer, document: &Document) -> bool {
    DocPath::parse(&document.path)
        .is_ok_and(|path| call.pool().find(server.name(), &path, RoomKind::of(&path)).is_some())
}

fn entry(links: &Links, document: Document) -> Entry {
    Entry {
        url: links.to(&document),
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
