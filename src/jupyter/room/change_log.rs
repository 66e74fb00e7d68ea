//! Who changed what, and when: enough to tell whether something was changed by somebody else since a
//! caller looked at it.

use std::{collections::HashMap, sync::Arc};

/// Who made a change: a principal of the gateway, or anybody else in the room.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Author {
    Local(Arc<str>),
    Others,
}

#[derive(Debug)]
pub(super) struct ChangeLog {
    /// Tells the revisions of this incarnation of the document from those of another.
    epoch: String,
    revision: u64,
    cells: HashMap<Arc<str>, (u64, Author)>,
    /// When each author last moved cells, or changed the text of a plain document.
    whole: HashMap<Author, u64>,
}

impl ChangeLog {
    pub(super) fn new() -> Self {
        let epoch = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        Self {
            epoch,
            revision: 0,
            cells: HashMap::new(),
            whole: HashMap::new(),
        }
    }

    /// The revision as callers see it.
    pub(super) fn revision(&self) -> String {
        format!("{}-{}", self.epoch, self.revision)
    }

    pub(super) fn parse(&self, given: &str) -> Option<u64> {
        let (epoch, number) = given.split_once('-')?;
        number
            .parse()
            .ok()
            .filter(|number| epoch == self.epoch && *number <= self.revision)
    }

    /// Starts a new revision, to which the following notes belong.
    pub(super) fn advance(&mut self) {
        self.revision += 1;
    }

    pub(super) fn cell_changed(&mut self, cell: &Arc<str>, author: &Author) {
        self.cells.insert(Arc::clone(cell), (self.revision, author.clone()));
    }

    pub(super) fn cell_removed(&mut self, cell: &str) {
        self.cells.remove(cell);
    }

    pub(super) fn whole_changed(&mut self, author: &Author) {
        self.whole.insert(author.clone(), self.revision);
    }

    /// Whether somebody other than `me` changed the cell after `since`.
    pub(super) fn cell_changed_by_others(&self, cell: &str, since: u64, me: &Author) -> bool {
        self.cells
            .get(cell)
            .is_some_and(|(revision, author)| *revision > since && author != me)
    }

    /// Whether somebody other than `me` moved cells, or changed the text, after `since`.
    pub(super) fn whole_changed_by_others(&self, since: u64, me: &Author) -> bool {
        self.whole
            .iter()
            .any(|(author, revision)| *revision > since && author != me)
    }
}
