//! State of a room: the document, who is in it, and what waits to be sent.

use std::time::Instant;

use jupyter_client::DocPath;
use tokio::sync::watch;

use super::{
    awareness::Awareness,
    document::{Discarded, Document, merge},
    life::Phase,
    people::Names,
    policy::{CHANGES_HELD_FOR, MAX_OUTBOX_BYTES, OVERWRITE_TIMEOUT, SAVE_OVERDUE, SaveStep, save_step},
    saving::Saving,
    versions::VersionOutlet,
    wire::Message,
};

/// Most lost edits that wait to be reported: their authors may never ask.
const MAX_DISCARDED: usize = 256;

pub(crate) struct State {
    pub(crate) document: Document,
    pub(crate) awareness: Awareness,
    pub(crate) names: Names,
    pub(crate) path: DocPath,
    /// Tells of its changes.
    pub(crate) paths: watch::Sender<DocPath>,
    /// The path that the document itself named last.
    pub(crate) said_path: Option<String>,
    pub(crate) file_id: String,
    /// Name of the server's process; another one after a reconnection means that it was restarted.
    pub(crate) server_session: String,
    /// Counts the documents that the server has come back with.
    pub(crate) incarnation: u64,
    outbox: Vec<Vec<u8>>,
    /// Changes of the document, in the order in which they were made.
    changes: Vec<Change>,
    outbox_bytes: usize,
    /// Our changes that are not on disk yet, if any.
    pub(crate) unsaved: Option<Unsaved>,
    pub(crate) saving: Saving,
    pub(crate) phase: Phase,
    /// Time until which changes are, or were, held back.
    held_until: Option<Instant>,
    /// True if the server can write the file.
    pub(crate) writable: bool,
    /// True if there is a file; a fork has none, and nothing of it is ever saved.
    pub(crate) has_file: bool,
    overwriting: Option<Overwriting>,
    /// Counts news of the file: that it was written, or loaded.
    pub(crate) file_news: watch::Sender<u64>,
    /// Edits that were lost by that, and are still to be told to who made them.
    discarded: Vec<Discarded>,
    /// The sink for its versions, if they are kept.
    pub(crate) history: Option<VersionOutlet>,
}

/// Jupyter's announcement that it makes the document the same as the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Overwriting {
    at: Instant,
    /// Jupyter was restarted before we had it. Whoever had it may bring it back at any time.
    is_interrupted: bool,
}

/// Changes of ours that are not on disk yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsaved {
    since: Instant,
    /// True if the server was known to save by itself at each of these changes.
    entrusted: bool,
}

/// Changes that wait to be sent, by urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Nothing,
    /// Runs that were over before they could be sent.
    WholeRuns,
    /// Outputs of runs.
    Outputs,
    /// Edits that a caller waits for.
    Edits,
}

/// A change that waits to be sent.
struct Change {
    update: Vec<u8>,
    origin: Origin,
}

/// Origin of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Somebody waits until the server has it.
    Caller,
    Run,
    /// It shows a run from its start to its end, so that JupyterLab understands it together with others of the kind.
    WholeRun,
}

impl State {
    pub(crate) fn new(document: Document, path: DocPath, file_id: String, server_session: String) -> Self {
        Self {
            said_path: document.path(),
            awareness: Awareness::new(document.clock().now()),
            phase: Phase::synced(document.clock().now()),
            document,
            names: Names::default(),
            paths: watch::Sender::new(path.clone()),
            path,
            file_id,
            server_session,
            incarnation: 0,
            outbox: Vec::new(),
            changes: Vec::new(),
            outbox_bytes: 0,
            unsaved: None,
            saving: Saving::default(),
            held_until: None,
            writable: true,
            has_file: true,
            overwriting: None,
            file_news: watch::Sender::new(0),
            discarded: Vec::new(),
            history: None,
        }
    }

    pub(crate) fn set_path(&mut self, path: DocPath) {
        if path != self.path {
            if let Some(history) = &self.history {
                history.sink.renamed(&history.document, &self.path, &path);
            }
            self.path.clone_from(&path);
            self.paths.send_replace(path);
        }
    }

    /// Sets the current time.
    pub(crate) fn set_now(&mut self, now: Instant) {
        self.document.set_now(now);
        self.awareness.set_now(now);
    }

    pub(crate) fn now(&self) -> Instant {
        self.document.clock().now()
    }

