//! Edits that the server may lose: kept until they are saved, and done again in a document that the
//! server has rebuilt, wherever they still make sense.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use serde_json::Value;

use super::{
    document::{Discarded, Document, Snapshot},
    edit::NewCell,
};

/// More unsaved edits than this are not remembered; a server saves every second.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Edit in enough detail to repeat it, or to tell that it is gone.
#[derive(Debug, Clone)]
pub(crate) enum JournaledEdit {
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
    /// Cells put behind one and before another.
    Moved {
        after: Option<String>,
        before: Option<String>,
        cells: Vec<String>,
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

/// Subject of an edit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
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
pub(crate) struct Entry {
    pub(crate) number: u64,
    /// Author, if known.
    pub(crate) author: Option<Arc<str>>,
    pub(crate) done: JournaledEdit,
    /// The cells of it that somebody else removed. They must not come back.
    pub(crate) removed: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct EditJournal {
    entries: VecDeque<Entry>,
    bytes: usize,
    next: u64,
    /// Author of the next entries.
    author: Option<Arc<str>>,
    /// The latest edit of each author that is not saved yet, also if it is too large to be remembered.
    unsaved: HashMap<Arc<str>, u64>,
}

/// Result of repeating unsaved edits in the document that the server came back with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplayOutcome {
    pub(crate) repeated: usize,
    /// Edits that were not repeated, since somebody changed what they were about.
    pub(crate) conflicting: usize,
    /// Those of them whose author is known.
    pub(crate) discarded: Vec<Discarded>,
}

impl EditJournal {
    /// Sets the author of the edits that follow.
    pub(crate) fn set_author(&mut self, author: Option<&Arc<str>>) {
        self.author = author.cloned();
    }

    pub(crate) fn inserted(&mut self, after: Option<String>, before: Option<String>, cells: &[NewCell]) {
        self.push(JournaledEdit::Inserted {
            after,
            before,
            cells: cells.to_vec(),
        });
    }

    pub(crate) fn changed(&mut self, cell: &str, old: &str, new: &str) {
        self.push(JournaledEdit::Changed {
            cell: cell.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        });
    }

    pub(crate) fn deleted(&mut self, cell: &str, source: &str) {
        self.push(JournaledEdit::Deleted {
            cell: cell.to_owned(),
            source: source.to_owned(),
        });
    }

    pub(crate) fn moved(&mut self, after: Option<String>, before: Option<String>, cells: &[String]) {
        self.push(JournaledEdit::Moved {
            after,
            before,
            cells: cells.to_vec(),
        });
    }

    pub(crate) fn text_changed(&mut self, old: &str, new: &str) {
        self.push(JournaledEdit::TextChanged {
            old: old.to_owned(),
            new: new.to_owned(),
        });
    }

    pub(crate) fn metadata_changed(&mut self, old: Value, new: Value) {
        self.push(JournaledEdit::MetadataChanged { old, new });
    }

    /// The place in the journal up to which a save that is asked for now will have everything.
    pub(crate) fn mark(&self) -> u64 {
        self.next
    }

    pub(crate) fn has_unsaved_of(&self, author: &str) -> bool {
        self.unsaved.contains_key(author)
    }

    pub(crate) fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    pub(crate) fn saved_up_to(&mut self, mark: u64) {
        self.unsaved.retain(|_, number| *number >= mark);
        while self.entries.front().is_some_and(|entry| entry.number < mark) {
            if let Some(entry) = self.entries.pop_front() {
                self.bytes -= entry.done.size();
            }
        }
    }

    /// Unsaved edits, the latest first.
    pub(crate) fn latest_first(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().rev()
    }

    /// Drops all edits of a subject that is gone.
    pub(crate) fn discard(&mut self, gone: &HashSet<Subject>) {
        let is_gone = |cell: &str| gone.contains(&Subject::Cell(cell.to_owned()));
        self.entries.retain_mut(|entry| {
            entry.removed.retain(|cell| !is_gone(cell));
            match &mut entry.done {
                JournaledEdit::Inserted { cells, .. } => {
                    cells.retain(|cell| !is_gone(&cell.id));
                    !cells.is_empty() || !entry.removed.is_empty()
                }
                JournaledEdit::Changed { cell, .. } | JournaledEdit::Deleted { cell, .. } => !is_gone(cell),
                JournaledEdit::Moved { .. } => true,
                JournaledEdit::TextChanged { .. } => !gone.contains(&Subject::Text),
                JournaledEdit::MetadataChanged { .. } => !gone.contains(&Subject::Metadata),
            }
        });
        self.bytes = self.entries.iter().map(|entry| entry.done.size()).sum();
    }

    /// Records that the authors of some edits were told that these are gone. What the edits did is still needed to tell
    /// whose work stands where they were.
    pub(crate) fn mark_told(&mut self, numbers: &HashSet<u64>) {
        for entry in self.entries.iter_mut().filter(|entry| numbers.contains(&entry.number)) {
            entry.author = None;
        }
    }

    /// Sources and text before and after each edit, by subject.
    pub(crate) fn texts(&self) -> HashMap<Subject, Vec<(&str, &str)>> {
        let mut all: HashMap<Subject, Vec<(&str, &str)>> = HashMap::new();
        for entry in &self.entries {
            if let (Some(subject), Some(texts)) = (entry.done.subject(), entry.done.texts()) {
                all.entry(subject).or_default().push(texts);
            }
        }
        all
    }

    /// Cells that were deleted, with what they held.
    pub(crate) fn deletions(&self) -> impl Iterator<Item = (&str, &String)> {
        self.entries.iter().filter_map(|entry| match &entry.done {
            JournaledEdit::Deleted { cell, source } => Some((cell.as_str(), source)),
            _ => None,
        })
    }

    /// Drops the edits of a cell that somebody else removed: it must not come back.
    pub(crate) fn forget(&mut self, removed: &str) {
        for entry in &mut self.entries {
            let is_about_it = match &mut entry.done {
                JournaledEdit::Inserted { cells, .. } => {
                    let dropped: usize = cells
                        .extract_if(.., |cell| cell.id == removed)
                        .map(|cell| size_of(&cell))
                        .sum();
                    self.bytes -= dropped;
                    dropped > 0
                }
                JournaledEdit::Changed { cell, .. } => cell == removed,
                JournaledEdit::Deleted { .. }
                | JournaledEdit::Moved { .. }
                | JournaledEdit::TextChanged { .. }
                | JournaledEdit::MetadataChanged { .. } => false,
            };
            if is_about_it {
                entry.removed.push(removed.to_owned());
            }
        }
    }

    fn push(&mut self, done: JournaledEdit) {
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

impl JournaledEdit {
    /// The source or text before and after it, if it changed one.
    pub(crate) fn texts(&self) -> Option<(&str, &str)> {
        match self {
            Self::Changed { old, new, .. } | Self::TextChanged { old, new } => Some((old, new)),
            Self::Inserted { .. } | Self::Deleted { .. } | Self::Moved { .. } | Self::MetadataChanged { .. } => None,
        }
    }

    /// The source or text that it left.
    pub(crate) fn text_after(&self, subject: &Subject) -> Option<&str> {
        match (self, subject) {
            (Self::Inserted { cells, .. }, Subject::Cell(id)) => cells
                .iter()
                .find(|cell| cell.id == *id)
                .map(|cell| cell.source.as_str()),
            _ => self.texts().map(|(_, new)| new),
        }
    }

    /// Subject that it changed, if that was there before.
    fn subject(&self) -> Option<Subject> {
        match self {
            Self::Changed { cell, .. } | Self::Deleted { cell, .. } => Some(Subject::Cell(cell.clone())),
            Self::TextChanged { .. } => Some(Subject::Text),
            Self::MetadataChanged { .. } => Some(Subject::Metadata),
            Self::Inserted { .. } | Self::Moved { .. } => None,
        }
    }

    fn size(&self) -> usize {
        match self {
            Self::Inserted { cells, .. } => cells.iter().map(size_of).sum(),
            Self::Changed { old, new, .. } | Self::TextChanged { old, new } => old.len() + new.len(),
            Self::Deleted { source, .. } => source.len() + 50,
            Self::Moved { cells, .. } => cells.iter().map(String::len).sum::<usize>() + 50,
            Self::MetadataChanged { old, new } => old.to_string().len() + new.to_string().len(),
        }
    }
}

impl Document {
    /// Repeats unsaved edits, each only if what it was about is unchanged: texts are restored as they were before, and
    /// everything else is done again. Each is a transaction of its own, because a later one may be about what an earlier one
    /// makes. `theirs` is the server's document if this one was merged with it.
    pub(crate) fn repeat(&mut self, journal: EditJournal, before: &Snapshot, theirs: Option<&Self>) -> ReplayOutcome {
        let mut restored = self.restore_changed(&journal, before, theirs);
        let mut outcome = ReplayOutcome::default();
        for Entry {
            author,
            mut done,
            removed,
            ..
        } in journal.entries
        {
            if matches!(&done, JournaledEdit::Changed { cell, .. } if removed.contains(cell)) {
                continue;
            }
            self.journal.set_author(author.as_ref());
            if done.texts().is_some() && done.subject().is_some_and(|subject| restored.contains(&subject)) {
                self.journal.push(done);
                outcome.repeated += 1;
                continue;
            }
            restored.extend(self.catch_up(&mut done, before));
            let mut is_repeated = None;
            self.redo(|document, txn| is_repeated = document.repeat_one(txn, &done));
            match is_repeated {
                Some(true) => outcome.repeated += 1,
                Some(false) => {
                    outcome.conflicting += 1;
                    let discarded = author.zip(done.subject());
                    outcome
                        .discarded
                        .extend(discarded.map(|(author, subject)| Discarded { author, subject }));
                }
                // There already, but perhaps not on disk yet.
                None => self.journal.push(done),
            }
        }
        outcome
    }

    /// Gives cells that are to be inserted again what they held last, and returns which ones that are.
    fn catch_up(&self, done: &mut JournaledEdit, before: &Snapshot) -> Vec<Subject> {
        let JournaledEdit::Inserted { cells, .. } = done else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        for cell in cells.iter_mut().filter(|cell| self.position_of(&cell.id).is_none()) {
            let subject = Subject::Cell(cell.id.clone());
            if let Some(source) = before.text_of(&subject) {
                source.clone_into(&mut cell.source);
                changed.push(subject);
            }
        }
        changed
    }

    /// Repeats an edit: true if applied, false if it conflicts with the text now, `None` if it is there already.
    fn repeat_one(&mut self, txn: &mut yrs::TransactionMut<'_>, done: &JournaledEdit) -> Option<bool> {
        match done {
            JournaledEdit::Inserted { after, before, cells } => {
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
            JournaledEdit::Changed { cell, old, new } => {
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
            JournaledEdit::Deleted { cell, source } => {
                let now = self.source_in(txn, cell)?;
                let same = now == *source;
                if same {
                    self.delete(txn, std::slice::from_ref(cell));
                }
                Some(same)
            }
            JournaledEdit::Moved { after, before, cells } => {
                self.repeat_move(txn, (after.as_deref(), before.as_deref()), cells)
            }
            JournaledEdit::TextChanged { old, new } => self.repeat_text(txn, old, new),
            JournaledEdit::MetadataChanged { old, new } => {
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
