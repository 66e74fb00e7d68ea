//! Outputs made safe to pass on: nothing that runs where it is shown, no terminal codes, nothing endless.

use serde_json::{Map, Value};

use crate::types::{truncate, without_ansi};

/// Characters of one output's text; images are kept whole or left out.
const MAX_TEXT: usize = 100_000;
const MAX_BINARY: usize = 5 * 1024 * 1024;
const LEFT_OUT: &str = "[left out: it could run where it is shown]";

/// An output in nbformat's form.
pub(super) fn sanitized(mut output: Value) -> Value {
    let Some(members) = output.as_object_mut() else {
        return Value::Null;
    };
    if let Some(text) = members.get_mut("text") {
        *text = Value::String(plain(text));
    }
    if let Some(Value::Array(lines)) = members.get_mut("traceback") {
        for line in lines {
            *line = Value::String(plain(line));
        }
    }
    if let Some(Value::Object(data)) = members.get_mut("data") {
        sanitize_data(data);
    }
    output
}

/// The outputs of a whole notebook in the form of its file.
pub(super) fn sanitized_notebook(mut notebook: Value) -> Value {
    let cells = notebook.get_mut("cells").and_then(Value::as_array_mut);
    for cell in cells.into_iter().flatten() {
        if let Some(Value::Array(outputs)) = cell.get_mut("outputs") {
            for output in outputs {
                *output = sanitized(output.take());
            }
        }
    }
    notebook
}

fn sanitize_data(data: &mut Map<String, Value>) {
    for (mime, value) in data {
        let is_binary = mime.starts_with("image/") && mime != "image/svg+xml";
        *value = match mime.as_str() {
            "application/javascript" | "text/javascript" => LEFT_OUT.into(),
            "text/html" | "image/svg+xml" if is_active(&joined(value)) => LEFT_OUT.into(),
            _ if is_binary && joined(value).len() > MAX_BINARY => "[left out: too large]".into(),
            _ if is_binary => joined(value).into(),
            _ if value.is_string() || mime.starts_with("text/") => plain(value).into(),
            _ => value.take(),
        };
    }
}

fn plain(value: &Value) -> String {
    truncate(without_ansi(&joined(value)), MAX_TEXT).text
}

/// nbformat allows a text to be a list of lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) if lines.iter().all(Value::is_string) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    }
}

/// Whether markup may do more than show something. Rather too often yes: it is left out whole, since taking
/// out parts is how such filters are fooled.
fn is_active(markup: &str) -> bool {
    const ACTIVE: [&str; 12] = [
        "<script",
        "<iframe",
        "<object",
        "<embed",
        "<form",
        "<meta",
        "<link",
        "<base",
        "<foreignobject",
        "srcdoc",
        "javascript:",
        "data:text/html",
    ];
    let lower: String = markup
        .to_lowercase()
        .chars()
        .filter(|character| !character.is_control())
        .collect();
    ACTIVE.iter().any(|part| lower.contains(part)) || has_handler(&lower)
}

/// Whether there is something like `onclick=`.
fn has_handler(lower: &str) -> bool {
    lower.match_indices("on").any(|(at, _)| {
        let starts = lower[..at].ends_with([' ', '/', '"', '\'']);
        let rest = lower[at + 2..].trim_start_matches(|character: char| character.is_ascii_alphabetic());
        let named = rest.len() < lower.len() - at - 2;
        starts && named && rest.trim_start().starts_with('=')
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn html(markup: &str) -> Value {
        sanitized(json!({ "output_type": "display_data", "data": { "text/html": markup }, "metadata": {} }))
    }

    #[test]
    fn what_runs_is_left_out_and_what_shows_is_kept() {
        for active in [
            "<script>alert(1)</script>",
            "<SCR\0IPT>x</SCRIPT>",
            "<img src=x onerror=alert(1)>",
            "<img/onload = 'x'>",
            "<a href='JavaScript:x'>",
            "<iframe src=x>",
        ] {
            assert_eq!(html(active)["data"]["text/html"], LEFT_OUT, "{active}");
        }
        let table = "<table border=\"1\"><td>only one, on time</td></table>";
        assert_eq!(html(table)["data"]["text/html"], table);
        let script = sanitized(json!({ "data": { "application/javascript": "x", "text/plain": ["a", "b"] } }));
        assert_eq!(
            script["data"],
            json!({ "application/javascript": LEFT_OUT, "text/plain": "ab" })
        );
    }

    #[test]
    fn terminal_codes_go_and_images_stay() {
        let stream = sanitized(json!({ "output_type": "stream", "text": ["\u{1b}[31mred\u{1b}[0m", "!"] }));
        assert_eq!(stream["text"], "red!");
        let error = sanitized(json!({ "output_type": "error", "traceback": ["\u{1b}[0;31mE\u{1b}[0m"] }));
        assert_eq!(error["traceback"], json!(["E"]));
        let image = sanitized(json!({ "data": { "image/png": "aGVs\nbG8=" } }));
        assert_eq!(image["data"]["image/png"], "aGVs\nbG8=");
        let json = sanitized(json!({ "data": { "application/json": { "a": 1 } } }));
        assert_eq!(json["data"]["application/json"], json!({ "a": 1 }));
    }
}
