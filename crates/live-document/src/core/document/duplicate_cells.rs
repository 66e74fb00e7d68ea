//! Cells that are there twice after Jupyter was restarted. It fills a document that it had not stored completely from
//! the file, with copies of cells that browsers, and we, still have in memory and bring back.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use yrs::{Array, BranchID, Hook, TransactionMut};

use super::{super::Cell, Applied, Author, CellEntry, Document, OBSERVER};

impl Document {
    /// Begins to look for cells that are there twice.
    pub(crate) fn watch_for_duplicates(&mut self) {
        let mut seen = HashSet::new();
        let duplicated = self.order.iter().filter(|entry| !seen.insert(&*entry.id));
        self.duplicated = Some(duplicated.map(|entry| Arc::clone(&entry.id)).collect());
    }

    /// Removes all but one of the cells that are there more than once with the same source. Everybody who does this keeps
    /// the same one. (Jupyter does so when it writes the file, but gives those another id that differ in anything else.)
    pub(crate) fn remove_duplicates(&mut self) -> Option<Applied> {
        let duplicated = self.duplicated.as_mut().filter(|duplicated| !duplicated.is_empty())?;
        let duplicated = std::mem::take(duplicated);
        let mut places: Vec<usize> = duplicated.iter().flat_map(|id| self.superfluous(id)).collect();
        if places.is_empty() {
            return None;
        }
        places.sort_unstable();
        Some(self.change(&Author::Local(OBSERVER.into()), |document, txn| {
            document.remove_at(txn, &places);
        }))
    }

    /// Removes the cells at some places, which are sorted.
    pub(super) fn remove_at(&self, txn: &mut TransactionMut<'_>, places: &[usize]) {
        for place in places.iter().rev() {
            self.cells.remove(txn, u32::try_from(*place).unwrap_or(u32::MAX));
        }
    }

    pub(crate) fn made(&self, id: &str) -> Option<(u64, u32)> {
        made(self.order.get(self.position_of(id)?)?)
    }

    /// The places of copies of a cell, except that of the one that stays.
    fn superfluous(&self, id: &str) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.order.len())
            .filter(|place| &*self.order[*place].id == id)
            .collect();
        let cells: HashMap<usize, Cell> = self.cells(places.iter().copied()).into_iter().collect();
        let has_run = |cell: &Cell| !cell.execution_count.is_null() || !cell.outputs.is_empty();
        places.retain(|place| cells.contains_key(place));
        places.sort_by_key(|place| (!has_run(&cells[place]), made(&self.order[*place])));
        let Some((stays, copies)) = places.split_first() else {
            return Vec::new();
        };
        let content = |place: &usize| (&cells[place].cell_type, &cells[place].source);
        let is_same = |place: &&usize| content(place) == content(stays);
        copies.iter().filter(is_same).copied().collect()
    }
}

/// Yjs id of a cell, client and clock: the same for everybody in the room.
pub(super) fn made(entry: &CellEntry) -> Option<(u64, u32)> {
    match entry.hook.as_ref().map(Hook::id) {
        Some(BranchID::Nested(id)) => Some((id.client.get(), id.clock)),
        _ => None,
    }
}
