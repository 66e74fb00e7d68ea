//! Versions of open notebooks as resources: their list, a notebook as it was, and what changed.

use history::{Cell, CellKind, Content, Hash, Outputs, diff};
use jupyter_client::DocPath;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

use super::{
    Opened, ResourceError, View,
    address::Part,
    read::{Read, members, named, pretty},
    sanitize::sanitized_notebook,
};
use crate::history::{Filter, History, HistoryError, Subject, ToldVersion, Version, difference_text};

/// Versions that the list of them has.
const LISTED: usize = 100;
/// Lines around those that differ.
const CONTEXT: usize = 3;

impl View {
    pub(super) async fn read_history(&self, opened: &Opened, part: &Part) -> Result<Read, ResourceError> {
        let path = &opened.room.info().path;
        match part {
            Part::Version(id) => self.read_version(opened, path, id).await,
            Part::Diff { from, to } => self.read_diff(opened, path, (from, to)).await,
            _ => {
                let versions = self.versions(&opened.open.server, path, LISTED).await?;
                let told: Vec<ToldVersion> = versions.into_iter().map(ToldVersion::from).collect();
                let description = format!("The newest recorded versions of {path}");
                let metadata = named("Notebook History", &description, Map::new());
                Ok(("application/json", pretty(&told), metadata))
            }
        }
    }

    /// The newest versions of a document.
    pub(super) async fn versions(
        &self,
        server: &str,
        path: &DocPath,
        limit: usize,
    ) -> Result<Vec<Version>, ResourceError> {
        let (history, subject) = self.history_of(server, path).await?;
        let filter = Filter {
            limit,
            ..Filter::default()
        };
        Ok(history.list(&subject, &filter).await?.versions)
    }

    async fn history_of(&self, server: &str, path: &DocPath) -> Result<(&History, Subject), ResourceError> {
        let history = self.history.as_ref().ok_or(HistoryError::Off)?;
        Ok((history, history.subject(server, path).await?))
    }

    async fn read_version(&self, opened: &Opened, path: &DocPath, id: &str) -> Result<Read, ResourceError> {
        let (history, subject) = self.history_of(&opened.open.server, path).await?;
        let (version, content) = history.version(&subject, id).await?;
        let kept = content.cells().iter().filter_map(|cell| kept(cell)).collect::<Vec<_>>();
        let outputs = history.outputs(&subject, &kept).await?;
        let description = format!("{path} as it was at version {id}");
        let metadata = named("Notebook Version", &description, members(&ToldVersion::from(version)));
        let notebook = sanitized_notebook(nbformat(&content, &outputs));
        Ok(("application/json", pretty(&notebook), metadata))
    }

    async fn read_diff(
        &self,
        opened: &Opened,
        path: &DocPath,
        (from, to): (&str, &str),
    ) -> Result<Read, ResourceError> {
        let (history, subject) = self.history_of(&opened.open.server, path).await?;
        let (_, old) = history.named(&subject, from).await?;
        let new = match to.is_empty() {
            true => opened.room.content_for_history().content,
            false => history.named(&subject, to).await?.1,
        };
        let differences = diff(&old, &new, CONTEXT);
        let texts = differences
            .iter()
            .map(|difference| difference_text(difference, &difference.unified));
        let until = if to.is_empty() { "now" } else { to };
        let metadata = named("Notebook Diff", &format!("{path} from {from} to {until}"), Map::new());
        Ok(("text/x-diff", texts.collect::<Vec<_>>().join("\n"), metadata))
    }
}

fn kept(cell: &Cell) -> Option<Hash> {
    match cell.outputs {
        Outputs::Kept(hash) => Some(hash),
        Outputs::None | Outputs::Omitted => None,
    }
}

/// A notebook in the form of its file.
fn nbformat(content: &Content, outputs: &HashMap<Hash, Vec<Value>>) -> Value {
    let metadata = match content {
        Content::Notebook(notebook) => notebook.metadata.value(),
        Content::Text(_) => Value::Null,
    };
    let cells: Vec<Value> = content.cells().iter().map(|cell| in_file(cell, outputs)).collect();
    json!({ "cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5 })
}

fn in_file(cell: &Cell, outputs: &HashMap<Hash, Vec<Value>>) -> Value {
    let mut members = json!({
        "id": &*cell.id,
        "cell_type": cell.kind.as_str(),
        "source": &*cell.source,
        "metadata": cell.metadata.value(),
    });
    if let Some(attachments) = &cell.attachments {
        members["attachments"] = attachments.value();
    }
    if cell.kind == CellKind::Code {
        let outputs = kept(cell).and_then(|hash| outputs.get(&hash)).cloned();
        members["execution_count"] = cell.execution_count.into();
        members["outputs"] = outputs.unwrap_or_default().into();
    }
    members
}
