//! Identity of cells after Jupyter was restarted. It finds cells in the file that it had not stored, and makes them
//! anew beside those that browsers, and we, still have; gives another id to a cell that it saw twice while it saved; and
//! has no ids at all to go by in files of an older format. Cells that were there before keep their ids.

use std::collections::{HashMap, HashSet, VecDeque};

use yrs::Map;

use super::{super::Cell, Applied, Author, Document, OBSERVER, restore::Snapshot};

/// Yjs id of a cell: client and clock.
pub(crate) type Made = (u64, u32);

/// A cell at its place in the order.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) place: usize,
    pub(super) made: Option<Made>,
    pub(super) cell: Cell,
}

/// Age of the file that the server came back with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAge {
    /// With a file that nobody wrote since it was last heard: it knows nothing that the document did not.
    Stale,
    /// With a file that may know more.
    MaybeNewer,
}

/// Repairs by which every cell is there once, under the id it had.
#[derive(Debug, Default, PartialEq, Eq)]
struct CellRepairs {
    /// Places of cells that get back an id.
    ids: Vec<(usize, String)>,
    /// Places of copies.
    superfluous: Vec<usize>,
}

impl Document {
    /// Gives cells back the ids they had and removes copies of them; nothing, if all is as it should be.
    pub(crate) fn identify_cells(&mut self, held: &Snapshot, came: FileAge) -> Option<Applied> {
        let repairs = identify_cells(&held.cells, &self.placed(), came, !self.file_has_ids());
        self.renamed.clear();
        if repairs == CellRepairs::default() {
            return None;
        }
        Some(self.change(&Author::Local(OBSERVER.into()), |document, txn| {
            for (place, id) in repairs.ids {
                let entry = document.order.get(place);
                if let Some(cell) = entry.and_then(|entry| entry.hook.as_ref()?.get(txn)) {
                    cell.insert(txn, "id", id);
                }
            }
            document.remove_at(txn, &repairs.superfluous);
        }))
    }

    /// Gives cells back the ids that Jupyter took from them. It does so when it sees a cell twice, which also happens
    /// when cells are inserted before it, and it is changed, while the file is being written.
    pub(crate) fn restore_ids(&mut self) -> Option<Applied> {
        let mut renamed = std::mem::take(&mut self.renamed);
        // Of two that are there one must have another id.
        renamed.retain(|(id, _)| self.position_of(id).is_none());
        if renamed.is_empty() {
            return None;
        }
        Some(self.change(&Author::Local(OBSERVER.into()), |_, txn| {
            for (id, hook) in renamed {
                if let Some(cell) = hook.get(txn) {
                    cell.insert(txn, "id", &*id);
                }
            }
        }))
    }

    /// All cells with who made them.
    pub(super) fn placed(&self) -> Vec<Placed> {
        let made = |place: usize| super::duplicate_cells::made(&self.order[place]);
        let cells = self.cells(0..self.cell_count()).into_iter();
        cells
            .map(|(place, cell)| Placed {
                place,
                made: made(place),
                cell,
            })
            .collect()
    }
}

fn identify_cells(held: &[Placed], now: &[Placed], came: FileAge, without_ids: bool) -> CellRepairs {
    let mut names = Names::new(held, now);
    let mut superfluous = names.copies(came);
    names.pair_by_content(held, &superfluous);
    if without_ids {
        names.pair_by_neighbours(held, &superfluous);
    }
    if came == FileAge::Stale {
        superfluous.extend(names.copies_under_other_ids(held, &superfluous));
    }
    let renamed = |(index, name): &(usize, &str)| now[*index].cell.id != *name && !superfluous.contains(index);
    let ids = names.of.iter().copied().enumerate().filter(renamed);
    CellRepairs {
        ids: ids.map(|(index, name)| (now[index].place, name.to_owned())).collect(),
        superfluous: superfluous.iter().map(|index| now[*index].place).collect(),
    }
}

type Places = std::collections::BTreeSet<usize>;

