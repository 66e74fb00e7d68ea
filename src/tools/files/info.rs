//! `get_document_info`: metadata in a first message; on request the content's length in a second
//! and the content itself in a third. An open room has newer content than the file; none is opened.

use jupyter_client::{Content, DocPath, Document, DocumentKind, JupyterServer, Links, NewDocument, truncate};
use live_document::RoomKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    tools::{
        Block, Call, ToolError,
        document::{BYTES, Beginning},
        output::{ToolReply, json_text},
    },
    types::document_uri,
};

const DEFAULT_MAX_CONTENT: usize = 32_768;
/// A file of more bytes is read in part, if no more of it is wanted.
const LONG: u64 = 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    #[schemars(extend("default" = false))]
    include_content: Option<bool>,
    /// Characters
    #[schemars(extend("default" = 32768))]
    max_content: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Info {
    name: String,
    path: String,
    #[serde(rename = "type")]
    kind: DocumentKind,
    format: Option<String>,
    created: Option<String>,
    last_modified: Option<String>,
    size: Option<u64>,
    writable: bool,
    mimetype: Option<String>,
    url: String,
}

#[derive(Serialize, JsonSchema)]
struct ContentInfo {
    /// Characters, if `content_unit` says nothing else
    content_length: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_unit: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct InfoWithContent {
    #[serde(flatten)]
    info: Info,
    #[serde(flatten)]
    content_info: Option<ContentInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

pub(super) async fn get_document_info(
    call: Call,
    arguments: Arguments,
) -> Result<ToolReply<InfoWithContent>, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    if !arguments.include_content.unwrap_or(false) {
        let document = server.document(&path).await?;
        require_kind(&call, &path, &document)?;
        let info = info(&server.links().await, &document);
        let blocks = vec![Block::Text(json_text(&info))];
        return Ok(ToolReply::in_blocks(
            blocks,
            InfoWithContent {
                info,
                content_info: None,
                content: None,
            },
        ));
    }
    let max = arguments.max_content.unwrap_or(DEFAULT_MAX_CONTENT);
    let open = call.open_room(server, &path, RoomKind::of(&path)).await?;
    let mut document = server.document(&path).await?;
    require_kind(&call, &path, &document)?;
    let content = match open.map(|room| room.content()) {
        Some(NewDocument::Notebook(notebook)) => Some(Content::Notebook(notebook)),
        Some(NewDocument::Text(text)) => Some(Content::Text(text)),
        Some(NewDocument::Base64(_) | NewDocument::Directory) | None => None,
    };
    let (content, content_info) = match content {
        Some(content) => shown(&call, content, max),
        None if is_better_read_in_part(&document, max) => shown_in_part(server, &path, &mut document, max).await?,
        None => {
            let whole = server.document_with_content(&path).await?;
            document.format.clone_from(&whole.format);
            document.mimetype.clone_from(&whole.mimetype);
            shown(&call, whole.into_content(), max)
        }
    };
    let info = info(&server.links().await, &document);
    let is_binary = document.kind == DocumentKind::File && info.format.as_deref() == Some("base64");
    let text = match is_binary && !call.faces().structured {
        // Base64 costs much and tells a reader nothing.
        true => format!("[binary: resource {}]", document_uri(server.name(), &document.path)),
        false => content.clone(),
    };
    let blocks = vec![
        Block::Text(json_text(&info)),
        Block::Text(json_text(&content_info)),
        Block::Text(text),
    ];
    Ok(ToolReply::in_blocks(
        blocks,
        InfoWithContent {
            info,
            content_info: Some(content_info),
            content: Some(content),
        },
    ))
}

/// Some rules deny a directory and would not deny a file of the same name.
fn require_kind(call: &Call, path: &DocPath, document: &Document) -> Result<(), ToolError> {
    match document.kind {
        DocumentKind::Directory => Ok(call.principal().require_directory(path)?),
        DocumentKind::Notebook | DocumentKind::File => Ok(()),
    }
}

fn info(links: &Links, document: &Document) -> Info {
    Info {
        name: document.name.clone(),
        path: document.path.clone(),
        kind: document.kind,
        format: Some(
            document
                .format
                .clone()
                .unwrap_or_else(|| default_format(document).to_owned()),
        ),
        created: document.created.clone(),
        last_modified: document.last_modified.clone(),
        size: document.size,
        writable: document.writable,
        mimetype: document.mimetype.clone().or_else(|| own_mimetype(document)),
        url: links.to(document),
    }
}

/// The media type of a document, also of a notebook, for which Jupyter gives none.
fn own_mimetype(document: &Document) -> Option<String> {
    (document.kind == DocumentKind::Notebook).then(|| "application/x-ipynb+json".to_owned())
}

/// The format of a document, which Jupyter leaves out when the content is not asked for.
fn default_format(document: &Document) -> &'static str {
    let is_text = document
        .mimetype
        .as_deref()
        .is_none_or(|mime| mime.starts_with("text/") || mime.ends_with("json") || mime.ends_with("xml"));
    match document.kind {
        DocumentKind::Notebook | DocumentKind::Directory => "json",
        DocumentKind::File if is_text => "text",
        DocumentKind::File => "base64",
    }
}

/// Returns whether a file should be read in part: little of it is wanted, or Jupyter must not read all of it.
fn is_better_read_in_part(document: &Document, max: usize) -> bool {
    let is_long = document.size.is_some_and(|size| size > LONG.max(max as u64));
    document.is_large() || document.kind == DocumentKind::File && is_long
}

async fn shown_in_part(
    server: &JupyterServer,
    path: &DocPath,
    document: &mut Document,
    max: usize,
) -> Result<(String, ContentInfo), ToolError> {
    let size = usize::try_from(document.size.unwrap_or_default()).unwrap_or(usize::MAX);
    let beginning = Beginning::read(server, path, max).await?;
    let (format, content_length, content_unit) = match &beginning.text {
        Some(_) => ("text", size, Some(BYTES)),
        None => ("base64", size.div_ceil(3).saturating_mul(4), None),
    };
    if document.kind == DocumentKind::File {
        document.format = Some(format.to_owned());
    }
    let content_info = ContentInfo {
        content_length,
        truncated: true,
        content_unit,
    };
    Ok((beginning.text.unwrap_or_default(), content_info))
}

fn shown(call: &Call, content: Content, max: usize) -> (String, ContentInfo) {
    let text = match content {
        Content::Text(text) => text,
        Content::Notebook(notebook) => notebook.to_string(),
        Content::Directory(entries) => {
            let visible = entries
                .into_iter()
                .filter(|entry| call.sees(&entry.path, entry.kind == DocumentKind::Directory));
            json_text(&visible.map(|entry| entry.name).collect::<Vec<_>>())
        }
        // Half of a base64 text decodes to nothing useful: all of it, or none.
        Content::Binary(base64) if base64.len() > max => {
            return (
                String::new(),
                ContentInfo {
                    content_length: base64.len(),
                    truncated: true,
                    content_unit: None,
                },
            );
        }
        Content::Binary(base64) => base64,
    };
    let cut = truncate(&text, max);
    (
        cut.text,
        ContentInfo {
            content_length: cut.full_length,
            truncated: cut.truncated,
            content_unit: None,
        },
    )
}
