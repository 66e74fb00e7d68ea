//! Cells and outputs as a model reads them: cut to a size, images as images.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    jupyter::room::Cell,
    tools::Block,
    types::{truncate, without_ansi},
};

/// What may be shown to a model as an image.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Larger images than this are scaled down by no client and cost a model more than they tell.
const MAX_IMAGE_BASE64: usize = 5 * 1024 * 1024;

#[derive(Serialize, JsonSchema)]
pub(super) struct ShownCell {
    index: usize,
    id: String,
    cell_type: String,
    source: String,
    metadata: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_count: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<Value>>,
    truncated: CellTruncation,
}

#[derive(Serialize, JsonSchema)]
struct CellTruncation {
    source: bool,
    outputs: Vec<bool>,
}

impl ShownCell {
    pub(super) fn is_truncated(&self) -> bool {
        self.truncated.source || self.truncated.outputs.contains(&true)
    }
}

/// A cell cut to `max` characters for its source and each output; its images go to `images`.
pub(super) fn show(index: usize, cell: Cell, max: usize, images: &mut Vec<Block>) -> ShownCell {
    let is_code = cell.cell_type == "code";
    let source = truncate(&cell.source, max);
    let (outputs, cut) = cell
        .outputs
        .into_iter()
        .map(|output| show_output(output, max, images))
        .unzip();
    ShownCell {
        index,
        id: cell.id,
        cell_type: cell.cell_type,
        source: source.text,
        metadata: cell.metadata,
        execution_count: is_code.then_some(cell.execution_count),
        outputs: is_code.then_some(outputs),
        truncated: CellTruncation {
            source: source.truncated,
            outputs: cut,
        },
    }
}

/// The outputs of a cell within one limit for all of them, as answers about executions show them.
pub(in crate::tools) struct ShownOutputs {
    pub(in crate::tools) outputs: Vec<Value>,
    pub(in crate::tools) truncated: bool,
    /// In characters, images left aside.
    pub(in crate::tools) original_size: usize,
}

pub(in crate::tools) fn show_outputs(outputs: Vec<Value>, max: usize, images: &mut Vec<Block>) -> ShownOutputs {
    let mut shown = ShownOutputs {
        outputs: Vec::with_capacity(outputs.len()),
        truncated: false,
        original_size: 0,
    };
    for output in outputs {
        let size = text_size(&output);
        let left = max.saturating_sub(shown.original_size);
        shown.original_size += size;
        let (output, cut) = show_output(output, left, images);
        shown.outputs.push(output);
        shown.truncated |= cut;
    }
    shown
}

/// How many characters of an output a model would read.
fn text_size(output: &Value) -> usize {
    let characters = |value: &Value| joined(value).chars().count();
    match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => output.get("text").map_or(0, characters),
        Some("error") => output
            .get("traceback")
            .map_or(0, |lines| without_ansi(&joined(lines)).chars().count()),
        _ => output.get("data").and_then(Value::as_object).map_or(0, |data| {
            let texts = data.iter().filter(|(mime, _)| !IMAGES.contains(&mime.as_str()));
            texts.map(|(_, value)| characters(value)).sum()
        }),
    }
}

fn show_output(output: Value, max: usize, images: &mut Vec<Block>) -> (Value, bool) {
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
                for (mime, value) in data {
                    cut |= show_data(mime, value, max, images);
                }
            }
        }
    }
    (Value::Object(output), cut)
}

/// Errors carry the names of both conventions, and a traceback without colour codes.
fn show_error(output: &mut Map<String, Value>, max: usize) -> bool {
    let lines = output
        .get("traceback")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let plain: Vec<String> = lines.iter().filter_map(Value::as_str).map(without_ansi).collect();
    let traceback = truncate(&plain.join("\n"), max);
    output.insert("name".to_owned(), output.get("ename").cloned().unwrap_or_default());
    output.insert("value".to_owned(), output.get("evalue").cloned().unwrap_or_default());
    output.insert(
        "traceback".to_owned(),
        traceback.text.split('\n').map(str::to_owned).collect(),
    );
    traceback.truncated
}

fn show_data(mime: &str, value: &mut Value, max: usize, images: &mut Vec<Block>) -> bool {
    if IMAGES.contains(&mime) {
        return show_image(mime, value, images);
    }
    shorten(value, max)
}

/// An image becomes a block of its own, whole, or is left out; half of one is nothing.
fn show_image(mime: &str, value: &mut Value, images: &mut Vec<Block>) -> bool {
    let data: String = joined(value)
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .collect();
    if data.len() > MAX_IMAGE_BASE64 {
        *value = json!(format!("[image of {} bytes left out: too large]", data.len() / 4 * 3));
        return true;
    }
    images.push(Block::Image {
        data,
        mime: mime.to_owned(),
    });
    *value = json!(format!("[image {} attached]", images.len()));
    false
}

fn shorten(value: &mut Value, max: usize) -> bool {
    let text = joined(value);
    let cut = truncate(&text, max);
    let is_lines = value.as_array().is_some_and(|lines| lines.iter().all(Value::is_string));
    if is_lines || value.is_string() || cut.truncated {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: Value, max: usize) -> (Value, bool, Vec<Block>) {
        let mut images = Vec::new();
        let (value, cut) = show_output(output, max, &mut images);
        (value, cut, images)
    }

    #[test]
    fn long_outputs_are_cut_and_say_so() {
        let (value, cut, _) = shown(
            json!({ "output_type": "stream", "name": "stdout", "text": "x".repeat(100) }),
            40,
        );
        assert!(
            cut && value["text"]
                .as_str()
                .is_some_and(|text| text.len() == 40 && text.ends_with("TRUNCATED]"))
        );
        let (value, cut, _) = shown(json!({ "output_type": "stream", "text": ["a\n", "b"] }), 40);
        assert!(!cut && value["text"] == "a\nb");
    }

    #[test]
    fn images_are_attached_whole() {
        let output = json!({ "output_type": "display_data", "data": { "image/png": "aGVs\nbG8=", "text/plain": "<Figure>" }, "metadata": {} });
        let (value, cut, images) = shown(output, 4);
        assert_eq!(
            images,
            [Block::Image {
                data: "aGVsbG8=".to_owned(),
                mime: "image/png".to_owned()
            }]
        );
        assert_eq!(value["data"]["image/png"], "[image 1 attached]");
        assert!(cut, "the text was longer than allowed");
    }

    #[test]
    fn errors_have_both_spellings_and_no_colours() {
        let output = json!({ "output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[0;31mE\u{1b}[0m: v", "x"] });
        let (value, _, _) = shown(output, 100);
        assert_eq!(
            (&value["name"], &value["value"], &value["ename"]),
            (&json!("E"), &json!("v"), &json!("E"))
        );
        assert_eq!(value["traceback"], json!(["E: v", "x"]));
    }
}
