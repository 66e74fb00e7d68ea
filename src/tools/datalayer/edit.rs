//! `insert_cell`, `overwrite_cell_source`, `edit_cell_source`.

use live_document::{CellKind, Edit, EditError, EditOptions, NewCell, Room, RoomError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answer::{Facts, TextAnswer, with_facts},
    target::{Target, find},
};
use crate::tools::{
    Call, ToolError,
    cells::{check_positions, explain_replacement},
    diff::unified,
    matches::Replacement,
    named::{Notebook, table::CellTable},
    output::ToolReply,
};

/// Number of lines around those that differ.
const DIFF_CONTEXT: usize = 3;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum CellType {
    Code,
    Markdown,
    Raw,
}

impl CellType {
    fn kind(self) -> CellKind {
        match self {
            Self::Code => CellKind::Code,
            Self::Markdown => CellKind::Markdown,
            Self::Raw => CellKind::Raw,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InsertArguments {
    /// -1 means the end
    cell_index: i64,
    cell_type: CellType,
    cell_source: String,
    notebook_name: Option<String>,
    if_revision: Option<String>,
}

pub(super) async fn insert_cell(call: Call, arguments: InsertArguments) -> Result<ToolReply<TextAnswer>, ToolError> {
    let Notebook { room, .. } = find(&call, arguments.notebook_name.as_deref()).await?;
    let cell = NewCell::new(arguments.cell_type.kind(), arguments.cell_source);
    let (cell_id, kind) = (cell.id.clone(), cell.kind.as_str());
    let revision = arguments.if_revision.as_deref();
    let edited = insert(&call, &room, arguments.cell_index, cell, revision).await?;
    let index = room.position_of(&cell_id).unwrap_or_default();
    let cells = CellTable::around(&room, index)?;
    let text = format!(
        "Cell inserted successfully at index {index} ({kind})!\nNotebook now has {} cells, showing surrounding cells:\n{}",
        cells.cell_count(),
        cells.brief()
    );
    Ok(with_facts("cell.insert", text, Facts::edited(vec![cell_id], edited)))
}

/// Inserts a cell at an index, of which -1 is the end: before the cell that is there now, wherever that is by then.
pub(super) async fn insert(
    call: &Call,
    room: &Room,
    index: i64,
    cell: NewCell,
    if_revision: Option<&str>,
) -> Result<live_document::Edited, ToolError> {
    let next = room.ids(|order| {
        let count = order.count();
        match usize::try_from(index) {
            Ok(index) if index <= count => Ok(vec![index]),
            _ if index == -1 => Ok(vec![count]),
            _ => Err(ToolError::argument(
                "cell_index",
                format!("{index} is out of range; allowed: 0 to {count}, or -1 for the end"),
            )),
        }
    })?;
    check_positions(room, index >= 0, &next, if_revision, call.principal())?;
    let cells = vec![cell];
    let edit = match next.into_iter().next() {
        Some(cell) => Edit::InsertBefore { cell, cells },
        None => Edit::AppendCells { cells },
    };
    let options = EditOptions {
        if_revision,
        ..EditOptions::default()
    };
    call.edit(room, &[edit], options).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverwriteArguments {
    cell_index: Option<usize>,
    cell_source: String,
    notebook_name: Option<String>,
    cell_id: Option<String>,
    if_revision: Option<String>,
    /// Even over what people typed since
    #[serde(default)]
    force: bool,
}

pub(super) async fn overwrite_cell_source(
    call: Call,
    arguments: OverwriteArguments,
) -> Result<ToolReply<TextAnswer>, ToolError> {
    let target = Target::new(arguments.cell_index, arguments.cell_id)?;
    let Notebook { room, .. } = find(&call, arguments.notebook_name.as_deref()).await?;
    let cell = target.id(&room)?;
    let edit = Edit::SetSource {
        cell: cell.clone(),
        source: arguments.cell_source,
    };
    let options = EditOptions {
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
        ..EditOptions::default()
    };
    let change = Change {
        kind: "cell.overwrite",
        done: "overwritten",
        target: &target,
        cell,
    };
    change.apply(&call, &room, edit, options).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditArguments {
    cell_index: Option<usize>,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
    notebook_name: Option<String>,
    cell_id: Option<String>,
    if_revision: Option<String>,
    /// Even over what people typed since
    #[serde(default)]
    force: bool,
}

pub(super) async fn edit_cell_source(call: Call, arguments: EditArguments) -> Result<ToolReply<TextAnswer>, ToolError> {
    let target = Target::new(arguments.cell_index, arguments.cell_id)?;
    if arguments.old_string.is_empty() {
        return Err(ToolError::argument("old_string", "it must not be empty"));
    }
    let Notebook { room, .. } = find(&call, arguments.notebook_name.as_deref()).await?;
    let cell = target.id(&room)?;
    let replacement = Replacement {
        old: &arguments.old_string,
        new: &arguments.new_string,
        all: arguments.replace_all,
    };
    let options = EditOptions {
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
        ..EditOptions::default()
    };
    let change = Change {
        kind: "cell.edit",
        done: "edited",
        target: &target,
        cell: cell.clone(),
    };
    let edit = replacement.edit(Some(cell.clone()));
    match change.apply(&call, &room, edit, options).await {
        Err(ToolError::Room(RoomError::Edit(EditError::Matches { .. }))) => Err(ToolError::argument(
            "old_string",
            explain_replacement(&room, &cell, &replacement),
        )),
        changed => changed,
    }
}

/// A change of one cell's source.
struct Change<'a> {
    kind: &'static str,
    done: &'static str,
    target: &'a Target,
    cell: String,
}

impl Change<'_> {
    /// Makes the change, unless the index was learned before others moved cells, and shows the diff.
    async fn apply(
        self,
        call: &Call,
        room: &Room,
        edit: Edit,
        options: EditOptions<'_>,
    ) -> Result<ToolReply<TextAnswer>, ToolError> {
        let Self {
            kind,
            done,
            target,
            cell,
        } = self;
        let (cells, revision) = (vec![cell.clone()], options.if_revision);
        check_positions(room, target.is_by_position(), &cells, revision, call.principal())?;
        let edited = call.edit(room, &[edit], options).await?;
        let index = room.position_of(&cell).unwrap_or_default();
        let diffs = edited.changes.iter().filter_map(|change| {
            let (before, after) = (change.before.as_deref()?, change.after.as_deref()?);
            Some(unified(before, after, DIFF_CONTEXT)).filter(|diff| !diff.is_empty())
        });
        let text = match diffs.collect::<Vec<_>>().join("\n") {
            diff if diff.is_empty() => format!("Cell {index} {done} successfully - no changes detected"),
            diff => format!("Cell {index} {done} successfully!\n\n```diff\n{diff}\n```"),
        };
        Ok(with_facts(kind, text, Facts::edited(cells, edited)))
    }
}
