//! Moving cells. Yjs cannot move what is in a list, so that a cell is made anew in its new place, with all that it has, as
//! JupyterLab does it.

use std::collections::{HashMap, HashSet};

use yrs::{Any, Array, Map, MapRef, Out, ReadTxn, TransactionMut};

use super::{
    super::{
        NewCell,
        notebook::{prelim, read_cell},
    },
    Document, Selection, splice,
};

/// An order of cells, and which of them have to be made anew for it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reordered {
    pub(crate) order: Vec<String>,
    pub(crate) remade: Vec<String>,
}

impl Document {
    /// The order after cells were put before another one, or at the end.
    pub(crate) fn reordered(&self, cells: &[String], before: Option<&str>) -> Reordered {
        reordered(&self.ids(), cells, before)
    }

    pub(super) fn move_cells(&mut self, txn: &mut TransactionMut<'_>, cells: &[String], before: Option<&str>) {
        let Reordered { order, remade } = self.reordered(cells, before);
        let copies: Vec<(NewCell, String)> = remade.iter().filter_map(|id| self.copy_of(txn, id)).collect();
        if remade.is_empty() || copies.len() < remade.len() {
            // Nothing moves, or something in the list is no cell and stays where it is.
            return;
        }
        let mut places: Vec<usize> = remade.iter().filter_map(|id| self.position_of(id)).collect();
        places.sort_unstable();
        for place in places.into_iter().rev() {
            self.cells.remove(txn, index(place));
        }
        let places: HashMap<&str, usize> = order
            .iter()
            .enumerate()
            .map(|(place, id)| (id.as_str(), place))
            .collect();
        // In the order of the document, since what comes before a cell has to be there.
        for (copy, state) in copies {
            let place = places.get(copy.id.as_str()).copied().unwrap_or(order.len());
            let map = self.cells.insert(txn, index(place), prelim(&copy));
            if !state.is_empty() {
                // A cell that runs goes on being shown so.
                map.insert(txn, "execution_state", state);
            }
            let whole = 0..splice::utf16_len(&copy.source);
            self.selection = Some(Selection::of_edit(Some(&copy.id), vec![whole]));
        }
        let first = cells.first().and_then(|first| places.get(first.as_str()));
        let after = first.and_then(|first| order.get(first.checked_sub(1)?)).cloned();
        self.journal.moved(after, before.map(str::to_owned), cells);
    }

    /// Moves cells once more, as far as they are still there; `None` if they are where they were put.
    pub(crate) fn repeat_move(
        &mut self,
        txn: &mut TransactionMut<'_>,
        (after, before): (Option<&str>, Option<&str>),
        cells: &[String],
    ) -> Option<bool> {
        let there: Vec<String> = cells
            .iter()
            .filter(|id| self.position_of(id).is_some())
            .cloned()
            .collect();
        let is_there = |id: &&str| self.position_of(id).is_some();
        let behind = after.filter(is_there).map(|after| {
            let mut ids = self.cell_ids().skip_while(|id| *id != after).skip(1);
            ids.find(|id| there.iter().all(|moved| moved != id)).map(str::to_owned)
        });
        let before = match (before.filter(is_there), behind) {
            (Some(before), _) => Some(before.to_owned()),
            (None, Some(next)) => next,
            // They were put first or last, where nothing else was.
            (None, None) if before.is_none() => None,
            (None, None) => return Some(false),
        };
        if self.reordered(&there, before.as_deref()).remade.is_empty() {
            return None;
        }
        self.move_cells(txn, &there, before.as_deref());
        Some(true)
    }

    /// A cell with all that it has, and what it is doing.
    pub(super) fn copy_of(&self, txn: &impl ReadTxn, id: &str) -> Option<(NewCell, String)> {
        let map = self.map(txn, id)?;
        let cell = read_cell(&map, txn);
        let mut copy = NewCell::from(&cell);
        copy.trusted = is_trusted(&map, txn);
        Some((copy, cell.execution_state))
    }
}

fn index(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

fn is_trusted(cell: &MapRef, txn: &impl ReadTxn) -> bool {
    match cell.get(txn, "metadata") {
        Some(Out::YMap(metadata)) => matches!(metadata.get(txn, "trusted"), Some(Out::Any(Any::Bool(true)))),
        _ => false,
    }
}

fn reordered(ids: &[&str], moved: &[String], before: Option<&str>) -> Reordered {
    let is_moved: HashSet<&str> = moved.iter().map(String::as_str).collect();
    let stays = |id: &&&str| !is_moved.contains(**id);
    let end = before
        .and_then(|before| ids.iter().position(|id| *id == before))
        .unwrap_or(ids.len());
    // Those that are in between already stay, as far as they are in order.
    let begin = ids[..end]
        .iter()
        .rposition(|id| !is_moved.contains(id))
        .map_or(0, |at| at + 1);
    let mut next = begin;
    let mut remade = Vec::new();
    for id in moved {
        match ids[next..end].iter().position(|other| other == id) {
            Some(offset) => next += offset + 1,
            None => remade.push(id.clone()),
        }
    }
    let order = ids[..end].iter().filter(stays).copied();
    let order = order
        .chain(moved.iter().map(String::as_str))
        .chain(ids[end..].iter().filter(stays).copied());
    Reordered {
        order: order.map(str::to_owned).collect(),
        remade,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cells_that_have_to_are_made_anew() {
        let ids = ["a", "b", "c", "d", "e"];
        for (moved, before, order, remade) in [
            (vec!["d"], Some("b"), "adbce", vec!["d"]),
            (vec!["a"], None, "bcdea", vec!["a"]),
            (vec!["b", "d"], Some("c"), "abdce", vec!["d"]),
            (vec!["d", "b"], Some("c"), "adbce", vec!["d"]),
            (vec!["b", "c"], Some("d"), "abcde", vec![]),
            (vec!["c", "b"], Some("d"), "acbde", vec!["b"]),
            (vec!["e"], None, "abcde", vec![]),
            (vec!["e", "a"], Some("c"), "beacd", vec!["e", "a"]),
            (vec!["a", "b", "c", "d", "e"], None, "abcde", vec![]),
        ] {
            let cells: Vec<String> = moved.iter().map(|id| (*id).to_owned()).collect();
            let found = reordered(&ids, &cells, before);
            assert_eq!(
                (found.order.concat().as_str(), found.remade),
                (order, remade.iter().map(|id| (*id).to_owned()).collect()),
                "{moved:?} before {before:?}"
            );
        }
    }
}
