//! Tools about whole notebooks: finding and creating them.

use std::sync::Arc;

use jupyter_client::{DocPath, Document, DocumentKind, JupyterServer, Links, NewDocument};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Call, Effect, ToolDefinition, ToolError, files::Walk};
use crate::tools::text::{Describe, Page};
use crate::{
    srcbook::{BookCell, BookCellKind, Template, template, templates},
    types::Toolset,
};
use std::fmt;

pub(super) fn tools() -> Vec<ToolDefinition> {
    vec![
        ToolDefinition::new(
            Toolset::Notebook,
            "list_nbs",
            "Lists notebooks under a directory, recursively.",
            Effect::Read,
            list_nbs,
        ),
        ToolDefinition::new(
            Toolset::Notebook,
            "create_notebook",
            "Creates a notebook (.ipynb), empty or from a template; its first run starts a kernel.",
            Effect::Add,
            create_notebook,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    /// Directory (default: root)
    path: Option<String>,
    max_depth: Option<usize>,
    max_nbs: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct NotebookList {
    notebooks: Vec<NotebookEntry>,
    /// Whether a limit ended the search before the tree did.
    truncated: bool,
    /// Directories that could not be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct NotebookEntry {
    path: String,
    name: String,
    last_modified: Option<String>,
    created: Option<String>,
    size: Option<u64>,
    writable: bool,
    url: String,
}

impl Describe for NotebookList {
    fn describe(&self, page: &mut Page) {
        describe_notebooks(page, &self.notebooks, &self.skipped, self.truncated);
    }
}

/// Notebooks a line each, and what could not be listed.
pub(super) fn describe_notebooks<N: fmt::Display>(page: &mut Page, notebooks: &[N], skipped: &[String], is_cut: bool) {
    if notebooks.is_empty() {
        page.line("No notebooks");
    }
    let listed = page.items(notebooks);
    match notebooks.len() - listed {
        0 if is_cut => page.line("[there are more: name a directory]"),
        0 => page,
        more => page.line(format_args!("[{more} more: name a directory]")),
    };
    page.items(skipped.iter().map(|why| format!("not listed: {why}")));
}

impl fmt::Display for NotebookEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if let Some(modified) = &self.last_modified {
            // Seconds are enough to tell what is newer.
            write!(f, "  {}", modified.get(..16).unwrap_or(modified))?;
        }
        match self.writable {
            true => Ok(()),
            false => write!(f, "  read-only"),
        }
    }
}

async fn list_nbs(call: Call, arguments: ListArguments) -> Result<NotebookList, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let mut walk = Walk::below(call.directory(arguments.path.as_deref())?);
    walk.max_depth = arguments.max_depth.unwrap_or(walk.max_depth);
    walk.max_found = arguments.max_nbs.unwrap_or(walk.max_found);
    let found = walk.find(&call, &server, is_notebook).await?;
    let links = server.links().await;
    Ok(NotebookList {
        notebooks: found
            .documents
            .into_iter()
            .map(|notebook| notebook_entry(&links, notebook))
            .collect(),
        truncated: found.truncated,
        skipped: found.skipped,
    })
}

pub(super) fn is_notebook(document: &Document) -> bool {
    document.kind == DocumentKind::Notebook
}

pub(super) fn notebook_entry(links: &Links, notebook: Document) -> NotebookEntry {
    NotebookEntry {
        url: links.to(&notebook),
        path: notebook.path,
        name: notebook.name,
        last_modified: notebook.last_modified,
        created: notebook.created,
        size: notebook.size,
        writable: notebook.writable,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateArguments {
    path: String,
    kernel_name: Option<String>,
    /// blank, data_analysis, machine_learning, tree_of_thought, beam_search or mcts
    template: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct CreatedNotebook {
    message: String,
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    cell_count: usize,
    /// That it will have
    kernel_name: Option<String>,
    url: String,
}

impl Describe for CreatedNotebook {
    fn describe(&self, page: &mut Page) {
        page.line(&self.message).line(&self.url);
    }
}

async fn create_notebook(call: Call, arguments: CreateArguments) -> Result<CreatedNotebook, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    require_notebook_name("path", &path)?;
    let template = arguments.template.as_deref().map(find_template).transpose()?;
    let mut notebook = empty_notebook(server, arguments.kernel_name.as_deref()).await?;
    if let Some(template) = template {
        notebook["cells"] = template.book().cells.into_iter().map(file_cell).collect();
        notebook["metadata"]["srcbook"] = json!({ "pattern": template.name });
    }
    let cell_count = notebook["cells"].as_array().map_or(0, Vec::len);
    let kernel_name = notebook["metadata"]["kernelspec"]["name"].as_str().map(str::to_owned);
    let created = server.create(&path, NewDocument::Notebook(notebook)).await?;
    let cells = match (template, cell_count) {
        (None, _) => "1 empty code cell".to_owned(),
        (_, 1) => "1 cell".to_owned(),
        (_, count) => format!("{count} cells"),
    };
    let kernel = kernel_name.as_ref().map_or_else(String::new, |name| {
        format!("; its kernel {name:?} is started with its first execution")
    });
    Ok(CreatedNotebook {
        message: format!("Successfully created notebook at '{path}' with {cells}{kernel}"),
        path: path.to_string(),
        kind: "notebook",
        cell_count,
        kernel_name,
        url: server.links().await.to(&created),
    })
}

fn find_template(name: &str) -> Result<&'static Template, ToolError> {
    template(name).ok_or_else(|| {
        let names: Vec<&str> = templates().iter().map(|template| template.name).collect();
        let why = format!("there is no template {name:?}; allowed: {}", names.join(", "));
        ToolError::argument("template", why)
    })
}

/// A template's cell in the form of a notebook's file.
fn file_cell(cell: BookCell) -> Value {
    let mut made = json!({
        "id": cell.id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
        "cell_type": cell.kind.as_str(),
        "metadata": cell.metadata,
        "source": cell.source,
    });
    if cell.kind == BookCellKind::Code {
        made["outputs"] = json!([]);
        made["execution_count"] = Value::Null;
    }
    made
}

pub(super) fn require_notebook_name(argument: &str, path: &DocPath) -> Result<(), ToolError> {
    if path.is_notebook() {
        return Ok(());
    }
    Err(ToolError::argument(
        argument,
        format!("{path:?} does not end with .ipynb, as the path of a notebook must"),
    ))
}

/// A valid notebook, bound to a kernel so that JupyterLab does not ask for one. It has the empty cell that Jupyter would give
/// it when somebody opens it.
pub(super) async fn empty_notebook(server: &JupyterServer, kernel_name: Option<&str>) -> Result<Value, ToolError> {
    let specs = server.kernelspecs().await?;
    let chosen = match kernel_name {
        Some(name) => Some(specs.iter().find(|spec| spec.name == name).ok_or_else(|| {
            let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
            ToolError::argument(
                "kernel_name",
                format!(
                    "no kernel {name:?} on `{}`; available: {}",
                    server.name(),
                    names.join(", ")
                ),
            )
        })?),
        None => specs.iter().find(|spec| spec.is_default),
    };
    let metadata = chosen.map_or_else(
        || json!({}),
        |spec| {
            json!({
                "kernelspec": { "name": spec.name, "display_name": spec.display_name, "language": spec.language },
                "language_info": { "name": spec.language },
            })
        },
    );
    let cell = file_cell(BookCell {
        id: None,
        kind: BookCellKind::Code,
        metadata: Map::new(),
        source: String::new(),
    });
    Ok(json!({ "cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5 }))
}
