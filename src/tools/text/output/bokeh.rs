//! Bokeh figures in a line, from the document in the script that draws them.

use jupyter_client::counted;
use serde_json::Value;

use super::{
    phrase::{listed, name, quoted},
    series::Series,
};

/// Models within models that are looked into.
const MAX_NESTING: usize = 48;

/// Line about the figures in a script, if it draws some: `Bokeh figure "Lines": Line 3 points (x 1..3, y 4..6), axis "t", legend "a"`.
pub(super) fn line(script: &str) -> Option<String> {
    let at = script.find("docs_json = ")? + "docs_json = ".len();
    let document = document(&script[at..])?;
    let mut found = Found::default();
    found.walk(&document, 0);
    let mut line = "Bokeh figure".to_owned();
    if !found.titles.is_empty() {
        line = format!("{line} {}", listed(found.titles, ", "));
    }
    let mut facts = Vec::new();
    if !found.glyphs.is_empty() {
        facts.push(listed(found.glyphs, "; "));
    }
    for (what, names) in [("axis", found.axes), ("legend", found.legends)] {
        if !names.is_empty() {
            facts.push(format!("{what} {}", listed(names, ", ")));
        }
    }
    if !facts.is_empty() {
        line = format!("{line}: {}", facts.join(", "));
    }
    Some(line)
}

/// The document is written as it is, or as a text in quotes.
fn document(script: &str) -> Option<Value> {
    let script = script.strip_prefix('\'').unwrap_or(script);
    serde_json::Deserializer::from_str(script).into_iter().next()?.ok()
}

#[derive(Default)]
struct Found {
    titles: Vec<String>,
    axes: Vec<String>,
    legends: Vec<String>,
    glyphs: Vec<String>,
}

impl Found {
    fn walk(&mut self, value: &Value, nesting: usize) {
        if nesting > MAX_NESTING {
            return;
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item, nesting + 1)),
            Value::Object(members) => {
                self.model(value);
                members.values().for_each(|member| self.walk(member, nesting + 1));
            }
            _ => {}
        }
    }

    fn model(&mut self, model: &Value) {
        let Some(attributes) = model.get("attributes") else {
            return;
        };
        let text = |member: &str| {
            attributes
                .get(member)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let Some(kind) = model_name(model) else { return };
        match kind {
            "Title" => self.titles.extend(text("text").map(quoted)),
            "GlyphRenderer" => self.glyphs.extend(glyph(attributes)),
            "LegendItem" => {
                let label = attributes.pointer("/label/value").and_then(Value::as_str);
                self.legends.extend(label.map(quoted));
            }
            kind if kind.ends_with("Axis") => self.axes.extend(text("axis_label").map(quoted)),
            _ => {}
        }
    }
}

/// Models of Bokeh 3 have the type "object" and a name, those before a type alone.
fn model_name(model: &Value) -> Option<&str> {
    model.get("name").or_else(|| model.get("type"))?.as_str()
}

fn glyph(attributes: &Value) -> Option<String> {
    let mut line = name(model_name(attributes.get("glyph")?)?);
    let columns = columns(attributes.pointer("/data_source/attributes/data"));
    if let Some(count) = columns.iter().map(|(_, series)| series.count).max() {
        line = format!("{line} {}", counted(count, "point"));
    }
    let ranges: Vec<String> = columns
        .into_iter()
        .filter_map(|(column, series)| Some(format!("{} {}", name(&column), series.range?)))
        .collect();
    match ranges.is_empty() {
        true => Some(line),
        false => Some(format!("{line} ({})", listed(ranges, ", "))),
    }
}

fn columns(data: Option<&Value>) -> Vec<(String, Series)> {
    let Some(data) = data else { return Vec::new() };
    let entries = data.get("entries").and_then(Value::as_array);
    let entries = entries.into_iter().flatten();
    let of_map = entries.filter_map(|entry| Some((entry.get(0)?.as_str()?.to_owned(), Series::of(entry.get(1)?)?)));
    let members = data.as_object().into_iter().flatten();
    let of_object = members.filter(|(name, _)| *name != "entries");
    of_map
        .chain(of_object.filter_map(|(name, values)| Some((name.clone(), Series::of(values)?))))
        .collect()
}
