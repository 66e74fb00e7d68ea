//! Cells as a model reads them: a line of facts, the source, the outputs, none of it escaped.

use std::fmt::Display;

use jupyter_client::{counted, truncate};
use live_document::{Cell, Room, ShortIds};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Page,
    output::{self, outputs_text},
};
use crate::types::{joined_text, notebook_uri, output_uri};

/// Characters of a first line in an outline.
const MAX_FIRST_LINE: usize = 48;
/// Bytes of the line that tells of an output.
const MAX_OUTPUT_LINE: usize = 60;
/// Number of outputs that an outline tells of, and a brief view.
const MAX_OUTPUTS: usize = 3;
const MAX_OUTPUTS_IN_BRIEF: usize = 8;

// How much of each cell is shown: sources and outputs; a line for each output; or a line for each cell. Not a doc
// comment, which would be in the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::tools) enum View {
    #[default]
    Full,
    Brief,
    Outline,
}

/// Names of a notebook's cells in texts: short ids, and where whole outputs are read.
pub(in crate::tools) struct CellNames {
    short: ShortIds,
    /// The address of the notebook, if it is open.
    uri: Option<String>,
}

impl CellNames {
    /// Names of some cells of an open notebook.
    pub(in crate::tools) fn of(room: &Room, cells: &[&str]) -> Self {
        let info = room.info();
        Self {
            short: room.short_ids_of(cells),
            uri: Some(notebook_uri(&info.session_id, &info.file_id)),
        }
    }

    /// Names of cells of a notebook that is not open.
    pub(in crate::tools) fn of_closed(cells: &[&str]) -> Self {
        Self {
            short: ShortIds::of(cells.iter().copied()),
            uri: None,
        }
    }

    /// The short form of a cell's id.
    pub(in crate::tools) fn short<'i>(&self, id: &'i str) -> &'i str {
        self.short.get(id)
    }

    /// The line that tells where all of outputs is that were cut.
    fn whole(&self, id: &str, outputs: &[Value]) -> Option<String> {
        let size = |output: &Value| {
            joined_text(&output["text"])
                .len()
                .max(joined_text(&output["data"]).len())
        };
        let (largest, _) = outputs.iter().enumerate().max_by_key(|(_, output)| size(output))?;
        let uri = output_uri(self.uri.as_deref()?, self.short(id), largest);
        Some(format!("[whole output: resource {uri}]"))
    }

    /// The outputs of a cell as text, of which what is cut is named.
    pub(in crate::tools) fn outputs(&self, id: &str, outputs: &[Value], max: usize) -> String {
        let shown = outputs_text(outputs, max);
        let mut text = shown.text;
        text.truncate(text.trim_end_matches('\n').len());
        if shown.is_cut
            && let Some(line) = self.whole(id, outputs)
        {
            text.push('\n');
            text.push_str(&line);
        }
        text
    }
}

/// Writes cells as long as there is room. Returns how many it wrote.
pub(in crate::tools) fn write_cells(
    page: &mut Page,
    cells: &[(usize, Cell)],
    names: &CellNames,
    view: View,
    max_each: usize,
) -> usize {
    let mut written = 0;
    for (index, cell) in cells {
        let heading = heading(*index, cell, names);
        let text = match view {
            View::Outline => outlined(&heading, cell),
            View::Brief => with_lines(&heading, cell),
            View::Full => in_full(&heading, cell, names, max_each.min(page.room() / 2)),
        };
        // What does not fit is left for another call, but an answer without any cell would lead nowhere.
        if text.len() > page.room() && written > 0 {
            break;
        }
        page.block(&text);
        written += 1;
    }
    written
}

/// The line that names a cell: its position, its id, its type and how often its kernel had run code then.
pub(in crate::tools) fn heading(index: usize, cell: &Cell, names: &CellNames) -> String {
    let id = names.short(&cell.id);
    let kind = &cell.cell_type;
    match kind.as_str() {
        "code" => format!("[{index}] {id} code {}", count(cell)),
        _ => format!("[{index}] {id} {kind}"),
    }
}

/// The number of a run as Jupyter shows it: a star while it runs or waits.
fn count(cell: &Cell) -> String {
    match &cell.execution_count {
        _ if cell.execution_state == "running" => "[*]".to_owned(),
        Value::Number(count) => format!("[{count}]"),
        _ => "[ ]".to_owned(),
    }
}

fn outlined(heading: &str, cell: &Cell) -> String {
    let first = cell
        .source
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("(empty)");
    let first = cut(first.trim(), MAX_FIRST_LINE);
    let more = match cell.source.lines().count() {
        0 | 1 => String::new(),
        lines => format!(" ({lines} lines)"),
    };
    let lines = output_lines(cell, MAX_OUTPUTS);
    let outputs = match lines.is_empty() {
        true => String::new(),
        false => format!(" -> {}", lines.join("; ")),
    };
    format!("{heading} {first}{more}{outputs}")
}

fn with_lines(heading: &str, cell: &Cell) -> String {
    let mut text = delimited(heading, &cell.source);
    for line in output_lines(cell, MAX_OUTPUTS_IN_BRIEF) {
        text.push_str("\n-> ");
        text.push_str(&line);
    }
    text
}

fn in_full(heading: &str, cell: &Cell, names: &CellNames, max: usize) -> String {
    let source = truncate(cell.source.as_str(), max);
    let mut text = delimited(heading, &source.text);
    if source.truncated {
        let all = source.full_length;
        text.push_str(&format!("\n[cut: max_cell_data={all} shows all of the source]"));
    }
    if !cell.outputs.is_empty() {
        text.push_str("\n--- out\n");
        text.push_str(&names.outputs(&cell.id, &cell.outputs, max));
    }
    text
}

fn delimited(heading: &str, source: &str) -> String {
    let source = source.trim_end_matches('\n');
    match source.is_empty() {
        true => format!("--- {heading} (empty)"),
        false => format!("--- {heading}\n{source}"),
    }
}

/// A line for each output, of the last ones if there are more than `max`: errors come last.
pub(in crate::tools) fn output_lines(cell: &Cell, max: usize) -> Vec<String> {
    output::output_lines(&cell.outputs, max, MAX_OUTPUT_LINE)
}

/// A text of at most so many characters, with dots where it is cut.
pub(in crate::tools) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The line of facts about a document.
pub(in crate::tools) fn facts(path: &impl Display, count: usize, revision: &str) -> String {
    format!("{path}: {}, revision {revision}", counted(count, "cell"))
}
