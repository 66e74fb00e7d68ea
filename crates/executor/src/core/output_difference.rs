//! Comparison of outputs with those that a notebook has. Differences between any two runs are ignored: counts,
//! metadata, addresses in memory, and how often a stream was flushed. Does no I/O.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The kind of the first difference between the outputs of a cell and those of another run of it; `None` if there is none.
pub(crate) fn output_difference(expected: &[Value], outputs: &[Value]) -> Option<&'static str> {
    if expected.is_empty() != outputs.is_empty() {
        return Some(if outputs.is_empty() {
            "output missing"
        } else {
            "new output"
        });
    }
    for name in ["stdout", "stderr"] {
        if stream(expected, name) != stream(outputs, name) {
            return Some("text");
        }
    }
    let (before, now) = (rich(expected), rich(outputs));
    for (before, now) in before.iter().zip(&now) {
        if let Some(what) = difference(before, now) {
            return Some(what);
        }
    }
    (before.len() != now.len()).then_some("number of outputs")
}

/// All text of a stream.
fn stream(outputs: &[Value], name: &str) -> String {
    let of_stream = outputs
        .iter()
        .filter(|output| output["output_type"] == "stream" && output["name"] == name);
    let text: String = of_stream.map(|output| joined(&output["text"])).collect();
    without_addresses(&text)
}

fn rich(outputs: &[Value]) -> Vec<&Value> {
    outputs
        .iter()
        .filter(|output| output["output_type"] != "stream")
        .collect()
}

fn difference(before: &Value, now: &Value) -> Option<&'static str> {
    let is_error = |output: &Value| output["output_type"] == "error";
    if is_error(before) || is_error(now) {
        let text = |output: &Value| ["ename", "evalue"].map(|part| without_addresses(&joined(&output[part])));
        return (text(before) != text(now)).then_some("error");
    }
    let empty = Map::new();
    let data = |output: &'_ Value| output["data"].as_object().unwrap_or(&empty).clone();
    let (before, now) = (data(before), data(now));
    let same = |mime: &str| content(&before, mime) == content(&now, mime);
    let mut images = before
        .keys()
        .chain(now.keys())
        .filter(|mime| mime.starts_with("image/"));
    if !images.all(|mime| same(mime)) {
        return Some("image");
    }
    // Other forms of the same output, such as HTML, are full of random ids.
    let has_text = before.contains_key("text/plain") || now.contains_key("text/plain");
    let mut others = before.keys().chain(now.keys());
    match has_text {
        true => (!same("text/plain")).then_some("text"),
        false => (!others.all(|mime| same(mime))).then_some("data"),
    }
}

/// One form of an output. Lines of base64 may be broken anywhere.
fn content(data: &Map<String, Value>, mime: &str) -> Option<Value> {
    let value = data.get(mime)?;
    let text = match value {
        Value::String(_) | Value::Array(_) => joined(value),
        other => return Some(other.clone()),
    };
    let is_binary = mime.starts_with("image/") && !mime.ends_with("+xml");
    Some(match is_binary {
        true => text.split_whitespace().collect::<String>().into(),
        false => without_addresses(&text).into(),
    })
}

/// A text that may be kept as lines.
fn joined(text: &Value) -> Cow<'_, str> {
    match text {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().into(),
    }
}

/// A text without the digits of addresses in memory, such as in `<Axes at 0x7f3c2c1d5e50>`.
fn without_addresses(text: &str) -> String {
    const SHORTEST: usize = 6;
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let end = at + 2 + digits;
        shown.push_str(if digits < SHORTEST {
            &rest[..end]
        } else {
            &rest[..at + 2]
        });
        rest = &rest[end..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn out(text: &str) -> Value {
        json!({ "output_type": "stream", "name": "stdout", "text": text })
    }

    fn shows(data: &Value, count: i64) -> Value {
        json!({ "output_type": "execute_result", "data": data, "metadata": {}, "execution_count": count })
    }

    #[test]
    fn what_differs_by_itself_is_no_difference() {
        let lines = json!({ "output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"] });
        let html = |id: &str| json!({ "text/plain": "x", "text/html": id });
        for (before, now) in [
            (vec![lines], vec![out("a\n"), out("b\n")]),
            (
                vec![shows(&json!({ "text/plain": "1" }), 3)],
                vec![shows(&json!({ "text/plain": ["1"] }), 1)],
            ),
            (
                vec![shows(&json!({ "text/plain": "<Axes at 0x7f3c2c1d5e50>" }), 1)],
                vec![shows(&json!({ "text/plain": "<Axes at 0x7fbb2c1d0000>" }), 1)],
            ),
            (vec![shows(&html("T_1"), 1)], vec![shows(&html("T_2"), 1)]),
            (
                vec![shows(&json!({ "image/png": "QUJD\nREVG\n" }), 1)],
                vec![shows(&json!({ "image/png": "QUJDREVG" }), 1)],
            ),
            (vec![], vec![]),
        ] {
            assert_eq!(output_difference(&before, &now), None, "{before:?} {now:?}");
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let error = |evalue: &str| json!({ "output_type": "error", "ename": "E", "evalue": evalue, "traceback": [] });
        for (before, now, what) in [
            (vec![out("a")], vec![out("b")], "text"),
            (vec![out("0x12")], vec![out("0x13")], "text"),
            (vec![out("a")], vec![], "output missing"),
            (vec![], vec![out("a")], "new output"),
            (
                vec![shows(&json!({ "text/plain": "1" }), 1)],
                vec![shows(&json!({ "text/plain": "2" }), 1)],
                "text",
            ),
            (
                vec![shows(&json!({ "image/png": "A", "text/plain": "x" }), 1)],
                vec![shows(&json!({ "image/png": "B", "text/plain": "x" }), 1)],
                "image",
            ),
            (
                vec![shows(&json!({ "application/json": 1 }), 1)],
                vec![shows(&json!({ "application/json": 2 }), 1)],
                "data",
            ),
            (vec![error("1")], vec![error("2")], "error"),
            (vec![out("a")], vec![out("a"), error("2")], "number of outputs"),
        ] {
            assert_eq!(output_difference(&before, &now), Some(what), "{before:?} {now:?}");
        }
    }
}
