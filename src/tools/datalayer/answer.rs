//! Answers: a text, a table or outputs, and the same as data in the members that the original names.

use jupyter_client::without_ansi;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::tools::{
    Block,
    cells::Edited,
    images::is_image,
    named::{blocks, table::tsv},
    output::ToolReply,
};

/// Media types of which an output's text is taken, the best first.
const TEXTS: [&str; 4] = ["text/markdown", "text/latex", "application/json", "text/plain"];
const NOTHING: &str = "[No output generated]";

/// An answer that is a text.
#[derive(Serialize, JsonSchema)]
pub(super) struct TextAnswer {
    kind: &'static str,
    result: String,
    #[serde(flatten)]
    facts: Facts,
}

/// What an answer about cells tells programs beside.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) cell_ids: Vec<String>,
    #[serde(flatten)]
    pub(super) edited: Option<Edited>,
}

impl Facts {
    pub(super) fn edited(cell_ids: Vec<String>, edited: live_document::Edited) -> Self {
        Self {
            cell_ids,
            edited: Some(edited.into()),
        }
    }
}

pub(super) fn text(kind: &'static str, result: String) -> ToolReply<TextAnswer> {
    told(kind, result, Facts::default())
}

pub(super) fn told(kind: &'static str, result: String, facts: Facts) -> ToolReply<TextAnswer> {
    ToolReply::in_blocks(blocks([result.clone()]), TextAnswer { kind, result, facts })
}

/// An answer that is a table.
#[derive(Serialize, JsonSchema)]
pub(super) struct TableAnswer {
    kind: &'static str,
    result: String,
    columns: &'static [&'static str],
    #[schemars(schema_with = "items_schema")]
    items: Vec<Map<String, Value>>,
    count: usize,
}

fn items_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "object" } })
}

/// A table under a text; `empty` is said if there are no rows.
pub(super) fn table(
    kind: &'static str,
    before: &str,
    columns: &'static [&'static str],
    rows: Vec<Vec<String>>,
    empty: &str,
) -> ToolReply<TableAnswer> {
    let item = |row: &Vec<String>| {
        let members = columns.iter().zip(row);
        members
            .map(|(name, value)| ((*name).to_owned(), value.clone().into()))
            .collect()
    };
    let items: Vec<Map<String, Value>> = rows.iter().map(item).collect();
    let result = match items.is_empty() {
        true => empty.to_owned(),
        false => format!("{before}{}", tsv(columns, rows)),
    };
    let answer = TableAnswer {
        kind,
        result: result.clone(),
        columns,
        count: items.len(),
        items,
    };
    ToolReply::in_blocks(blocks([result]), answer)
}

/// An answer that consists of outputs.
#[derive(Serialize, JsonSchema)]
pub(super) struct OutputsAnswer {
    kind: &'static str,
    #[schemars(schema_with = "outputs_schema")]
    result: Vec<Value>,
    #[schemars(schema_with = "outputs_schema")]
    outputs: Vec<Value>,
    count: usize,
    images: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

/// Texts, and objects for images.
fn outputs_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array" })
}

/// What outputs belong to.
#[derive(Default)]
pub(super) struct Source {
    pub(super) cell_id: Option<String>,
    pub(super) execution_id: Option<String>,
    pub(super) status: Option<&'static str>,
}

/// The blocks of an answer as the answer itself.
pub(super) fn outputs(kind: &'static str, mut blocks: Vec<Block>, source: Source) -> ToolReply<OutputsAnswer> {
    if blocks.is_empty() {
        blocks.push(Block::Text(NOTHING.to_owned()));
    }
    let result: Vec<Value> = blocks.iter().map(as_data).collect();
    let images = result.iter().filter(|item| item.is_object()).count();
    let answer = OutputsAnswer {
        kind,
        outputs: result.clone(),
        count: result.len(),
        result,
        images,
        cell_id: source.cell_id,
        execution_id: source.execution_id,
        status: source.status,
    };
    ToolReply::in_blocks(blocks, answer)
}

