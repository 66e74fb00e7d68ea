//! Cells and outputs as a model reads them: cut to a size, images as images.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use crate::{
    jupyter::room::Cell,
    tools::{
        Block, ImageLimits, ToolError,
        images::{fit, is_image},
    },
    types::{truncate, without_ansi},
};

/// Notebooks of many large images must not take all memory, or all threads, at once.
static SCALING: Semaphore = Semaphore::const_new(2);

/// Characters of what an error says, which is told however much was put out before it.
const MIN_ERROR: usize = 200;
/// Metadata up to this size goes along with its cell or output; more is counted as what they say is.
const SMALL_METADATA: usize = 200;
/// Where there is one limit for all, what a cell or an output takes besides its text, in characters.
const PLACE: usize = 50;
/// As many of them are shown however small the limit is.
const MIN_PLACES: usize = 20;
/// Characters that errors and their tracebacks have for themselves, if they need them and so many are shown at all.
const MIN_ERRORS: usize = 1000;
const CUT_BEFORE: &str = "[TRUNCATED]...\n";

#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct ShownCell {
    index: usize,
    id: String,
    pub(in crate::tools) cell_type: String,
    pub(in crate::tools) source: String,
    metadata: Value,
    /// Null for a cell that was not executed, or cannot be.
    pub(in crate::tools) execution_count: Value,
    pub(in crate::tools) outputs: Vec<Value>,
    truncated: CellTruncation,
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

    /// Whether its metadata was too large to be shown.
    pub(in crate::tools) fn lacks_metadata(&self) -> bool {
        self.truncated.metadata
    }
}

/// How much of cells is shown, in characters.
#[derive(Debug, Clone, Copy)]
pub(in crate::tools) enum Limit {
    /// Of every source and every output.
    Each(usize),
    /// Of all together; cells for which nothing is left are left out.
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

    /// How many cells and outputs there may be, even of those that are empty.
    fn places(self) -> usize {
        match self {
            Self::Each(_) => usize::MAX,
            Self::All(max) => (max / PLACE).max(MIN_PLACES),
        }
    }
}

/// Cells cut to a limit, and their images.
pub(in crate::tools) async fn show_all(
    cells: Vec<(usize, Cell)>,
    mut limit: Limit,
    limits: ImageLimits,
) -> Result<(Vec<ShownCell>, Vec<Block>), ToolError> {
    let illustrated = cells.iter().any(|(_, cell)| has_images(&cell.outputs));
    illustrate(illustrated, limits, move |images| {
        let mut shown = Vec::with_capacity(cells.len());
        let mut places = limit.places();
        for (index, cell) in cells {
            let has_text = !cell.source.is_empty() || !cell.outputs.is_empty();
            if places == 0 || limit.is_spent() && has_text {
                break;
            }
            places = places.saturating_sub(1 + cell.outputs.len());
            shown.push(show(index, cell, &mut limit, images));
        }
        shown
    })
    .await
}

/// How many characters of cells a model would read.
pub(in crate::tools) fn text_length(cells: &[(usize, Cell)]) -> usize {
    let length = |cell: &Cell| {
        let outputs: usize = cell.outputs.iter().map(text_size).sum();
        cell.source.chars().count() + outputs + metadata_size(&cell.metadata)
    };
    cells.iter().map(|(_, cell)| length(cell)).sum()
}

/// Does work that may meet images; scaling them takes a while, which is spent where it keeps nobody else waiting.
async fn illustrate<T: Send + 'static>(
    illustrated: bool,
    limits: ImageLimits,
    work: impl FnOnce(&mut Images) -> T + Send + 'static,
) -> Result<(T, Vec<Block>), ToolError> {
    let work = move || {
        let mut images = Images {
            limits,
            blocks: Vec::new(),
        };
        let done = work(&mut images);
        (done, images.blocks)
    };
    if !illustrated {
        return Ok(work());
    }
    let permit = SCALING.acquire().await;
    let scaling = tokio::task::spawn_blocking(move || {
        // Held until the work is done, also if nobody waits for it any more.
        let _permit = permit;
        work()
    });
    scaling.await.map_err(|_| ToolError::Stopping)
}

fn has_images(outputs: &[Value]) -> bool {
    let mut data = outputs.iter().filter_map(|output| output.get("data")?.as_object());
    data.any(|data| data.keys().any(|mime| is_image(mime)))
}

