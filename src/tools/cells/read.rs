//! `read_nb_cells`.

use live_document::{Cell, CellsRead, Room};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    notebook,
    render::{Limit, ShownCell, attach_all, show_all, show_in_brief},
    select::{Range, positions},
};
use crate::tools::{
    Call, ToolError,
    output::ToolReply,
    people::{PersonHere, people, people_line},
    text::{
        Page,
        cell::{CellNames, View, facts, write_cells},
    },
};

const DEFAULT_MAX_CELL_DATA: usize = 2048;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    ranges: Option<Vec<Range>>,
    /// Characters per source and output
    #[schemars(extend("default" = 2048))]
    max_cell_data: Option<usize>,
    /// brief: a line per output; outline: a line per cell
    view: Option<View>,
    #[schemars(extend("default" = true))]
    images: Option<bool>,
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
    let view = arguments.view.unwrap_or_default();
    let ranges = arguments.ranges.filter(|ranges| !ranges.is_empty());
    let CellsRead {
        revision,
        mut cells,
        cell_count,
    } = room.cells(|order| match &ranges {
        Some(ranges) => positions(order, ranges, "ranges"),
        None => Ok((0..order.count()).collect()),
    })?;
    let illustrator = call.illustrator(arguments.images.unwrap_or(true));
    let images = match view {
        View::Full => {
            let outputs = cells.iter_mut().map(|(_, cell)| &mut cell.outputs).collect();
            attach_all(outputs, &illustrator).await?
        }
        View::Brief | View::Outline => Vec::new(),
    };
    let people = people(&room);
    let mut page = call.page();
    page.line(facts(&path, cell_count, &revision));
    if let Some(line) = people_line(&people) {
        page.line(line);
    }
    let written = write(&mut page, &room, &cells, view, max_cell_data);
    let shown = shown(cells, view, max_cell_data);
    // Who gets the text only has seen no more than that.
    let seen = match call.faces().structured {
        true => &shown[..],
        false => &shown[..written],
    };
    match ranges.is_none() && seen.len() == cell_count {
        true => call.record_all_shown(&room, &revision, seen),
        false => call.record_shown(&room, &revision, seen),
    }
    let value = Cells {
        path: path.to_string(),
        revision,
        truncated: shown.iter().any(ShownCell::is_truncated),
        cells: shown,
        cell_count,
        max_cell_data,
        people,
    };
    Ok(ToolReply {
        images,
        ..ToolReply::told(page.into_text(), value)
    })
}

/// Cells as programs read them.
fn shown(cells: Vec<(usize, Cell)>, view: View, max: usize) -> Vec<ShownCell> {
    let hint = |size: usize| format!("max_cell_data={size} shows all");
    match view {
        View::Full => show_all(cells, Limit::Each(max), hint),
        View::Brief | View::Outline => {
            let brief = |(index, cell)| show_in_brief(index, cell, view == View::Outline);
            cells.into_iter().map(brief).collect()
        }
    }
}

/// Writes cells, and how to read those for which there is no room.
fn write(page: &mut Page, room: &Room, cells: &[(usize, Cell)], view: View, max: usize) -> usize {
    let ids: Vec<&str> = cells.iter().map(|(_, cell)| cell.id.as_str()).collect();
    let written = write_cells(page, cells, &CellNames::of(room, &ids), view, max);
    if let [(first, _), ..] = &cells[written..] {
        let (more, end) = (cells.len() - written, cells.last().map_or(0, |(last, _)| last + 1));
        page.line(format_args!(
            "[{more} more cells: read_nb_cells(ranges=[{{\"start\": {first}, \"end\": {end}}}])]"
        ));
    }
    written
}
