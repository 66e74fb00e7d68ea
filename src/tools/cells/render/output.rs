//! One output within a limit of characters.

use jupyter_client::{cut_middle, truncate, without_ansi};
use serde_json::{Map, Value, json};

use super::{drop_large, metadata_size};
use crate::tools::{images::is_image, shares::shares, text::output::joined};

/// Beginning of the text that stands in the place of an image that is not shown.
pub(super) const IMAGE_LEFT_OUT: &str = "[image left out";

/// Characters of what an error says and of where it happened, which are told however much was put out before it.
const MIN_ERROR: usize = 200;
const CUT_BEFORE: &str = "[TRUNCATED]...\n";

/// Number of characters it takes to show an error; 0 for other outputs.
pub(super) fn error_size(output: &Value) -> usize {
    match output.get("output_type").and_then(Value::as_str) {
        Some("error") => {
            let lines = output.get("traceback").and_then(Value::as_array).map_or(0, Vec::len);
            let value = output.get("evalue").map_or(0, |value| joined(value).chars().count());
            text_size(output) + lines + value
        }
        _ => 0,
    }
}

/// Number of characters of an output a model would read.
pub(super) fn text_size(output: &Value) -> usize {
    let plain = |value: &Value| without_ansi(&joined(value)).chars().count();
    let size = |member: &str, size: &dyn Fn(&Value) -> usize| output.get(member).map_or(0, size);
    let text = match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => size("text", &characters),
        Some("error") => size("traceback", &plain) + size("evalue", &plain),
        _ => output.get("data").and_then(Value::as_object).map_or(0, |data| {
            let texts = data.iter().filter(|(mime, _)| !is_image(mime));
            texts.map(|(mime, value)| data_size(mime, value)).sum()
        }),
    };
    text + size("metadata", &metadata_size)
}

fn data_size(mime: &str, value: &Value) -> usize {
    match is_json(mime, value) {
        true => value.to_string().chars().count(),
        false => characters(value),
    }
}

/// Returns whether the value is JSON: there, a list of strings is a list, and not the lines of one text.
fn is_json(mime: &str, value: &Value) -> bool {
    mime.ends_with("json") && !value.is_string()
}

fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        other => joined(other).chars().count(),
    }
}

/// An output whose images are attached already, and whether something of it is missing.
pub(super) fn show_output(output: Value, max: usize, hint: &str) -> (Value, bool) {
    let Value::Object(mut output) = output else {
        return (output, false);
    };
    let mut cut = false;
    match output.get("output_type").and_then(Value::as_str) {
        Some("error") => cut |= show_error(&mut output, max),
        Some("stream") => {
            if let Some(text) = output.get_mut("text") {
                cut |= shorten(text, max, hint);
            }
        }
        _ => {
            if let Some(Value::Object(data)) = output.get_mut("data") {
                cut |= show_bundle(data, max, hint);
            }
        }
    }
    if let Some(metadata) = output.get_mut("metadata") {
        let size = metadata_size(metadata);
        cut |= drop_large(metadata, size, max);
    }
    (Value::Object(output), cut)
}

/// Cuts the same thing in several types to one limit; what is shortest to read comes first.
fn show_bundle(data: &mut Map<String, Value>, max: usize, hint: &str) -> bool {
    let plain = data.get("text/plain").map_or(0, characters).min(max);
    let size = |(mime, value): (&String, &Value)| match mime.as_str() {
        "text/plain" => 0,
        mime if is_image(mime) => 0,
        mime => data_size(mime, value),
    };
    let rich: Vec<usize> = data.iter().map(size).collect();
    let allowed = shares(&rich, max - plain);
    let mut cut = false;
    for ((mime, value), allowed) in data.iter_mut().zip(allowed) {
        let max = if mime == "text/plain" { plain } else { allowed };
        cut |= show_data(mime, value, max, hint);
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
    let room = max.saturating_sub(2 * value.text.chars().count());
    // Where it happened and what it was is at the end.
    let (traceback, shortened) = keep_end(plain.join("\n"), room.max(max / 2).max(MIN_ERROR));
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

/// The end of a text that is too long, after a mark that says so.
fn keep_end(text: String, max: usize) -> (String, bool) {
    let length = text.chars().count();
    if length <= max {
        return (text, false);
    }
    let end = text.chars().skip(length - max.saturating_sub(CUT_BEFORE.len()));
    (CUT_BEFORE.chars().chain(end).collect(), true)
}

fn show_data(mime: &str, value: &mut Value, max: usize, hint: &str) -> bool {
    if is_image(mime) {
        return value.as_str().is_some_and(|text| text.starts_with(IMAGE_LEFT_OUT));
    }
    if is_json(mime, value) {
        let cut = cut_middle(value.to_string(), max, hint);
        if cut.truncated {
            *value = cut.text.into();
        }
        return cut.truncated;
    }
    if is_text(mime) {
        return shorten(value, max, hint);
    }
    show_whole(value, max)
}

/// Returns whether a MIME type is text, which may be cut.
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
        *value = text.into_owned().into();
    }
    is_large
}

fn shorten(value: &mut Value, max: usize, hint: &str) -> bool {
    if let Value::String(text) = value {
        let cut = cut_middle(std::mem::take(text), max, hint);
        *text = cut.text;
        return cut.truncated;
    }
    let cut = cut_middle(joined(value), max, hint);
    let is_lines = value.as_array().is_some_and(|lines| lines.iter().all(Value::is_string));
    if is_lines || cut.truncated {
        *value = Value::String(cut.text);
    }
    cut.truncated
}
