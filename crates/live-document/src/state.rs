//! What a room consists of: the document, who is in it, and what waits to be sent.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use jupyter_client::DocPath;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    RoomKind, RoomStatus,
    awareness::Awareness,
    disk::FileSeen,
    document::{Discarded, Document, merge},
    people::Names,
    readings::Readings,
    whereabouts::Whereabouts,
    wire::Message,
};
use crate::Host;

/// How long changes are made to pause. The server waits for a second without any, and then writes for a while.
const PAUSE: Duration = Duration::from_secs(2);
/// By then the server has saved a change, if somebody wants that and no other changes kept it from doing so.
const SAVED_BY_THEN: Duration = Duration::from_millis(1500);
/// After so long without a change the server saves by itself.
const QUIET: Duration = Duration::from_secs(1);
/// By then the server has saved, or it is not known that it did.
const OVERDUE: Duration = Duration::from_secs(3);
/// Edits that the server has not taken yet; beyond it callers are told to wait.
const MAX_OUTBOX_BYTES: usize = 64 * 1024 * 1024;
/// How long after its announcement a document is overwritten at the latest.
const OVERWRITTEN_WITHIN: Duration = Duration::from_secs(5);
/// Edits that are gone and not told yet; nobody need ask for them.
const MAX_DISCARDED: usize = 256;

pub(super) struct Shared {
    pub(super) server: Arc<Host>,
    pub(super) kind: RoomKind,
    pub(super) session_id: String,
    /// When the file was made, as Jupyter says it.
    pub(super) created: Option<String>,
    pub(super) state: RwLock<State>,
    pub(super) status: watch::Sender<RoomStatus>,
    /// Rung when there is something to send.
    pub(super) bell: Notify,
    /// Rung when the room must be joined anew.
    pub(super) moved: Notify,
    /// Rung when somebody needs on disk what is in the document.
    pub(super) save: Notify,
    pub(super) file: Mutex<FileSeen>,
    pub(super) closing: CancellationToken,
    /// How long agents are shown after the last time they did something here.
    pub(super) presence: Duration,
    pub(super) whereabouts: Mutex<Whereabouts>,
    /// Locked after the state, where both are.
    pub(super) readings: Arc<Mutex<Readings>>,
}

pub(super) struct State {
    pub(super) document: Document,
    pub(super) awareness: Awareness,
    pub(super) names: Names,
    pub(super) path: DocPath,
    /// The path that the document itself named last.
    pub(super) said_path: Option<String>,
    pub(super) file_id: String,
    /// Names the server's process; another one after a reconnection means that it was restarted.
    pub(super) server_session: String,
    /// Counts the documents that the server has come back with.
    pub(super) incarnation: u64,
    outbox: Vec<Vec<u8>>,
    /// Changes of the document, which are sent when it is the room's turn.
    changes: Vec<Change>,
    outbox_bytes: usize,
    /// Something of ours is not on disk yet.
    pub(super) unsaved: bool,
    unsaved_since: Instant,
    /// Whether the server was known to save by itself whenever something was changed that is not on disk yet.
    entrusted: bool,
    /// Whether the server can write the file.
    pub(super) writable: bool,
    /// Until when changes were made to pause.
    pause: Option<Instant>,
    /// When Jupyter said that it makes the document the same as the file.
    overwritten: Option<Instant>,
    /// Counts what was learned of the file: that it was written, or taken over.
    pub(super) file_news: watch::Sender<u64>,
    /// Edits that were lost by that, and are still to be told to who made them.
    discarded: Vec<Discarded>,
}

/// A change that waits to be sent.
struct Change {
    update: Vec<u8>,
    origin: Origin,
}

/// Where a change comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Somebody waits until the server has it.
    Caller,
    Run,
    /// It shows a run from its beginning to its end, so that JupyterLab understands it together with others of the kind.
    WholeRun,
}

impl Shared {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn readings(&self) -> MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn path(&self) -> String {
        self.read().path.to_string()
    }
}

impl State {
    pub(super) fn new(document: Document, path: DocPath, file_id: String, server_session: String) -> Self {
        Self {
            said_path: document.path(),
            document,
            awareness: Awareness::default(),
            names: Names::default(),
            path,
            file_id,
            server_session,
            incarnation: 0,
            outbox: Vec::new(),
            changes: Vec::new(),
            outbox_bytes: 0,
            unsaved: false,
            unsaved_since: Instant::now(),
            entrusted: false,
            writable: true,
            pause: None,
            overwritten: None,
            file_news: watch::Sender::new(0),
            discarded: Vec::new(),
        }
    }

    /// Jupyter makes the document the same as the file, or has just done so.
    pub(super) fn is_overwritten(&mut self) {
        self.overwritten = Some(Instant::now());
        self.note_discarded();
        self.note_file();
    }

