//! Deltas in a few words.

use std::collections::HashSet;

use crate::Operation;

/// Cells that a delta is about, by what happens to them.
#[derive(Default)]
struct Counts<'o> {
    changed: HashSet<&'o str>,
    inserted: HashSet<&'o str>,
    deleted: HashSet<&'o str>,
    moved: HashSet<&'o str>,
    ran: HashSet<&'o str>,
}

pub(super) fn summary(operations: &[Operation]) -> String {
    let mut counts = Counts::default();
    let mut notebook = false;
    for operation in operations {
        match operation {
            Operation::Text { splices } => {
                let added = splices.iter().map(|splice| splice.new.chars().count()).sum();
                let removed = splices.iter().map(|splice| splice.old.chars().count()).sum();
                return text_summary(added, removed);
            }
            Operation::Metadata { cell: None, .. } => notebook |= !operation.is_by_run(),
            Operation::Insert { cell, .. } => drop(counts.inserted.insert(&cell.id)),
            Operation::Delete { cell, .. } => drop(counts.deleted.insert(&cell.id)),
            Operation::Move { cell, .. } => drop(counts.moved.insert(cell)),
            _ => {
                let of_cells = if operation.is_by_run() {
                    &mut counts.ran
                } else {
                    &mut counts.changed
                };
                of_cells.extend(operation.cell());
            }
        }
    }
    counts.summary(notebook)
}

impl Counts<'_> {
    fn summary(mut self, notebook: bool) -> String {
        self.changed.retain(|cell| !self.inserted.contains(cell));
        self.moved.retain(|cell| !self.changed.contains(cell));
        let counted = [
            (self.changed.len(), "changed"),
            (self.inserted.len(), "inserted"),
            (self.deleted.len(), "deleted"),
            (self.moved.len(), "moved"),
        ];
        let mut parts: Vec<String> = Vec::new();
        for (count, what) in counted.into_iter().filter(|(count, _)| *count > 0) {
            parts.push(match parts.is_empty() {
                true => format!("{count} {} {what}", if count == 1 { "cell" } else { "cells" }),
                false => format!("{count} {what}"),
            });
        }
        if notebook {
            parts.push("metadata of the notebook changed".to_owned());
        }
        match (parts.is_empty(), self.ran.is_empty()) {
            (true, true) => "nothing changed".to_owned(),
            (true, false) => format!(
                "outputs of {} changed",
                if self.ran.len() == 1 {
                    "1 cell".to_owned()
                } else {
                    format!("{} cells", self.ran.len())
                }
            ),
            (false, _) => parts.join(", "),
        }
    }
}

fn text_summary(added: usize, removed: usize) -> String {
    let characters = |count: usize| match count {
        1 => "1 character".to_owned(),
        _ => format!("{count} characters"),
    };
    match (added, removed) {
        (0, 0) => "nothing changed".to_owned(),
        (0, _) => format!("{} removed", characters(removed)),
        (_, 0) => format!("{} added", characters(added)),
        _ => format!("{} added, {removed} removed", characters(added)),
    }
}
