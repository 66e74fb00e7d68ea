//! `read_notebook`, `read_cell`.

use std::fmt::Write;

use live_document::{Cell, CellsRead, ShortIds, SourceShown};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    answer::{Facts, OutputsAnswer, Source, TextAnswer, output_blocks, outputs, with_facts},
    target::{Target, find},
};
use crate::tools::{
    Block, Call, ToolError,
    cells::{Limit, attach_all, show_all},
    named::{
        MAX_SHOWN, Notebook,
        table::{CellTable, page},
    },
    output::ToolReply,
    people::{people, people_line},
};

const READ_CELLS: usize = 20;

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Format {
    #[default]
    Brief,
    Detailed,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NotebookArguments {
    notebook_name: String,
    #[serde(default)]
    #[schemars(extend("default" = "brief"))]
    response_format: Format,
    #[serde(default)]
    start_index: usize,
    /// 0 means all
    #[schemars(extend("default" = 20))]
    limit: Option<usize>,
}

pub(super) async fn read_notebook(
    call: Call,
    arguments: NotebookArguments,
) -> Result<ToolReply<TextAnswer>, ToolError> {
    let name = &arguments.notebook_name;
    let Notebook { room, .. } = Notebook::find(&call, name).await?;
    let limit = arguments.limit.unwrap_or(READ_CELLS);
    let looked = room.cells(|order| Ok::<_, ToolError>(page(order, arguments.start_index, limit)?.collect()))?;
    let mut text = format!("Notebook {name} has {} cells.\n", looked.cell_count);
    if let Some(people) = people_line(&people(&room)) {
        // A string takes everything.
        let _ = writeln!(text, "{people}");
    }
    let cell_ids = looked.cells.iter().map(|(_, cell)| cell.id.clone()).collect();
    match arguments.response_format {
        _ if looked.cells.is_empty() => text.push_str("\nNotebook is empty"),
        Format::Brief => {
            let _ = write!(text, "\n{}", CellTable::new(looked).brief());
        }
        Format::Detailed => {
            let shown = looked.cells.iter().map(|(_, cell)| SourceShown {
                cell: &cell.id,
                source: Some(&cell.source),
            });
            room.record_shown(&call.principal().id, &looked.revision, shown);
            let short = room.short_ids();
            for (index, cell) in &looked.cells {
                let _ = write!(text, "\n{}\n{}\n", heading(*index, cell, &short), cell.source);
            }
        }
    }
    let facts = Facts { cell_ids, edited: None };
    Ok(with_facts("notebook.read", text, facts))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CellArguments {
    cell_index: Option<usize>,
    #[schemars(extend("default" = true))]
    include_outputs: Option<bool>,
    notebook_name: Option<String>,
    cell_id: Option<String>,
}

pub(super) async fn read_cell(call: Call, arguments: CellArguments) -> Result<ToolReply<OutputsAnswer>, ToolError> {
    let target = Target::new(arguments.cell_index, arguments.cell_id)?;
    let Notebook { room, .. } = find(&call, arguments.notebook_name.as_deref()).await?;
    let CellsRead {
        revision, mut cells, ..
    } = room.cells(|order| Ok::<_, ToolError>(vec![target.position(order)?]))?;
    let short = room.short_ids();
    let heading = cells.first().map(|(index, cell)| heading(*index, cell, &short));
    if !arguments.include_outputs.unwrap_or(true) {
        for (_, cell) in &mut cells {
            cell.outputs.clear();
        }
    }
    let in_cells = cells.iter_mut().map(|(_, cell)| &mut cell.outputs).collect();
    let images = attach_all(in_cells, &call.illustrator(true)).await?;
    let shown = show_all(cells, Limit::Each(MAX_SHOWN), |_| String::new());
    call.record_shown(&room, &revision, &shown);
    let mut blocks: Vec<Block> = heading.into_iter().map(Block::Text).collect();
    let cell = shown.first();
    if let Some(cell) = cell {
        // The second is always the source, as clients read it.
        let source = Some(&cell.source).filter(|source| !source.is_empty());
        blocks.push(Block::Text(source.map_or_else(|| "(empty)".to_owned(), Clone::clone)));
        blocks.extend(output_blocks(&cell.outputs, &images));
    }
    blocks.extend(people_line(&people(&room)).map(Block::Text));
    let source = Source {
        cell_id: cell.map(|cell| cell.id().to_owned()),
        ..Source::default()
    };
    Ok(outputs("cell.read", blocks, source))
}

/// The line that names a cell.
pub(super) fn heading(index: usize, cell: &Cell, short: &ShortIds) -> String {
    let count = match &cell.execution_count {
        Value::Number(count) => count.to_string(),
        _ => "N/A".to_owned(),
    };
    format!(
        "=====Cell {index} | type: {} | execution count: {count} | id: {}=====",
        cell.cell_type,
        short.get(&cell.id)
    )
}
