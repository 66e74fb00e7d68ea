//! Cursors of others, from what JupyterLab sends of them.

use serde_json::Value;
use yrs::{
    Assoc, BranchID, GetString, IndexScope, ReadTxn, SharedRef, StickyIndex, TextRef, Transact,
    block::{ClientID, ID},
};

use super::{
    super::{notebook::source_of, people::Cursor},
    Document,
};

/// Ids of clients have no more bits.
const MAX_CLIENT: u64 = 1 << 53;

impl Document {
    /// The place that a relative position of Yjs means; none if it is not, or no longer, in a source.
    pub(crate) fn locate(&self, position: &Value) -> Option<Cursor> {
        let txn = self.doc.transact();
        // What it stuck to may be gone, but not yet the text that it is in.
        let offset = sticky_indices(position).find_map(|index| index.get_offset(&txn))?;
        if !self.is_notebook() {
            let (line, column) = place_at(&self.source, &txn, offset.index);
            return Some(Cursor {
                cell: None,
                line,
                column,
            });
        }
        let BranchID::Nested(part) = offset.branch.id() else {
            return None;
        };
        let (at, source) = self.source_by_part(&txn, &part)?;
        let (line, column) = place_at(&source, &txn, offset.index);
        Some(Cursor {
            cell: Some((at, self.order[at].id.to_string())),
            line,
            column,
        })
    }

    /// The source that is a certain part of the document, and the position of its cell.
    fn source_by_part(&self, txn: &impl ReadTxn, part: &ID) -> Option<(usize, TextRef)> {
        let source_at = |at: usize| {
            let source = source_of(&self.order[at].hook.as_ref()?.get(txn)?, txn)?;
            (*source.hook().id() == BranchID::Nested(*part)).then_some((at, source))
        };
        let known = self.observer.owner(part).and_then(|cell| self.position_of(&cell));
        known
            .and_then(source_at)
            .or_else(|| (0..self.order.len()).find_map(source_at))
    }
}

/// Sticky indices of a position, the most exact first.
fn sticky_indices(position: &Value) -> impl Iterator<Item = StickyIndex> {
    let id = |member: &str| {
        let id = position.get(member)?;
        let client = id.get("client")?.as_u64().filter(|client| *client < MAX_CLIENT)?;
        let clock = u32::try_from(id.get("clock")?.as_u64()?).ok()?;
        Some(ID::new(ClientID::new(client), clock))
    };
    let root = || {
        position
            .get("tname")?
            .as_str()
            .map(|name| IndexScope::Root(name.into()))
    };
    let scopes = [
        id("item").map(IndexScope::Relative),
        id("type").map(IndexScope::Nested),
        root(),
    ];
    let assoc = match position.get("assoc").and_then(Value::as_i64) {
        Some(assoc) if assoc < 0 => Assoc::Before,
        _ => Assoc::After,
    };
    scopes
        .into_iter()
        .flatten()
        .map(move |scope| StickyIndex::new(scope, assoc))
}

/// The line, from 1, and the column, from 0 in code points, of an offset in UTF-16 units.
fn place_at(text: &TextRef, txn: &impl ReadTxn, offset: u32) -> (usize, usize) {
    let (mut line, mut column, mut units) = (1, 0, 0);
    for character in text.get_string(txn).chars() {
        if units >= offset as usize {
            break;
        }
        units += character.len_utf16();
        (line, column) = match character {
            '\n' => (line + 1, 0),
            _ => (line, column + 1),
        };
    }
    (line, column)
}
