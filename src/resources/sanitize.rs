//! Outputs made safe to pass on: nothing that runs where it is shown, no terminal codes, nothing endless.

use serde_json::{Map, Value};

use crate::types::{truncate, without_ansi};

/// Characters of one output's text; what is not text is kept whole or left out.
const MAX_TEXT: usize = 100_000;
const MAX_BINARY: usize = 5 * 1024 * 1024;
const LEFT_OUT: &str = "[left out: it could run where it is shown]";
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
            MimeKind::Markup if is_active(&joined(value)) => LEFT_OUT.into(),
            MimeKind::Markup | MimeKind::Text => plain(value).into(),
            MimeKind::Json if value.is_string() => plain(value).into(),
            MimeKind::Binary if joined(value).len() > MAX_BINARY => TOO_LARGE.into(),
            MimeKind::Binary if is_text(value) => joined(value).into(),
            MimeKind::Json | MimeKind::Binary => value.take(),
        };
    }
}

/// Of what kind an output's data is, by its MIME type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MimeKind {
    Script,
    /// It may be shown as markup, whatever it is called.
    Markup,
    /// Nothing shows it as anything but text.
    Text,
    Json,
    /// Half of it is nothing: base64 mostly.
    Binary,
}

impl MimeKind {
    /// Parameters and case do not make another type.
    fn of(mime: &str) -> Self {
        let kind = mime.split(';').next().unwrap_or_default().trim().to_lowercase();
        let is_script = ["javascript", "ecmascript", "jscript", "livescript"];
        if is_script.iter().any(|name| kind.contains(name)) {
            Self::Script
        } else if kind == "text/plain" {
            Self::Text
        } else if kind.starts_with("text/") || kind.starts_with("image/svg") || kind.ends_with("xml") {
            Self::Markup
        } else if kind.ends_with("json") {
            Self::Json
        } else {
            Self::Binary
        }
    }
}

fn plain(value: &Value) -> String {
    truncate(without_ansi(&joined(value)), MAX_TEXT).text
}

/// nbformat allows a text to be a list of lines.
fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) if is_text(value) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    }
}

fn is_text(value: &Value) -> bool {
    let is_lines = |lines: &Vec<Value>| lines.iter().all(Value::is_string);
    value.is_string() || value.as_array().is_some_and(is_lines)
}

/// Whether markup may do more than show something. Rather too often yes: it is left out whole, since taking
/// out parts is how such filters are fooled. What reads it may take a control character for a space or for
/// nothing, so it is looked at in both ways.
fn is_active(markup: &str) -> bool {
    let lower = decoded(&markup.to_lowercase());
    let spaced: String = lower.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let dropped: String = lower.chars().filter(|c| c.is_whitespace() || !c.is_control()).collect();
    // Browsers take line ends and tabs out of addresses.
    let tight: String = lower
        .chars()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .collect();
    has_active_text(&tight)
        || [spaced, dropped]
            .iter()
            .any(|text| has_active_element(text) || has_handler(text))
}

/// Addresses and declarations that bring in what runs.
fn has_active_text(tight: &str) -> bool {
    const ACTIVE: [&str; 8] = [
        "javascript:",
        "vbscript:",
        "data:text/",
        "data:application/xhtml",
        "srcdoc",
        "<!entity",
        "<?xml-stylesheet",
        "<script",
    ];
    ACTIVE.iter().any(|part| tight.contains(part))
}

/// Whether there is an element that runs, loads or sends something, under whatever prefix of a namespace.
fn has_active_element(lower: &str) -> bool {
    const ACTIVE: [&str; 17] = [
        "script",
        "iframe",
        "frame",
        "frameset",
        "object",
        "embed",
        "applet",
        "form",
        "meta",
        "link",
        "base",
        "portal",
        "foreignobject",
        // These set attributes of others, handlers among them.
        "set",
        "animate",
        "handler",
        "listener",
    ];
    lower.split('<').skip(1).any(|tag| {
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '>');
        let name = tag.split(ends).next().unwrap_or_default();
        let local = name.rsplit(':').next().unwrap_or_default();
        ACTIVE.contains(&local)
    })
}

/// Whether there is something like `onclick=` behind the start of an element.
fn has_handler(lower: &str) -> bool {
    let elements = lower.find('<').map_or("", |first| &lower[first..]);
    elements.match_indices("on").any(|(at, _)| {
        let starts = elements[..at].ends_with(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\''));
        let rest = elements[at + 2..].trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let named = rest.len() < elements.len() - at - 2;
        starts && named && rest.trim_start().starts_with('=')
    })
}

/// Text with its character references resolved, in lower case, but for those of `<`: they are how markup is shown
/// instead of meant.
fn decoded(lower: &str) -> String {
    let mut text = String::with_capacity(lower.len());
    let mut rest = lower;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = reference(rest)
            .filter(|(character, _)| *character != '<')
            .unwrap_or(('&', 1));
        text.extend(character.to_lowercase());
        rest = &rest[length..];
    }
    text.push_str(rest);
    text
}

/// The character that a reference at the start of `text` stands for, and how long the reference is. The semicolon
/// may be missing.
fn reference(text: &str) -> Option<(char, usize)> {
    const NAMED: [(&str, char); 10] = [
        ("&colon", ':'),
        ("&tab", '\t'),
        ("&newline", '\n'),
        ("&nbsp", ' '),
        ("&sol", '/'),
        ("&equals", '='),
        ("&quot", '"'),
        ("&apos", '\''),
        ("&semi", ';'),
        ("&amp", '&'),
    ];
    let whole = |length: usize| length + usize::from(text[length..].starts_with(';'));
    if let Some((name, character)) = NAMED.iter().find(|(name, _)| text.starts_with(name)) {
        return Some((*character, whole(name.len())));
    }
    let number = text.strip_prefix("&#")?;
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let character = char::from_u32(u32::from_str_radix(&digits[..end], radix).ok()?)?;
    Some((character, whole(text.len() - digits.len() + end)))
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
