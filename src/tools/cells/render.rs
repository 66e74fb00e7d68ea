//! Cells and outputs as a model reads them: cut to a size, images as images.

mod output;
#[cfg(test)]
mod tests;

use jupyter_client::{counted, truncate};
use live_document::Cell;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::output::{error_size, show_output, text_size};
use crate::tools::{
    Block, ToolError,
    images::{Illustrator, is_image},
    shares::shares,
    text::{cell::output_lines, output::joined},
};

/// Size up to which metadata goes along with its cell or output; more is counted like their text.
const SMALL_METADATA: usize = 200;
/// Characters that a cell or an output takes besides its text, where there is one limit for all.
const PLACE: usize = 50;
/// Number of them that are shown in any case.
const MIN_PLACES: usize = 20;
/// Characters that errors and their tracebacks have for themselves, if they need them and so many are shown at all.
const MIN_ERRORS: usize = 1000;

#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct ShownCell {
    index: usize,
    id: String,
    pub(in crate::tools) cell_type: String,
    pub(in crate::tools) source: String,
    metadata: Value,
    /// Null for a cell that was not executed, or cannot be.
    pub(in crate::tools) execution_count: Value,
    #[schemars(schema_with = "outputs_schema")]
    pub(in crate::tools) outputs: Vec<Value>,
    truncated: CellTruncation,
    /// A line about each output, where they are not shown themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_lines: Option<Vec<String>>,
}

/// Schema of outputs, which are passed on as the notebook has them. Only the names of their members are told: what a file
/// holds may be of any type.
pub(in crate::tools) fn outputs_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "properties": { "output_type": true, "text": true, "data": true, "traceback": true } },
    })
}

#[derive(Serialize, JsonSchema)]
struct CellTruncation {
    source: bool,
    outputs: Vec<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    metadata: bool,
}

impl ShownCell {
    pub(in crate::tools) fn is_truncated(&self) -> bool {
        self.truncated.source || self.truncated.outputs.contains(&true) || self.truncated.metadata
    }

    pub(in crate::tools) fn id(&self) -> &str {
        &self.id
    }

    /// The source, unless only a part of it is shown.
    pub(in crate::tools) fn whole_source(&self) -> Option<&str> {
        (!self.truncated.source).then_some(self.source.as_str())
    }

    /// Returns whether its metadata was too large to be shown.
    pub(in crate::tools) fn lacks_metadata(&self) -> bool {
        self.truncated.metadata
    }
}

/// Limit of what is shown of cells, in characters.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) enum Limit {
    /// Limit of every source and every output.
    Each(usize),
    /// Limit of all together; cells for which nothing is left are left out.
    All(usize),
}

impl Limit {
    fn allowance(self) -> usize {
        match self {
            Self::Each(max) | Self::All(max) => max,
        }
    }

    fn spend(&mut self, size: impl FnOnce() -> usize) {
        if let Self::All(left) = self {
            *left = left.saturating_sub(size());
        }
    }

    fn is_spent(self) -> bool {
        matches!(self, Self::All(0))
    }

    /// Number of cells and outputs there may be, even of those that are empty.
    fn places(self) -> usize {
        match self {
            Self::Each(_) => usize::MAX,
            Self::All(max) => (max / PLACE).max(MIN_PLACES),
        }
    }
}

/// Cells, with their images attached, cut to a limit. `hint` tells how to see so many characters.
pub(in crate::tools) fn show_all(
    cells: Vec<(usize, Cell)>,
    mut limit: Limit,
    hint: impl Fn(usize) -> String,
) -> Vec<ShownCell> {
    let shown = cells
        .into_iter()
        .map(|(index, cell)| show(index, cell, &mut limit, &hint));
    shown.collect()
}

/// A cell of which only the source is shown, or only its first line, and a line about each output.
pub(in crate::tools) fn show_in_brief(index: usize, mut cell: Cell, is_outline: bool) -> ShownCell {
    let summary = output_lines(&cell, usize::MAX);
    cell.outputs.clear();
    let max = match is_outline {
        true => cell.source.lines().next().unwrap_or_default().chars().count(),
        false => usize::MAX,
    };
    let source = truncate(cell.source, max);
    ShownCell {
        index,
        id: cell.id,
        cell_type: cell.cell_type,
        source: source.text,
        metadata: cell.metadata,
        execution_count: cell.execution_count,
        outputs: Vec::new(),
        truncated: CellTruncation {
            source: source.truncated,
            outputs: vec![true; summary.len()],
            metadata: false,
        },
        output_lines: Some(summary),
    }
}

