//! Outputs of cells as text for models: plain, short, and never an empty text for something that is not empty. Knows outputs as nbformat
//! has them, written by anybody, and nothing of rooms, kernels or answers.

mod bokeh;
mod bundle;
mod html;
mod markup;
mod media;
mod phrase;
mod plotly;
mod series;
mod shorten;
#[cfg(test)]
mod tests;
mod traceback;
mod vega;

use std::borrow::Cow;

use jupyter_client::{as_shown, counted};
use serde_json::Value;

use self::{html::Shape, phrase::one_line, shorten::shortened};
use crate::tools::shares::shares;

/// Outputs that share a limit have about this many bytes each, or some are left out.
const MIN_SHARE: usize = 120;
/// Bytes for errors, however much was put out before them.
const MIN_ERRORS: usize = 1000;

/// Text of outputs for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct OutputText {
    pub(in crate::tools) text: String,
    /// Whether the limit left something out. A traceback is always shortened, and says so itself.
    pub(in crate::tools) is_cut: bool,
    /// Size of the text without a limit.
    pub(in crate::tools) full_bytes: usize,
}

/// One output within `max` bytes. `image` is the line in the place of its image, which is attached elsewhere or left out.
pub(in crate::tools) fn output_text(output: &Value, max: usize, image: Option<&str>) -> OutputText {
    Rendered::of(output, image).within(max)
}

/// One output in a short line: `text 3 lines: loss 0.21`, `table 120 x 4`, `image/png 640x480`, `KeyError: 'x'`.
pub(in crate::tools) fn output_line(output: &Value, max: usize) -> String {
    one_line(&Rendered::of(output, None).in_short(), max)
}

/// Outputs of a cell within `max` bytes. What a stream wrote in several pieces is one text; an error is told in any case. `images` has the lines
/// in the place of images, by output.
pub(in crate::tools) fn outputs_text(outputs: &[Value], max: usize, images: &[Option<String>]) -> OutputText {
    let image = |at: usize| images.get(at).and_then(Option::as_deref);
    let rendered: Vec<Rendered> = stream_runs(outputs)
        .map(|(at, run)| match run {
            [output] => Rendered::of(output, image(at)),
            run => Rendered::of_stream(
                &run.iter()
                    .filter_map(|output| output.get("text"))
                    .map(joined)
                    .collect::<String>(),
            ),
        })
        .filter(|rendered| !rendered.text.is_empty())
        .collect();
    let full_bytes = joined_size(&rendered);
    if full_bytes <= max {
        let texts: Vec<&str> = rendered.iter().map(|rendered| rendered.text.as_str()).collect();
        return OutputText {
            text: texts.join("\n"),
            is_cut: false,
            full_bytes,
        };
    }
    OutputText {
        text: joined_within(rendered, max),
        is_cut: true,
        full_bytes,
    }
}

/// Outputs in their order, consecutive ones of one stream together, each with the index of its first.
fn stream_runs(outputs: &[Value]) -> impl Iterator<Item = (usize, &[Value])> {
    let name = |output: &Value| {
        output
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or("stdout")
            .to_owned()
    };
    let runs = outputs.chunk_by(move |a, b| is_stream(a) && is_stream(b) && name(a) == name(b));
    runs.scan(0, |next, run| {
        let at = *next;
        *next += run.len();
        Some((at, run))
    })
}

fn is_stream(output: &Value) -> bool {
    output.get("output_type").and_then(Value::as_str) == Some("stream")
}

/// Size of texts on lines of their own.
fn joined_size(rendered: &[Rendered]) -> usize {
    rendered
        .iter()
        .map(|rendered| rendered.text.len() + 1)
        .sum::<usize>()
        .saturating_sub(1)
}

