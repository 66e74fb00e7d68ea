//! Comparison of two contents.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::Delta;
use crate::{Cell, Content, Notebook, Operation, Place, Splice, longest_rising, text};

/// The delta that turns one content into another; `splices` tells how a text becomes another one: that of a cell, or of the document.
pub(crate) fn between_with(
    old: &Content,
    new: &Content,
    splices: impl Fn(Option<&str>, &str, &str) -> Vec<Splice>,
) -> Delta {
    let operations = match (old, new) {
        (Content::Text(old), Content::Text(new)) => {
            let splices = if old == new {
                Vec::new()
            } else {
                splices(None, old, new)
            };
            let change = (!splices.is_empty()).then_some(Operation::Text { splices });
            change.into_iter().collect()
        }
        (Content::Notebook(old), Content::Notebook(new)) => of_notebooks(old, new, splices),
        _ => Vec::new(),
    };
    Delta { operations }
}

fn of_notebooks(
    old: &Notebook,
    new: &Notebook,
    splices: impl Fn(Option<&str>, &str, &str) -> Vec<Splice>,
) -> Vec<Operation> {
    let same_id = |(one, other): &(&Arc<Cell>, &Arc<Cell>)| Arc::ptr_eq(one, other) || one.id == other.id;
    let first = old.cells.iter().zip(&new.cells).take_while(same_id).count();
    let (old_rest, new_rest) = (&old.cells[first..], &new.cells[first..]);
    let last = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(same_id)
        .count();
    let (old_middle, new_middle) = (&old_rest[..old_rest.len() - last], &new_rest[..new_rest.len() - last]);

    let around = Place {
        after: first.checked_sub(1).map(|at| Arc::clone(&old.cells[at].id)),
        before: old_rest.get(old_middle.len()).map(|cell| Arc::clone(&cell.id)),
    };
    let mut operations = structure(old_middle, new_middle, &around);
    let places: HashMap<&str, &Arc<Cell>> = old_middle.iter().map(|cell| (&*cell.id, cell)).collect();
    let beginning = old.cells.iter().zip(&new.cells).take(first);
    let middle = new_middle
        .iter()
        .filter_map(|cell| Some((*places.get(&*cell.id)?, cell)));
    let end = old_rest[old_middle.len()..].iter().zip(&new_rest[new_middle.len()..]);
    for (old, new) in beginning.chain(middle).chain(end) {
        if !Arc::ptr_eq(old, new) {
            old.differences(new, &splices, &mut operations);
        }
    }
    if old.metadata != new.metadata {
        operations.push(Operation::Metadata {
            cell: None,
            old: old.metadata.clone(),
            new: new.metadata.clone(),
        });
    }
    operations
}

impl Cell {
    /// The operations that turn this cell into another one with its id.
    pub fn operations_to(&self, new: &Self) -> Vec<Operation> {
        let mut operations = Vec::new();
        self.differences(new, |_, old, new| text::between(old, new), &mut operations);
        operations
    }

    fn differences(
        &self,
        new: &Self,
        splices: impl Fn(Option<&str>, &str, &str) -> Vec<Splice>,
        operations: &mut Vec<Operation>,
    ) {
        let cell = || Arc::clone(&new.id);
        if self.kind != new.kind {
            operations.push(Operation::Kind {
                cell: cell(),
                old: self.kind,
                new: new.kind,
            });
        }
        if self.source != new.source {
            operations.push(Operation::Source {
                cell: cell(),
                splices: splices(Some(&new.id), &self.source, &new.source),
            });
        }
        if self.metadata != new.metadata {
            operations.push(Operation::Metadata {
                cell: Some(cell()),
                old: self.metadata.clone(),
                new: new.metadata.clone(),
            });
        }
        if self.attachments != new.attachments {
            operations.push(Operation::Attachments {
                cell: cell(),
                old: self.attachments.clone(),
                new: new.attachments.clone(),
            });
        }
        let (before, after) = ((self.outputs, self.execution_count), (new.outputs, new.execution_count));
        if before != after {
            operations.push(Operation::Outputs {
                cell: cell(),
                old: before,
                new: after,
                by_run: false,
            });
        }
    }
}

