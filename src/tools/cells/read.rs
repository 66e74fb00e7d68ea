//! `read_nb_cells`.

use live_document::Looked;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    notebook,
    render::{Limit, ShownCell, show_all},
    select::{Range, positions},
};
use crate::tools::{
    Call, ToolError,
    output::ToolReply,
    people::{PersonHere, people},
};

const DEFAULT_MAX_CELL_DATA: usize = 2048;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// Default: all
    ranges: Option<Vec<Range>>,
    /// Characters per source and output
    #[schemars(extend("default" = 2048))]
    max_cell_data: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Cells {
    path: String,
    revision: String,
    cells: Vec<ShownCell>,
    cell_count: usize,
    truncated: bool,
    max_cell_data: usize,
    people: Vec<PersonHere>,
}

pub(super) async fn read_nb_cells(call: Call, arguments: Arguments) -> Result<ToolReply<Cells>, ToolError> {
    let (_, path, room) = notebook(&call, arguments.server.as_deref(), &arguments.path).await?;
    let max_cell_data = arguments.max_cell_data.unwrap_or(DEFAULT_MAX_CELL_DATA);
    let Looked {
        revision,
        cells,
        cell_count,
    } = room.cells(|order| match &arguments.ranges {
        Some(ranges) if !ranges.is_empty() => positions(order, ranges, "ranges"),
        _ => Ok((0..order.count()).collect()),
    })?;
    let hint = |size: usize| format!("max_cell_data={size} shows all");
    let (cells, images) = show_all(cells, Limit::Each(max_cell_data), call.illustrator(), hint).await?;
    match arguments.ranges.is_none_or(|ranges| ranges.is_empty()) {
        true => call.record_all_shown(&room, &revision, &cells),
        false => call.record_shown(&room, &revision, &cells),
    }
    let value = Cells {
        path: path.to_string(),
        revision,
        truncated: cells.iter().any(ShownCell::is_truncated),
        cells,
        cell_count,
        max_cell_data,
        people: people(&room),
    };
    Ok(ToolReply {
        images,
        ..ToolReply::json(value)
    })
}
