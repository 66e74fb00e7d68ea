//! Makes versions of a document's changes: an edit of an agent is one, people's typing becomes one when they pause. No
//! I/O, and no clock but the one that it is told.
//!
//! It has the content as of the last version, and notes which cells were touched since; only those are compared. Of the
//! outputs it knows hashes. What runs write makes no version of its own: it rides along with the next one.
//!
//! | what is seen | author of the version | when it is made |
//! | --- | --- | --- |
//! | an edit of an agent | the agent; what people did before is a version first | once it is on its way, before anything else changes |
//! | changes by clients whose names are known | these people | after [`VERSION_QUIET`], at the latest after [`VERSION_LONGEST`] |
//! | something only taken away | the people who are there, unless the file was written from outside | the same |
//! | changes by others: the server, unknown clients | nobody known | after [`OUTSIDE_QUIET`] |
//! | another document after joining again | nobody known | at once |

mod carried;
mod guard;
mod people;
mod touched;

use std::{sync::Arc, time::Instant};

use history::{Author, Blob, Content, Delta, VersionId};

pub(super) use self::touched::{Parts, Touched};
use self::{carried::Carried, guard::Size, people::People};
use super::{
    history_sink::Loss,
    policy::{OUTSIDE_QUIET, OVERWRITE_TIMEOUT, VERSION_LONGEST, VERSION_QUIET},
};

/// Records the versions of one document.
pub(crate) struct Recorder {
    /// Content as of the last version.
    pub(super) content: Content,
    size: Size,
    /// The parts that may differ from it.
    pub(super) touched: Touched,
    /// Something else than outputs was touched by the transaction that is being noted.
    is_step_worth: bool,
    /// Outputs of runs that are known already, but in no version yet.
    carried: Carried,
    /// An edit of an agent that is in no version yet, with its label.
    pub(super) edit: Option<(Author, Label)>,
    /// Changes by others that are in no version yet.
    pending: Option<Pending>,
    /// The version that those changes would make, while something of others is applied.
    pub(super) prepared: Option<Prepared>,
    people: People,
    /// Time of the last write of the file from outside.
    overwritten: Option<Instant>,
    pub(super) mode: Mode,
    drafts: Vec<Draft>,
}

/// A version for the sink.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) author: Author,
    pub(crate) tool: Option<Arc<str>>,
    pub(crate) revision: String,
    pub(crate) undoes: Vec<VersionId>,
    pub(crate) delta: Delta,
    pub(crate) content: Content,
    pub(crate) size: usize,
    pub(crate) blobs: Vec<Blob>,
    pub(crate) loss: Option<Loss>,
}

/// Attribution of the changes of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Changes of others are theirs, those made here are of runs.
    Following,
    /// An agent edits, to take versions back if any are named.
    Editing { undoes: Vec<VersionId> },
    /// The document is being replaced; all of it is compared afterwards.
    Paused,
}

/// Changes by others.
#[derive(Debug, Default)]
struct Pending {
    /// Yjs clients that added something.
    clients: Vec<u64>,
    since: Option<Instant>,
    last: Option<Instant>,
}

/// The version that changes by others would make.
pub(super) struct Prepared {
    pub(super) delta: Delta,
    pub(super) blobs: Vec<Blob>,
    pub(super) content: Content,
    pub(super) revision: String,
}

/// Number of clients of one version that are remembered.
const MAX_CLIENTS: usize = 64;

impl Recorder {
    pub(crate) fn new(content: Content) -> Self {
        Self {
            size: Size::of(&content),
            content,
            touched: Touched::default(),
            is_step_worth: false,
            carried: Carried::default(),
            edit: None,
            pending: None,
            prepared: None,
            people: People::default(),
            overwritten: None,
            mode: Mode::Following,
            drafts: Vec::new(),
        }
    }

    /// The content as of the last version.
    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// Takes the versions that were not told yet.
    pub(crate) fn take_drafts(&mut self) -> Vec<Draft> {
        std::mem::take(&mut self.drafts)
    }

    /// Returns whether there is an edit to make a version of, or a version to tell.
    pub(crate) fn has_news(&self) -> bool {
        self.edit.is_some() || !self.drafts.is_empty()
    }

    pub(crate) fn people(&mut self) -> &mut People {
        &mut self.people
    }

    pub(crate) fn mark_overwritten(&mut self, now: Instant) {
        self.overwritten = Some(now);
    }