    /// Whether Jupyter has said so since then.
    pub(super) fn was_overwritten_since(&self, since: Instant) -> bool {
        self.overwritten.is_some_and(|at| at >= since)
    }

    /// Tells those who wait that something was learned of the file.
    pub(super) fn note_file(&self) {
        self.file_news.send_modify(|count| *count += 1);
    }

    /// Looks for edits that are gone with an overwriting that may still be under way.
    pub(super) fn note_discarded(&mut self) {
        if self
            .overwritten
            .is_none_or(|since| since.elapsed() > OVERWRITTEN_WITHIN)
        {
            return;
        }
        for discarded in self.document.take_discarded() {
            tracing::warn!(path = %self.path, author = %discarded.author, "the file was overwritten before an edit was saved");
            if self.discarded.len() < MAX_DISCARDED && !self.discarded.contains(&discarded) {
                self.discarded.push(discarded);
            }
        }
    }

    /// What the author is to be told of edits that are gone.
    pub(super) fn take_discarded_of(&mut self, author: &str) -> Vec<String> {
        let own = self.discarded.extract_if(.., |discarded| *discarded.author == *author);
        own.map(|discarded| discarded.subject.to_string()).collect()
    }

    pub(super) fn has_discarded_of(&self, author: &str) -> bool {
        self.discarded.iter().any(|discarded| *discarded.author == *author)
    }

    /// Removes cells that a restart of the server has left twice.
    pub(super) fn remove_doubles(&mut self) {
        if let Some(applied) = self.document.remove_doubles() {
            tracing::info!(path = %self.path, "removed cells that a restart of Jupyter had duplicated");
            self.changed(applied.update, Origin::Caller);
        }
    }

    /// Gives cells back the ids that Jupyter took from them.
    pub(super) fn restore_ids(&mut self) {
        if let Some(applied) = self.document.restore_ids() {
            tracing::info!(path = %self.path, "restored the id of a cell that Jupyter had changed");
            self.changed(applied.update, Origin::Caller);
        }
    }

    /// Notes a change of ours, which goes out next.
    pub(super) fn changed(&mut self, update: Vec<u8>, origin: Origin) {
        self.is_to_be_saved();
        self.send_change(update, origin);
        self.show_unsaved();
    }

    pub(super) fn send_change(&mut self, update: Vec<u8>, origin: Origin) {
        self.outbox_bytes += update.len();
        self.changes.push(Change { update, origin });
    }

    /// Shows people who do the saving themselves that there is something to save, before they close the document.
    pub(super) fn show_unsaved(&mut self) {
        if self.unsaved
            && self.awareness.autosave() == Some(false)
            && let Some(applied) = self.document.mark_dirty()
        {
            self.send_change(applied.update, Origin::Caller);
        }
    }

    /// Notes that something of ours is not on disk yet.
    pub(super) fn is_to_be_saved(&mut self) {
        let entrusted = self.awareness.server_saves();
        if std::mem::replace(&mut self.unsaved, true) {
            self.entrusted &= entrusted;
        } else {
            self.unsaved_since = Instant::now();
            self.entrusted = entrusted;
        }
        self.awareness.edited();
    }

    /// Whether something of ours may be written to disk, but it is not known yet if people want that.
    pub(super) fn may_want_saving(&self) -> bool {
        self.unsaved && self.awareness.autosave().is_none()
    }

    /// Has changes pause, once, if it is still not known whether people want them saved: the server shows it only when
    /// nothing changes for a second, which may never be.
    pub(super) fn pause(&mut self) {
        if self.pause.is_none() && self.is_kept_waiting() && self.may_want_saving() {
            self.pause = Some(Instant::now() + PAUSE);
        }
    }

    /// Whether the server should have saved by itself, and does not: changes keep coming, or something else is wrong.
    pub(super) fn is_kept_waiting(&self) -> bool {
        let since = self.unsaved_since.elapsed();
        since >= SAVED_BY_THEN && !self.is_quiet() || since >= OVERDUE
    }

    /// Whether people do the saving, and a save that ends now has everything.
    pub(super) fn is_saved_by_hand(&self) -> bool {
        self.unsaved && self.awareness.autosave() == Some(false) && self.unchanged_for() >= OVERDUE
    }

    /// Whether nothing has changed for so long that the server saves by itself, if it does.
    pub(super) fn is_quiet(&self) -> bool {
        self.unchanged_for() >= QUIET
    }

    pub(super) fn unchanged_for(&self) -> Duration {
        self.document.changed.borrow().elapsed().unwrap_or_default()
    }

    /// Whether the server saves, by itself and later than it was made, every change that is not on disk yet.
    pub(super) fn is_entrusted(&self) -> bool {
        self.unsaved && self.entrusted
    }

