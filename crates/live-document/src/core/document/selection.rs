//! What an agent changed last, as a selection that JupyterLab paints in everybody's page.

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

impl Selection {
    /// What an edit put there; a place where it only took something away is empty.
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
    /// The cursors of our last edit. They stick to the text, so they move with what others type.
    pub(super) fn cursors(&self) -> Option<Cursors> {
        let selection = self.selection.as_ref()?;
        let txn = self.doc.transact();
        let text = match &selection.cell {
            Some(cell) => source_of(&self.map(&txn, cell)?, &txn)?,
            None => self.source.clone(),
        };
        let last = selection.ranges.len().saturating_sub(1);
        let cursor = |(index, range): (usize, &Range<u32>)| {
            json!({
                "anchor": position(&text, &txn, range.start),
                "head": position(&text, &txn, range.end),
                "primary": index == last,
                "empty": range.is_empty(),
            })
        };
        Some(Cursors {
            cell: selection.cell.clone(),
            ranges: selection.ranges.iter().enumerate().map(cursor).collect(),
            of_edit: selection.of_edit,
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
