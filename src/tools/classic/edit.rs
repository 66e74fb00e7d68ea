//! `insert_cell`, `delete_cell`, `overwrite_cell`.

use live_document::{CellKind, Edit, EditOptions, NewCell, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{
    Call, ToolError,
    cells::{Edited, check_positions},
    diff::unified,
    named::{CellIndex, Notebook, blocks, table::CellTable},
    output::ToolReply,
};

/// Number of lines around those that differ.
const DIFF_CONTEXT: usize = 3;

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Location {
    Above,
    #[default]
    Below,
}

// Raw cells, which JupyterLab has too, were not among the original's.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CellType {
    Code,
    Markdown,
    Raw,
}

impl CellType {
    pub(super) fn new_cell(self, source: String) -> NewCell {
        let kind = match self {
            Self::Code => CellKind::Code,
            Self::Markdown => CellKind::Markdown,
            Self::Raw => CellKind::Raw,
        };
        NewCell::new(kind, source)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InsertArguments {
    notebook_name: String,
    /// -1 or the cell count means the end
    cell_index: Anchor,
    cell_type: CellType,
    cell_content: String,
    #[serde(default)]
    location: Location,
    if_revision: Option<String>,
}

// Where to insert: beside a cell, or at the end. Not a doc comment, which would be repeated in the schema.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected an index from 0, -1 for the end, or an id as in {\"cell_id\": \"...\"}"
)]
enum Anchor {
    Index(i64),
    Id { cell_id: String },
}

impl Anchor {
    fn in_room(self, room: &Room) -> Result<CellIndex, ToolError> {
        let count = room.cell_count();
        match self {
            Self::Id { cell_id } => Ok(CellIndex::Id { cell_id }),
            Self::Index(-1) => Ok(CellIndex::Index(count)),
            Self::Index(index) => match usize::try_from(index).ok().filter(|index| *index <= count) {
                Some(index) => Ok(CellIndex::Index(index)),
                None => Err(ToolError::argument(
                    "cell_index",
                    format!("{index} is out of range; allowed: 0 to {count}, or -1 for the end"),
                )),
            },
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Inserted {
    cell_id: String,
    cell_index: Option<usize>,
    acknowledged: bool,
    #[serde(flatten)]
    table: CellTable,
}

pub(super) async fn insert_cell(call: Call, arguments: InsertArguments) -> Result<ToolReply<Inserted>, ToolError> {
    let Notebook { room, .. } = Notebook::find(&call, &arguments.notebook_name).await?;
    let cell = arguments.cell_type.new_cell(arguments.cell_content);
    let cell_id = cell.id.clone();
    let anchor = arguments.cell_index.in_room(&room)?;
    let edit = insertion(&room, &anchor, arguments.location, cell)?;
    let options = EditOptions {
        if_revision: arguments.if_revision.as_deref(),
        force: false,
        ..EditOptions::default()
    };
    let edited = apply(&call, &room, &anchor, edit, options).await?;
    let cell_index = room.position_of(&cell_id);
    let table = CellTable::around(&room, cell_index.unwrap_or_default())?;
    let text = format!("Insert successful!\nSurrounding cells information:\n{table}");
    Ok(ToolReply::in_blocks(
        blocks([text]),
        Inserted {
            cell_id,
            cell_index,
            acknowledged: edited.acknowledged,
            table,
        },
    ))
}

/// Puts a cell beside another, wherever that is by then.
fn insertion(room: &Room, anchor: &CellIndex, location: Location, cell: NewCell) -> Result<Edit, ToolError> {
    let mut next = room.ids(|order| {
        Ok::<_, ToolError>(vec![match anchor {
            CellIndex::Index(index) if *index == order.count() => *index,
            anchor => anchor.position(order)? + usize::from(location == Location::Below),
        }])
    })?;
    let cells = vec![cell];
    Ok(match next.pop() {
        Some(cell) => Edit::InsertBefore { cell, cells },
        None => Edit::AppendCells { cells },
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArguments {
    notebook_name: String,
    cell_index: CellIndex,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    cell_id: String,
    deleted_content: String,
    acknowledged: bool,
    #[serde(flatten)]
    table: CellTable,
}

pub(super) async fn delete_cell(call: Call, arguments: DeleteArguments) -> Result<ToolReply<Deleted>, ToolError> {
    let Notebook { room, .. } = Notebook::find(&call, &arguments.notebook_name).await?;
    let cell_id = arguments.cell_index.id(&room)?;
    let position = room.position_of(&cell_id).unwrap_or_default();
    let deleted_content = room.source_of(&cell_id).unwrap_or_default();
    let edit = Edit::DeleteCells {
        cells: vec![cell_id.clone()],
    };
    let options = EditOptions {
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
        ..EditOptions::default()
    };
    let edited = apply(&call, &room, &arguments.cell_index, edit, options).await?;
    let table = CellTable::around(&room, position)?;
    let text = format!(
        "Delete successful!\nDeleted cell content:\n{deleted_content}\nSurrounding cells information:\n{table}"
    );
    Ok(ToolReply::in_blocks(
        blocks([text]),
        Deleted {
            cell_id,
            deleted_content,
            acknowledged: edited.acknowledged,
            table,
        },
    ))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverwriteArguments {
    notebook_name: String,
    cell_index: CellIndex,
    cell_content: String,
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Overwritten {
    cell_id: String,
    diff: String,
    #[serde(flatten)]
    edited: Edited,
}

pub(super) async fn overwrite_cell(
    call: Call,
    arguments: OverwriteArguments,
) -> Result<ToolReply<Overwritten>, ToolError> {
    let Notebook { room, .. } = Notebook::find(&call, &arguments.notebook_name).await?;
    let cell_id = arguments.cell_index.id(&room)?;
    let edit = Edit::SetSource {
        cell: cell_id.clone(),
        source: arguments.cell_content,
    };
    let options = EditOptions {
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
        ..EditOptions::default()
    };
    let edited = apply(&call, &room, &arguments.cell_index, edit, options).await?;
    let change = edited.changes.first();
    let texts = change.and_then(|change| Some((change.before.as_deref()?, change.after.as_deref()?)));
    let diff = texts.map_or_else(String::new, |(before, after)| unified(before, after, DIFF_CONTEXT));
    Ok(ToolReply::in_blocks(
        blocks([format!("Overwrite successful!\n\n```diff\n{diff}\n```")]),
        Overwritten {
            cell_id,
            diff,
            edited: edited.into(),
        },
    ))
}

/// Makes one change, unless the index was learned before others moved cells.
async fn apply(
    call: &Call,
    room: &Room,
    index: &CellIndex,
    edit: Edit,
    options: EditOptions<'_>,
) -> Result<live_document::Edited, ToolError> {
    // The end of a notebook has no cell, and is where it is.
    let addressed: Vec<String> = index.id(room).into_iter().collect();
    check_positions(
        room,
        index.range().is_by_position(),
        &addressed,
        options.if_revision,
        call.principal(),
    )?;
    call.edit(room, &[edit], options).await
}
