//! `merge_document_fork`.

use std::sync::Arc;

use jupyter_client::counted;
use live_document::{CellDifference, Overlap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    list_forks::ChangedCell,
    review::{Decision, decide, version},
};
use crate::{
    forks::{ForkContent, MergeForm, Merged, Root},
    tools::{Call, ToolError, changes, output::ToolReply},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    fork_id: String,
    /// Only these cells; the fork stays
    cell_ids: Option<Vec<String>>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct MergedFork {
    message: String,
    path: String,
    fork_id: String,
    merged_cells: Vec<ChangedCell>,
    /// Those in which the fork still differs
    remaining_cells: Vec<ChangedCell>,
    /// Cells, or a text's path: lines that both changed stand there in both versions, the fork's below
    kept_both: Vec<String>,
    /// The fork is still there
    fork_kept: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    acknowledged: bool,
}

pub(super) async fn merge_document_fork(call: Call, arguments: Arguments) -> Result<ToolReply<MergedFork>, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let (path, account) = (call.file(&arguments.path)?, call.account());
    let root = Root::of(&server, &path, &account);
    let fork = call.forks().read(root, &arguments.fork_id).await?;
    let named = match &arguments.cell_ids {
        Some(named) => Some(chosen(&fork, named)?),
        None => None,
    };
    let is_decided = call.accepts(&fork.record);
    let cells = match is_decided {
        true => named,
        false => match decide(&call, &fork, named.as_deref()).await {
            Decision::Take(cells) => cells,
            Decision::Leave { text, asks } => {
                let reply = ToolReply {
                    is_failure: asks.is_some(),
                    ..ToolReply::told(text.clone(), unmerged(&fork, text))
                };
                return Ok(ToolReply { asks, ..reply });
            }
        },
    };
    let form = MergeForm {
        cells: cells.as_deref(),
        overlap: match arguments.force {
            true => Overlap::Overwrite,
            false => Overlap::KeepBoth,
        },
        author: &call.principal().id,
        author_name: &call.principal().name,
        tool: call.tool(),
    };
    let fork_id = fork.record.fork_id.clone();
    if !is_decided {
        refuse_unseen(&fork, &call.forks().read(root, &fork_id).await?)?;
    }
    let merged = call.forks().merge(root, &fork_id, form).await?;
    let original = call.forks().lease_root(root).await?;
    let details = match root.kind {
        live_document::RoomKind::Notebook => changes::of_cells(&original, &merged.edited, &moved(&merged.cells)),
        live_document::RoomKind::Text => changes::of_text(path.as_str(), &merged.edited),
    };
    let message = merge_message(&merged, &fork_id, path.as_str());
    let value = MergedFork {
        message: message.clone(),
        path: path.to_string(),
        fork_id,
        merged_cells: merged.cells.iter().map(ChangedCell::from).collect(),
        remaining_cells: merged.left.iter().map(ChangedCell::from).collect(),
        kept_both: doubled(&merged, path.as_str()),
        fork_kept: !merged.is_gone,
        revision: Some(merged.edited.revision.clone()),
        acknowledged: merged.edited.acknowledged,
    };
    Ok(ToolReply::told(format!("{message}\n{details}"), value))
}

/// Refuses to merge what the person was not shown.
fn refuse_unseen(shown: &ForkContent, now: &ForkContent) -> Result<(), ToolError> {
    match version(&shown.content) == version(&now.content) {
        true => Ok(()),
        false => Err(ToolError::argument(
            "fork_id",
            "the fork changed while the person decided, and nothing was merged; ask again",
        )),
    }
}

/// The answer of a call that merged nothing.
fn unmerged(fork: &ForkContent, message: String) -> MergedFork {
    MergedFork {
        message,
        path: fork.record.path.clone(),
        fork_id: fork.record.fork_id.clone(),
        merged_cells: Vec::new(),
        remaining_cells: fork.differences().iter().map(ChangedCell::from).collect(),
        kept_both: Vec::new(),
        fork_kept: true,
        revision: None,
        acknowledged: false,
    }
}

/// The cells that a call names, each of which must differ.
fn chosen(fork: &ForkContent, named: &[String]) -> Result<Vec<String>, ToolError> {
    if fork.content.cells().is_empty() && fork.base.cells().is_empty() {
        let why = "a text document has no cells; leave it out to merge all of it";
        return Err(ToolError::argument("cell_ids", why));
    }
    if named.is_empty() {
        return Err(ToolError::argument(
            "cell_ids",
            "name at least one, or leave it out to merge all",
        ));
    }
    let differences = fork.differences();
    named
        .iter()
        .map(|name| {
            // Answers name cells by the beginnings of their ids.
            let mut meant = differences.iter().filter(|found| found.cell.starts_with(name.as_str()));
            let exact = differences.iter().find(|found| found.cell == *name);
            match (exact, meant.next(), meant.next()) {
                (Some(found), ..) | (None, Some(found), None) => Ok(found.cell.clone()),
                _ => Err(unknown_cell(name, &differences)),
            }
        })
        .collect()
}

fn unknown_cell(name: &str, differences: &[CellDifference]) -> ToolError {
    let name: String = name.chars().take(100).collect();
    let changed: Vec<String> = differences
        .iter()
        .map(|found| format!("{} ({})", found.cell, found.difference.as_str()))
        .collect();
    let changed = match changed.is_empty() {
        true => "the fork differs in no cell".to_owned(),
        false => format!("it differs in {}", changed.join(", ")),
    };
    ToolError::argument(
        "cell_ids",
        format!("the fork has no change of a cell {name:?}; {changed}"),
    )
}

fn moved(cells: &[CellDifference]) -> Vec<String> {
    let moved = cells
        .iter()
        .filter(|found| found.difference.as_str().starts_with("moved"));
    moved.map(|found| found.cell.clone()).collect()
}

fn merge_message(merged: &Merged, fork_id: &str, path: &str) -> String {
    let what = match merged.cells.len() {
        0 => "everything".to_owned(),
        count => counted(count, "cell"),
    };
    let then = match (merged.is_gone, merged.left.len()) {
        (true, _) => "the fork is gone".to_owned(),
        (false, 0) => "the fork stays and has nothing left to merge".to_owned(),
        (false, left) => format!("the fork stays, with {} left", counted(left, "changed cell")),
    };
    let both = match doubled(merged, path).as_slice() {
        [] => String::new(),
        places => format!(
            "\nIn {} the same lines were changed in the fork and beside it, and stand there in both versions, the fork's below: \
             read them and keep what is meant",
            places.join(", ")
        ),
    };
    format!("Merged {what} of fork {fork_id} into {path}; {then}{both}")
}

/// The cells, or the text, in which lines stand in both versions.
fn doubled(merged: &Merged, path: &str) -> Vec<String> {
    let place = |cell: &Option<String>| cell.clone().unwrap_or_else(|| path.to_owned());
    merged.doubled.iter().map(place).collect()
}
