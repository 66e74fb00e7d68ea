//! Who changed what, and when: enough to tell whether something was changed by somebody else since a
//! caller looked at it.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

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
    /// The latest moves: when, by whom, and the first position that means another cell since.
    moves: VecDeque<(u64, Author, usize)>,
    /// Moves up to here are forgotten.
    forgotten: u64,
}

/// How many moves are remembered; who knows an older order must look again.
const MAX_MOVES: usize = 256;

impl ChangeLog {
    pub(super) fn new() -> Self {
        let epoch = uuid::Uuid::new_v4().simple().to_string()[..8].to_owned();
        Self {
            epoch,
            revision: 0,
            cells: HashMap::new(),
            whole: HashMap::new(),
            moves: VecDeque::new(),
            forgotten: 0,
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

    /// Notes that positions from this one on mean other cells now.
    pub(super) fn moved(&mut self, author: &Author, first: usize) {
        self.moves.push_back((self.revision, author.clone(), first));
        if self.moves.len() > MAX_MOVES
            && let Some((revision, ..)) = self.moves.pop_front()
        {
            self.forgotten = revision;
        }
    }

    /// The first position that means another cell after `since`, because of somebody other than `me`.
    pub(super) fn moved_by_others(&self, since: u64, me: &Author) -> Option<usize> {
        if since < self.forgotten && self.whole_changed_by_others(since, me) {
            return Some(0);
        }
        let by_others = |(revision, author, _): &&(u64, Author, usize)| *revision > since && author != me;
        self.moves.iter().filter(by_others).map(|(.., first)| *first).min()
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
