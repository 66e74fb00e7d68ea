//! `modify_nb_cells`.

use std::collections::HashSet;

use jupyter_client::counted;
use live_document::{CellKind, Edit, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Notebook,
    execute::{Change, Edited, Run, change_and_run, edit_cells},
    insert::cell_kind,
    select::Range,
    wants_exec,
};
use crate::tools::{
    Call, ToolError,
    execution::{Disconnect, RunOptions},
    output::ToolReply,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    modifications: Vec<Modification>,
    /// Refuse if changed since
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    #[schemars(extend("default" = true))]
    exec: Option<bool>,
    timeout: Option<f64>,
    #[serde(default)]
    #[schemars(extend("x-unlisted" = true))]
    on_disconnect: Disconnect,
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Modification {
    range: Range,
    /// Left out, only `type` changes
    content: Option<String>,
    #[serde(rename = "type", alias = "cell_type")]
    #[schemars(extend("enum" = ["code", "markdown", "raw"]))]
    kind: Option<String>,
}

impl Modification {
    fn wanted(&self, argument: &str) -> Result<Wanted<'_>, ToolError> {
        Wanted::new(argument, "type", self.kind.as_deref(), self.content.as_deref())
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Modified {
    message: String,
    modified_ranges: usize,
    executed: bool,
    cell_ids: Vec<String>,
    #[serde(flatten)]
    edited: Option<Edited>,
    #[serde(flatten)]
    run: Option<Run>,
}

pub(super) async fn modify_nb_cells(call: Call, arguments: Arguments) -> Result<ToolReply<Modified>, ToolError> {
    let options = RunOptions::new(
        &call,
        arguments.timeout,
        arguments.on_disconnect,
        arguments.max_cell_output_size,
    )?;
    let modified_ranges = arguments.modifications.len();
    let done = format!("Successfully modified {}", counted(modified_ranges, "cell range"));
    let answer = |(message, change, run): (String, Option<Change>, Option<Run>)| {
        let (cell_ids, edited) = change.map_or_else(Default::default, |change| (change.cell_ids, Some(change.edited)));
        Modified {
            message,
            modified_ranges,
            executed: run.as_ref().is_some_and(Run::is_executed),
            cell_ids,
            edited,
            run,
        }
    };
    let wanted = wants_exec(&call, arguments.exec)?;
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
    };
    let mut ranges = arguments.modifications.iter().map(|modification| &modification.range);
    let by_position = ranges.any(Range::is_by_position);
    let changes = edit_cells(&call, at, by_position, |room| edits(room, &arguments.modifications));
    change_and_run(&call, Some(at), wanted, options, &done, changes, answer).await
}

/// One edit for each cell that is meant, all chosen at the same moment.
fn edits(room: &Room, modifications: &[Modification]) -> Result<(Vec<String>, Vec<Edit>), ToolError> {
    if modifications.is_empty() {
        return Err(ToolError::argument("modifications", "name at least one"));
    }
    let wanted = modifications.iter().enumerate();
    let wanted: Vec<Wanted> = wanted
        .map(|(index, modification)| modification.wanted(&format!("modifications[{index}]")))
        .collect::<Result<_, _>>()?;
    let mut meant = Vec::new();
    let cells = room.ids(|order| {
        let mut all = Vec::new();
        for (index, modification) in modifications.iter().enumerate() {
            let named = |why| ToolError::argument(&format!("modifications[{index}].range"), why);
            let found: Vec<usize> = modification.range.resolve(order).map_err(named)?.collect();
            meant.extend(std::iter::repeat_n(index, found.len()));
            all.extend(found);
        }
        Ok::<_, ToolError>(all)
    })?;
    refuse_repeated(&cells, |place| format!("modifications[{}]", meant[place]))?;
    let edits = cells.iter().zip(&meant).map(|(cell, index)| wanted[*index].edit(cell));
    let edits = edits.collect();
    Ok((cells, edits))
}

/// Kind and content that a cell is to have, of which one at least is given.
#[derive(Clone, Copy)]
pub(in crate::tools) struct Wanted<'a> {
    kind: Option<CellKind>,
    content: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    /// Parses what a call gives; `argument` is where it stands, with `kind` in its member `kind_name`.
    pub(in crate::tools) fn new(
        argument: &str,
        kind_name: &str,
        kind: Option<&str>,
        content: Option<&'a str>,
    ) -> Result<Self, ToolError> {
        let kind = kind
            .map(|named| cell_kind(&format!("{argument}.{kind_name}"), named))
            .transpose()?;
        match (kind, content) {
            (None, None) => Err(ToolError::argument(
                argument,
                format!("give `content`, `{kind_name}` or both"),
            )),
            (kind, content) => Ok(Self { kind, content }),
        }
    }

    pub(in crate::tools) fn edit(&self, cell: &str) -> Edit {
        match self.kind {
            Some(kind) => Edit::SetKind {
                cell: cell.to_owned(),
                kind,
                source: self.content.map(str::to_owned),
            },
            None => Edit::SetSource {
                cell: cell.to_owned(),
                source: self.content.unwrap_or_default().to_owned(),
            },
        }
    }
}

/// Refuses a cell that is meant twice, naming the argument that means it for the second time.
pub(in crate::tools) fn refuse_repeated(cells: &[String], argument: impl Fn(usize) -> String) -> Result<(), ToolError> {
    let mut seen = HashSet::new();
    match cells.iter().position(|cell| !seen.insert(cell)) {
        Some(place) => {
            let why = format!("cell {:?} is modified twice in one call", cells[place]);
            Err(ToolError::argument(&argument(place), why))
        }
        None => Ok(()),
    }
}
