//! The cells of a document in their order, with an index of their ids that follows every change: finding one cell, or how
//! short its id can be told, takes the same time however many there are.

use std::{
    collections::BTreeMap,
    ops::{Bound, Deref, Range},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::observing::CellEntry;

#[derive(Debug, Default)]
pub(super) struct CellList {
    entries: Vec<CellEntry>,
    by_id: BTreeMap<Arc<str>, Indexed>,
}

#[derive(Debug)]
struct Indexed {
    /// Number of cells that have the id.
    count: usize,
    /// Index at which a cell with the id was last seen. It is not far from there: cells that come or go before it move it by as many
    /// places.
    near: AtomicUsize,
}

impl Deref for CellList {
    type Target = [CellEntry];

    fn deref(&self) -> &[CellEntry] {
        &self.entries
    }
}

impl CellList {
    /// The first position of an id.
    pub(super) fn position_of(&self, id: &str) -> Option<usize> {
        let indexed = self.by_id.get(id)?;
        let is_it = |position: &usize| self.entries.get(*position).is_some_and(|entry| &*entry.id == id);
        if indexed.count > 1 {
            return (0..self.entries.len()).find(is_it);
        }
        let near = indexed.near.load(Ordering::Relaxed).min(self.entries.len());
        let around = (0..=self.entries.len()).flat_map(|by| [near.checked_sub(by), near.checked_add(by)]);
        let position = around.flatten().find(is_it)?;
        indexed.near.store(position, Ordering::Relaxed);
        Some(position)
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// The ids in the order of their characters, each once.
    pub(super) fn sorted_ids(&self) -> impl Iterator<Item = &Arc<str>> {
        self.by_id.keys()
    }

    /// The ids before and after an id in the order of their characters. No other has more of its beginning.
    pub(super) fn neighbours(&self, id: &str) -> [Option<&Arc<str>>; 2] {
        let mut before = self.by_id.range::<str, _>((Bound::Unbounded, Bound::Excluded(id)));
        let mut after = self.by_id.range::<str, _>((Bound::Excluded(id), Bound::Unbounded));
        [before.next_back(), after.next()].map(|found| found.map(|(id, _)| id))
    }

    /// The cells whose ids begin with something, with their positions, in order.
    pub(super) fn starting_with<'a>(&'a self, prefix: &'a str) -> Vec<(usize, &'a str)> {
        let from = self.by_id.range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        let found = from.take_while(|(id, _)| id.starts_with(prefix));
        let mut cells: Vec<(usize, &str)> = found
            .flat_map(|(id, indexed)| match indexed.count {
                1 => self
                    .position_of(id)
                    .map(|position| (position, &**id))
                    .into_iter()
                    .collect(),
                _ => self.positions_of_all(id),
            })
            .collect();
        cells.sort_unstable();
        cells
    }

    fn positions_of_all(&self, id: &str) -> Vec<(usize, &str)> {
        let cells = self.entries.iter().map(|entry| &*entry.id).enumerate();
        cells.filter(|(_, other)| *other == id).collect()
    }

    pub(super) fn insert(&mut self, at: usize, cells: Vec<CellEntry>) {
        for (offset, cell) in cells.iter().enumerate() {
            self.index(&cell.id, at + offset);
        }
        self.entries.splice(at..at, cells);
    }

    pub(super) fn remove(&mut self, range: Range<usize>) -> Vec<CellEntry> {
        let removed: Vec<CellEntry> = self.entries.drain(range).collect();
        for cell in &removed {
            self.forget(&cell.id);
        }
        removed
    }

    /// Gives a cell another id. Returns the one it had, unless it is the same.
    pub(super) fn rename(&mut self, at: usize, id: &Arc<str>) -> Option<Arc<str>> {
        let entry = self.entries.get_mut(at).filter(|entry| entry.id != *id)?;
        let old = std::mem::replace(&mut entry.id, Arc::clone(id));
        self.forget(&old);
        self.index(id, at);
        Some(old)
    }

    fn index(&mut self, id: &Arc<str>, at: usize) {
        let indexed = self.by_id.entry(Arc::clone(id)).or_insert_with(|| Indexed {
            count: 0,
            near: AtomicUsize::new(at),
        });
        indexed.count += 1;
    }

    fn forget(&mut self, id: &str) {
        if let Some(indexed) = self.by_id.get_mut(id) {
            indexed.count -= 1;
            if indexed.count == 0 {
                self.by_id.remove(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Change {
        Insert(usize, Vec<u8>),
        Remove(usize, usize),
        Rename(usize, u8),
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0..40_usize, prop::collection::vec(0..30_u8, 1..8)).prop_map(|(at, ids)| Change::Insert(at, ids)),
            (0..40_usize, 0..6_usize).prop_map(|(at, count)| Change::Remove(at, count)),
            (0..40_usize, 0..30_u8).prop_map(|(at, id)| Change::Rename(at, id)),
        ]
    }

    /// Ids of which some begin alike, and some are the beginning of others.
    fn id(number: u8) -> Arc<str> {
        "abacadabra".repeat(2)[usize::from(number % 3)..usize::from(4 + number % 11)].into()
    }

    fn entry(number: u8) -> CellEntry {
        CellEntry {
            id: id(number),
            hook: None,
        }
    }

    proptest! {
        #[test]
        fn the_index_knows_what_a_look_at_all_cells_would_find(changes in prop::collection::vec(change(), 1..30)) {
            let mut list = CellList::default();
            for change in changes {
                let length = list.len();
                match change {
                    Change::Insert(at, ids) => list.insert(at.min(length), ids.into_iter().map(entry).collect()),
                    Change::Remove(at, count) => {
                        let at = at.min(length);
                        list.remove(at..(at + count).min(length));
                    }
                    Change::Rename(at, number) => {
                        list.rename(at, &id(number));
                    }
                }
                let ids: Vec<&str> = list.iter().map(|entry| &*entry.id).collect();
                for number in 0..30 {
                    let id = id(number);
                    prop_assert_eq!(list.position_of(&id), ids.iter().position(|other| *other == &*id));
                    prop_assert_eq!(list.contains(&id), ids.contains(&&*id));
                    let starting: Vec<(usize, &str)> =
                        ids.iter().copied().enumerate().filter(|(_, other)| other.starts_with(&*id)).collect();
                    prop_assert_eq!(list.starting_with(&id), starting);
                    let [before, after] = list.neighbours(&id).map(|id| id.map(|id| &**id));
                    prop_assert_eq!(before, ids.iter().copied().filter(|other| *other < &*id).max());
                    prop_assert_eq!(after, ids.iter().copied().filter(|other| *other > &*id).min());
                }
            }
        }
    }
}
