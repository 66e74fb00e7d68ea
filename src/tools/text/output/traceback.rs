//! Tracebacks for models: what went wrong, where in the notebook, and of the libraries only the place that raised it.

mod frame;

use std::borrow::Cow;

use jupyter_client::{as_shown, counted};
use serde_json::Value;

use self::frame::{Frame, Place};
use super::{joined, phrase::one_line, shorten::shortened};

/// Bytes of what an error says of itself.
const MAX_VALUE: usize = 600;
/// Bytes of a line of code or of the head of a frame.
const MAX_LINE: usize = 160;
/// Frames in cells and in the user's own files that are shown from the beginning and from the end.
const FIRST_FRAMES: usize = 2;
const LAST_FRAMES: usize = 4;
/// Errors before the last one that are told.
const MAX_CAUSES: usize = 3;
/// Names of libraries that are told.
const MAX_LIBRARIES: usize = 4;
/// Lines and bytes of the traceback of a kernel that is not Python's.
const MAX_FOREIGN_LINES: usize = 12;
const MAX_FOREIGN: usize = 600;

/// Lines between an error and the one that followed it, and how the first is told.
const CHAINS: [(&str, &str); 2] = [
    ("The above exception was the direct cause of", "caused by"),
    ("During handling of the above exception", "while handling"),
];

/// Error as text: its line first, then the frames.
pub(super) fn text(output: &Value) -> String {
    let traceback = traceback(output.get("traceback"));
    let sections = sections(&traceback);
    let error = error_line(
        output,
        sections.last().is_some_and(|section| !section.frames.is_empty()),
    );
    let mut lines = vec![error.clone()];
    match sections.split_last() {
        Some((last, before)) if !last.frames.is_empty() => {
            lines.extend(notes(last, output));
            lines.extend(frame_lines(&last.frames));
            lines.extend(
                before
                    .iter()
                    .rev()
                    .filter_map(|section| section.cause(&error))
                    .take(MAX_CAUSES),
            );
        }
        _ => lines.extend(foreign_lines(&traceback, &error)),
    }
    lines.join("\n")
}

/// Error name and message, on as many lines as they have.
fn error_line(output: &Value, has_frames: bool) -> String {
    let member = |name: &str| {
        let text = output
            .get(name)
            .filter(|value| !value.is_null())
            .map(joined)
            .unwrap_or_default();
        as_shown(&text).trim().to_owned()
    };
    let (name, mut value) = (one_line(&member("ename"), MAX_LINE), member("evalue"));
    // The frame says where the syntax is wrong, by the number of the cell.
    if has_frames && value.ends_with(')') {
        let place = value.rfind(" (").filter(|at| value[*at..].contains(".py, line "));
        value.truncate(place.unwrap_or(value.len()));
    }
    let value = match value.len() > MAX_VALUE {
        true => shortened(&value, MAX_VALUE, 60, "line"),
        false => value,
    };
    match (name.as_str(), value.as_str()) {
        ("", "") => "Error".to_owned(),
        (name, "") => name.to_owned(),
        ("", value) => value.to_owned(),
        // R names every error so, and says it again.
        (name, value) if name == "ERROR" || value.starts_with(&format!("{name}:")) => value.to_owned(),
        (name, value) => format!("{name}: {value}"),
    }
}

fn traceback(traceback: Option<&Value>) -> String {
    let lines: Vec<Cow<'_, str>> = match traceback {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(lines)) => lines.iter().map(joined).collect(),
        Some(other) => vec![joined(other)],
    };
    as_shown(&lines.join("\n")).into_owned()
}

/// Traceback of one of the errors that led to each other.
#[derive(Default)]
struct Section<'a> {
    frames: Vec<Frame<'a>>,
    /// Lines that belong to no frame.
    other: Vec<&'a str>,
    /// Link to the next error, such as `caused by`.
    chain: &'static str,
}

fn sections(traceback: &str) -> Vec<Section<'_>> {
    let mut sections = vec![Section::default()];
    let mut is_in_frame = false;
    for line in traceback.lines() {
        let Some(section) = sections.last_mut() else { break };
        if let Some((_, chain)) = CHAINS.iter().find(|(mark, _)| line.trim_start().starts_with(mark)) {
            section.chain = chain;
            sections.push(Section::default());
            is_in_frame = false;
        } else if let Some(frame) = Frame::headed(line) {
            section.frames.push(frame);
            is_in_frame = true;
        } else {
            let is_code = line.starts_with([' ', '\t', '-']) || line.starts_with(|c: char| c.is_ascii_digit());
            is_in_frame = is_in_frame && is_code;
            match section.frames.last_mut() {
                Some(frame) if is_in_frame => frame.body.push(line),
                _ => section.other.push(line),
            }
        }
    }
    sections
}

