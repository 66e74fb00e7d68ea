//! `move_cell`, `delete_cell`, `clear_cell_output`.

use live_document::{CellsRead, Edit, EditOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answer::{Facts, TextAnswer, with_facts},
    target::{Target, find},
};
use crate::tools::{
    Call, ToolError,
    cells::{check_positions, refuse_repeated},
    named::{Notebook, table::CellTable},
    output::ToolReply,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveArguments {
    source_index: Option<usize>,
    target_index: Option<usize>,
    notebook_name: Option<String>,
    source_cell_id: Option<String>,
    target_cell_id: Option<String>,
    if_revision: Option<String>,
}

pub(super) async fn move_cell(call: Call, arguments: MoveArguments) -> Result<ToolReply<TextAnswer>, ToolError> {
    let source = Target::named(
        arguments.source_index,
        arguments.source_cell_id,
        ("source_index", "source_cell_id"),
    )?;
    let target = Target::named(
        arguments.target_index,
        arguments.target_cell_id,
        ("target_index", "target_cell_id"),
    )?;
    let Notebook { room, .. } = find(&call, arguments.notebook_name.as_deref()).await?;
    // All of one moment, since the move itself shifts what is between.
    let (mut from, mut to) = (0, 0);
    let ids = room.ids(|order| {
        (from, to) = (source.position(order)?, target.position(order)?);
        // What the cell will stand before: the target's cell, or the one after that if the cell comes from above.
        let next = to + usize::from(from < to);
        Ok::<_, ToolError>(
            [from, to]
                .into_iter()
                .chain((next < order.count()).then_some(next))
                .collect(),
        )
    })?;
    let (cell, addressed, before) = (ids[0].clone(), ids[..2].to_vec(), ids.get(2).cloned());
    let by_position = source.is_by_position() || target.is_by_position();
    let revision = arguments.if_revision.as_deref();
    check_positions(&room, by_position, &addressed, revision, call.principal())?;
    let facts = match from == to {
        true => Facts {
            cell_ids: vec![cell.clone()],
            edited: None,
        },
        false => {
            let cells = vec![cell.clone()];
            let options = EditOptions {
                if_revision: revision,
                ..EditOptions::default()
            };
            let edit = Edit::MoveCells {
                cells: cells.clone(),
                before,
            };
            Facts::edited(cells, call.edit(&room, &[edit], options).await?)
        }
    };
    let now = room.position_of(&cell).unwrap_or(to);
    let kind = kind_of(&room, now);
    let around = CellTable::around(&room, now)?;
    let text = format!(
        "Cell moved successfully from index {from} to {now} ({kind}).\nNotebook has {} cells, showing surrounding cells:\n{}",
        around.cell_count(),
        around.brief()
    );
    Ok(with_facts("cell.move", text, facts))
}

/// The type of the cell at a position.
fn kind_of(room: &live_document::Room, position: usize) -> String {
    let looked = room.cells(|order| Ok::<_, ToolError>(vec![position.min(order.count().saturating_sub(1))]));
    let cell = looked.ok().and_then(|looked| looked.cells.into_iter().next());
    cell.map(|(_, cell)| cell.cell_type).unwrap_or_default()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteArguments {
    cell_indices: Option<Vec<usize>>,
    #[schemars(extend("default" = true))]
    include_source: Option<bool>,
    notebook_name: Option<String>,
    /// Instead of cell_indices
    cell_ids_to_delete: Option<Vec<String>>,
    if_revision: Option<String>,
    /// Even over what people typed since
    #[serde(default)]
    force: bool,
}

pub(super) async fn delete_cell(call: Call, arguments: DeleteArguments) -> Result<ToolReply<TextAnswer>, ToolError> {
    let targets = targets(&arguments)?;
    let Notebook { room, .. } = find(&call, arguments.notebook_name.as_deref()).await?;
    let CellsRead { cells, .. } = room.cells(|order| {
        targets
            .iter()
            .map(|target| target.position(order))
            .collect::<Result<Vec<_>, ToolError>>()
    })?;
    let ids: Vec<String> = cells.iter().map(|(_, cell)| cell.id.clone()).collect();
    let by_position = targets.iter().any(Target::is_by_position);
    refuse_repeated(&ids, |place| match by_position {
        true => format!("cell_indices[{place}]"),
        false => format!("cell_ids_to_delete[{place}]"),
    })?;
    let options = EditOptions {
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
        ..EditOptions::default()
    };
    check_positions(&room, by_position, &ids, options.if_revision, call.principal())?;
    let edit = Edit::DeleteCells { cells: ids.clone() };
    let edited = call.edit(&room, &[edit], options).await?;
    let lines = cells.iter().map(|(index, cell)| {
        let done = format!("Cell {index} ({}) deleted successfully.", cell.cell_type);
        match arguments.include_source.unwrap_or(true) {
            true => format!("{done}\ndeleted cell source:\n{}\n\n---\n", cell.source),
            false => done,
        }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    Ok(with_facts("cell.delete", text, Facts::edited(ids, edited)))
}

/// The cells to delete, of which those given by id count.
fn targets(arguments: &DeleteArguments) -> Result<Vec<Target>, ToolError> {
    let by_id = arguments.cell_ids_to_delete.as_deref().unwrap_or_default();
    let by_index = arguments.cell_indices.as_deref().unwrap_or_default();
    let names = ("cell_indices", "cell_ids_to_delete");
    match (by_id, by_index) {
        ([], []) => Err(ToolError::argument(
            names.0,
            "name the cells by cell_indices or cell_ids_to_delete",
        )),
        ([], indices) => indices
            .iter()
            .map(|index| Target::named(Some(*index), None, names))
            .collect(),
        (ids, _) => ids
            .iter()
            .map(|id| Target::named(None, Some(id.clone()), names))
            .collect(),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClearArguments {
    cell_index: Option<usize>,
    notebook_name: Option<String>,
    cell_id: Option<String>,
}

pub(super) async fn clear_cell_output(
    call: Call,
    arguments: ClearArguments,
) -> Result<ToolReply<TextAnswer>, ToolError> {
    let target = Target::new(arguments.cell_index, arguments.cell_id)?;
    let Notebook { room, .. } = find(&call, arguments.notebook_name.as_deref()).await?;
    let cell = target.id(&room)?;
    let index = room.position_of(&cell).unwrap_or_default();
    if !room.is_code(&cell) {
        let why = format!("cell {index} is not a code cell, it has no outputs to clear");
        return Err(ToolError::argument("cell_index", why));
    }
    let count = room.outputs_of(&cell).map_or(0, |outputs| outputs.len());
    let cells = vec![cell];
    let edit = Edit::ClearOutputs { cells: cells.clone() };
    let edited = call.edit(&room, &[edit], EditOptions::default()).await?;
    let text = match count {
        0 => format!("Cell {index} had no output to clear."),
        count => format!("Cell {index} output cleared successfully ({count} output(s) removed)."),
    };
    Ok(with_facts("cell.clear_output", text, Facts::edited(cells, edited)))
}
