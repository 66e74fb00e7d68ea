//! The log of a document, replayed.

use std::collections::{HashMap, HashSet};

use super::{activity::active, cells::Cells, register::By, sequence::Sequence};
use crate::{Content, Delta, LoggedVersion, Operation, Unfitting, VersionId, delta::between_with};

pub(super) struct Replay {
    places: HashMap<VersionId, usize>,
    undoes: Vec<Vec<usize>>,
    active: Vec<bool>,
    document: Past,
}

/// A document from which nothing is ever removed.
enum Past {
    Notebook(Cells),
    Text(Sequence),
}

impl Replay {
    pub(super) fn new(base: &Content) -> Self {
        Self {
            places: HashMap::new(),
            undoes: Vec::new(),
            active: Vec::new(),
            document: match base {
                Content::Notebook(notebook) => Past::Notebook(Cells::new(notebook)),
                Content::Text(text) => Past::Text(Sequence::new(text, None)),
            },
        }
    }

    /// Adds the next version.
    pub(super) fn add(&mut self, version: &LoggedVersion) -> Result<(), Unfitting> {
        let index = self.undoes.len();
        let undone: Vec<usize> = version
            .undoes
            .iter()
            .filter_map(|id| self.places.get(id).copied())
            .collect();
        self.places.insert(version.id.clone(), index);
        let is_undo = !undone.is_empty();
        self.undoes.push(undone);
        if !is_undo {
            self.active.push(true);
            return self.perform(&version.delta, Some(index));
        }
        let after = version.delta.apply(&self.content(&self.active))?;
        self.active = active(&self.undoes);
        // What it did is what comes of the versions that it undoes. Should it have done something else too, that is its own.
        let rest = Delta::between(&self.content(&self.active), &after);
        self.perform(&rest, Some(index))
    }

    /// Sets the visible content, should the replay have led elsewhere.
    pub(super) fn reconcile(&mut self, now: &Content) -> Result<(), Unfitting> {
        let rest = Delta::between(&self.content(&self.active), now);
        self.perform(&rest, None)
    }

    /// The content that is visible now.
    #[cfg(test)]
    pub(super) fn present(&self) -> Content {
        self.content(&self.active)
    }

    fn perform(&mut self, delta: &Delta, by: By) -> Result<(), Unfitting> {
        for operation in &delta.operations {
            match (&mut self.document, operation) {
                (Past::Notebook(cells), operation) => cells.perform(operation, by, &self.active)?,
                (Past::Text(text), Operation::Text { splices }) => text.splice(splices, by, &self.active)?,
                (Past::Text(_), _) => return Err(Unfitting::new("it is one of a notebook")),
            }
        }
        Ok(())
    }

    fn content(&self, active: &[bool]) -> Content {
        match &self.document {
            Past::Notebook(cells) => cells.content(active),
            Past::Text(text) => Content::Text(text.text(active).into()),
        }
    }

    /// The delta from what is visible now to what would be so without some versions.
    pub(super) fn without(&self, undone: &HashSet<VersionId>) -> Delta {
        let mut undoes = self.undoes.clone();
        undoes.push(undone.iter().filter_map(|id| self.places.get(id).copied()).collect());
        let then = active(&undoes);
        let past = |cell: Option<&str>| match (&self.document, cell) {
            (Past::Notebook(cells), Some(cell)) => cells.source(cell),
            (Past::Text(text), None) => Some(text),
            _ => None,
        };
        between_with(&self.content(&self.active), &self.content(&then), |cell, _, _| {
            past(cell)
                .map(|text| text.splices(&self.active, &then))
                .unwrap_or_default()
        })
    }
}
