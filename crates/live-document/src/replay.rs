//! Edits that the server may lose: kept until they are saved, and done again in a document that the
//! server has rebuilt, wherever they still make sense.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::{
    document::{Applied, Document},
    edit::NewCell,
};

/// More unsaved edits than this are not remembered; a server saves every second.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What was done, in enough detail to do it again or to tell that it is gone.
#[derive(Debug, Clone)]
pub(super) enum Done {
    Inserted {
        after: Option<String>,
        before: Option<String>,
        cells: Vec<NewCell>,
    },
    Changed {
        cell: String,
        old: String,
        new: String,
    },
    Deleted {
        cell: String,
        source: String,
    },
    TextChanged {
        old: String,
        new: String,
    },
    MetadataChanged {
        old: Value,
        new: Value,
    },
}

/// What an edit is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Cell(String),
    Text,
    Metadata,
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cell(id) => write!(formatter, "cell {id}"),
            Self::Text => formatter.write_str("the text"),
            Self::Metadata => formatter.write_str("the metadata of the notebook"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    number: u64,
    /// Who did it, if that is known.
    pub(super) author: Option<Arc<str>>,
    pub(super) done: Done,
    /// The cells of it that somebody else removed. They must not come back.
    pub(super) removed: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: VecDeque<Entry>,
    bytes: usize,
    next: u64,
    /// Who does what is noted next.
    author: Option<Arc<str>>,
    /// The latest edit of each author that is not saved yet, also if it is too large to be remembered.
    unsaved: HashMap<Arc<str>, u64>,
}

/// How the unsaved edits fared in the new document.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) repeated: usize,
    /// Somebody changed what they were about.
    pub(super) conflicting: usize,
}

impl Journal {
    /// Whose edits are noted from now on.
    pub(super) fn is_written_by(&mut self, author: Option<&Arc<str>>) {
        self.author = author.cloned();
    }

    pub(super) fn inserted(&mut self, after: Option<String>, before: Option<String>, cells: &[NewCell]) {
        self.push(Done::Inserted {
            after,
            before,
            cells: cells.to_vec(),
        });
    }

    pub(super) fn changed(&mut self, cell: &str, old: &str, new: &str) {
        self.push(Done::Changed {
            cell: cell.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        });
    }

    pub(super) fn deleted(&mut self, cell: &str, source: &str) {
        self.push(Done::Deleted {
            cell: cell.to_owned(),
            source: source.to_owned(),
        });
    }

    pub(super) fn text_changed(&mut self, old: &str, new: &str) {
        self.push(Done::TextChanged {
            old: old.to_owned(),
            new: new.to_owned(),
        });
    }

    pub(super) fn metadata_changed(&mut self, old: Value, new: Value) {
        self.push(Done::MetadataChanged { old, new });
    }

    /// The place in the journal up to which a save that is asked for now will have everything.
    pub(super) fn mark(&self) -> u64 {
        self.next
    }

    pub(super) fn has_unsaved_of(&self, author: &str) -> bool {
        self.unsaved.contains_key(author)
    }

    pub(super) fn saved_up_to(&mut self, mark: u64) {
        self.unsaved.retain(|_, number| *number >= mark);
        while self.entries.front().is_some_and(|entry| entry.number < mark) {
            if let Some(entry) = self.entries.pop_front() {
                self.bytes -= entry.done.size();
            }
        }
    }

