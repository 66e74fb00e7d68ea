//! Last change of an agent, as a selection that JupyterLab shows in everybody's page.

use std::ops::Range;

use serde_json::{Value, json};
use yrs::{Assoc, BranchID, IndexScope, IndexedSequence, ReadTxn, SharedRef, Text, TextRef, Transact};

use super::{
    super::{awareness::Cursors, notebook::source_of},
    Document,
};

/// Changes of one text beyond this are shown as one.
const MAX_RANGES: usize = 32;

/// Parts of one text. JupyterLab shows the cursors of a presence only where all of them are in the same.
#[derive(Debug)]
pub(super) struct Selection {
    /// The cell, if it is a notebook.
    cell: Option<String>,
    /// In UTF-16 units.
    ranges: Vec<Range<u32>>,
    of_edit: bool,
}

/// A position in a source or text that an agent points at: line and column from 0, columns in code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Error for a place that a document does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PositionError {
    #[error("there is no cell {cell:?} any more; read the notebook again")]
    NoCell { cell: String },
    #[error("line {line} is out of range; valid lines are 0 to {last}")]
    Line { line: usize, last: usize },
    #[error("column {column} is out of range; line {line} has columns 0 to {last}")]
    Column { line: usize, column: usize, last: usize },
}

impl Position {
    /// Its offset in a text, in UTF-16 units.
    fn offset(self, text: &str) -> Result<u32, PositionError> {
        let Self { line, column } = self;
        let mut before = 0;
        let mut lines = text.split('\n');
        for (number, content) in lines.by_ref().enumerate() {
            if number < line {
                before += content.encode_utf16().count() + 1;
                continue;
            }
            let last = content.chars().count();
            if column > last {
                return Err(PositionError::Column { line, column, last });
            }
            let units: usize = content.chars().take(column).map(char::len_utf16).sum();
            return Ok(u32::try_from(before + units).unwrap_or(u32::MAX));
        }
        let last = text.split('\n').count() - 1;
        Err(PositionError::Line { line, last })
    }
}

impl Selection {
    /// Ranges that an edit inserted; empty where it only deleted something.
    pub(super) fn of_edit(cell: Option<&str>, ranges: Vec<Range<u32>>) -> Self {
        let whole = ranges
            .first()
            .zip(ranges.last())
            .map(|(first, last)| first.start..last.end);
        let ranges = match ranges.len() > MAX_RANGES {
            true => Vec::from_iter(whole),
            false => ranges,
        };
        Self {
            cell: cell.map(str::to_owned),
            ranges,
            of_edit: true,
        }
    }

    /// The beginning of a cell that runs.
    pub(super) fn of_run(cell: &str) -> Self {
        Self {
            cell: Some(cell.to_owned()),
            ranges: Vec::from_iter(Some(0..0)),
            of_edit: false,
        }
    }
}

impl Document {
    /// The cursors of somebody who points at a position, and selects something.
    pub(crate) fn cursors_at(
        &self,
        cell: Option<&str>,
        position: Position,
        selection: Option<(Position, Position)>,
    ) -> Result<Cursors, PositionError> {
        let no_cell = || PositionError::NoCell {
            cell: cell.unwrap_or_default().to_owned(),
        };
        let text = match cell {
            Some(cell) => self.source(cell).ok_or_else(no_cell)?,
            None => self.text(),
        };
        let head = position.offset(&text)?;
        let selected = match selection {
            Some((start, end)) => Some((start.offset(&text)?, end.offset(&text)?)),
            None => None,
        };
        let ranges = match selected {
            None => vec![(head..head, true)],
            // The cursor is at one end of what is selected, wherever it can be.
            Some((start, end)) if head == start && start != end => vec![(end..start, true)],
            Some((start, end)) if head == end => vec![(start..end, true)],
            Some((start, end)) => vec![(start..end, false), (head..head, true)],
        };
        self.pointed_at(cell, &ranges).ok_or_else(no_cell)
    }

    /// Ranges of a source or of the text as cursors, from anchor to head, and which of them is the main one.
    pub(crate) fn pointed_at(&self, cell: Option<&str>, ranges: &[(Range<u32>, bool)]) -> Option<Cursors> {
        let txn = self.doc.transact();
        let text = match cell {
            Some(cell) => source_of(&self.map(&txn, cell)?, &txn)?,
            None => self.source.clone(),
        };
        let cursor = |(range, is_primary): &(Range<u32>, bool)| {
            json!({
                "anchor": position(&text, &txn, range.start),
                "head": position(&text, &txn, range.end),
                "primary": is_primary,
                "empty": range.start == range.end,
            })
        };
        Some(Cursors {
            cell: cell.map(str::to_owned),
            ranges: ranges.iter().map(cursor).collect(),
            of_edit: true,
        })
    }

    /// The cursors of our last edit. They stick to the text, so they move with what others type.
    pub(super) fn cursors(&self) -> Option<Cursors> {
        let selection = self.selection.as_ref()?;
        let last = selection.ranges.len().saturating_sub(1);
        let ranges = selection.ranges.iter().enumerate();
        let ranges: Vec<_> = ranges.map(|(index, range)| (range.clone(), index == last)).collect();
        let cursors = self.pointed_at(selection.cell.as_deref(), &ranges)?;
        Some(Cursors {
            of_edit: selection.of_edit,
            ..cursors
        })
    }
}

/// A place in a text. JupyterLab reads all four members, so those that say nothing must be there too.
fn position(text: &TextRef, txn: &impl ReadTxn, offset: u32) -> Value {
    let id = |id: &yrs::block::ID| json!({ "client": id.client.get(), "clock": id.clock });
    let of_item = |item| json!({ "type": null, "tname": null, "item": id(item), "assoc": 0 });
    let of_branch = |branch| json!({ "type": id(branch), "tname": null, "item": null, "assoc": 0 });
    let of_root = |name: &str| json!({ "type": null, "tname": name, "item": null, "assoc": 0 });
    let at = text.sticky_index(txn, offset.min(text.len(txn)), Assoc::After);
    match at.as_ref().map(yrs::StickyIndex::scope) {
        Some(IndexScope::Relative(item)) => of_item(item),
        Some(IndexScope::Nested(branch)) => of_branch(branch),
        Some(IndexScope::Root(name)) => of_root(name),
        // Nothing stands after the end of a text that it could stick to; the text itself means its end.
        None => match text.hook().id() {
            BranchID::Nested(branch) => of_branch(branch),
            BranchID::Root(name) => of_root(name),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_code_points_and_out_of_range_names_the_range() {
        let at = |line, column| Position { line, column }.offset("ab\nx𝄞y\n");
        assert_eq!((at(0, 2), at(1, 2), at(1, 3), at(2, 0)), (Ok(2), Ok(6), Ok(7), Ok(8)));
        let error = |line, column| at(line, column).expect_err("out of range").to_string();
        assert_eq!(error(3, 0), "line 3 is out of range; valid lines are 0 to 2");
        assert_eq!(error(1, 4), "column 4 is out of range; line 1 has columns 0 to 3");
        assert_eq!(Position { line: 0, column: 0 }.offset(""), Ok(0));
    }
}
