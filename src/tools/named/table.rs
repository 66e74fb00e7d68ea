//! Tables of cells: tab-separated, one line for each cell.

use std::{fmt, ops::Range};

use live_document::{Cell, CellOrder, CellsRead, Room};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::tools::{ToolError, text::cell::cut};

/// Characters of a line; a whole data set may be in one.
const MAX_LINE: usize = 200;
/// Number of rows that are shown around a change.
const AROUND: usize = 10;

/// Some cells of a notebook in a row.
#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct CellTable {
    cell_count: usize,
    revision: String,
    cells: Vec<Row>,
}

#[derive(Serialize, JsonSchema)]
struct Row {
    index: usize,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    /// Null for a cell that was not executed, absent from one that cannot be.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Value>,
    /// The first line.
    content: String,
    hidden_lines: usize,
}

impl Row {
    /// The first line, and how many follow.
    fn shown(&self) -> String {
        match self.hidden_lines {
            0 => self.content.clone(),
            hidden => format!("{}...({hidden} lines hidden)", self.content),
        }
    }
}

impl CellTable {
    /// The cells of a page; no limit means all that follow.
    pub(in crate::tools) fn page(room: &Room, start_index: usize, limit: usize) -> Result<Self, ToolError> {
        let looked = room.cells(|order| Ok::<_, ToolError>(page(order, start_index, limit)?.collect()))?;
        Ok(Self::new(looked))
    }

    /// The cells around a position.
    pub(in crate::tools) fn around(room: &Room, position: usize) -> Result<Self, ToolError> {
        let looked = room.cells(|order| Ok::<_, ToolError>(around(order.count(), position).collect()))?;
        Ok(Self::new(looked))
    }

    pub(in crate::tools) fn new(looked: CellsRead) -> Self {
        Self {
            cell_count: looked.cell_count,
            revision: looked.revision,
            cells: looked.cells.into_iter().map(row).collect(),
        }
    }

    pub(in crate::tools) fn cell_count(&self) -> usize {
        self.cell_count
    }

    /// The rows under the headings of the vocabulary that calls the content of a row its first line.
    pub(in crate::tools) fn brief(&self) -> String {
        let count = |count: &Option<Value>| match count {
            None | Some(Value::Null) => "N/A".to_owned(),
            Some(count) => count.to_string(),
        };
        let rows = self
            .cells
            .iter()
            .map(|row| vec![row.index.to_string(), row.kind.clone(), count(&row.count), row.shown()]);
        tsv(&["Index", "Type", "Count", "First Line"], rows)
    }

    /// Sentence on which of the cells these are.
    pub(in crate::tools) fn span(&self) -> String {
        match (self.cells.first(), self.cells.last()) {
            (Some(first), Some(last)) => {
                let (first, last, all) = (first.index, last.index, self.cell_count);
                format!("Showing cells {first}-{last} of {all} total cells")
            }
            _ => String::new(),
        }
    }
}

impl fmt::Display for CellTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cells.is_empty() {
            return f.write_str("Notebook is empty, no Cell");
        }
        let rows = self.cells.iter().map(|row| {
            let count = match &row.count {
                None => "N/A".to_owned(),
                Some(Value::Null) => "None".to_owned(),
                Some(count) => count.to_string(),
            };
            vec![row.index.to_string(), row.kind.clone(), count, row.shown()]
        });
        f.write_str(&tsv(&["Index", "Type", "Count", "Content"], rows))
    }
}

/// The positions of a page.
pub(in crate::tools) fn page(
    cells: &(impl CellOrder + ?Sized),
    start_index: usize,
    limit: usize,
) -> Result<Range<usize>, ToolError> {
    let count = cells.count();
    if start_index > 0 && start_index >= count {
        let why = format!("{start_index} is out of range; the notebook has {count} cells");
        return Err(ToolError::argument("start_index", why));
    }
    let end = match limit {
        0 => count,
        limit => start_index.saturating_add(limit).min(count),
    };
    Ok(start_index..end)
}

fn around(count: usize, position: usize) -> Range<usize> {
    let start = position.saturating_sub(AROUND / 2).min(count.saturating_sub(AROUND));
    start..start.saturating_add(AROUND).min(count)
}

fn row((index, cell): (usize, Cell)) -> Row {
    let first = cell.source.lines().next().unwrap_or_default();
    Row {
        index,
        id: cell.id,
        count: (cell.cell_type == "code").then_some(cell.execution_count),
        kind: cell.cell_type,
        content: cut(first, MAX_LINE),
        hidden_lines: cell.source.split('\n').count() - 1,
    }
}

/// Lines of fields that are separated by tabs, of which there are none in them.
pub(in crate::tools) fn tsv(headers: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut lines = vec![headers.join("\t")];
    lines.extend(rows.into_iter().map(|row| {
        let fields: Vec<String> = row.iter().map(|field| escaped(field)).collect();
        fields.join("\t")
    }));
    lines.join("\n")
}

fn escaped(field: &str) -> String {
    let mut escaped = String::with_capacity(field.len());
    for character in field.chars() {
        match character {
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            '\n' => escaped.push_str("\\n"),
            // Others at which programs break lines.
            '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                escaped.extend(character.escape_unicode());
            }
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_has_first_lines_and_no_stray_tabs() {
        let cell = |kind: &str, source: &str, count| Cell {
            id: "id".to_owned(),
            cell_type: kind.to_owned(),
            source: source.to_owned(),
            metadata: json!({}),
            execution_count: count,
            outputs: Vec::new(),
            attachments: None,
            execution_state: String::new(),
        };
        let table = CellTable::new(CellsRead {
            revision: "r".to_owned(),
            cells: vec![
                (3, cell("code", "if x:\n\ty()\n", json!(7))),
                (4, cell("code", "a\tb", Value::Null)),
                (5, cell("markdown", "", Value::Null)),
            ],
            cell_count: 9,
        });
        let text = "Index\tType\tCount\tContent\n3\tcode\t7\tif x:...(2 lines hidden)\n4\tcode\tNone\ta\\tb\n5\tmarkdown\tN/A\t";
        assert_eq!(table.to_string(), text);
        assert_eq!(table.span(), "Showing cells 3-5 of 9 total cells");
    }

    #[test]
    fn ten_rows_are_shown_around_a_change() {
        for (count, position, rows) in [
            (0, 0, 0..0),
            (3, 2, 0..3),
            (30, 2, 0..10),
            (30, 15, 10..20),
            (30, 30, 20..30),
        ] {
            assert_eq!(around(count, position), rows, "{position} of {count}");
        }
    }
}