    /// What is not saved yet, the latest first.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().rev()
    }

    /// Drops all that was done to something: it is gone.
    pub(super) fn discard(&mut self, gone: &HashSet<Subject>) {
        let is_gone = |cell: &str| gone.contains(&Subject::Cell(cell.to_owned()));
        self.entries.retain_mut(|entry| {
            entry.removed.retain(|cell| !is_gone(cell));
            match &mut entry.done {
                Done::Inserted { cells, .. } => {
                    cells.retain(|cell| !is_gone(&cell.id));
                    !cells.is_empty() || !entry.removed.is_empty()
                }
                Done::Changed { cell, .. } | Done::Deleted { cell, .. } => !is_gone(cell),
                Done::TextChanged { .. } => !gone.contains(&Subject::Text),
                Done::MetadataChanged { .. } => !gone.contains(&Subject::Metadata),
            }
        });
        self.bytes = self.entries.iter().map(|entry| entry.done.size()).sum();
    }

    /// Cells that were deleted, with what they held.
    pub(super) fn deletions(&self) -> impl Iterator<Item = (&str, &String)> {
        self.entries.iter().filter_map(|entry| match &entry.done {
            Done::Deleted { cell, source } => Some((cell.as_str(), source)),
            _ => None,
        })
    }

    /// Drops what is about a cell that somebody else removed: it must not come back.
    pub(super) fn forget(&mut self, removed: &str) {
        for entry in &mut self.entries {
            let is_about_it = match &mut entry.done {
                Done::Inserted { cells, .. } => {
                    let dropped: usize = cells
                        .extract_if(.., |cell| cell.id == removed)
                        .map(|cell| size_of(&cell))
                        .sum();
                    self.bytes -= dropped;
                    dropped > 0
                }
                Done::Changed { cell, .. } => cell == removed,
                Done::Deleted { .. } | Done::TextChanged { .. } | Done::MetadataChanged { .. } => false,
            };
            if is_about_it {
                entry.removed.push(removed.to_owned());
            }
        }
    }

    fn push(&mut self, done: Done) {
        if let Some(author) = &self.author {
            self.unsaved.insert(Arc::clone(author), self.next);
        }
        self.bytes += done.size();
        self.entries.push_back(Entry {
            number: self.next,
            author: self.author.clone(),
            done,
            removed: Vec::new(),
        });
        self.next += 1;
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.done.size();
        }
    }
}

fn size_of(cell: &NewCell) -> usize {
    cell.source.len() + 100
}

impl Done {
    fn size(&self) -> usize {
        match self {
            Self::Inserted { cells, .. } => cells.iter().map(size_of).sum(),
            Self::Changed { old, new, .. } | Self::TextChanged { old, new } => old.len() + new.len(),
            Self::Deleted { source, .. } => source.len() + 50,
            Self::MetadataChanged { old, new } => old.to_string().len() + new.to_string().len(),
        }
    }
}

impl Document {
    /// Does the unsaved edits of an earlier document again, each only if what it was about is unchanged.
    /// Each is a transaction of its own, because a later one may be about what an earlier one makes.
    pub(super) fn repeat(&mut self, journal: Journal) -> (Outcome, Vec<Applied>) {
        let mut outcome = Outcome::default();
        let mut applied = Vec::new();
        for Entry {
            author, done, removed, ..
        } in journal.entries
        {
            if matches!(&done, Done::Changed { cell, .. } if removed.contains(cell)) {
                continue;
            }
            self.journal.is_written_by(author.as_ref());
            let mut fared = None;
            applied.push(self.redo(|document, txn| fared = document.repeat_one(txn, &done)));
            match fared {
                Some(true) => outcome.repeated += 1,
                Some(false) => outcome.conflicting += 1,
                // Here, but perhaps not on disk yet.
                None => self.journal.push(done),
            }
        }
        (outcome, applied)
    }

    /// Whether the edit was done again, conflicts with what stands there now, or (`None`) is there already.
    fn repeat_one(&mut self, txn: &mut yrs::TransactionMut<'_>, done: &Done) -> Option<bool> {
        match done {
            Done::Inserted { after, before, cells } => {
                let missing: Vec<NewCell> = cells
                    .iter()
                    .filter(|cell| self.position_of(&cell.id).is_none())
                    .cloned()
                    .collect();
                if missing.is_empty() {
                    return None;
                }
                let behind = after
                    .as_ref()
                    .and_then(|id| self.position_of(id))
                    .map(|position| position + 1);
                let ahead = before.as_ref().and_then(|id| self.position_of(id));
                let at = behind.or(ahead).unwrap_or_else(|| self.cell_count());
                self.insert(txn, at, &missing);
                Some(true)
            }
            Done::Changed { cell, old, new } => {
                let now = self.source_in(txn, cell)?;
                if now == *new {
                    return None;
                }
                let same = now == *old;
                if same {
                    self.set_source(txn, cell, new);
                }
                Some(same)
            }
            Done::Deleted { cell, source } => {
                let now = self.source_in(txn, cell)?;
                let same = now == *source;
                if same {
                    self.delete(txn, std::slice::from_ref(cell));
                }
                Some(same)
            }
            Done::TextChanged { old, new } => self.repeat_text(txn, old, new),
            Done::MetadataChanged { old, new } => {
                let now = self.metadata_in(txn);
                if now == *new {
                    return None;
                }
                let same = now == *old;
                if same {
                    self.set_metadata(txn, new);
                }
                Some(same)
            }
        }
    }
}