/// Leaves out the cells for which a limit has no room, so that nothing is done for them.
pub(in crate::tools) fn drop_beyond(cells: &mut Vec<(usize, Cell)>, limit: Limit) {
    cells.truncate(shown_count(cells, limit));
}

/// Puts the images in the outputs of some cells into blocks, as far as an answer has places for them.
pub(in crate::tools) async fn attach_all(
    cells: Vec<&mut Vec<Value>>,
    illustrator: &Illustrator,
) -> Result<Vec<Block>, ToolError> {
    let mut images = Vec::new();
    for outputs in cells {
        attach_images(outputs, illustrator, &mut images).await?;
    }
    Ok(images)
}

/// Number of the cells there is room for, so that nothing is done for those that are left out.
fn shown_count(cells: &[(usize, Cell)], mut limit: Limit) -> usize {
    let mut places = limit.places();
    let mut fits = |(_, cell): &(usize, Cell)| {
        let has_text = !cell.source.is_empty() || !cell.outputs.is_empty();
        if places == 0 || limit.is_spent() && has_text {
            return false;
        }
        places = places.saturating_sub(1 + cell.outputs.len());
        limit.spend(|| length(cell));
        true
    };
    cells.iter().take_while(|cell| fits(cell)).count()
}

/// Number of characters of cells a model would read.
pub(in crate::tools) fn text_length(cells: &[(usize, Cell)]) -> usize {
    cells.iter().map(|(_, cell)| length(cell)).sum()
}

fn length(cell: &Cell) -> usize {
    let outputs: usize = cell.outputs.iter().map(text_size).sum();
    cell.source.chars().count() + outputs + metadata_size(&cell.metadata)
}

/// Makes blocks of images, each whole, or says why one is left out; half of one is nothing.
async fn attach_images(
    outputs: &mut [Value],
    illustrator: &Illustrator,
    images: &mut Vec<Block>,
) -> Result<(), ToolError> {
    let data = outputs
        .iter_mut()
        .filter_map(|output| output.get_mut("data")?.as_object_mut());
    let found = data
        .flatten()
        .filter(|(mime, _)| is_image(mime))
        .map(|(_, value)| value);
    let found: Vec<&mut Value> = found.collect();
    for value in found {
        *value = match illustrator.fit(joined(value).into_owned()).await? {
            Ok(image) => {
                images.push(Block::Image {
                    data: image.data,
                    mime: image.mime.to_owned(),
                });
                json!(format!("[image {} attached]", images.len()))
            }
            Err(why) => json!(format!("{}: {why}]", output::IMAGE_LEFT_OUT)),
        };
    }
    Ok(())
}

fn show(index: usize, cell: Cell, limit: &mut Limit, hint: &dyn Fn(usize) -> String) -> ShownCell {
    let source = truncate(cell.source, limit.allowance());
    limit.spend(|| source.full_length);
    let (outputs, cut) = match limit {
        Limit::Each(max) => {
            let show = |output: Value| {
                let hint = hint(text_size(&output));
                show_output(output, *max, &hint)
            };
            cell.outputs.into_iter().map(show).unzip()
        }
        Limit::All(left) => {
            let shown = show_within(cell.outputs, *left, hint);
            *left = left.saturating_sub(shown.original_size);
            (shown.outputs, shown.cut)
        }
    };
    let mut metadata = cell.metadata;
    let size = metadata_size(&metadata);
    let lacks_metadata = drop_large(&mut metadata, size, limit.allowance());
    limit.spend(|| size);
    ShownCell {
        index,
        id: cell.id,
        cell_type: cell.cell_type,
        source: source.text,
        metadata,
        execution_count: cell.execution_count,
        outputs,
        truncated: CellTruncation {
            source: source.truncated,
            outputs: cut,
            metadata: lacks_metadata,
        },
        output_lines: None,
    }
}

