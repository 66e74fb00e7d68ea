//! Outputs as text, whatever they are: pages show neither HTML nor pictures that a notebook made.

use jupyter_client::as_shown;
use serde_json::Value;

/// All outputs of a cell as a terminal would show them.
pub(super) fn text_of(outputs: &[Value]) -> String {
    let mut all = String::new();
    for output in outputs {
        let text = text(output);
        all.push_str(&text);
        if !text.is_empty() && !text.ends_with('\n') {
            all.push('\n');
        }
    }
    as_shown(&all).into_owned()
}

fn text(output: &Value) -> String {
    match output["output_type"].as_str() {
        Some("stream") => joined(&output["text"]),
        Some("error") => match joined_by(&output["traceback"], "\n") {
            traceback if !traceback.is_empty() => traceback,
            _ => format!("{}: {}", joined(&output["ename"]), joined(&output["evalue"])),
        },
        _ => match joined(&output["data"]["text/plain"]) {
            plain if !plain.is_empty() => plain,
            _ => kinds(&output["data"]),
        },
    }
}

/// Names what cannot be shown as text.
fn kinds(data: &Value) -> String {
    let kinds: Vec<&str> = data
        .as_object()
        .into_iter()
        .flatten()
        .map(|(kind, _)| kind.as_str())
        .collect();
    match kinds.is_empty() {
        true => String::new(),
        false => format!("[{}]", kinds.join(", ")),
    }
}

fn joined(text: &Value) -> String {
    joined_by(text, "")
}

/// A text that may be a list of its lines.
fn joined_by(text: &Value, separator: &str) -> String {
    match text {
        Value::Array(lines) => {
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            lines.join(separator)
        }
        text => text.as_str().unwrap_or_default().to_owned(),
    }
}

/// The last lines of a text.
pub(super) fn tail(text: &str, lines: usize) -> &str {
    let text = text.trim_end_matches('\n');
    match text.rmatch_indices('\n').nth(lines.saturating_sub(1)) {
        Some((end, _)) => &text[end + 1..],
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_text() {
        let outputs = [
            json!({ "output_type": "stream", "text": ["a\n", "10%\r20%"] }),
            json!({ "output_type": "display_data", "data": { "image/png": "x", "text/html": "<b>" } }),
            json!({ "output_type": "execute_result", "data": { "text/html": "<b>", "text/plain": "1" } }),
            json!({ "output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[31mE\u{1b}[0m", "v"] }),
        ];
        assert_eq!(text_of(&outputs), "a\n20%\n[image/png, text/html]\n1\nE\nv\n");
    }

    #[test]
    fn a_tail_has_the_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a\nb", 4), "a\nb");
        assert_eq!(tail("", 4), "");
    }
}