impl Section<'_> {
    /// Line about an error that another one followed; none if that says the same.
    fn cause(&self, last_error: &str) -> Option<String> {
        let named = self
            .other
            .iter()
            .find_map(|line| line.split_once("Traceback (most recent call last)"));
        let name = named.map(|(name, _)| name.trim()).unwrap_or_default();
        let mut lines = self.other.iter().rev().filter(|line| !line.trim().is_empty());
        let error = match name {
            "" => lines.next(),
            name => lines.find(|line| line.starts_with(name)),
        };
        let error = error.filter(|error| !last_error.starts_with(error.trim()))?;
        let own = self.frames.iter().rev().find(|frame| frame.place == Place::Own);
        let place = own
            .map(|frame| format!(" at {}", one_line(&frame.head, MAX_LINE)))
            .unwrap_or_default();
        Some(format!("{} {}{place}", self.chain, one_line(error, MAX_LINE)))
    }
}

/// Notes that were added to an error: they follow it at the end.
fn notes(section: &Section<'_>, output: &Value) -> Vec<String> {
    let name = output.get("ename").and_then(Value::as_str).unwrap_or_default();
    let value = output.get("evalue").and_then(Value::as_str).unwrap_or_default();
    let is_error = |line: &&str| !name.is_empty() && line.starts_with(name) && !line.contains("Traceback (most");
    let Some(at) = section.other.iter().rposition(is_error) else {
        return Vec::new();
    };
    let after = section.other[at + 1..]
        .iter()
        .skip(value.trim().lines().count().saturating_sub(1));
    let notes = after.filter(|line| !line.trim().is_empty()).take(3);
    notes.map(|line| one_line(line, MAX_LINE)).collect()
}

/// Frames in the order of the calls: those of the user with their code, of the libraries' only the last.
fn frame_lines(frames: &[Frame<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut left_out: Vec<&Frame<'_>> = Vec::new();
    let runs: Vec<&[Frame<'_>]> = frames.chunk_by(Frame::is_same).collect();
    let own_count = runs.iter().filter(|run| run[0].place == Place::Own).count();
    let mut position = 0;
    for (number, run) in runs.iter().enumerate() {
        let is_shown = match run[0].place {
            Place::Own => {
                position += 1;
                position <= FIRST_FRAMES || position + LAST_FRAMES > own_count
            }
            Place::Note => true,
            Place::Library(_) => number + 1 == runs.len(),
        };
        if !is_shown {
            left_out.extend(run.iter());
            continue;
        }
        lines.extend(left_out_line(&std::mem::take(&mut left_out)));
        lines.extend(run[0].lines());
        if run.len() > 1 {
            lines.push(format!("[the same {} more times]", run.len() - 1));
        }
    }
    lines
}

fn left_out_line(frames: &[&Frame<'_>]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for frame in frames {
        let name = match &frame.place {
            Place::Library(name) => name,
            _ => "cells",
        };
        if names.len() < MAX_LIBRARIES && !names.contains(&name) {
            names.push(name);
        }
    }
    let frame_count = counted(frames.len(), "frame");
    (!frames.is_empty()).then(|| format!("[{frame_count} in {} left out]", one_line(&names.join(", "), MAX_LINE)))
}

/// The end of a traceback of another language, without what the line of the error says.
fn foreign_lines(traceback: &str, error: &str) -> Vec<String> {
    let is_said = |line: &str| error.contains(line.trim()) || line.contains("Traceback (most recent call last)");
    let is_rule = |line: &str| line.trim().chars().all(|c| c == '-');
    let lines = traceback.lines().rev().filter(|line| !is_rule(line) && !is_said(line));
    let mut room = MAX_FOREIGN;
    let mut shown = Vec::new();
    for line in lines.take(MAX_FOREIGN_LINES) {
        let line = one_line_indented(line);
        if line.len() > room {
            break;
        }
        room -= line.len();
        shown.push(line);
    }
    shown.reverse();
    shown
}

/// A line cut at its end.
fn one_line_indented(line: &str) -> String {
    let line = line.trim_end();
    match line.len() > MAX_LINE {
        true => format!("{}...", &line[..line.floor_char_boundary(MAX_LINE)]),
        false => line.to_owned(),
    }
}