    /// Jupyter makes the document the same as the file, or has just done so.
    pub(crate) fn mark_overwritten(&mut self) {
        self.overwriting = Some(Overwriting {
            at: self.now(),
            is_interrupted: false,
        });
        let now = self.now();
        if let Some(recorder) = self.document.recorder_mut() {
            recorder.mark_overwritten(now);
        }
        self.note_discarded();
        self.note_file();
    }

    /// Returns whether Jupyter has announced an overwrite since then.
    pub(crate) fn was_overwritten_since(&self, since: Instant) -> bool {
        self.overwriting.is_some_and(|overwriting| overwriting.at >= since)
    }

    /// Wakes those who wait for news of the file.
    pub(crate) fn note_file(&self) {
        self.file_news.send_modify(|count| *count += 1);
    }

    /// Looks for edits that are gone with an overwriting while there was no connection, or just before.
    pub(crate) fn note_discarded_since(&mut self, last_received: Instant, is_restarted: bool) {
        let was_under_way = |overwriting: &Overwriting| overwriting.at + OVERWRITE_TIMEOUT >= last_received;
        if let Some(overwriting) = self.overwriting.filter(was_under_way) {
            self.overwriting = Some(Overwriting {
                at: self.now(),
                is_interrupted: overwriting.is_interrupted || is_restarted,
            });
            self.note_discarded();
        }
    }

    /// Looks for edits that are gone with an overwriting that may still be under way.
    pub(crate) fn note_discarded(&mut self) {
        let may_be_under_way = |overwriting: Overwriting| {
            overwriting.is_interrupted || self.document.clock().since(overwriting.at) <= OVERWRITE_TIMEOUT
        };
        if self.overwriting.is_some_and(may_be_under_way) {
            let discarded = self.document.take_discarded();
            self.tell_discarded(discarded);
        }
    }

    /// Keeps edits that are gone until their authors are told.
    pub(super) fn tell_discarded(&mut self, all: Vec<Discarded>) {
        for discarded in all {
            tracing::warn!(path = %self.path, author = %discarded.author, "the file was overwritten before an edit was saved");
            if self.discarded.len() < MAX_DISCARDED && !self.discarded.contains(&discarded) {
                self.discarded.push(discarded);
            }
        }
    }

    /// Takes the lost edits of an author, to be reported.
    pub(crate) fn take_discarded_of(&mut self, author: &str) -> Vec<String> {
        let own = self.discarded.extract_if(.., |discarded| *discarded.author == *author);
        own.map(|discarded| discarded.subject.to_string()).collect()
    }

    pub(crate) fn has_discarded_of(&self, author: &str) -> bool {
        self.discarded.iter().any(|discarded| *discarded.author == *author)
    }

    /// Removes cells that a restart of the server has left twice.
    pub(crate) fn remove_duplicates(&mut self) {
        if let Some(applied) = self.document.remove_duplicates() {
            tracing::info!(path = %self.path, "removed cells that a restart of Jupyter had duplicated");
            self.changed(applied.update, Origin::Caller);
        }
    }

    /// Gives cells back the ids that Jupyter took from them.
    pub(crate) fn restore_ids(&mut self) {
        if let Some(applied) = self.document.restore_ids() {
            tracing::info!(path = %self.path, "restored the id of a cell that Jupyter had changed");
            self.changed(applied.update, Origin::Caller);
        }
    }

    /// Records a change of ours, which goes out next.
    pub(crate) fn changed(&mut self, update: Vec<u8>, origin: Origin) {
        self.mark_unsaved();
        self.send_change(update, origin);
        self.show_unsaved();
    }

    pub(crate) fn send_change(&mut self, update: Vec<u8>, origin: Origin) {
        self.outbox_bytes += update.len();
        self.changes.push(Change { update, origin });
    }

    /// Shows people who do the saving themselves that there is something to save, before they close the document.
    pub(crate) fn show_unsaved(&mut self) {
        if self.unsaved.is_some()
            && self.awareness.autosave() == Some(false)
            && let Some(applied) = self.document.mark_dirty()
        {
            self.send_change(applied.update, Origin::Caller);
        }
    }

