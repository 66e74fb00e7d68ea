//! Outputs made safe to pass on: nothing that runs where it is shown, no terminal codes, nothing endless.

use jupyter_client::{truncate, without_ansi};
use serde_json::{Map, Value};

use crate::types::{MimeKind, is_active_markup, is_text, joined_text};

/// Characters of one output's text; what is not text is kept whole or left out.
const MAX_TEXT: usize = 100_000;
const MAX_BINARY: usize = 5 * 1024 * 1024;
const LEFT_OUT: &str = "[left out: it could run code in a viewer]";
const TOO_LARGE: &str = "[left out: too large]";

/// An output in nbformat's form.
pub(super) fn sanitized(mut output: Value) -> Value {
    let Some(members) = output.as_object_mut() else {
        return Value::Null;
    };
    for member in ["text", "ename", "evalue"] {
        if let Some(text) = members.get_mut(member) {
            *text = Value::String(plain(text));
        }
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
        *value = match MimeKind::of(mime) {
            MimeKind::Script => LEFT_OUT.into(),
            MimeKind::Markup if is_active_markup(&joined_text(value)) => LEFT_OUT.into(),
            MimeKind::Markup | MimeKind::Text => plain(value).into(),
            MimeKind::Json if value.is_string() => plain(value).into(),
            MimeKind::Binary if joined_text(value).len() > MAX_BINARY => TOO_LARGE.into(),
            MimeKind::Binary if is_text(value) => joined_text(value).into(),
            MimeKind::Json | MimeKind::Binary => value.take(),
        };
    }
}

fn plain(value: &Value) -> String {
    truncate(without_ansi(&joined_text(value)), MAX_TEXT).text
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
            "<img src=x\nonerror=alert(1)>",
            "<img src=x\u{1}onerror=alert(1)>",
            "<svg\tonload=alert(1)>",
            "<svg\u{c}onload\u{c}=alert(1)>",
            "<script\nsrc=x>",
            "<s:script xmlns:s='http://www.w3.org/2000/svg'>",
            "<a href=\"java&#115;cript:alert(1)\">",
            "<a href=\"java&#X73;cript&colon;alert(1)\">",
            "<a href=\"java\n script:alert(1)\">",
            "<a href=\"java&Tab;script:alert(1)\">",
            "<set attributeName=onclick to=alert(1)>",
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
    fn what_only_looks_active_is_kept() {
        for shown in [
            "<svg><metadata>drawn</metadata><use xlink:href=\"#a\"/></svg>",
            "<td>&lt;script&gt; is how it starts</td>",
            "<td>R&D &amp; more; &#; &#x; &#99999999999;</td>",
        ] {
            assert_eq!(html(shown)["data"]["text/html"], shown);
        }
        let markdown = json!({ "data": { "text/markdown": "only = 1, **once** = 2" } });
        assert_eq!(sanitized(markdown.clone()), markdown);
    }

    #[test]
    fn a_type_is_known_by_any_of_its_spellings() {
        for mime in [
            "text/html; charset=utf8",
            "TEXT/HTML",
            "text/markdown",
            "application/xhtml+xml",
            "application/xml",
            "image/svg+xml;x=y",
            "Application/JavaScript; x=y",
        ] {
            let output = sanitized(json!({ "data": { (mime): "<img src=x onerror=alert(1)>" } }));
            assert_eq!(output["data"][mime], LEFT_OUT, "{mime}");
        }
        let plain = json!({ "data": { "text/plain": "<img src=x onerror=alert(1)>" } });
        assert_eq!(sanitized(plain.clone()), plain, "nothing shows it as an element");
    }

    #[test]
    fn what_is_no_text_is_whole_or_left_out() {
        let whole = "JVBERi0x".repeat(40_000);
        let pdf = sanitized(json!({ "data": { "application/pdf": [whole, ""] } }));
        assert_eq!(pdf["data"]["application/pdf"], whole);
        let pdf = sanitized(json!({ "data": { "application/pdf": "JVBERi0x".repeat(MAX_BINARY / 8 + 1) } }));
        assert_eq!(pdf["data"]["application/pdf"], TOO_LARGE);
    }

    #[test]
    fn terminal_codes_go_and_images_stay() {
        let stream = sanitized(json!({ "output_type": "stream", "text": ["\u{1b}[31mred\u{1b}[0m", "!"] }));
        assert_eq!(stream["text"], "red!");
        let error = sanitized(
            json!({ "output_type": "error", "evalue": "\u{1b}[1mv", "traceback": ["\u{1b}[0;31mE\u{1b}[0m"] }),
        );
        assert_eq!((&error["traceback"], &error["evalue"]), (&json!(["E"]), &json!("v")));
        let image = sanitized(json!({ "data": { "image/png": "aGVs\nbG8=" } }));
        assert_eq!(image["data"]["image/png"], "aGVs\nbG8=");
        let json = sanitized(json!({ "data": { "application/json": { "a": 1 } } }));
        assert_eq!(json["data"]["application/json"], json!({ "a": 1 }));
    }
}
