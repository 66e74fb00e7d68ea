//! `list_cell`, `read_cell`, `read_notebook`.

use std::fmt::Write;

use live_document::{Cell, CellsRead, SourceShown};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::output_text;
use crate::tools::{
    Call, ToolError,
    cells::{Limit, ShownCell, attach_all, show_all},
    named::{
        CellIndex, MAX_SHOWN, Notebook, blocks,
        table::{CellTable, page},
    },
    output::ToolReply,
    people::{PersonHere, people, people_line},
};

const LISTED_CELLS: usize = 50;
const READ_CELLS: usize = 20;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    notebook_name: String,
    #[serde(default)]
    start_index: usize,
    /// 0 means all
    #[schemars(extend("default" = 50))]
    limit: Option<usize>,
}

pub(super) async fn list_cell(call: Call, arguments: ListArguments) -> Result<ToolReply<CellTable>, ToolError> {
    let notebook = Notebook::find(&call, &arguments.notebook_name).await?;
    let limit = arguments.limit.unwrap_or(LISTED_CELLS);
    let value = CellTable::page(&notebook.room, arguments.start_index, limit)?;
    let text = format!("{}\n\n{value}", value.span());
    Ok(ToolReply::in_blocks(blocks([text.trim_start().to_owned()]), value))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadNotebookArguments {
    notebook_name: String,
    #[serde(default)]
    start_index: usize,
    /// 0 means all
    #[schemars(extend("default" = 20))]
    limit: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Sources {
    cell_count: usize,
    revision: String,
    cells: Vec<Source>,
    people: Vec<PersonHere>,
}

#[derive(Serialize, JsonSchema)]
struct Source {
    index: usize,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    source: String,
}

pub(super) async fn read_notebook(
    call: Call,
    arguments: ReadNotebookArguments,
) -> Result<ToolReply<Sources>, ToolError> {
    let notebook = Notebook::find(&call, &arguments.notebook_name).await?;
    let limit = arguments.limit.unwrap_or(READ_CELLS);
    let CellsRead {
        revision,
        cells,
        cell_count,
    } = notebook
        .room
        .cells(|order| Ok::<_, ToolError>(page(order, arguments.start_index, limit)?.collect()))?;
    let mut text = match (cells.first(), cells.last()) {
        (Some((first, _)), Some((last, _))) => {
            format!("=====Showing cells {first}-{last} of {cell_count} total cells=====\n\n")
        }
        _ => "Notebook is empty, no Cell".to_owned(),
    };
    for (index, cell) in &cells {
        text.push_str(&cell_text(*index, cell));
    }
    let shown = cells.iter().map(|(_, cell)| SourceShown {
        cell: &cell.id,
        source: Some(&cell.source),
    });
    notebook.room.record_shown(&call.principal().id, &revision, shown);
    let people = people(&notebook.room);
    let source = |(index, cell): (usize, Cell)| Source {
        index,
        id: cell.id,
        kind: cell.cell_type,
        source: cell.source,
    };
    Ok(ToolReply::in_blocks(
        blocks([text].into_iter().chain(people_line(&people))),
        Sources {
            cell_count,
            revision,
            cells: cells.into_iter().map(source).collect(),
            people,
        },
    ))
}

/// A cell under a line that says which it is.
fn cell_text(index: usize, cell: &Cell) -> String {
    let mut text = format!("=====Index: {index}, Type: {}", cell.cell_type);
    if cell.cell_type == "code" {
        // Writing to a string cannot fail.
        let _ = write!(text, ", Execution Count: {}", count_text(&cell.execution_count));
    }
    let _ = write!(text, "=====\n{}\n\n", cell.source);
    text
}

fn count_text(count: &serde_json::Value) -> String {
    match count.as_i64() {
        Some(count) => count.to_string(),
        None => "None".to_owned(),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadCellArguments {
    notebook_name: String,
    cell_index: CellIndex,
    #[schemars(extend("default" = true))]
    return_output: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ReadCell {
    cell: Option<ShownCell>,
    cell_count: usize,
    revision: String,
    people: Vec<PersonHere>,
}

pub(super) async fn read_cell(call: Call, arguments: ReadCellArguments) -> Result<ToolReply<ReadCell>, ToolError> {
    let notebook = Notebook::find(&call, &arguments.notebook_name).await?;
    let CellsRead {
        revision,
        mut cells,
        cell_count,
    } = notebook
        .room
        .cells(|order| Ok::<_, ToolError>(vec![arguments.cell_index.position(order)?]))?;
    if !arguments.return_output.unwrap_or(true) {
        for (_, cell) in &mut cells {
            cell.outputs.clear();
        }
    }
    let outputs = cells.iter_mut().map(|(_, cell)| &mut cell.outputs).collect();
    let images = attach_all(outputs, &call.illustrator(true)).await?;
    let shown = show_all(cells, Limit::Each(MAX_SHOWN), |_| String::new());
    call.record_shown(&notebook.room, &revision, &shown);
    let people = people(&notebook.room);
    let cell = shown.into_iter().next();
    let mut texts = Vec::new();
    if let Some(cell) = &cell {
        texts.push(match cell.source.is_empty() {
            true => "(the cell is empty)".to_owned(),
            false => cell.source.clone(),
        });
        if cell.cell_type == "code" {
            texts.push(format!(
                "Current execution count: {}",
                count_text(&cell.execution_count)
            ));
        }
        texts.extend(cell.outputs.iter().map(output_text));
    }
    texts.extend(people_line(&people));
    Ok(ToolReply::in_blocks(
        blocks(texts).into_iter().chain(images).collect(),
        ReadCell {
            cell,
            cell_count,
            revision,
            people,
        },
    ))
}
