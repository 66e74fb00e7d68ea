//! One thing in several types (a MIME bundle): which of them a model reads.

use std::borrow::Cow;

use jupyter_client::{as_shown, counted};
use serde_json::{Map, Value};

use super::{
    Rendered, bokeh,
    html::{self, Shape},
    joined, media, phrase, plotly, vega,
};
use crate::tools::images::is_image;

const PLAIN: &str = "text/plain";
const HTML: &str = "text/html";
const WIDGET: &str = "application/vnd.jupyter.widget-view+json";
const BOKEH_EXEC: &str = "application/vnd.bokehjs_exec.v0+json";
const BOKEH_LOAD: &str = "application/vnd.bokehjs_load.v0+json";
const SCRIPTS: [&str; 2] = ["application/javascript", "text/javascript"];

type Bundle = Map<String, Value>;

/// Renders a MIME bundle for a model.
pub(super) fn rendered(data: &Bundle) -> Rendered {
    if data.contains_key(BOKEH_LOAD) {
        return Rendered::blank("[BokehJS is loaded]".to_owned());
    }
    let image = image_line(data);
    let figure = figure_line(data).or_else(|| match image {
        None => Some(media::svg_line(&text(data, "image/svg+xml")?)),
        Some(_) => None,
    });
    let is_figure = figure.is_some();
    let lines: Vec<Cow<'_, str>> = figure.map(Cow::Owned).into_iter().chain(image).collect();
    if lines.is_empty() {
        return text_of(data).unwrap_or_else(|| Rendered::line(others(data)));
    }
    // What a figure says of itself in plain text is its source or its address.
    let said = text(data, PLAIN).filter(|plain| !is_figure && !is_name_only(plain));
    let lines: Vec<Cow<'_, str>> = lines.into_iter().chain(said).collect();
    Rendered::line(lines.join("\n"))
}

/// The words in the place of an image, or its type and size.
fn image_line(data: &Bundle) -> Option<Cow<'_, str>> {
    let (mime, value) = data.iter().find(|(mime, _)| is_image(mime))?;
    let image = joined(value);
    match image.starts_with('[') {
        true => Some(as_shown(&image).into_owned().into()),
        false => Some(media::bytes_line(mime, &image).into()),
    }
}

/// Line about a figure, a map or a widget.
fn figure_line(data: &Bundle) -> Option<String> {
    for (mime, value) in data {
        match mime.as_str() {
            mime if mime.starts_with("application/vnd.plotly.") => return Some(plotly::line(&parsed(value))),
            mime if mime.starts_with("application/vnd.vega") => return Some(vega::line(&parsed(value))),
            "application/geo+json" | "application/vnd.geo+json" => return Some(media::geojson_line(&parsed(value))),
            WIDGET => return Some(widget_line(data)),
            BOKEH_EXEC => {
                let scripts = SCRIPTS.iter().chain(&[HTML]).filter_map(|mime| data.get(*mime));
                let line = scripts.map(joined).find_map(|script| bokeh::line(&script));
                return Some(line.unwrap_or_else(|| "Bokeh figure".to_owned()));
            }
            _ => {}
        }
    }
    let html = joined(data.get(HTML)?);
    let vega = || vega::in_html(&html).map(|chart| vega::line(&chart));
    let plotly = || plotly::in_html(&html).map(|figure| plotly::line(&figure));
    vega().or_else(plotly).or_else(|| bokeh::line(&html))
}

/// JSON may come as a text.
fn parsed(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Object(_) => Cow::Borrowed(value),
        other => serde_json::from_str(&joined(other)).map_or(Cow::Borrowed(other), Cow::Owned),
    }
}

fn widget_line(data: &Bundle) -> String {
    let said = text(data, PLAIN).filter(|plain| !is_name_only(plain) && plain.trim() != "Output()");
    match said {
        Some(said) => format!("widget {}", said.trim()),
        None => "[widget; what it shows is not in the notebook]".to_owned(),
    }
}

/// Text of a type as a terminal shows it; none if it is blank.
fn text<'a>(data: &'a Bundle, mime: &str) -> Option<Cow<'a, str>> {
    let text = match joined(data.get(mime)?) {
        Cow::Borrowed(text) => as_shown(text),
        Cow::Owned(text) => Cow::Owned(as_shown(&text).into_owned()),
    };
    (!text.trim().is_empty()).then_some(text)
}

/// Returns whether plain text only names an object, as `<Figure size 640x480 with 1 Axes>` does.
fn is_name_only(plain: &str) -> bool {
    let plain = plain.trim();
    let is_tag = plain.starts_with('<') && plain.ends_with('>') && !plain.contains('\n');
    is_tag || plain == "plot without title" || plain == "alt.Chart(...)"
}

