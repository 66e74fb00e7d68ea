//! Setting a whole notebook: cells that are there by their id change in their place, under people's cursors.

use std::collections::{HashMap, HashSet};

use history::longest_rising;
use serde_json::Value;
use yrs::{Any, Array, Map, TransactionMut};

use super::{
    super::{
        Cell, CellKind, NewCell,
        json::from_json,
        notebook::{execution_count, notebook_metadata, output_prelim, set_metadata},
    },
    Document,
    outputs::outputs_of,
};

impl Document {
    /// Sets the cells, touching only what differs.
    pub(super) fn set_cells(&mut self, txn: &mut TransactionMut<'_>, cells: &[NewCell]) {
        let old: Vec<Cell> = (0..self.order.len())
            .filter_map(|index| self.read_in(txn, index))
            .collect();
        let kept = kept(&old, cells);
        let stays: HashSet<&str> = kept.iter().flatten().map(|at| old[*at].id.as_str()).collect();
        let gone = old
            .iter()
            .map(|cell| &cell.id)
            .filter(|id| !stays.contains(id.as_str()));
        self.delete(txn, &gone.cloned().collect::<Vec<_>>());
        let mut at = 0;
        while at < cells.len() {
            if let Some(place) = kept[at] {
                self.set_cell(txn, &old[place], &cells[at]);
                at += 1;
                continue;
            }
            let end = (at..cells.len())
                .find(|next| kept[*next].is_some())
                .unwrap_or(cells.len());
            let after = at.checked_sub(1).map(|before| cells[before].id.clone());
            let before = cells.get(end).map(|next| next.id.clone());
            self.insert_between(txn, at, (after, before), &cells[at..end]);
            at = end;
        }
    }

    /// Replaces the content of a cell, which stays of its kind and in its place.
    fn set_cell(&mut self, txn: &mut TransactionMut<'_>, old: &Cell, new: &NewCell) {
        self.set_source(txn, &old.id, &new.source);
        if old.metadata != new.metadata {
            self.set_cell_metadata(txn, &old.id, &new.metadata);
        }
        if old.attachments != new.attachments {
            self.set_attachments(txn, &old.id, new.attachments.as_ref());
        }
        if new.kind != CellKind::Code {
            return;
        }
        if old.outputs != new.outputs {
            self.set_outputs(txn, &old.id, &new.outputs, new.execution_count);
        } else if old.execution_count.as_i64() != new.execution_count {
            self.set_count(txn, &old.id, new.execution_count);
        }
    }

    pub(super) fn set_cell_metadata(&self, txn: &mut TransactionMut<'_>, cell: &str, metadata: &Value) {
        let Some(map) = self.map(txn, cell) else { return };
        let mut wanted = metadata.clone();
        // Files have no say in whether a cell is trusted.
        if let Some(trusted) = notebook_metadata(&map, txn).get("trusted") {
            wanted["trusted"] = trusted.clone();
        }
        set_metadata(&map, txn, &wanted);
    }

    pub(super) fn set_attachments(&self, txn: &mut TransactionMut<'_>, cell: &str, attachments: Option<&Value>) {
        let Some(map) = self.map(txn, cell) else { return };
        match attachments {
            Some(attachments) => drop(map.insert(txn, "attachments", from_json(attachments))),
            None => drop(map.remove(txn, "attachments")),
        }
    }

    pub(super) fn set_outputs(&self, txn: &mut TransactionMut<'_>, cell: &str, new: &[Value], count: Option<i64>) {
        let Some(map) = self.map(txn, cell) else { return };
        let outputs = outputs_of(&map, txn);
        let length = outputs.len(txn);
        outputs.remove_range(txn, 0, length);
        for output in new {
            outputs.push_back(txn, output_prelim(output));
        }
        self.set_count(txn, cell, count);
    }

    fn set_count(&self, txn: &mut TransactionMut<'_>, cell: &str, count: Option<i64>) {
        let Some(map) = self.map(txn, cell) else { return };
        if execution_count(&map, txn).as_i64() != count {
            map.insert(txn, "execution_count", count.map_or(Any::Null, Any::from));
        }
    }
}

/// For each new cell the place of the old one that becomes it, for as many as can stay in their order.
fn kept(old: &[Cell], new: &[NewCell]) -> Vec<Option<usize>> {
    let places: HashMap<(&str, &str), usize> = old
        .iter()
        .enumerate()
        .map(|(at, cell)| ((cell.id.as_str(), cell.cell_type.as_str()), at))
        .collect();
    let found: Vec<Option<usize>> = new
        .iter()
        .map(|cell| places.get(&(cell.id.as_str(), cell.kind.as_str())).copied())
        .collect();
    longest_rising(&found)
}
