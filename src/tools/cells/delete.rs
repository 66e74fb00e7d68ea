//! `delete_nb_cells`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    notebook,
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
    ranges: Vec<Range>,
    if_revision: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    message: String,
    deleted_cells: usize,
    cell_ids: Vec<String>,
    revision: String,
    acknowledged: bool,
}

pub(super) async fn delete_nb_cells(call: Call, arguments: Arguments) -> Result<Deleted, ToolError> {
    let (_, _, room) = notebook(&call, arguments.server.as_deref(), &arguments.path).await?;
    let revision = arguments.if_revision.as_deref();
    let cells = room.ids(|order| {
        let mut wanted = positions(order, &arguments.ranges, "ranges")?;
        wanted.sort_unstable();
        wanted.dedup();
        Ok::<_, ToolError>(wanted)
    })?;
    check_positions(&room, &arguments.ranges, revision, call.principal())?;
    let principal = call.principal();
    let edits = [Edit::DeleteCells { cells: cells.clone() }];
    let edited = room.edit(&principal.id, &principal.name, &edits, revision).await?;
    Ok(Deleted {
        message: format!("Successfully deleted {} cells", cells.len()),
        deleted_cells: cells.len(),
        cell_ids: cells,
        revision: edited.revision,
        acknowledged: edited.acknowledged,
    })
}
