//! Cells of a copy, put among those of the original.

use std::collections::{HashMap, HashSet};

use history::longest_rising;

use super::{
    CellDifference, Clash, Conflict, Difference, Findings, Overlap, TakeOver, combine_members, combine_text,
    combine_value, has_same_outputs, is_same,
};
use crate::core::Cell;

/// The cells in which a copy differs from its base, in the copy's order, those that are gone last.
pub(super) fn differences(base: &[Cell], copy: &[Cell]) -> Vec<CellDifference> {
    let places: HashMap<&str, usize> = base.iter().enumerate().map(|(at, cell)| (&*cell.id, at)).collect();
    let found: Vec<Option<usize>> = copy.iter().map(|cell| places.get(&*cell.id).copied()).collect();
    let in_order = longest_rising(&found);
    let present = copy.iter().enumerate().filter_map(|(at, cell)| {
        let difference = match (found[at], in_order[at].is_some()) {
            (None, _) => Difference::Inserted,
            (Some(place), in_order) => match (in_order, is_same(&base[place], cell)) {
                (true, true) => return None,
                (true, false) => Difference::Changed,
                (false, true) => Difference::Moved,
                (false, false) => Difference::MovedAndChanged,
            },
        };
        Some(of(cell, difference))
    });
    let kept: HashSet<&str> = copy.iter().map(|cell| &*cell.id).collect();
    let gone = base.iter().filter(|cell| !kept.contains(&*cell.id));
    present.chain(gone.map(|cell| of(cell, Difference::Deleted))).collect()
}

fn of(cell: &Cell, difference: Difference) -> CellDifference {
    CellDifference {
        cell: cell.id.clone(),
        difference,
    }
}

/// The cells of the original with the differences that are to be taken over.
pub(super) fn combine_cells(
    take_over: &TakeOver<'_>,
    base: &[Cell],
    copy: &[Cell],
    original: &[Cell],
    findings: &mut Findings,
) -> Vec<Cell> {
    let mut combined = Combined {
        take_over,
        copy,
        cells: original.to_vec(),
    };
    let is_wanted = |id: &String| take_over.only.is_none_or(|only| only.contains(id));
    for CellDifference { cell, difference } in differences(base, copy)
        .into_iter()
        .filter(|found| is_wanted(&found.cell))
    {
        let before = base.iter().find(|other| other.id == cell);
        if let Err(clash) = combined.take(&cell, difference, before, findings) {
            findings.conflicts.push(Conflict {
                cell: Some(cell),
                clash,
            });
        }
    }
    combined.cells
}

struct Combined<'a> {
    take_over: &'a TakeOver<'a>,
    copy: &'a [Cell],
    cells: Vec<Cell>,
}

impl Combined<'_> {
    fn take(
        &mut self,
        id: &str,
        difference: Difference,
        base: Option<&Cell>,
        findings: &mut Findings,
    ) -> Result<(), Clash> {
        let overwrites = self.take_over.overlap == Overlap::Overwrite;
        let at = self.cells.iter().position(|cell| cell.id == id);
        let wanted = self.copy.iter().find(|cell| cell.id == id);
        match (difference, wanted, at, base) {
            (Difference::Deleted, _, Some(at), Some(base)) => {
                if self.cells[at].source != base.source && !overwrites {
                    return Err(Clash::DeletedInCopy);
                }
                self.cells.remove(at);
            }
            (Difference::Inserted, Some(wanted), None, _) => self.insert(wanted.clone()),
            (_, Some(wanted), Some(at), base) => {
                // A cell that was taken over before has no other base than itself.
                let base = base.unwrap_or(&self.cells[at]);
                let cell = combine_cell(self.take_over, base, wanted, &self.cells[at], findings)?;
                match difference.is_move() {
                    true => {
                        self.cells.remove(at);
                        self.insert(cell);
                    }
                    false => self.cells[at] = cell,
                }
            }
            (_, Some(wanted), None, _) if difference.is_change() => match overwrites {
                true => self.insert(wanted.clone()),
                false => return Err(Clash::DeletedMeanwhile),
            },
            _ => {}
        }
        Ok(())
    }

    /// Puts a cell behind the nearest one that it follows in the copy.
    fn insert(&mut self, cell: Cell) {
        let place = self
            .copy
            .iter()
            .position(|other| other.id == cell.id)
            .unwrap_or_default();
        let mut before = self.copy[..place].iter().rev();
        let behind = before.find_map(|before| self.cells.iter().position(|other| other.id == before.id));
        self.cells.insert(behind.map_or(0, |at| at + 1), cell);
    }
}

fn combine_cell(
    take_over: &TakeOver<'_>,
    base: &Cell,
    copy: &Cell,
    now: &Cell,
    findings: &mut Findings,
) -> Result<Cell, Clash> {
    let (overlap, id) = (take_over.overlap, Some(&*now.id));
    let mut cell = Cell {
        source: combine_text(take_over, &base.source, &copy.source, &now.source, id, findings)?,
        cell_type: combine_value(&base.cell_type, &copy.cell_type, &now.cell_type, overlap)?,
        metadata: combine_members(&base.metadata, &copy.metadata, &now.metadata, overlap)?,
        attachments: combine_value(&base.attachments, &copy.attachments, &now.attachments, overlap)?,
        ..now.clone()
    };
    if !has_same_outputs(base, copy) && cell.source == copy.source {
        cell.outputs.clone_from(&copy.outputs);
        cell.execution_count = copy.execution_count.clone();
    }
    Ok(cell)
}
