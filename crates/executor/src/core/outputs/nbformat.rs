//! Outputs as nbformat and the kernel's messages have them.

use serde_json::{Map, Value, json};

use super::Missing;

/// The prompt, set apart from the answer behind it.
pub(super) fn as_prompt(prompt: &str) -> String {
    match prompt.ends_with(char::is_whitespace) || prompt.is_empty() {
        true => prompt.to_owned(),
        false => format!("{prompt} "),
    }
}

/// The text of a stream, if another output belongs to the same.
pub(super) fn stream_text<'a>(stream: &'a mut Value, other: &Value) -> Option<&'a mut String> {
    let is_same = text(stream, "output_type") == "stream"
        && text(other, "output_type") == "stream"
        && text(stream, "name") == text(other, "name");
    match stream.get_mut("text").filter(|_| is_same) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

pub(super) fn stream(name: &str, text: &str) -> Value {
    json!({ "output_type": "stream", "name": name, "text": text })
}

/// A line of a traceback without the escape sequences that colour it.
pub(super) fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut parts = line.split('\u{1b}');
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}

/// The beginning and the end of a text that is too long, and what is missing between them.
pub(super) fn shortened(text: &str, limit: usize) -> (String, Missing) {
    let half = limit / 2;
    let (head, tail) = (
        text.floor_char_boundary(half),
        text.ceil_char_boundary(text.len() - half),
    );
    let gap = format!("\n[{} bytes left out: too large]\n", tail - head);
    let missing = Missing {
        lost: text[head..tail].chars().count(),
        told: gap.chars().count(),
    };
    (format!("{}{gap}{}", &text[..head], &text[tail..]), missing)
}

/// The members that make up what is displayed, as nbformat has them.
pub(super) fn data_members(content: &Value) -> Map<String, Value> {
    let object = |key: &str| {
        let member = content.get(key).filter(|member| member.is_object());
        (key.to_owned(), member.cloned().unwrap_or_else(|| json!({})))
    };
    Map::from_iter([object("data"), object("metadata")])
}

pub(super) fn display_id(content: &Value) -> Option<String> {
    Some(content.pointer("/transient/display_id")?.as_str()?.to_owned())
}

pub(super) fn text<'a>(content: &'a Value, key: &str) -> &'a str {
    content.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Approximate size of a value as JSON.
pub(super) fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size_of(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members
                .iter()
                .map(|(key, value)| key.len() + size_of(value) + 4)
                .sum::<usize>()
                + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

pub(super) fn utf16_len(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}