    pub(super) fn end_pause(&mut self) {
        self.pause = Some(Instant::now());
    }

    /// When changes may be sent again, if they may not now.
    pub(super) fn paused_until(&self) -> Option<Instant> {
        let is_paused = |until: &Instant| *until > Instant::now() && self.may_want_saving();
        self.pause.filter(is_paused)
    }

    /// When something may be sent that may not be sent now.
    pub(super) fn waits_until(&self) -> Option<Instant> {
        let presence = self.awareness.due_at().map(Instant::from_std);
        self.paused_until().into_iter().chain(presence).min()
    }

    /// Whether something of ours is to be written to disk, and nobody minds.
    pub(super) fn wants_saving(&self) -> bool {
        self.unsaved && self.awareness.autosave() == Some(true)
    }

    /// Whether the server is too far behind to be given more.
    pub(super) fn is_full(&self) -> bool {
        self.outbox_bytes > MAX_OUTBOX_BYTES
    }

    pub(super) fn send(&mut self, message: &Message) {
        let frame = message.encode();
        self.outbox_bytes += frame.len();
        self.outbox.push(frame);
    }

    /// What can be sent at any time, presences that are due included.
    pub(super) fn take_outbox(&mut self) -> Vec<Vec<u8>> {
        let due = self.awareness.due();
        if !due.is_empty() {
            self.send(&Message::Awareness(due));
        }
        let outbox = std::mem::take(&mut self.outbox);
        self.outbox_bytes -= outbox.iter().map(Vec::len).sum::<usize>();
        outbox
    }

    /// Whether there are changes to be sent, which do not pause.
    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty() && self.paused_until().is_none()
    }

    /// Whether somebody waits for the server to have them.
    pub(super) fn is_urgent(&self) -> bool {
        self.changes.iter().any(|change| change.origin == Origin::Caller)
    }

    /// Whether what was put out before is still to be sent.
    pub(super) fn is_in_line(&self) -> bool {
        !self.changes.is_empty()
    }

    pub(super) fn take_changes(&mut self) -> Vec<Vec<u8>> {
        if self.paused_until().is_some() {
            return Vec::new();
        }
        let mut changes = std::mem::take(&mut self.changes);
        self.outbox_bytes -= changes.iter().map(|change| change.update.len()).sum::<usize>();
        let withdrawn = match changes.is_empty() {
            true => Vec::new(),
            false => self.awareness.withdraw(),
        };
        let farewell = (!withdrawn.is_empty()).then(|| Message::Awareness(withdrawn).encode());
        let alike = changes.chunk_by_mut(|one, next| [one.origin, next.origin] == [Origin::WholeRun; 2]);
        farewell.into_iter().chain(alike.flat_map(frames)).collect()
    }

    /// Everything, where no turn is waited for.
    pub(super) fn take_all(&mut self) -> Vec<Vec<u8>> {
        let mut all = self.take_outbox();
        all.append(&mut self.take_changes());
        all
    }

    /// Drops what was to be sent on a connection that is gone; synchronising sends it again.
    pub(super) fn clear_outbox(&mut self) {
        self.outbox.clear();
        self.changes.clear();
        self.outbox_bytes = 0;
    }
}

/// Runs that were over before their turn came are sent as one change: each costs the server as much as running them.
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
    use crate::{CellKind, CellWrite, Edit, NewCell, OutputsChange, RunEnd};

    #[test]
    fn changes_pause_once_and_only_while_it_is_unknown_what_people_want() {
        let path = DocPath::parse("a.md").expect("a path");
        let mut state = State::new(Document::new(RoomKind::Text), path, String::new(), String::new());
        state.pause();
        assert!(state.paused_until().is_none(), "there is nothing to save");
        state.changed(vec![1], Origin::Caller);
        state.pause();
        assert!(state.paused_until().is_none(), "the server may be about to save it");
        state.unsaved_since = Instant::now().checked_sub(SAVED_BY_THEN).expect("a clock");
        state.pause();
        assert!(state.take_changes().is_empty());
        state.awareness.saved();
        assert_eq!(state.take_changes().len(), 1, "the server has shown it");

        state.awareness = Awareness::default();
        state.changed(vec![2], Origin::Caller);
        state.end_pause();
        state.pause();
        assert_eq!(state.take_changes().len(), 1, "not a second time");
    }

    #[test]
    fn runs_that_wait_for_their_turn_are_sent_as_one() {
        let path = DocPath::parse("a.ipynb").expect("a path");
        let mut state = State::new(Document::new(RoomKind::Notebook), path, String::new(), String::new());
        let mut server = Document::new(RoomKind::Notebook);
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