/// The type that reads best where nothing is to be seen.
fn text_of(data: &Bundle) -> Option<Rendered> {
    let plain = text(data, PLAIN);
    if let Some(plain) = plain.as_deref().filter(|plain| !is_name_only(plain)) {
        let html = data.get(HTML).map(joined);
        // Formulas are drawn with letters over several lines.
        let is_drawn = html.is_none() && plain.trim().contains('\n');
        if let Some(latex) = text(data, "text/latex").filter(|_| is_drawn) {
            return Some(Rendered::text("latex", &latex));
        }
        return Some(plain_text(plain, html.as_deref()));
    }
    for (mime, name) in [("text/markdown", "markdown"), ("text/latex", "latex")] {
        if let Some(text) = text(data, mime) {
            return Some(Rendered::text(name, &text));
        }
    }
    if let Some((_, value)) = data
        .iter()
        .find(|(mime, value)| mime.ends_with("json") && !value.is_null())
    {
        let compact = parsed(value).to_string();
        return Some(Rendered::text("json", &as_shown(&compact)));
    }
    if data.keys().any(|mime| is_media(mime)) {
        return None;
    }
    if let Some(html) = data.get(HTML).map(joined).filter(|html| !html.is_empty()) {
        return Some(html_text(&html));
    }
    let other = data
        .keys()
        .find(|mime| mime.starts_with("text/") && *mime != PLAIN && !SCRIPTS.contains(&mime.as_str()));
    let other = other.and_then(|mime| text(data, mime));
    let has_more = data.keys().any(|mime| mime != PLAIN);
    let text = other.or_else(|| plain.filter(|_| !has_more));
    text.map(|text| Rendered::text("text", &text))
}

fn plain_text(plain: &str, html: Option<&str>) -> Rendered {
    let of_html = || {
        html.filter(|html| html.contains("class=\"dataframe\""))
            .and_then(html::table_shape)
    };
    let told = told_shape(plain);
    match told.or_else(of_html) {
        Some(shape) => Rendered::table(plain, shape, told.is_some()),
        None => Rendered::text("text", plain),
    }
}

/// Shape that pandas writes under a table, "[120 rows x 4 columns]", and Polars above it, "shape: (120, 4)".
fn told_shape(plain: &str) -> Option<Shape> {
    let above = plain.lines().next()?.strip_prefix("shape: (");
    let above = above.and_then(|line| line.strip_suffix(')')?.split_once(", "));
    let below = plain.trim_end().lines().next_back()?.strip_prefix('[');
    let below = below.and_then(|line| line.strip_suffix(" columns]")?.split_once(" rows x "));
    let (rows, columns) = above.or(below)?;
    Some(Shape {
        rows: rows.parse().ok()?,
        columns: columns.parse().ok()?,
    })
}

fn html_text(html: &str) -> Rendered {
    let text = html::to_text(html);
    let text = as_shown(&text);
    if text.trim().is_empty() {
        return Rendered::blank(format!("[HTML without text, {}]", counted(html.len(), "byte")));
    }
    // With more than a table, its shape does not say it all.
    let before = html.split_once("<table").map(|(before, _)| html::to_text(before));
    let is_table = before.is_some_and(|before| before.is_empty());
    match html::table_shape(html).filter(|_| is_table) {
        Some(shape) => Rendered::table(&text, shape, false),
        None if text.starts_with('[') && !text.contains('\n') => Rendered::line(text.into_owned()),
        None => Rendered::text("html", &text),
    }
}

fn is_media(mime: &str) -> bool {
    ["audio/", "video/", "image/", "application/pdf"]
        .iter()
        .any(|start| mime.starts_with(start))
}

/// Types that nothing else is known of, with their sizes. Nothing for an empty text.
fn others(data: &Bundle) -> String {
    let is_empty = |value: &Value| value.is_null() || joined(value).is_empty();
    let known: Vec<(&String, &Value)> = data.iter().filter(|(_, value)| !is_empty(value)).collect();
    if known.is_empty() {
        return String::new();
    }
    let is_named = |mime: &str| mime == PLAIN || (mime == HTML && known.iter().any(|(mime, _)| is_media(mime)));
    let rest: Vec<&(&String, &Value)> = known.iter().filter(|(mime, _)| !is_named(mime)).collect();
    let lines = rest.iter().map(|(mime, value)| match SCRIPTS.contains(&mime.as_str()) {
        true => format!("JavaScript, {}", counted(joined(value).len(), "byte")),
        false => media::bytes_line(mime, &joined(value)),
    });
    match rest.is_empty() {
        true => "[blank]".to_owned(),
        false => format!("[{}]", phrase::listed(lines.collect(), "; ")),
    }
}
