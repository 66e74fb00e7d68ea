//! Active content: outputs and markup that a browser does more with than show them. Knows nothing of who wrote them
//! or of where they go.

use serde_json::Value;

/// Of what kind an output's data is, by its MIME type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MimeKind {
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
    pub fn of(mime: &str) -> Self {
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

/// Returns whether JupyterLab would run something of an output's data in a trusted notebook. Types that it cannot
/// show safely count too: extensions bring types that are code by another name.
pub fn is_active_data(mime: &str, value: &Value) -> bool {
    match MimeKind::of(mime) {
        MimeKind::Script => true,
        MimeKind::Markup => is_active_markup(&joined_text(value)),
        MimeKind::Text => false,
        MimeKind::Json => !is_inert(mime, &INERT_JSON),
        MimeKind::Binary => !is_inert(mime, &INERT_BINARY),
    }
}

/// Types that are shown and nothing else, by how they begin.
const INERT_JSON: [&str; 6] = [
    "application/json",
    "application/geo+json",
    "application/vnd.plotly.",
    "application/vnd.vega.",
    "application/vnd.vegalite.",
    "application/vnd.dataresource",
];
const INERT_BINARY: [&str; 4] = ["image/", "audio/", "video/", "application/pdf"];

fn is_inert(mime: &str, inert: &[&str]) -> bool {
    let mime = mime.trim().to_lowercase();
    inert.iter().any(|start| mime.starts_with(start))
}

/// A text; nbformat allows it to be a list of lines.
pub fn joined_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) if is_text(value) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.to_string(),
    }
}

pub fn is_text(value: &Value) -> bool {
    let is_lines = |lines: &Vec<Value>| lines.iter().all(Value::is_string);
    value.is_string() || value.as_array().is_some_and(is_lines)
}

/// Returns whether markup may do more than show something. Errs on the side of yes: such markup is left out whole,
/// since filters that take out parts are easily fooled. Parsers may take a control character for a space or for
/// nothing, so both readings are checked.
pub fn is_active_markup(markup: &str) -> bool {
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

/// Returns whether there is an element that runs, loads or sends something, under whatever namespace prefix.
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

/// Returns whether there is an event handler such as `onclick=` after the start of an element.
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

    #[test]
    fn what_extensions_run_is_active_and_plots_are_not() {
        for mime in [
            "application/javascript",
            "application/vnd.jupyter.widget-view+json",
            "application/vnd.bokehjs_exec.v0+json",
            "application/vnd.holoviews_exec.v0+json",
            "application/x-unknown",
        ] {
            assert!(is_active_data(mime, &json!({})), "{mime}");
        }
        for mime in ["text/plain", "image/png", "application/vnd.plotly.v1+json", "text/html"] {
            assert!(!is_active_data(mime, &json!("x")), "{mime}");
        }
        assert!(is_active_data("image/svg+xml", &json!(["<svg ", "onload=x>"])));
    }
}