/// Size at which metadata counts: an estimate, since writing it out only to measure it would cost more than all the rest.
fn metadata_size(metadata: &Value) -> usize {
    Some(extent(metadata))
        .filter(|size| *size > SMALL_METADATA)
        .unwrap_or(0)
}

/// About how long a value is when it is written out.
fn extent(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| extent(item) + 1).sum(),
        Value::Object(members) => members.iter().map(|(name, item)| name.len() + extent(item) + 4).sum(),
    }
}

/// Empties metadata that is too large: parts of it mean nothing.
fn drop_large(metadata: &mut Value, size: usize, max: usize) -> bool {
    let is_large = size > max;
    if is_large {
        *metadata = Value::Object(Map::new());
    }
    is_large
}

/// The outputs of a cell within one limit for all of them, as answers about executions show them.
pub(in crate::tools) struct ShownOutputs {
    pub(in crate::tools) outputs: Vec<Value>,
    /// Flags of those that are not whole.
    cut: Vec<bool>,
    /// Size in characters, images left aside.
    pub(in crate::tools) original_size: usize,
}

impl ShownOutputs {
    pub(in crate::tools) fn is_truncated(&self) -> bool {
        self.cut.contains(&true)
    }
}

/// The outputs of some cells, with their images attached: of each cell at most `max` characters, of all cells at most
/// `total`. `hint` tells how to see so many characters of a cell.
pub(in crate::tools) fn show_outputs(
    cells: Vec<Vec<Value>>,
    max: usize,
    total: usize,
    hint: impl Fn(usize) -> String,
) -> Vec<ShownOutputs> {
    let sizes: Vec<usize> = cells
        .iter()
        .map(|outputs| outputs.iter().map(text_size).sum())
        .collect();
    let wanted: Vec<usize> = sizes.iter().map(|size| max.min(*size)).collect();
    let mut shown = Vec::with_capacity(cells.len());
    let each = cells.into_iter().zip(sizes).zip(shares(&wanted, total));
    for ((mut outputs, original_size), share) in each {
        // What is small takes little of the total, and may still have all that the limit of a cell allows.
        let allowance = if share < original_size { share } else { max };
        let gap = leave_out_middle(&mut outputs, allowance);
        let mut within = show_within(outputs, allowance, &|_| hint(original_size));
        if let Some(gap) = gap {
            within.cut[gap] = true;
        }
        shown.push(ShownOutputs {
            original_size,
            ..within
        });
    }
    shown
}

/// Keeps the first and the newest of more outputs than a limit has room for. Returns where the others were,
/// of which an output in their place tells.
fn leave_out_middle(outputs: &mut Vec<Value>, max: usize) -> Option<usize> {
    let places = Limit::All(max).places();
    let left_out = outputs.len().checked_sub(places).filter(|count| *count > 0)? + 1;
    let first = places / 3;
    let text = format!("[{} left out]\n", counted(left_out, "output"));
    let told = json!({ "output_type": "stream", "name": "stderr", "text": text });
    outputs.splice(first..first + left_out, [told]);
    Some(first)
}

/// Cuts outputs to a limit. Small ones are whole, the others share what is left; errors are told in any case.
fn show_within(outputs: Vec<Value>, max: usize, hint: &dyn Fn(usize) -> String) -> ShownOutputs {
    let original_size = outputs.iter().map(text_size).sum();
    let hint = hint(original_size);
    let errors: usize = outputs.iter().map(error_size).sum();
    let for_errors = errors.min(max.min(MIN_ERRORS.max(max / 2)));
    let is_error = |output: &Value| error_size(output) > 0;
    let wanted: Vec<usize> = outputs
        .iter()
        .map(|output| if is_error(output) { 0 } else { text_size(output) })
        .collect();
    let allowed = shares(&wanted, max - for_errors);
    let mut for_errors = max - allowed.iter().sum::<usize>();
    let show = |(output, allowed): (Value, usize)| {
        let reserved = error_size(&output).min(for_errors);
        for_errors -= reserved;
        // Where all is whole there may be something left for metadata, which counts little.
        show_output(output, allowed + reserved, &hint)
    };
    let (outputs, cut) = outputs.into_iter().zip(allowed).map(show).unzip();
    ShownOutputs {
        outputs,
        cut,
        original_size,
    }
}
