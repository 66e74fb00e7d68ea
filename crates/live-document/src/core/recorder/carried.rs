//! Outputs of runs that changed and are in no version yet.

use history::{Blob, Delta, Operation};

/// Outputs of runs, until they are put into a version.
#[derive(Debug, Default)]
pub(super) struct Carried {
    operations: Vec<Operation>,
    blobs: Vec<Blob>,
}

impl Carried {
    pub(super) fn keep(&mut self, delta: Delta, blobs: Vec<Blob>) {
        for operation in delta.operations {
            let is_same = |known: &&mut Operation| is_of_same_part(known, &operation);
            match self.operations.iter_mut().find(is_same) {
                Some(known) => go_on(known, operation),
                None => self.operations.push(operation),
            }
        }
        self.blobs.extend(blobs);
        let mentioned = Delta {
            operations: std::mem::take(&mut self.operations),
        };
        let needed = mentioned.all_outputs();
        self.blobs.retain(|blob| needed.contains(&blob.hash));
        self.operations = mentioned.operations;
    }

    /// A delta with everything that waited for one.
    pub(super) fn release(&mut self, delta: Delta, blobs: Vec<Blob>) -> (Delta, Vec<Blob>) {
        if self.operations.is_empty() {
            return (delta, blobs);
        }
        let carried = std::mem::take(self);
        let operations = carried.operations.into_iter().chain(delta.operations).collect();
        let blobs = carried.blobs.into_iter().chain(blobs).collect();
        (Delta { operations }, blobs)
    }
}

fn is_of_same_part(one: &Operation, other: &Operation) -> bool {
    match (one, other) {
        (Operation::Outputs { cell, .. }, Operation::Outputs { cell: other, .. }) => cell == other,
        (Operation::Metadata { cell, .. }, Operation::Metadata { cell: other, .. }) => cell == other,
        _ => false,
    }
}

/// Combines a change with the next one of the same part.
fn go_on(known: &mut Operation, next: Operation) {
    match (known, next) {
        (Operation::Outputs { new, .. }, Operation::Outputs { new: next, .. }) => *new = next,
        (Operation::Metadata { new, .. }, Operation::Metadata { new: next, .. }) => *new = next,
        _ => {}
    }
}