    /// Records that something of ours is not on disk yet.
    pub(crate) fn mark_unsaved(&mut self) {
        if !self.has_file {
            let everything = self.document.journal.mark();
            self.document.journal.saved_up_to(everything);
            return;
        }
        let entrusted = self.awareness.server_saves();
        let unsaved = self.unsaved.unwrap_or(Unsaved {
            since: self.now(),
            entrusted,
        });
        self.unsaved = Some(Unsaved {
            entrusted: unsaved.entrusted && entrusted,
            ..unsaved
        });
        self.awareness.record_edit();
    }

    /// Returns whether changes of ours are unsaved, and it is not known yet if people want them saved.
    pub(crate) fn may_want_saving(&self) -> bool {
        self.unsaved.is_some() && self.awareness.autosave().is_none()
    }

    /// Holds changes back, once, if it is still not known whether people want them saved.
    pub(crate) fn hold_changes_once(&mut self) {
        if self.held_until.is_none() && self.save_step() == SaveStep::HoldChanges {
            self.held_until = Some(self.now() + CHANGES_HELD_FOR);
        }
    }

    /// Holds nothing back any more.
    pub(crate) fn release_changes(&mut self) {
        self.held_until = Some(self.now());
    }

    /// The time until which changes are held back, if they are.
    pub(crate) fn changes_held_until(&self) -> Option<Instant> {
        self.held_until
            .filter(|until| *until > self.now() && self.may_want_saving())
    }

    /// Next step about changes that are not on disk.
    pub(crate) fn save_step(&self) -> SaveStep {
        self.unsaved.map_or(SaveStep::Wait, |unsaved| {
            let unsaved_for = self.document.clock().since(unsaved.since);
            save_step(unsaved_for, self.document.unchanged_for(), self.awareness.autosave())
        })
    }

    /// Returns whether people save by hand, and a save that ends now has everything.
    pub(crate) fn is_saved_by_hand(&self) -> bool {
        self.unsaved.is_some()
            && self.awareness.autosave() == Some(false)
            && self.document.unchanged_for() >= SAVE_OVERDUE
    }

    /// Returns whether the server will save every unsaved change by itself.
    pub(crate) fn is_left_to_autosave(&self) -> bool {
        self.unsaved.is_some_and(|unsaved| unsaved.entrusted)
    }

    /// Returns whether changes of ours are to be saved, and people want that.
    pub(crate) fn needs_save(&self) -> bool {
        self.unsaved.is_some() && self.awareness.autosave() == Some(true)
    }

    /// Returns whether the server is too far behind to be sent more.
    pub(crate) fn is_full(&self) -> bool {
        self.outbox_bytes > MAX_OUTBOX_BYTES
    }

    pub(crate) fn send(&mut self, message: &Message) {
        let frame = message.encode();
        self.outbox_bytes += frame.len();
        self.outbox.push(frame);
    }

    /// Takes the messages that can be sent at any time, including due presences.
    pub(crate) fn take_outbox(&mut self) -> Vec<Vec<u8>> {
        let due = self.awareness.due();
        if !due.is_empty() {
            self.send(&Message::Awareness(due));
        }
        let outbox = std::mem::take(&mut self.outbox);
        self.outbox_bytes -= outbox.iter().map(Vec::len).sum::<usize>();
        outbox
    }

    /// Returns whether changes wait to be sent, held back or not.
    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Changes that may be sent now, by urgency.
    pub(crate) fn waiting(&self) -> Waiting {
        let is_edit = |change: &Change| change.origin == Origin::Caller;
        let is_whole_run = |change: &Change| change.origin == Origin::WholeRun;
        match self.changes.as_slice() {
            _ if self.changes_held_until().is_some() => Waiting::Nothing,
            [] => Waiting::Nothing,
            changes if changes.iter().any(is_edit) => Waiting::Edits,
            changes if changes.iter().all(is_whole_run) => Waiting::WholeRuns,
            _ => Waiting::Outputs,
        }
    }

    pub(crate) fn take_changes(&mut self) -> Vec<Vec<u8>> {
        if self.changes_held_until().is_some() {
            return Vec::new();
        }
        let mut changes = std::mem::take(&mut self.changes);
        self.outbox_bytes -= changes.iter().map(|change| change.update.len()).sum::<usize>();
        let withdrawn = match changes.is_empty() {
            true => Vec::new(),
            false => self.awareness.withdraw(),
        };
        let remove_all = (!withdrawn.is_empty()).then(|| Message::Awareness(withdrawn).encode());
        let alike = changes.chunk_by_mut(|one, next| [one.origin, next.origin] == [Origin::WholeRun; 2]);
        remove_all.into_iter().chain(alike.flat_map(frames)).collect()
    }

