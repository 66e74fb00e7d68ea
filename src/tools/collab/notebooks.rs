//! `list_notebooks`.

use std::sync::Arc;

use jupyter_client::Document;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DEFAULT_MAX_RESULTS;
use crate::tools::notebook::describe_notebooks;
use crate::tools::text::{Describe, Page};
use crate::tools::{
    Call, ToolError,
    files::{Walk, is_open},
    notebook::{NotebookEntry, is_notebook, notebook_entry},
};
use std::fmt;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path_prefix: Option<String>,
    #[schemars(extend("default" = 50))]
    max_results: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Notebooks {
    description: String,
    notebooks: Vec<Entry>,
    /// Directories that could not be read, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Entry {
    #[serde(flatten)]
    notebook: NotebookEntry,
    /// Whether it is open for live editing in this gateway.
    collaborative: bool,
}

impl Describe for Notebooks {
    fn describe(&self, page: &mut Page) {
        page.line(&self.description);
        describe_notebooks(page, &self.notebooks, &self.skipped, false);
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = if self.collaborative { "  open" } else { "" };
        write!(f, "{}{open}", self.notebook)
    }
}

pub(super) async fn list_notebooks(call: Call, arguments: Arguments) -> Result<Notebooks, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let walk = Walk::beginning_with(&call, arguments.path_prefix.as_deref())?;
    let mut found = walk.find(&call, &server, is_notebook).await?;
    let description = found.cut(arguments.max_results.unwrap_or(DEFAULT_MAX_RESULTS), "notebook");
    let links = server.links().await;
    let entry = |document: Document| Entry {
        collaborative: is_open(&call, &server, &document),
        notebook: notebook_entry(&links, document),
    };
    Ok(Notebooks {
        description,
        notebooks: found.documents.into_iter().map(entry).collect(),
        skipped: found.skipped,
    })
}