/// Errors first take what they need, and the others share the rest; the middle of very many is left out.
fn joined_within(mut rendered: Vec<Rendered>, max: usize) -> String {
    let places = (max / MIN_SHARE).max(3);
    if let Some(left_out) = rendered.len().checked_sub(places).filter(|count| *count > 0) {
        let first = places / 3;
        // An error is the last output but for those that came while it was told.
        let gap = format!("[{} left out]", counted(left_out + 1, "output"));
        let between: Vec<Rendered> = rendered
            .splice(first..=first + left_out, [Rendered::line(gap)])
            .collect();
        rendered.extend(
            between
                .into_iter()
                .filter(|rendered| rendered.kind == Kind::Error)
                .take(1),
        );
    }
    let max = max.saturating_sub(rendered.len());
    let sizes = |is_error: bool| -> Vec<usize> {
        let size = |rendered: &Rendered| {
            if (rendered.kind == Kind::Error) == is_error {
                rendered.text.len()
            } else {
                0
            }
        };
        rendered.iter().map(size).collect()
    };
    let for_errors = max.min(MIN_ERRORS.max(max / 2));
    let errors = shares(&sizes(true), for_errors);
    let others = shares(&sizes(false), max - errors.iter().sum::<usize>());
    let shares = errors.into_iter().zip(others).map(|(error, other)| error + other);
    let texts = rendered
        .into_iter()
        .zip(shares)
        .map(|(rendered, share)| rendered.within(share).text);
    texts.collect::<Vec<_>>().join("\n")
}

/// Output in full, and how it may be shortened.
struct Rendered {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Text, with the name of its kind.
    Text(&'static str),
    /// What a stream wrote: the newest matters most.
    Stream,
    /// A table, and whether its text ends with its shape.
    Table(Shape, bool),
    Error,
    /// Line about something that is no text.
    Line,
}

impl Rendered {
    fn of(output: &Value, image: Option<&str>) -> Self {
        let kind = output.get("output_type").and_then(Value::as_str).unwrap_or_default();
        match (kind, output.get("data"), output.get("text")) {
            ("error", ..) => Self {
                text: traceback::text(output),
                kind: Kind::Error,
            },
            ("stream", _, Some(text)) => Self::of_stream(&joined(text)),
            ("stream", _, None) => Self::line(String::new()),
            (_, Some(Value::Object(data)), _) => bundle::rendered(data, image),
            _ => Self::line(format!("[unknown output: {}]", one_line(&output.to_string(), 200))),
        }
    }

    fn of_stream(text: &str) -> Self {
        let shown = as_shown(text);
        let shown = shown.trim_end();
        let is_blank = shown.is_empty() && !text.is_empty();
        Self {
            text: if is_blank { "[blank]" } else { shown }.to_owned(),
            kind: Kind::Stream,
        }
    }

    fn text(name: &'static str, text: &str) -> Self {
        Self {
            text: text.trim_end().to_owned(),
            kind: Kind::Text(name),
        }
    }

    fn table(text: &str, shape: Shape, is_told: bool) -> Self {
        Self {
            text: text.trim_end().to_owned(),
            kind: Kind::Table(shape, is_told),
        }
    }

    fn line(text: String) -> Self {
        Self { text, kind: Kind::Line }
    }

    fn within(self, max: usize) -> OutputText {
        let full_bytes = self.text.len();
        let is_cut = full_bytes > max;
        let text = match (is_cut, self.kind) {
            (false, _) => self.text,
            (true, Kind::Table(shape, false)) => {
                let shape = format!("\n[{} rows x {} columns]", shape.rows, shape.columns);
                shortened(&self.text, max.saturating_sub(shape.len()), 50, "row") + &shape
            }
            (true, Kind::Table(_, true)) => shortened(&self.text, max, 50, "row"),
            (true, Kind::Stream) => shortened(&self.text, max, 33, "line"),
            (true, Kind::Text(_) | Kind::Error) => shortened(&self.text, max, 67, "line"),
            (true, Kind::Line) => shortened(&self.text, max, 100, "line"),
        };
        OutputText {
            text,
            is_cut,
            full_bytes,
        }
    }

    fn in_short(&self) -> String {
        let text = self.text.trim();
        let first = text.lines().next().unwrap_or_default();
        let name = match self.kind {
            Kind::Table(shape, _) => return format!("table {} x {}", shape.rows, shape.columns),
            Kind::Error => return first.to_owned(),
            Kind::Line => return text.to_owned(),
            Kind::Stream => "text",
            Kind::Text(name) => name,
        };
        match text.lines().count() {
            0 => String::new(),
            1 => format!("{name}: {first}"),
            lines => format!("{name} {lines} lines: {first}"),
        }
    }
}

/// Text that nbformat allows to be a list of lines. Whatever else is there is shown as JSON.
pub(in crate::tools) fn joined(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(lines) if lines.iter().all(Value::is_string) => lines.iter().filter_map(Value::as_str).collect(),
        other => Cow::Owned(other.to_string()),
    }
}
