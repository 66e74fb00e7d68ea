//! The difference between two contents, which can be applied, reverted and described.

mod apply;
mod between;
mod summary;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    Content, Hash, Operation, Outputs, Place,
    encoding::{self, DecodeError},
    text,
};

pub(crate) use between::between_with;

/// The operations that turn one content into another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Delta {
    pub operations: Vec<Operation>,
}

/// A delta was applied to a content that is not the one it was made for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a change does not fit the document: {what}")]
pub struct Unfitting {
    pub what: String,
}

impl Delta {
    /// The delta that turns `old` into `new`, which are of one kind: no document becomes one of the other. Outputs are taken to be changed
    /// by the author.
    pub fn between(old: &Content, new: &Content) -> Self {
        between_with(old, new, |_, old, new| text::between(old, new))
    }

    /// The content that it makes of the one it was made for. What does not fit a text or the cells is an error.
    pub fn apply(&self, content: &Content) -> Result<Content, Unfitting> {
        Self::apply_all(content, [self])
    }

    /// The content after several deltas, each of which was made for what the one before leaves.
    pub fn apply_all<'d>(
        content: &Content,
        deltas: impl IntoIterator<Item = &'d Self, IntoIter: Clone>,
    ) -> Result<Content, Unfitting> {
        apply::apply(deltas.into_iter().flat_map(|delta| &delta.operations), content)
    }

    /// The delta that takes it back.
    pub fn invert(&self) -> Self {
        Self {
            operations: self.operations.iter().rev().map(Operation::invert).collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns whether it is nothing but what runs write.
    pub fn is_only_runs(&self) -> bool {
        self.operations.iter().all(Operation::is_by_run)
    }

    /// The same with all changes of outputs taken to be written by runs, except those of some cells.
    pub fn with_outputs_by_runs(mut self, except: impl Fn(&str) -> bool) -> Self {
        for operation in &mut self.operations {
            if let Operation::Outputs { cell, by_run, .. } = operation {
                *by_run = !except(cell);
            }
        }
        self
    }

    /// The part that is about these cells.
    pub fn only(&self, cells: &[&str]) -> Self {
        let chosen: HashSet<&str> = cells.iter().copied().collect();
        let is_chosen = |operation: &Operation| operation.cell().is_some_and(|cell| chosen.contains(cell));
        // What is put beside a cell that is not put there itself stands beside that one's neighbour.
        let left_out: HashMap<Arc<str>, Place> = self
            .operations
            .iter()
            .filter(|operation| !is_chosen(operation))
            .filter_map(|operation| match operation {
                Operation::Insert { at, cell } => Some((Arc::clone(&cell.id), at.clone())),
                _ => None,
            })
            .collect();
        let mut operations: Vec<Operation> = self.operations.iter().filter(|one| is_chosen(one)).cloned().collect();
        for operation in &mut operations {
            if let Operation::Insert { at, .. } | Operation::Move { to: at, .. } = operation {
                at.avoid(&left_out);
            }
        }
        Self { operations }
    }

    /// A line for people: "2 cells changed, 1 inserted".
    pub fn summary(&self) -> String {
        summary::summary(&self.operations)
    }

    /// The outputs that a document needs to follow it.
    pub fn outputs(&self) -> Vec<Hash> {
        unique(self.operations.iter().filter_map(|operation| match operation {
            Operation::Insert { cell, .. } => Some(cell.outputs),
            Operation::Outputs { new, .. } => Some(new.0),
            _ => None,
        }))
    }

    /// The outputs that it mentions, on either side.
    pub fn all_outputs(&self) -> Vec<Hash> {
        unique(self.operations.iter().flat_map(|operation| match operation {
            Operation::Insert { cell, .. } | Operation::Delete { cell, .. } => vec![cell.outputs],
            Operation::Outputs { old, new, .. } => vec![old.0, new.0],
            _ => Vec::new(),
        }))
    }

    /// The form in which it is stored.
    pub fn encode(&self) -> Vec<u8> {
        encoding::encode(self)
    }

    /// Reads what [`Self::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        encoding::decode(bytes)
    }
}

fn unique(outputs: impl Iterator<Item = Outputs>) -> Vec<Hash> {
    let mut seen = HashSet::new();
    let kept = outputs.filter_map(|outputs| match outputs {
        Outputs::Kept(hash) => Some(hash),
        Outputs::None | Outputs::Omitted => None,
    });
    kept.filter(|hash| seen.insert(*hash)).collect()
}

impl Place {
    /// Replaces missing neighbours by their own neighbours.
    fn avoid(&mut self, missing: &HashMap<Arc<str>, Place>) {
        // Once for each at most: damaged ones could lead in a circle.
        for _ in 0..missing.len() {
            let after = self.after.as_ref().and_then(|id| missing.get(id));
            let before = self.before.as_ref().and_then(|id| missing.get(id));
            if after.is_none() && before.is_none() {
                break;
            }
            let after = after.map_or_else(|| self.after.clone(), |place| place.after.clone());
            let before = before.map_or_else(|| self.before.clone(), |place| place.before.clone());
            *self = Self { after, before };
        }
    }
}

#[cfg(test)]
mod tests;