    /// The time at which a version of others' changes is due.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let pending = self.pending.as_ref()?;
        let quiet = match self.author_of(pending) {
            Author::Outside => OUTSIDE_QUIET,
            Author::People { .. } | Author::Agent { .. } => VERSION_QUIET,
        };
        Some((pending.last? + quiet).min(pending.since? + VERSION_LONGEST))
    }

    /// Records that cells came, went or moved, or that the text was changed.
    pub(super) fn touch_whole(&mut self) {
        self.touched.whole = true;
        self.is_step_worth = true;
    }

    pub(super) fn touch_metadata(&mut self) {
        self.touched.metadata = true;
        self.is_step_worth = true;
    }

    pub(super) fn touch_cell(&mut self, cell: &Arc<str>, parts: Parts) {
        let by_edit = matches!(self.mode, Mode::Editing { .. });
        self.touched.add(cell, parts, by_edit);
        self.is_step_worth |= parts.content;
    }

    /// Records that others made the changes that were just recorded, if any.
    pub(super) fn note_remote(&mut self, clients: &[u64], now: Instant) {
        if !self.is_step_worth {
            return;
        }
        if let Some(prepared) = self.prepared.take()
            && let Some(author) = self.take_pending()
        {
            // What is still noted as touched is compared with this, too.
            self.content = prepared.content;
            let label = Label {
                revision: prepared.revision,
                ..Label::default()
            };
            self.push(author, prepared.delta, prepared.blobs, label);
        }
        self.note_others(clients, now);
    }

    /// Ends the record of one transaction.
    pub(super) fn end_step(&mut self) {
        self.is_step_worth = false;
        self.prepared = None;
    }

    /// Takes the authors of the changes by others that are in no version yet.
    pub(super) fn take_pending(&mut self) -> Option<Author> {
        let pending = self.pending.take()?;
        Some(self.author_of(&pending))
    }

    /// Continues after a pause in which anything may have happened.
    pub(super) fn resume(&mut self) {
        self.mode = Mode::Following;
        self.pending = None;
        self.touched = Touched::everything();
    }

    /// Records that others changed something.
    fn note_others(&mut self, clients: &[u64], now: Instant) {
        let pending = self.pending.get_or_insert_default();
        pending.since.get_or_insert(now);
        pending.last = Some(now);
        for client in clients {
            if pending.clients.len() < MAX_CLIENTS && !pending.clients.contains(client) {
                pending.clients.push(*client);
            }
        }
    }

    /// Returns whether a change by these clients belongs to another version than the pending one.
    pub(super) fn is_by_others_than_pending(&self, clients: &[u64], now: Instant) -> bool {
        let Some(pending) = &self.pending else { return false };
        let is_written_outside = || self.overwritten.is_some_and(|at| now <= at + OVERWRITE_TIMEOUT);
        let before = self.people.is_anybody_named(&pending.clients);
        match clients {
            // Only taken away: by whoever is at work.
            [] => before && is_written_outside(),
            _ => !pending.clients.is_empty() && self.people.is_anybody_named(clients) != before,
        }
    }

    fn author_of(&self, pending: &Pending) -> Author {
        let names = self.people.names_of(&pending.clients);
        let is_overwritten = || {
            let around = |at: Instant| pending.since.is_none_or(|since| at + OVERWRITE_TIMEOUT >= since);
            self.overwritten.is_some_and(around)
        };
        if !names.is_empty() {
            return Author::People { names };
        }
        match pending.clients.is_empty() && !is_overwritten() && self.people.is_anybody_here() {
            true => Author::People {
                names: self.people.only_one_here(),
            },
            false => Author::Outside,
        }
    }

    /// Adds a version for the sink, unless nothing changed.
    pub(super) fn push(&mut self, author: Author, delta: Delta, blobs: Vec<Blob>, label: Label) {
        if delta.is_only_runs() {
            return self.carried.keep(delta, blobs);
        }
        let (delta, blobs) = self.carried.release(delta, blobs);
        let before = self.size;
        self.size = before.after(&delta);
        self.drafts.push(Draft {
            loss: (author == Author::Outside).then(|| before.loss_to(self.size)).flatten(),
            author,
            tool: label.tool,
            revision: label.revision,
            undoes: label.undoes,
            delta,
            content: self.content.clone(),
            size: self.size.bytes,
            blobs,
        });
    }
}

/// Tool and revision of a version, and the versions that it takes back.
#[derive(Debug, Default)]
pub(super) struct Label {
    pub(super) tool: Option<Arc<str>>,
    pub(super) revision: String,
    pub(super) undoes: Vec<VersionId>,
}

#[cfg(test)]
mod costs;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
