//! `edit_nb_cell`.

use jupyter_client::counted;
use live_document::{EditError, Room, RoomError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Notebook,
    execute::{Change, Edited, Run, change_and_run, edit_cells},
    notebook,
    select::Range,
    wants_exec,
};
use crate::tools::{
    Call, ToolError, changes,
    execution::{Disconnect, RunOptions},
    matches::{self, Replacement},
    output::ToolReply,
};

/// Number of other cells that are named because they have the text.
const MAX_OTHERS: usize = 5;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    cell_id: Option<String>,
    /// Instead of cell_id
    index: Option<usize>,
    old_text: String,
    new_text: String,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    exec: bool,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    timeout: Option<f64>,
    #[serde(default)]
    #[schemars(extend("x-unlisted" = true))]
    on_disconnect: Disconnect,
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct EditedCell {
    message: String,
    path: String,
    cell_id: Option<String>,
    index: Option<usize>,
    replacements: usize,
    diff: String,
    executed: bool,
    #[serde(flatten)]
    edited: Option<Edited>,
    #[serde(flatten)]
    run: Option<Run>,
}

pub(super) async fn edit_nb_cell(call: Call, arguments: Arguments) -> Result<ToolReply<EditedCell>, ToolError> {
    let options = RunOptions::new(
        &call,
        arguments.timeout,
        arguments.on_disconnect,
        arguments.max_cell_output_size,
    )?;
    let wanted = wants_exec(&call, Some(arguments.exec))?;
    let replacement = Replacement {
        old: &arguments.old_text,
        new: &arguments.new_text,
        all: arguments.replace_all,
    };
    replacement.check()?;
    let range = range(&arguments)?;
    let path = call.file(&arguments.path)?.to_string();
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
    };
    let done = "Edited 1 cell";
    let answer = |(message, change, run): (String, Option<Change>, Option<Run>)| EditedCell {
        message,
        path,
        cell_id: change.as_ref().and_then(|change| change.cell_ids.first().cloned()),
        index: change.as_ref().and_then(|change| *change.positions.first()?),
        replacements: change.as_ref().map_or(0, |change| replacement.count(&change.sources)),
        diff: change
            .as_ref()
            .and_then(|change| changes::difference(change.sources.first()?))
            .unwrap_or_default(),
        executed: run.as_ref().is_some_and(Run::is_executed),
        edited: change.map(|change| change.edited),
        run,
    };
    let changes = async {
        let changed = edit_cells(&call, at, range.is_by_position(), |room| {
            let cell = chosen(room, &range)?;
            let edit = replacement.edit(Some(cell.clone()));
            Ok((vec![cell], vec![edit]))
        });
        match changed.await {
            Err(ToolError::Room(RoomError::Edit(EditError::Matches { .. }))) => {
                let (_, _, room) = notebook(&call, at.server, at.path).await?;
                let cell = chosen(&room, &range)?;
                Err(ToolError::argument(
                    "old_text",
                    explain_replacement(&room, &cell, &replacement),
                ))
            }
            changed => changed,
        }
    };
    Box::pin(change_and_run(&call, Some(at), wanted, options, done, changes, answer)).await
}

fn range(arguments: &Arguments) -> Result<Range, ToolError> {
    match (&arguments.cell_id, arguments.index) {
        (Some(id), None) => Ok(Range::cell(id.clone())),
        (None, Some(index)) => Ok(Range::one(index)),
        _ => Err(ToolError::argument("cell_id", "give either `cell_id` or `index`")),
    }
}

fn chosen(room: &Room, range: &Range) -> Result<String, ToolError> {
    let argument = if range.is_by_position() { "index" } else { "cell_id" };
    let ids = room.ids(|order| match range.resolve(order) {
        Ok(positions) => Ok(positions.collect()),
        Err(why) => Err(ToolError::argument(argument, why)),
    })?;
    Ok(ids.into_iter().next().unwrap_or_default())
}

/// Reason why the text was not replaced in a cell: where it is, or what is there that it may have meant.
pub(in crate::tools) fn explain_replacement(room: &Room, cell: &str, replacement: &Replacement<'_>) -> String {
    let short = room.short_ids();
    let sources = room.sources(0..room.cell_count());
    let (here, others): (Vec<_>, Vec<_>) = sources
        .into_iter()
        .partition(|source| source.cell.as_deref() == Some(cell));
    let Some(here) = here.first() else {
        return "the cell was removed meanwhile".to_owned();
    };
    let named = format!("[{}] {}", here.position, short.get(cell));
    let found = matches::found(&here.text, replacement.old);
    let mut why = matches::explained(&named, &here.text, replacement);
    let elsewhere: Vec<String> = others
        .iter()
        .filter(|_| found.is_empty() && !replacement.old.is_empty())
        .filter_map(|other| {
            let line = *matches::found(&other.text, replacement.old).first()?;
            let id = other.cell.as_deref().unwrap_or_default();
            Some(format!("[{}] {} line {line}", other.position, short.get(id)))
        })
        .collect();
    if !elsewhere.is_empty() {
        let listed = elsewhere[..elsewhere.len().min(MAX_OTHERS)].join(", ");
        why = format!("{why}\nIt is in {}: {listed}", counted(elsewhere.len(), "other cell"));
    }
    why
}