/// The images of an answer, in their order.
struct Images {
    limits: ImageLimits,
    blocks: Vec<Block>,
}

fn show(index: usize, cell: Cell, limit: &mut Limit, images: &mut Images) -> ShownCell {
    let source = truncate(cell.source, limit.allowance());
    limit.spend(|| source.full_length);
    let mut show_output = |output: Value| {
        let allowance = limit.allowance();
        limit.spend(|| text_size(&output));
        show_output(output, allowance, images)
    };
    let (outputs, cut) = cell.outputs.into_iter().map(&mut show_output).unzip();
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
    }
}

/// How much metadata counts. An estimate, since writing it out only to measure it would cost more than all the rest.
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

/// Metadata is whole or empty: parts of it mean nothing.
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
    pub(in crate::tools) truncated: bool,
    /// In characters, images left aside.
    pub(in crate::tools) original_size: usize,
}

/// The outputs of some cells and their images: of each cell at most `max` characters, of all cells at most `total`.
pub(in crate::tools) async fn show_outputs(
    cells: Vec<Vec<Value>>,
    max: usize,
    total: usize,
    limits: ImageLimits,
) -> Result<(Vec<ShownOutputs>, Vec<Block>), ToolError> {
    let illustrated = cells.iter().any(|outputs| has_images(outputs));
    illustrate(illustrated, limits, move |images| {
        let mut left = total;
        let show = |outputs| {
            let shown = show_within(outputs, max.min(left), images);
            left = left.saturating_sub(shown.original_size.min(max));
            shown
        };
        cells.into_iter().map(show).collect()
    })
    .await
}

fn show_within(outputs: Vec<Value>, max: usize, images: &mut Images) -> ShownOutputs {
    let mut shown = ShownOutputs {
        outputs: Vec::with_capacity(outputs.len()),
        truncated: false,
        original_size: 0,
    };
    // What went wrong is told however much was put out besides.
    let errors: usize = outputs.iter().map(error_size).sum();
    let mut for_errors = errors.min(max.min(MIN_ERRORS.max(max / 2)));
    let mut left = max - for_errors;
    for output in outputs {
        let size = text_size(&output);
        shown.original_size += size;
        let reserved = error_size(&output).min(for_errors);
        let (output, cut) = show_output(output, left + reserved, images);
        for_errors -= reserved;
        left = left.saturating_sub(size.saturating_sub(reserved));
        shown.outputs.push(output);
        shown.truncated |= cut;
    }
    shown
}

/// How many characters it takes to show an error, and none for what is none.
fn error_size(output: &Value) -> usize {
    match output.get("output_type").and_then(Value::as_str) {
        Some("error") => {
            let lines = output.get("traceback").and_then(Value::as_array).map_or(0, Vec::len);
            let value = output.get("evalue").map_or(0, |value| joined(value).chars().count());
            text_size(output) + lines + value
        }
        _ => 0,
    }
}

/// How many characters of an output a model would read.
fn text_size(output: &Value) -> usize {
    let characters = |value: &Value| joined(value).chars().count();
    let plain = |value: &Value| without_ansi(&joined(value)).chars().count();
    let size = |member: &str, size: &dyn Fn(&Value) -> usize| output.get(member).map_or(0, size);
    let text = match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => size("text", &characters),
        Some("error") => size("traceback", &plain) + size("evalue", &plain),
        _ => output.get("data").and_then(Value::as_object).map_or(0, |data| {
            let texts = data.iter().filter(|(mime, _)| !is_image(mime));
            texts.map(|(_, value)| characters(value)).sum()
        }),
    };
    text + size("metadata", &metadata_size)
}

fn show_output(output: Value, max: usize, images: &mut Images) -> (Value, bool) {
    let Value::Object(mut output) = output else {
        return (output, false);
    };
    let mut cut = false;
    match output.get("output_type").and_then(Value::as_str) {
        Some("error") => cut |= show_error(&mut output, max),
        Some("stream") => {
            if let Some(text) = output.get_mut("text") {
                cut |= shorten(text, max);
            }
        }
        _ => {
            if let Some(Value::Object(data)) = output.get_mut("data") {
                cut |= show_bundle(data, max, images);
            }
        }
    }
    if let Some(metadata) = output.get_mut("metadata") {
        let size = metadata_size(metadata);
        cut |= drop_large(metadata, size, max);
    }
    (Value::Object(output), cut)
}

