//! Metadata of a whole notebook, told beside its content.

use std::time::SystemTime;

use executor::RunsByNotebook;
use live_document::pool::OpenRoom;
use serde::Serialize;

use super::{address::file_uri, cells::pattern};
use crate::srcbook::template;
use crate::types::notebook_uri;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotebookMetadata {
    session_id: String,
    notebook_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    cell_count: usize,
    created_at: String,
    last_modified: String,
    /// Last execution by any agent. What people run in JupyterLab is not known here.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_executed: Option<String>,
    /// Executions by any agent, as far as they are remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_executions: Option<u64>,
    has_errors: bool,
    path: String,
    server: String,
    /// The same notebook as a virtual file.
    file_uri: String,
}

impl NotebookMetadata {
    /// Metadata of an open notebook; executions are left out where they are not known.
    pub(super) fn of(open: &OpenRoom, runs: Option<&RunsByNotebook>) -> Self {
        let last_modified = timestamp(*open.room.changes().borrow());
        let place = (open.server.to_string(), open.info.path.to_string());
        let runs = runs.map(|runs| runs.get(&place).copied().unwrap_or_default());
        Self {
            file_uri: file_uri(&open.info.session_id, None),
            session_id: open.info.session_id.clone(),
            notebook_id: open.info.file_id.clone(),
            pattern: pattern(&open.room.metadata()),
            cell_count: open.info.cell_count,
            created_at: open.created.clone().unwrap_or_else(|| last_modified.clone()),
            last_modified,
            last_executed: runs.and_then(|runs| runs.last_started).map(timestamp),
            total_executions: runs.map(|runs| runs.executions),
            has_errors: open.room.has_errors(),
            path: place.1,
            server: place.0,
        }
    }

    /// Name for people: its kind, and its file.
    pub(super) fn name(&self) -> String {
        let file = self.path.rsplit('/').next().unwrap_or_default();
        match self.pattern.as_deref() {
            Some(pattern) => {
                let title = template(pattern).map_or(pattern, |template| template.title);
                format!("{title} Notebook: {file}")
            }
            None => format!("Notebook: {file}"),
        }
    }

    pub(super) fn description(&self) -> String {
        let pattern = self.pattern.as_deref().map(|pattern| format!("{pattern} pattern, "));
        format!(
            "{}{} cells; {} on {}, open in session {}",
            pattern.unwrap_or_default(),
            self.cell_count,
            self.path,
            self.server,
            self.session_id
        )
    }

    /// The title of the notebook where its cells give none.
    pub(super) fn title(&self) -> &str {
        let file = self.path.rsplit('/').next().unwrap_or_default();
        file.strip_suffix(".ipynb").unwrap_or(file)
    }

    pub(super) fn cell_count(&self) -> usize {
        self.cell_count
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn cell_file_uri(&self, name: &str) -> String {
        file_uri(&self.session_id, Some(name))
    }

    pub(super) fn uri(&self) -> String {
        notebook_uri(&self.session_id, &self.notebook_id)
    }

    pub(super) fn summary(&self) -> Summary<'_> {
        Summary {
            id: &self.notebook_id,
            uri: self.uri(),
            metadata: self,
        }
    }
}

/// A notebook in `notebook://list`.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    id: &'a str,
    uri: String,
    #[serde(flatten)]
    metadata: &'a NotebookMetadata,
}

pub(super) fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
