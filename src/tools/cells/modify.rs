//! `modify_nb_cells`.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    notebook, refuse_exec,
    select::{Range, check_positions, positions},
};
use crate::{
    jupyter::room::Edit,
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
    #[expect(dead_code, reason = "accepted because callers send it; it matters once cells can be executed")]
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
    let ids = room.cell_ids();
    let (mut edits, mut seen) = (Vec::new(), HashSet::new());
    for (index, modification) in arguments.modifications.iter().enumerate() {
        let ranges = std::slice::from_ref(&modification.range);
        check_positions(&room, ranges, arguments.if_revision.as_deref(), call.principal())?;
        for position in positions(&ids, ranges, "modifications.range")? {
            let Some(cell) = ids.get(position).cloned() else { continue };
            if !seen.insert(cell.clone()) {
                return Err(ToolError::argument(&format!("modifications[{index}]"), format!("cell {cell:?} is modified twice in one call")));
            }
            edits.push(Edit::SetSource { cell, source: modification.content.clone() });
        }
    }
    let principal = call.principal();
    let edited = room.edit(&principal.id, &principal.name, &edits, arguments.if_revision.as_deref()).await?;
    let modified_ranges = arguments.modifications.len();
    Ok(Modified {
        message: format!("Successfully modified {modified_ranges} cell ranges"),
        modified_ranges,
        executed: false,
        cell_ids: edits.into_iter().filter_map(|edit| match edit { Edit::SetSource { cell, .. } => Some(cell), _ => None }).collect(),
        revision: edited.revision,
        acknowledged: edited.acknowledged,
    })
}