    /// Everything, without waiting for the throttle of outputs.
    pub(crate) fn take_all(&mut self) -> Vec<Vec<u8>> {
        let mut all = self.take_outbox();
        all.append(&mut self.take_changes());
        all
    }

    /// Drops what was to be sent on a connection that is gone; synchronising sends it again.
    pub(crate) fn clear_outbox(&mut self) {
        self.outbox.clear();
        self.changes.clear();
        self.outbox_bytes = 0;
    }
}

/// Runs that were over before they could be sent are sent as one change: each costs the server as much as running them.
fn frames(changes: &mut [Change]) -> Vec<Vec<u8>> {
    let frame = |update: Vec<u8>| Message::Update(update).encode();
    let merged = match changes {
        [_, _, ..] => merge(changes.iter().map(|change| &change.update)),
        _ => None,
    };
    match merged {
        Some(update) => vec![frame(update)],
        None => changes
            .iter_mut()
            .map(|change| frame(std::mem::take(&mut change.update)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::clock::Clock;
    use crate::{CellKind, CellWrite, Edit, NewCell, OutputsChange, RoomKind, RunEnd};

    #[test]
    fn changes_are_held_back_once_and_only_while_it_is_unknown_what_people_want() {
        let path = DocPath::parse("a.md").expect("a path");
        let document = Document::new(RoomKind::Text, Clock::default());
        let mut state = State::new(document, path, String::new(), String::new());
        state.hold_changes_once();
        assert!(state.changes_held_until().is_none(), "there is nothing to save");
        state.changed(vec![1], Origin::Caller);
        state.hold_changes_once();
        assert!(
            state.changes_held_until().is_none(),
            "the server may be about to save it"
        );
        state.set_now(state.now() + SAVE_OVERDUE);
        state.hold_changes_once();
        assert!(state.take_changes().is_empty() && state.waiting() == Waiting::Nothing);
        state.awareness.record_save();
        assert_eq!(state.take_changes().len(), 1, "the server has shown it");

        state.awareness = Awareness::new(state.now());
        state.changed(vec![2], Origin::Caller);
        state.release_changes();
        state.set_now(state.now() + SAVE_OVERDUE);
        state.hold_changes_once();
        assert_eq!(state.take_changes().len(), 1, "not a second time");
    }

    #[test]
    fn runs_that_wait_together_are_sent_as_one() {
        let path = DocPath::parse("a.ipynb").expect("a path");
        let mut state = State::new(
            Document::new(RoomKind::Notebook, Clock::default()),
            path,
            String::new(),
            String::new(),
        );
        let mut server = Document::new(RoomKind::Notebook, Clock::default());
        let (ana, cell) = ("ana".into(), NewCell::new(CellKind::Code, "1"));
        let id = cell.id.clone();
        let insert = [Edit::AppendCells { cells: vec![cell] }];
        let applied = state.document.apply_local(&ana, &insert).expect("valid");
        state.changed(applied.update, Origin::Caller);
        for count in 1..=3 {
            let output = json!({ "output_type": "stream", "name": "stdout", "text": count.to_string() });
            let run = CellWrite {
                begin: true,
                outputs: Some(OutputsChange {
                    push: vec![output],
                    ..OutputsChange::default()
                }),
                end: Some(RunEnd {
                    execution_count: Some(count),
                }),
            };
            let (applied, _) = state.document.write_cell(&ana, &id, &run).expect("a cell");
            state.changed(applied.update, Origin::WholeRun);
        }
        let frames = state.take_changes();
        assert_eq!((frames.len(), state.outbox_bytes), (2, 0), "the cell, and its runs");
        for frame in frames {
            let Ok(Some(Message::Update(update))) = Message::decode(&frame) else {
                panic!("an update");
            };
            let before = server.state_vector();
            server.apply_remote(&update).expect("it fits");
            state.document.apply_remote(&server.diff(&before)).expect("an echo");
        }
        assert!(state.document.acknowledgements.is_settled());
        let (_, shown) = server.cells([0]).remove(0);
        assert_eq!(shown.execution_count, 3);
        assert_eq!(shown.outputs.len(), 1);
        assert_eq!(server.cells([0]), state.document.cells([0]));
    }
}
