//! Vega and Vega-Lite charts in a line.

use jupyter_client::counted;
use serde_json::Value;

use super::{
    phrase::{listed, name, quoted},
    series::Series,
};

/// Charts within charts that are looked into.
const MAX_NESTING: usize = 6;
/// Ways to put charts together, and the word between them.
const COMPOSITIONS: [(&str, &str); 4] = [
    ("layer", " + "),
    ("hconcat", " | "),
    ("vconcat", " / "),
    ("concat", " | "),
];

/// Line about a chart: `Vega-Lite chart "Digits": line, x t 0..4, y v 1..5 "value", 5 rows`.
pub(super) fn line(spec: &Value) -> String {
    let schema = spec.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let is_lite = schema.contains("vega-lite") || spec.get("marks").is_none();
    let mut line = if is_lite { "Vega-Lite chart" } else { "Vega chart" }.to_owned();
    if let Some(title) = title(spec.get("title")) {
        line = format!("{line} {}", quoted(title));
    }
    let data = rows(spec, spec);
    let shown = if is_lite {
        view(spec, spec, data, 0)
    } else {
        marks(spec)
    };
    if !shown.is_empty() {
        line = format!("{line}: {shown}");
    }
    if let Some(rows) = data {
        line = format!("{line}, {}", counted(rows.len(), "row"));
    } else if let Some(url) = spec.pointer("/data/url").and_then(Value::as_str) {
        line = format!("{line}, data from {}", name(url));
    }
    line
}

/// The chart that Altair writes into the script of its HTML.
pub(super) fn in_html(html: &str) -> Option<Value> {
    if !html.contains("vegaEmbed") && !html.contains("vega-embed") {
        return None;
    }
    let at = html.rfind("})({")? + 3;
    let spec = serde_json::Deserializer::from_str(&html[at..])
        .into_iter::<Value>()
        .next()?
        .ok()?;
    spec.get("$schema").is_some().then_some(spec)
}

fn title(title: Option<&Value>) -> Option<&str> {
    let title = title?;
    let text = title.get("text").unwrap_or(title);
    let text = text.as_str().or_else(|| text.get(0)?.as_str());
    text.filter(|text| !text.trim().is_empty())
}

/// Rows of data of a chart, written in it or in the data sets of the whole.
fn rows<'a>(whole: &'a Value, view: &'a Value) -> Option<&'a Vec<Value>> {
    let data = view.get("data")?;
    // Vega has a list of data sets.
    let data = data.get(0).unwrap_or(data);
    if let Some(values) = data.get("values") {
        return values.as_array();
    }
    whole.get("datasets")?.get(data.get("name")?.as_str()?)?.as_array()
}

fn view(whole: &Value, spec: &Value, outer: Option<&Vec<Value>>, nesting: usize) -> String {
    let rows = rows(whole, spec).or(outer);
    if nesting > MAX_NESTING {
        return String::new();
    }
    for (member, sign) in COMPOSITIONS {
        if let Some(parts) = spec.get(member).and_then(Value::as_array) {
            let parts = parts
                .iter()
                .map(|part| format!("({})", view(whole, part, rows, nesting + 1)));
            return with_encoding(listed(parts.take(20).collect(), sign), spec, rows);
        }
    }
    if let Some(inner) = spec.get("spec") {
        return view(whole, inner, rows, nesting + 1);
    }
    let mark = spec.get("mark");
    let mark = mark.and_then(|mark| mark.as_str().or_else(|| mark.get("type")?.as_str()));
    with_encoding(mark.map(name).unwrap_or_default(), spec, rows)
}

fn with_encoding(shown: String, spec: &Value, rows: Option<&Vec<Value>>) -> String {
    let mut phrases = vec![shown];
    if let Some(encoding) = spec.get("encoding").and_then(Value::as_object) {
        let place = |name: &str| match name {
            "x" => 0,
            "y" => 1,
            _ => 2,
        };
        let mut channels: Vec<(&String, &Value)> = encoding.iter().collect();
        channels.sort_by_key(|(name, _)| place(name));
        phrases.extend(
            channels
                .into_iter()
                .filter_map(|(channel, field)| encoded(channel, field, rows)),
        );
    }
    phrases.retain(|phrase| !phrase.is_empty());
    listed(phrases, ", ")
}

fn encoded(channel: &str, definition: &Value, rows: Option<&Vec<Value>>) -> Option<String> {
    let field = definition.get("field").and_then(Value::as_str);
    let aggregate = definition.get("aggregate").and_then(Value::as_str);
    let is_binned = definition
        .get("bin")
        .is_some_and(|bin| bin != &Value::Bool(false) && !bin.is_null());
    let shown = match (aggregate, field) {
        (Some(aggregate), field) => format!("{}({})", name(aggregate), name(field.unwrap_or_default())),
        (None, Some(field)) if is_binned => format!("bin({})", name(field)),
        (None, Some(field)) => {
            let range = rows.and_then(|rows| Series::of_column(rows, field).range);
            range.map_or_else(|| name(field), |range| format!("{} {range}", name(field)))
        }
        (None, None) => return None,
    };
    let title = title(definition.get("title")).map(|title| format!(" {}", quoted(title)));
    Some(format!("{} {shown}{}", name(channel), title.unwrap_or_default()))
}

/// Types of the marks of a Vega chart.
fn marks(spec: &Value) -> String {
    let marks = spec.get("marks").and_then(Value::as_array).into_iter().flatten();
    let types = marks.filter_map(|mark| mark.get("type")?.as_str()).map(name);
    listed(types.collect(), ", ")
}
