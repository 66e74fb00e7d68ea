//! `modify_nb_cells`.

use std::{collections::HashSet, slice};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    notebook, refuse_exec,
    select::{Range, check_positions, positions},
};
use crate::{
    jupyter::room::{Edit, Room},
    tools::{Call, ToolError},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    modifications: Vec<Modification>,
    /// Refuse if others changed these cells since this revision
    if_revision: Option<String>,
    exec: Option<bool>,
    #[serde(alias = "maxCellOutputSize")]
    #[expect(
        dead_code,
        reason = "accepted because callers send it; it matters once cells can be executed"
    )]
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Modification {
    range: Range,
    content: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Modified {
    message: String,
    modified_ranges: usize,
    executed: bool,
    cell_ids: Vec<String>,
    revision: String,
    acknowledged: bool,
}

pub(super) async fn modify_nb_cells(call: Call, arguments: Arguments) -> Result<Modified, ToolError> {
    refuse_exec(arguments.exec)?;
    let (_, _, room) = notebook(&call, arguments.server.as_deref(), &arguments.path).await?;
    let edits = edits(&room, &arguments.modifications)?;
    let ranges: Vec<Range> = arguments
        .modifications
        .iter()
        .map(|modification| modification.range.clone())
        .collect();
    check_positions(&room, &ranges, arguments.if_revision.as_deref(), call.principal())?;
    let principal = call.principal();
    let edited = room
        .edit(&principal.id, &principal.name, &edits, arguments.if_revision.as_deref())
        .await?;
    let modified_ranges = arguments.modifications.len();
    Ok(Modified {
        message: format!("Successfully modified {modified_ranges} cell ranges"),
        modified_ranges,
        executed: false,
        cell_ids: edits
            .into_iter()
            .filter_map(|edit| match edit {
                Edit::SetSource { cell, .. } => Some(cell),
                _ => None,
            })
            .collect(),
        revision: edited.revision,
        acknowledged: edited.acknowledged,
    })
}

/// One edit for each cell that is meant, all chosen at the same moment.
fn edits(room: &Room, modifications: &[Modification]) -> Result<Vec<Edit>, ToolError> {
    let mut contents = Vec::new();
    let cells = room.ids(|order| {
        let mut all = Vec::new();
        for (index, modification) in modifications.iter().enumerate() {
            let found = positions(order, slice::from_ref(&modification.range), "modifications.range")?;
            contents.extend(std::iter::repeat_n((index, &modification.content), found.len()));
            all.extend(found);
        }
        Ok::<_, ToolError>(all)
    })?;
    let mut seen = HashSet::new();
    let edit = |(cell, (index, source)): (String, (usize, &String))| {
        if !seen.insert(cell.clone()) {
            let why = format!("cell {cell:?} is modified twice in one call");
            return Err(ToolError::argument(&format!("modifications[{index}]"), why));
        }
        Ok(Edit::SetSource {
            cell,
            source: source.clone(),
        })
    };
    cells.into_iter().zip(contents).map(edit).collect()
}