/// Deletions, then moves, then insertions; each at its place at that point.
fn structure(old: &[Arc<Cell>], new: &[Arc<Cell>], around: &Place) -> Vec<Operation> {
    let new_ids: HashSet<&str> = new.iter().map(|cell| &*cell.id).collect();
    let old_ids: HashSet<&str> = old.iter().map(|cell| &*cell.id).collect();
    let mut operations = deletions(old, &new_ids, around);
    let stays = |cell: &&Arc<Cell>| new_ids.contains(&*cell.id);
    let was = |cell: &&Arc<Cell>| old_ids.contains(&*cell.id);
    let from: Vec<&Arc<str>> = old.iter().filter(stays).map(|cell| &cell.id).collect();
    let to: Vec<&Arc<str>> = new.iter().filter(was).map(|cell| &cell.id).collect();
    operations.extend(moves(from, &to, around));
    operations.extend(insertions(new, &old_ids, around));
    operations
}

fn deletions(old: &[Arc<Cell>], new_ids: &HashSet<&str>, around: &Place) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut after = around.after.clone();
    for (at, cell) in old.iter().enumerate() {
        if new_ids.contains(&*cell.id) {
            after = Some(Arc::clone(&cell.id));
            continue;
        }
        let next = old.get(at + 1).map(|next| Arc::clone(&next.id));
        operations.push(Operation::Delete {
            at: Place {
                after: after.clone(),
                before: next.or_else(|| around.before.clone()),
            },
            cell: Arc::clone(cell),
        });
    }
    operations
}

fn insertions(new: &[Arc<Cell>], old_ids: &HashSet<&str>, around: &Place) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut before = around.before.clone();
    for (at, cell) in new.iter().enumerate().rev() {
        if old_ids.contains(&*cell.id) {
            before = Some(Arc::clone(&cell.id));
            continue;
        }
        let previous = at.checked_sub(1).map(|at| Arc::clone(&new[at].id));
        operations.push(Operation::Insert {
            at: Place {
                after: previous.or_else(|| around.after.clone()),
                before: before.clone(),
            },
            cell: Arc::clone(cell),
        });
    }
    operations.reverse();
    operations
}

/// The fewest moves from one order of the same cells to another.
fn moves<'c>(mut order: Vec<&'c Arc<str>>, wanted: &[&'c Arc<str>], around: &Place) -> Vec<Operation> {
    let places: HashMap<&str, usize> = order.iter().enumerate().map(|(at, id)| (&***id, at)).collect();
    let sequence: Vec<Option<usize>> = wanted.iter().map(|id| places.get(&***id).copied()).collect();
    let stays = longest_rising(&sequence);
    let mut operations = Vec::new();
    for (index, id) in wanted.iter().enumerate().filter(|(index, _)| stays[*index].is_none()) {
        let Some(from) = order.iter().position(|other| other == id) else {
            continue;
        };
        order.remove(from);
        let from = place(&order, from, around);
        let previous = index.checked_sub(1).map(|previous| wanted[previous]);
        let to = previous.map_or(0, |previous| {
            order.iter().position(|other| *other == previous).map_or(0, |at| at + 1)
        });
        operations.push(Operation::Move {
            cell: Arc::clone(id),
            from,
            to: place(&order, to, around),
        });
        order.insert(to, id);
    }
    operations
}

fn place(order: &[&Arc<str>], at: usize, around: &Place) -> Place {
    let after = at.checked_sub(1).and_then(|at| order.get(at)).map(|id| Arc::clone(id));
    let before = order.get(at).map(|id| Arc::clone(id));
    Place {
        after: after.or_else(|| around.after.clone()),
        before: before.or_else(|| around.before.clone()),
    }
}