fn as_data(block: &Block) -> Value {
    match block {
        Block::Text(text) => text.as_str().into(),
        Block::Image { mime, .. } => {
            json!({ "type": "image", "mimeType": mime, "data": "[omitted: see image content block]" })
        }
    }
}

/// Outputs in their order, each as its text or as the image that it is.
pub(super) fn output_blocks(outputs: &[Value], images: &[Block]) -> Vec<Block> {
    let shown = outputs.iter().filter_map(|output| match image_of(output, images) {
        Some(image) => Some(image.clone()),
        None => blocks([output_text(output)]).pop(),
    });
    shown.collect()
}

/// The image that stands for an output whose data says which it is.
fn image_of<'a>(output: &Value, images: &'a [Block]) -> Option<&'a Block> {
    let data = output.get("data")?.as_object()?;
    let mut values = data.iter().filter(|(mime, _)| is_image(mime));
    let number = values.find_map(|(_, value)| {
        let number = value.as_str()?.strip_prefix("[image ")?.strip_suffix(" attached]")?;
        number.parse::<usize>().ok()
    })?;
    images.get(number.checked_sub(1)?)
}

/// The text that a model reads of an output.
fn output_text(output: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => without_ansi(text),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => output.get("text").map(text).unwrap_or_default(),
        Some("error") => {
            let lines = output.get("traceback").and_then(Value::as_array);
            let lines: Vec<String> = lines.into_iter().flatten().map(text).collect();
            match lines.iter().all(|line| line.trim().is_empty()) {
                true => format!("{}: {}", text(&output["ename"]), text(&output["evalue"])),
                false => lines.join("\n"),
            }
        }
        _ => {
            let data = output.get("data").and_then(Value::as_object);
            let readable = data.and_then(|data| TEXTS.iter().find_map(|mime| data.get(*mime)));
            let image = || data?.iter().find(|(mime, _)| is_image(mime)).map(|(_, value)| value);
            match readable.or_else(image) {
                Some(value) => text(value),
                None if data.is_some_and(|data| data.contains_key("text/html")) => "[HTML Output]".to_owned(),
                None => {
                    let kinds: Vec<&String> = data.into_iter().flat_map(|data| data.keys()).collect();
                    format!("[Data: keys={kinds:?}]")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_texts_and_images_in_their_order() {
        let image = Block::Image {
            data: "aGk=".to_owned(),
            mime: "image/png".to_owned(),
        };
        let display = |data: Value| json!({ "output_type": "display_data", "data": data });
        let outputs = [
            json!({ "output_type": "stream", "text": "\u{1b}[31mred\u{1b}[0m\n" }),
            display(json!({ "image/png": "[image 1 attached]", "text/plain": "<Figure>" })),
            display(json!({ "text/markdown": "**b**", "text/plain": "<Markdown object>" })),
            display(json!({ "application/json": { "a": 1 }, "text/plain": "<JSON>" })),
            display(json!({ "text/html": "<b>" })),
            display(json!({ "application/x": {} })),
            display(json!({ "image/png": "[image left out: it is too large]" })),
            json!({ "output_type": "error", "ename": "E", "evalue": "v", "traceback": [] }),
            json!({ "output_type": "stream", "text": "" }),
        ];
        let shown: Vec<Value> = output_blocks(&outputs, &[image]).iter().map(as_data).collect();
        assert_eq!(shown[1]["mimeType"], "image/png");
        let texts: Vec<&str> = shown.iter().filter_map(Value::as_str).collect();
        let expected = [
            "red\n",
            "**b**",
            "{\n  \"a\": 1\n}",
            "[HTML Output]",
            "[Data: keys=[\"application/x\"]]",
            "[image left out: it is too large]",
            "E: v",
        ];
        assert_eq!(texts, expected);
    }
}
