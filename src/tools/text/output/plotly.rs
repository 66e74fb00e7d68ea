//! Plotly figures in a line.

use jupyter_client::counted;
use serde_json::{Map, Value};

use super::{
    phrase::{listed, name, quoted},
    series::Series,
};

/// Members of a trace that hold its values, the most telling first.
const VALUES: [&str; 11] = [
    "x",
    "y",
    "z",
    "lat",
    "lon",
    "r",
    "theta",
    "labels",
    "values",
    "locations",
    "close",
];
/// Members of a trace that are told with their ranges.
const MAX_RANGES: usize = 3;

/// Line about a figure: `Plotly figure "Sales": 1 trace (bar "b" 12 points, x 0..11, y 3), x "month"`.
pub(super) fn line(figure: &Value) -> String {
    let empty = Vec::new();
    let traces = figure.get("data").and_then(Value::as_array).unwrap_or(&empty);
    let layout = figure.get("layout").and_then(Value::as_object);
    let mut line = "Plotly figure".to_owned();
    if let Some(title) = layout.and_then(|layout| title(layout.get("title"))) {
        line = format!("{line} {}", quoted(title));
    }
    line = format!("{line}: {}", counted(traces.len(), "trace"));
    if !traces.is_empty() {
        let traces = traces.iter().map(trace).collect();
        line = format!("{line} ({})", listed(traces, "; "));
    }
    if let Some(frames) = figure
        .get("frames")
        .and_then(Value::as_array)
        .filter(|frames| !frames.is_empty())
    {
        line = format!("{line}, {}", counted(frames.len(), "frame"));
    }
    for axis in ["x", "y"] {
        let titles = layout.map(|layout| axis_titles(layout, axis)).unwrap_or_default();
        if !titles.is_empty() {
            line = format!("{line}, {axis} {}", listed(titles, " "));
        }
    }
    line
}

/// Titles are texts, or objects with a text.
fn title(title: Option<&Value>) -> Option<&str> {
    let title = title?;
    let text = title.as_str().or_else(|| title.get("text")?.as_str());
    text.filter(|text| !text.trim().is_empty())
}

fn axis_titles(layout: &Map<String, Value>, axis: &str) -> Vec<String> {
    let prefix = format!("{axis}axis");
    let axes = layout.iter().filter(|(name, _)| name.starts_with(&prefix));
    let mut titles: Vec<String> = axes
        .filter_map(|(_, axis)| title(axis.get("title")))
        .map(quoted)
        .collect();
    titles.dedup();
    titles
}

fn trace(trace: &Value) -> String {
    let kind = trace.get("type").and_then(Value::as_str).unwrap_or("scatter");
    let mut line = name(kind);
    if let Some(name) = title(trace.get("name")) {
        line = format!("{line} {}", quoted(name));
    }
    let series = VALUES
        .iter()
        .filter_map(|member| Some((*member, Series::of(trace.get(*member)?)?)));
    let series: Vec<(&str, Series)> = series.collect();
    if let Some(count) = series.iter().map(|(_, series)| series.count).max() {
        line = format!("{line} {}", counted(count, "point"));
    }
    let ranges = series
        .into_iter()
        .filter_map(|(member, series)| Some(format!("{member} {}", series.range?)));
    for range in ranges.take(MAX_RANGES) {
        line = format!("{line}, {range}");
    }
    line
}

/// The figure that Plotly writes into the script of its HTML.
pub(super) fn in_html(html: &str) -> Option<Value> {
    let at = html.rfind("Plotly.newPlot(")?;
    let arguments = &html[at + "Plotly.newPlot(".len()..];
    // The first argument is the name of an element.
    let mut rest = &arguments[arguments.find(',')? + 1..];
    let mut next = || {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let value = values.next()?.ok()?;
        rest = rest[values.byte_offset()..]
            .trim_start()
            .strip_prefix(',')
            .unwrap_or_default();
        Some(value)
    };
    let (data, layout) = (next()?, next().unwrap_or_default());
    Some(serde_json::json!({ "data": data, "layout": layout }))
}
