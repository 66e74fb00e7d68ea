//! One output of a cell, whole: every form that it has, what is binary as bytes.

use base64::{Engine, prelude::BASE64_STANDARD};
use jupyter_client::without_ansi;
use serde_json::{Map, Value, json};

use super::{
    Body, ResourceError,
    cells::Cells,
    read::{ReadBody, named},
};
use crate::types::{MimeKind, is_text, joined_text};

impl Cells {
    /// The forms of an output, what is binary first: whoever asks for a plot wants its picture.
    pub(super) fn read_output(&self, position: usize, number: usize) -> Result<Vec<ReadBody>, ResourceError> {
        let cell = &self.cells[position];
        let output = cell.outputs.get(number).ok_or(ResourceError::OUTPUT)?;
        let description = format!("Output {number} of cell {position}");
        let metadata = named("Cell Output", &description, Map::new());
        let mut bodies: Vec<ReadBody> = forms(output)
            .into_iter()
            .map(|(mime_type, body)| (mime_type, body, metadata.clone()))
            .collect();
        bodies.sort_by_key(|(_, body, _)| matches!(body, Body::Text(_)));
        Ok(bodies)
    }

    /// A cell with the addresses of its outputs, which are below its own.
    pub(super) fn document(&self, position: usize, uri: &str) -> Value {
        let cell = &self.cells[position];
        let output = |(number, output): (usize, &Value)| {
            let kinds = forms(output).into_iter();
            let first = kinds
                .map(|(mime_type, _)| mime_type)
                .find(|mime_type| mime_type != "text/plain");
            let mime_type = first.unwrap_or_else(|| "text/plain".to_owned());
            json!({ "index": number, "mimeType": mime_type, "uri": format!("{uri}/outputs/{number}") })
        };
        let outputs: Vec<Value> = cell.outputs.iter().enumerate().map(output).collect();
        let source: Vec<&str> = cell.source.split_inclusive('\n').collect();
        json!({
            "id": cell.id,
            "index": position,
            "cell_type": cell.cell_type,
            "source": source,
            "execution_count": cell.execution_count,
            "outputs": outputs,
        })
    }
}

fn forms(output: &Value) -> Vec<(String, Body)> {
    let text = |value: &Value| Body::Text(joined_text(value));
    match output["output_type"].as_str() {
        Some("stream") => vec![("text/plain".to_owned(), text(&output["text"]))],
        Some("error") => {
            let lines = output["traceback"].as_array().into_iter().flatten();
            let lines: Vec<&str> = lines.filter_map(Value::as_str).collect();
            let traceback = without_ansi(&lines.join("\n"));
            vec![("text/plain".to_owned(), Body::Text(traceback))]
        }
        _ => output["data"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(mime_type, value)| (mime_type.clone(), form(mime_type, value)))
            .collect(),
    }
}

fn form(mime_type: &str, value: &Value) -> Body {
    let text = joined_text(value);
    if MimeKind::of(mime_type) == MimeKind::Binary && is_text(value) {
        // nbformat has line breaks in base64.
        let base64: String = text.split_ascii_whitespace().collect();
        if BASE64_STANDARD.decode(&base64).is_ok() {
            return Body::Blob(base64);
        }
    }
    Body::Text(text)
}
