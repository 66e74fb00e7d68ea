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
/// Bytes of the line that tells what is left out of an output.
const MIN_LINE: usize = 80;
/// Bytes for errors, however much was put out before them.
const MIN_ERRORS: usize = 1000;

/// Text of outputs for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools) struct OutputText {
    pub(in crate::tools) text: String,
    /// True if the limit left something out. A traceback is always shortened, and says so itself.
    pub(in crate::tools) is_cut: bool,
}

/// Outputs of a cell within `max` bytes. What a stream wrote in several pieces is one text; an error is told in any case. An image is told by
/// the words in its place (`[image 1 attached]`), or by its size.
pub(in crate::tools) fn outputs_text(outputs: &[Value], max: usize) -> OutputText {
    let rendered = without_blanks(stream_runs(outputs).map(Rendered::of_run).collect());
    let is_cut = joined_size(&rendered) > max;
    let text = match is_cut {
        true => joined_within(rendered, max),
        false => join(rendered.into_iter().map(|rendered| rendered.text)),
    };
    OutputText { text, is_cut }
}

/// Lines of at most `max` bytes about the last `count` outputs of a cell: `text 3 lines: loss 0.21`, `table 120 x 4`, `image/png 640x480`,
/// `KeyError: 'x'`. First comes how many there are before them.
pub(in crate::tools) fn output_lines(outputs: &[Value], count: usize, max: usize) -> Vec<String> {
    let runs: Vec<&[Value]> = stream_runs(outputs).collect();
    let left_out = runs.len().saturating_sub(count);
    let last = without_blanks(runs[left_out..].iter().map(|run| Rendered::of_run(run)).collect());
    let more = (left_out > 0).then(|| format!("{left_out} before"));
    let lines = last.iter().map(|rendered| one_line(&rendered.in_short(), max));
    more.into_iter().chain(lines).collect()
}

/// Those that say something, or all if none does.
fn without_blanks(mut rendered: Vec<Rendered>) -> Vec<Rendered> {
    rendered.retain(|rendered| !rendered.text.is_empty());
    if rendered.iter().any(|rendered| rendered.kind != Kind::Blank) {
        rendered.retain(|rendered| rendered.kind != Kind::Blank);
    }
    rendered
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

/// Outputs in their order, consecutive ones of one stream together.
fn stream_runs(outputs: &[Value]) -> impl Iterator<Item = &[Value]> {
    let name = |output: &Value| {
        output
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or("stdout")
            .to_owned()
    };
    outputs.chunk_by(move |a, b| is_stream(a) && is_stream(b) && name(a) == name(b))
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
        // Few outputs come after an error, but it must not be among those that are left out.
        let gap = format!("[{} left out]", counted(left_out + 1, "output"));
        let between = rendered.splice(first..=first + left_out, [Rendered::line(gap)]);
        let error = between.rev().find(|rendered| rendered.kind == Kind::Error);
        rendered.extend(error);
    }
    let max = max.saturating_sub(rendered.len());
    let sizes = |is_error: bool| -> Vec<usize> {
        let size = |rendered: &Rendered| match (rendered.kind == Kind::Error) == is_error {
            true => rendered.text.len(),
            false => 0,
        };
        rendered.iter().map(size).collect()
    };
    let others = sizes(false);
    // The others have at least a line each.
    let for_others: usize = others.iter().map(|size| MIN_LINE.min(*size)).sum();
    let for_errors = MIN_ERRORS.max(max / 2).min(max - for_others.min(max / 2));
    let errors = shares(&sizes(true), for_errors);
    let others = shares(&others, max - errors.iter().sum::<usize>());
    let shares = errors.into_iter().zip(others).map(|(error, other)| error + other);
    join(
        rendered
            .into_iter()
            .zip(shares)
            .map(|(rendered, share)| rendered.within(share)),
    )
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
    /// Text of a stream: the newest matters most.
    Stream,
    /// A table, and whether its text ends with its shape.
    Table(Shape, bool),
    Error,
    /// Line about something that is no text.
    Line,
    /// Word about something that shows nothing.
    Blank,
}

impl Rendered {
    fn of_run(run: &[Value]) -> Self {
        match run {
            [output] => Self::of(output),
            run => Self::of_stream(
                &run.iter()
                    .filter_map(|output| output.get("text"))
                    .map(joined)
                    .collect::<String>(),
            ),
        }
    }

    fn of(output: &Value) -> Self {
        let kind = output.get("output_type").and_then(Value::as_str).unwrap_or_default();
        match (kind, output.get("data"), output.get("text")) {
            ("error", ..) => Self {
                text: traceback::text(output),
                kind: Kind::Error,
            },
            ("stream", _, Some(text)) => Self::of_stream(&joined(text)),
            ("stream", _, None) => Self::line(String::new()),
            (_, Some(Value::Object(data)), _) => bundle::rendered(data),
            _ => Self::line(format!("[unknown output: {}]", one_line(&output.to_string(), 200))),
        }
    }

    fn of_stream(text: &str) -> Self {
        let shown = as_shown(text);
        let shown = shown.trim_end();
        if shown.is_empty() && !text.is_empty() {
            return Self::blank("[blank]".to_owned());
        }
        Self {
            text: shown.to_owned(),
            kind: Kind::Stream,
        }
    }

    fn blank(text: String) -> Self {
        Self {
            text,
            kind: Kind::Blank,
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

    fn within(self, max: usize) -> String {
        if self.text.len() <= max {
            return self.text;
        }
        match self.kind {
            Kind::Table(shape, false) => {
                let shape = format!("\n[{} rows x {} columns]", shape.rows, shape.columns);
                shortened(&self.text, max.saturating_sub(shape.len()), 50, "row") + &shape
            }
            Kind::Table(_, true) => shortened(&self.text, max, 50, "row"),
            Kind::Stream => shortened(&self.text, max, 33, "line"),
            Kind::Text(_) | Kind::Error => shortened(&self.text, max, 67, "line"),
            Kind::Line | Kind::Blank => shortened(&self.text, max, 100, "line"),
        }
    }

    fn in_short(&self) -> String {
        let text = self.text.trim();
        let first = text.lines().next().unwrap_or_default();
        let name = match self.kind {
            Kind::Table(shape, _) => return format!("table {} x {}", shape.rows, shape.columns),
            Kind::Error => return first.to_owned(),
            Kind::Line | Kind::Blank => return text.to_owned(),
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
