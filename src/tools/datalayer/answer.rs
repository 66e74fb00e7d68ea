//! Answers: a text, a table or outputs, and the same as data in the members that the original names.

use std::slice;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::tools::{
    Block,
    cells::Edited,
    images::is_image,
    named::{MAX_SHOWN, blocks, table::tsv},
    output::ToolReply,
    text::output::outputs_text,
};

const NOTHING: &str = "[No output generated]";

/// An answer that is a text.
#[derive(Serialize, JsonSchema)]
pub(super) struct TextAnswer {
    kind: &'static str,
    result: String,
    #[serde(flatten)]
    facts: Facts,
}

/// Facts about cells in an answer, for programs.
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
    with_facts(kind, result, Facts::default())
}

pub(super) fn with_facts(kind: &'static str, result: String, facts: Facts) -> ToolReply<TextAnswer> {
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

/// Source of outputs.
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
        None => blocks([outputs_text(slice::from_ref(output), MAX_SHOWN).text]).pop(),
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
            json!({ "output_type": "execute_result", "data": { "text/plain": "2" } }),
            display(json!({ "image/png": "[image left out: it is too large]" })),
            json!({ "output_type": "stream", "text": "" }),
        ];
        let shown: Vec<Value> = output_blocks(&outputs, &[image]).iter().map(as_data).collect();
        assert_eq!(shown[1]["mimeType"], "image/png");
        let texts: Vec<&str> = shown.iter().filter_map(Value::as_str).map(str::trim).collect();
        let expected = ["red", "2", "[image left out: it is too large]"];
        assert_eq!(texts, expected);
    }
}