/// Ids to be given to the present cells.
struct Names<'a> {
    now: &'a [Placed],
    /// The ids by place.
    of: Vec<&'a str>,
    /// True for each place whose cell was there before.
    is_known: Vec<bool>,
    /// The ids that there were before.
    ids: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn new(held: &'a [Placed], now: &'a [Placed]) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for cell in held {
            *counts.entry(&cell.cell.id).or_default() += 1;
        }
        let before: HashMap<Made, &'a str> = held
            .iter()
            .filter_map(|held| Some((held.made?, held.cell.id.as_str())))
            .collect();
        let had = |placed: &Placed| placed.made.and_then(|made| before.get(&made).copied());
        let name = |placed: &'a Placed| had(placed).filter(|id| counts[id] == 1).unwrap_or(&placed.cell.id);
        Self {
            now,
            of: now.iter().map(name).collect(),
            is_known: now.iter().map(|placed| had(placed).is_some()).collect(),
            ids: counts.into_keys().collect(),
        }
    }

    /// Of cells that were there before and came once more under the same id, those that go. If they differ, the file counts
    /// that somebody may have written.
    fn copies(&self, came: FileAge) -> Places {
        let known = (0..self.of.len()).filter(|place| self.is_known[*place]);
        let known: HashMap<&str, usize> = known.map(|place| (self.of[place], place)).collect();
        let strangers = (0..self.of.len()).filter(|place| !self.is_known[*place]);
        let pairs = strangers.filter_map(|place| Some((place, *known.get(self.of[place])?)));
        pairs
            .map(|(stranger, known)| {
                let is_same = self.content(stranger) == self.content(known);
                if is_same || came == FileAge::Stale {
                    stranger
                } else {
                    known
                }
            })
            .collect()
    }

    /// Recognises cells that came back under another id by what is in them.
    fn pair_by_content(&mut self, held: &'a [Placed], superfluous: &Places) {
        let mut strangers: HashMap<(&str, &str), VecDeque<usize>> = HashMap::new();
        for place in self.strangers(superfluous) {
            strangers.entry(self.content(place)).or_default().push_back(place);
        }
        for vanished in self.vanished(held) {
            let place = strangers
                .get_mut(&content(&vanished.cell))
                .and_then(VecDeque::pop_front);
            if let Some(place) = place {
                self.of[place] = &vanished.cell.id;
            }
        }
    }

    /// Recognises cells that came back under another id, and changed, by those that they stand between.
    fn pair_by_neighbours(&mut self, held: &'a [Placed], superfluous: &Places) {
        let places: HashMap<&str, usize> = self.of.iter().enumerate().map(|(place, name)| (*name, place)).collect();
        let is_there = |placed: &Placed| places.contains_key(placed.cell.id.as_str());
        let strangers: HashSet<usize> = self.strangers(superfluous).collect();
        let mut begin = 0;
        let mut paired = Vec::new();
        for gap in held.split(is_there) {
            let end = begin + gap.len();
            let place = |index: usize| held.get(index).map(|placed| places[placed.cell.id.as_str()]);
            let first = begin.checked_sub(1).and_then(place).map_or(0, |place| place + 1);
            let last = place(end).unwrap_or(self.of.len());
            if first + gap.len() == last && (first..last).all(|place| strangers.contains(&place)) {
                paired.extend((first..last).zip(gap));
            }
            begin = end + 1;
        }
        for (place, vanished) in paired {
            self.of[place] = &vanished.cell.id;
        }
    }

    /// Cells that nobody knows, with what is in one that was there before: the same one, under an id that Jupyter gave it.
    fn copies_under_other_ids(&self, held: &[Placed], superfluous: &Places) -> Places {
        let known: HashSet<(&str, &str)> = held.iter().map(|held| content(&held.cell)).collect();
        let is_copy =
            |place: &usize| known.contains(&self.content(*place)) && !self.content(*place).1.trim().is_empty();
        self.strangers(superfluous).filter(is_copy).collect()
    }

    /// Cells that were not there before, under ids that were not.
    fn strangers(&self, superfluous: &Places) -> impl Iterator<Item = usize> {
        let is_stranger = |place: &usize| {
            !self.is_known[*place] && !self.ids.contains(self.of[*place]) && !superfluous.contains(place)
        };
        (0..self.of.len()).filter(is_stranger)
    }

    /// Cells that were there before and are not, by their ids.
    fn vanished(&self, held: &'a [Placed]) -> Vec<&'a Placed> {
        let there: HashSet<&str> = self.of.iter().copied().collect();
        held.iter()
            .filter(|held| !there.contains(held.cell.id.as_str()))
            .collect()
    }

    fn content(&self, place: usize) -> (&'a str, &'a str) {
        content(&self.now[place].cell)
    }
}

fn content(cell: &Cell) -> (&str, &str) {
    (&cell.cell_type, &cell.source)
}

#[cfg(test)]
mod tests;