/// The same thing in several types shares one limit; what is shortest to read comes first.
fn show_bundle(data: &mut Map<String, Value>, max: usize, images: &mut Images) -> bool {
    let mut left = max;
    let mut cut = false;
    let (plain, rich): (Vec<_>, Vec<_>) = data.iter_mut().partition(|(mime, _)| *mime == "text/plain");
    for (mime, value) in plain.into_iter().chain(rich) {
        cut |= show_data(mime, value, left, images);
        if !is_image(mime) {
            left = left.saturating_sub(extent(value));
        }
    }
    cut
}

/// Errors carry the names of both conventions, and a traceback without colour codes. What the error says stands there
/// twice and at the end of most tracebacks, so it is cut where it is long.
fn show_error(output: &mut Map<String, Value>, max: usize) -> bool {
    let lines = output
        .get("traceback")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let plain: Vec<String> = lines.iter().filter_map(Value::as_str).map(without_ansi).collect();
    let text = |member: &str| without_ansi(output.get(member).and_then(Value::as_str).unwrap_or_default());
    let name = truncate(text("ename"), MIN_ERROR);
    let value = truncate(text("evalue"), (max / 4).max(MIN_ERROR));
    let room = max.saturating_sub(2 * value.text.chars().count()).max(max / 2);
    // Where it happened and what it was is at the end.
    let (traceback, shortened) = keep_end(plain.join("\n"), room);
    for (member, text) in [
        ("name", &name.text),
        ("ename", &name.text),
        ("value", &value.text),
        ("evalue", &value.text),
    ] {
        output.insert(member.to_owned(), text.as_str().into());
    }
    output.insert(
        "traceback".to_owned(),
        traceback.split('\n').map(str::to_owned).collect(),
    );
    name.truncated || value.truncated || shortened
}

/// The end of a text that is too long, after a mark that says so if there is room for it.
fn keep_end(text: String, max: usize) -> (String, bool) {
    let length = text.chars().count();
    if length <= max {
        return (text, false);
    }
    let mark = Some(CUT_BEFORE).filter(|mark| mark.len() < max).unwrap_or_default();
    let end = text.chars().skip(length - (max - mark.len()));
    (mark.chars().chain(end).collect(), true)
}

fn show_data(mime: &str, value: &mut Value, max: usize, images: &mut Images) -> bool {
    if is_image(mime) {
        return show_image(value, images);
    }
    if mime.ends_with("json") && !value.is_string() {
        // A list of texts is a list here, and not the lines of one text.
        let cut = truncate(value.to_string(), max);
        if cut.truncated {
            *value = cut.text.into();
        }
        return cut.truncated;
    }
    if is_text(mime) {
        return shorten(value, max);
    }
    show_whole(value, max)
}

/// Whether a part of it is of use.
fn is_text(mime: &str) -> bool {
    let ends = ["json", "xml", "javascript", "latex"];
    mime.starts_with("text/") || ends.iter().any(|end| mime.ends_with(end))
}

/// Base64 and whatever else is no text: half of it is nothing.
fn show_whole(value: &mut Value, max: usize) -> bool {
    let text = joined(value);
    let size = text.chars().count();
    let is_large = size > max;
    if is_large {
        *value = json!(format!("[left out: it is too large, {size} characters]"));
    } else if value.is_array() {
        *value = text.into();
    }
    is_large
}

/// An image becomes a block of its own, whole, or is left out; half of one is nothing.
fn show_image(value: &mut Value, images: &mut Images) -> bool {
    let shown = fit(&joined(value), &images.limits);
    let left_out = shown.is_err();
    *value = match shown {
        Ok(image) => {
            images.blocks.push(Block::Image {
                data: image.data,
                mime: image.mime.to_owned(),
            });
            json!(format!("[image {} attached]", images.blocks.len()))
        }
        Err(why) => json!(format!("[image left out: {why}]")),
    };
    left_out
}

fn shorten(value: &mut Value, max: usize) -> bool {
    if let Value::String(text) = value {
        let cut = truncate(std::mem::take(text), max);
        *text = cut.text;
        return cut.truncated;
    }
    let cut = truncate(joined(value), max);
    let is_lines = value.as_array().is_some_and(|lines| lines.iter().all(Value::is_string));
    if is_lines || cut.truncated {
        *value = Value::String(cut.text);
    }
    cut.truncated
}

/// nbformat allows a text to be a list of lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) if lines.iter().all(Value::is_string) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    }
}
