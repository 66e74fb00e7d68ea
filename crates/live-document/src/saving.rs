//! When to ask the server to write to disk, and what is known to be there. It saves by itself after a
//! second without changes, but never while changes keep coming. Does no I/O.
//!
//! Its "success" alone proves nothing: a save that another change overtook is given up and answered so
//! too. What does is the hash it then notes in the document; any noted after the answer is of a save
//! that began after the request.
//!
//! Where the server saves by itself, a change puts an end to a save under way, which is then not noted; so there a
//! note that comes after a change is of a save that has it, whoever asked for that save. A save that is just about to end
//! is noted all the same; of a text the hash tells that from the others.
//!
//! Where people save by hand, a note says that a change is on disk if the change was made long before it.
//!
//! Servers before jupyter-collaboration 4 know no such requests. They note a hash only if nothing changed
//! while they wrote, so there a note alone says that everything they have is on disk.

use std::time::{Duration, Instant};

use super::{
    RoomKind,
    disk::sha256,
    document::Document,
    state::State,
    wire::{SaveStatus, save_request},
};

/// A request that was passed over so long ago is not answered any more. A server that has just begun with another save
/// can forget to.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15);
/// A server that is kept from saving is asked after so many times as long as it took the last time, but soon enough: to
/// write a notebook costs it as much as to run some dozens of small cells, which would have to wait for it.
const WORTH: u32 = 20;
const MAX_PAUSE: Duration = Duration::from_secs(12);

#[derive(Default)]
pub(super) struct Saving {
    last_request: u64,
    /// The request under way, and the place in the journal up to which the server had everything then.
    asked: Option<(u64, u64)>,
    asked_at: Option<Instant>,
    /// How long the last save took until it was answered.
    took: Duration,
    /// The place in the journal that the next save must cover.
    answered: Option<u64>,
    /// The place in the journal up to which the server had everything when it noted a save.
    noted: Option<u64>,
    /// Whether the server has passed over a request.
    is_deaf: bool,
    failed: bool,
    /// Nothing is asked for before this.
    not_before: Option<Instant>,
}

impl Saving {
    /// One that asks for nothing before a moment.
    pub(super) fn not_before(moment: Option<Instant>) -> Self {
        Self {
            not_before: moment,
            ..Self::default()
        }
    }

    fn may_ask(&self) -> bool {
        let is_forgotten = self.is_deaf && self.asked_at.is_some_and(|at| at.elapsed() > FORGOTTEN_AFTER);
        let is_early = self.not_before.is_some_and(|moment| Instant::now() < moment);
        !is_early && (self.asked.is_none() || is_forgotten)
    }

    /// The next request, unless one is under way: another would make the server give that one up.
    pub(super) fn request(&mut self, state: &State) -> Option<Vec<u8>> {
        if !self.may_ask() || !state.wants_saving() {
            return None;
        }
        // Requests overtake edits on the server, so only what it has already is covered.
        let covered = known_to_server(state).unwrap_or(0);
        Some(self.ask(covered))
    }

    fn ask(&mut self, covered: u64) -> Vec<u8> {
        self.last_request += 1;
        self.asked = Some((self.last_request, covered));
        self.asked_at = Some(Instant::now());
        save_request(self.last_request)
    }

    /// The next request of somebody who needs what is in the document on disk now, whatever people want otherwise.
    pub(super) fn request_now(&mut self, state: &State) -> Option<Vec<u8>> {
        if !self.may_ask() || !state.unsaved {
            return None;
        }
        // One that does not cover what was edited last would only be in the way of the one that does.
        let covered = known_to_server(state)?;
        Some(self.ask(covered))
    }

    /// Whether the server may be asked again, considering what it costs it. When changes have come to an end since it was last
    /// asked, one more save is the last, so that it need not wait.
    pub(super) fn is_worth_asking(&self, state: &State) -> bool {
        let pause = self.took.saturating_mul(WORTH).min(MAX_PAUSE);
        let is_last = |asked: Duration| state.is_quiet() && asked > state.unchanged_for();
        self.asked_at
            .is_none_or(|at| at.elapsed() >= pause || is_last(at.elapsed()))
    }

    /// What a ping that is sent after a request carries.
    pub(super) fn ping(&self) -> [u8; 8] {
        self.last_request.to_be_bytes()
    }

    /// The server answers in turn, so a request that is still open when a later ping has come back was
    /// not understood.
    pub(super) fn ponged(&mut self, state: &mut State, ping: &[u8]) {
        if self.asked.is_some_and(|(request, _)| request.to_be_bytes() == ping) {
            self.is_deaf = true;
            self.settle(state);
        }
    }

    pub(super) fn answered(&mut self, state: &State, response_to: u64, status: SaveStatus) {
        let Some((_, mark)) = self.asked.take_if(|(request, _)| *request == response_to) else {
            return;
        };
        // Something between us and the server answered the ping.
        self.is_deaf = false;
        self.took = self.asked_at.map_or(Duration::ZERO, |at| at.elapsed());
        match status {
            SaveStatus::Success => self.answered = Some(mark),
            // It has cost the server nothing.
            SaveStatus::Skipped => self.asked_at = None,
            SaveStatus::Failed => {
                tracing::warn!(path = %state.path, "Jupyter cannot save an open document");
                self.failed = true;
            }
        }
    }

    /// The server has noted in the document that it was saved.
    pub(super) fn noted(&mut self, state: &mut State) {
        let known = known_to_server(state).filter(|_| is_text_of_file(&state.document));
        self.noted = known.or(self.noted);
        match known.filter(|_| state.is_entrusted() || state.is_saved_by_hand()) {
            Some(mark) => believe(state, mark),
            None => self.settle(state),
        }
    }

    /// Whether a save failed since this was last asked.
    pub(super) fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }

    fn settle(&mut self, state: &mut State) {
        let saved = if self.is_deaf { self.noted } else { self.answered.take() };
        if let Some(mark) = saved {
            believe(state, mark);
        }
    }
}

/// Notes that everything up to a place in the journal is on disk.
fn believe(state: &mut State, mark: u64) {
    state.document.journal.saved_up_to(mark);
    state.unsaved = state.document.journal.mark() > mark;
    state.note_file();
}

/// The end of the journal, if the server has all of it.
fn known_to_server(state: &State) -> Option<u64> {
    let document = &state.document;
    document.acknowledgements.is_settled().then(|| document.journal.mark())
}

/// Whether the noted hash is that of the text as it is now. Of a notebook that cannot be told.
fn is_text_of_file(document: &Document) -> bool {
    let hash = document.file_hash();
    document.kind() != RoomKind::Text || hash.is_empty() || hash == sha256(&document.text())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::{Activity, Edit, awareness::Visit, state::Origin, wire::AwarenessEntry};
    use jupyter_client::DocPath;

    fn state() -> State {
        let path = DocPath::parse("a.md").expect("a path");
        let mut state = State::new(Document::new(RoomKind::Text), path, String::new(), String::new());
        // Nobody minds.
        state.awareness.edited();
        state.awareness.saved();
        state
    }

    /// Edits, and has the server confirm it if it `arrives`.
    fn edit(state: &mut State, text: &str, arrives: bool) {
        let edits = [Edit::SetText { text: text.to_owned() }];
        let applied = state.document.apply_local(&"ana".into(), &edits).expect("valid");
        state.unsaved = true;
        if arrives {
            state.document.apply_remote(&applied.update).expect("an echo");
        }
    }

    #[test]
    fn a_save_is_believed_when_it_was_asked_for_answered_and_noted() {
        let (mut saving, mut state) = (Saving::default(), state());
        edit(&mut state, "a", true);
        saving.noted(&mut state);
        assert!(state.unsaved, "the note of a save that may have begun before the edit");
        assert!(saving.request(&state).is_some());
        assert!(saving.request(&state).is_none(), "one at a time");
        saving.answered(&state, 1, SaveStatus::Success);
        saving.ponged(&mut state, &1_u64.to_be_bytes());
        assert!(state.unsaved);
        saving.noted(&mut state);
        assert!(!state.unsaved);
    }

    #[test]
    fn a_server_that_saves_by_itself_is_believed_by_its_notes() {
        let (mut saving, mut state) = (Saving::default(), state());
        let change = |state: &mut State, text: &str| {
            let edits = [Edit::SetText { text: text.to_owned() }];
            let applied = state.document.apply_local(&"ana".into(), &edits).expect("valid");
            state.changed(applied.update.clone(), Origin::Caller);
            applied.update
        };
        let early = change(&mut state, "a");
        state.document.apply_remote(&early).expect("an echo");
        let visit = Visit {
            id: &"ana".into(),
            name: "ana",
            activity: Activity::Editing,
            stays: Duration::from_secs(60),
        };
        state.awareness.show(&visit, None);
        assert!(!state.awareness.due().is_empty(), "from now on the server saves");
        saving.noted(&mut state);
        assert!(state.unsaved, "before, it need not have");
        state.unsaved = false;

        let late = change(&mut state, "ab");
        saving.noted(&mut state);
        assert!(state.unsaved, "it is not with the server yet");
        state.document.apply_remote(&late).expect("an echo");
        saving.noted(&mut state);
        assert!(!state.unsaved);
    }

    #[test]
    fn what_a_person_saved_by_hand_is_saved() {
        let (mut saving, mut state) = (Saving::default(), state());
        let by_hand = AwarenessEntry {
            client: 1,
            clock: 1,
            state: r#"{"user":{},"autosave":false}"#.to_owned(),
        };
        state.awareness.received(vec![by_hand]);
        edit(&mut state, "a", true);
        saving.noted(&mut state);
        assert!(state.unsaved, "the note of a save that may have begun before the edit");
        let long_ago = SystemTime::now() - Duration::from_secs(10);
        state.document.changed.send_replace(long_ago);
        saving.noted(&mut state);
        assert!(!state.unsaved);
    }

    #[test]
    fn a_server_that_takes_long_to_save_is_asked_more_rarely() {
        let (mut saving, mut state) = (Saving::default(), state());
        edit(&mut state, "a", true);
        assert!(saving.is_worth_asking(&state));
        saving.request(&state);
        saving.asked_at = Instant::now().checked_sub(Duration::from_millis(200));
        saving.answered(&state, 1, SaveStatus::Success);
        assert!(!saving.is_worth_asking(&state));
        saving.asked_at = Instant::now().checked_sub(Duration::from_secs(5));
        assert!(saving.is_worth_asking(&state));
        saving.took = Duration::from_secs(60);
        saving.asked_at = Instant::now().checked_sub(MAX_PAUSE);
        assert!(saving.is_worth_asking(&state), "but not as rarely as that");
    }

    #[test]
    fn what_was_changed_last_is_saved_soon_however_long_saving_takes() {
        let (mut saving, mut state) = (Saving::default(), state());
        edit(&mut state, "a", true);
        saving.request(&state);
        saving.took = Duration::from_secs(60);
        saving.asked_at = Instant::now().checked_sub(Duration::from_secs(4));
        let changed_before = |state: &State, seconds: u64| {
            let at = SystemTime::now() - Duration::from_secs(seconds);
            state.document.changed.send_replace(at);
        };
        changed_before(&state, 0);
        assert!(!saving.is_worth_asking(&state), "more may come");
        changed_before(&state, 2);
        assert!(
            saving.is_worth_asking(&state),
            "nothing came since, and it was not asked since"
        );
        changed_before(&state, 6);
        assert!(!saving.is_worth_asking(&state), "it was asked since");
        saving.answered(&state, 1, SaveStatus::Skipped);
        assert!(saving.is_worth_asking(&state), "it did nothing");
    }

    #[test]
    fn a_request_that_the_server_forgot_is_made_again() {
        let (mut saving, mut state) = (Saving::default(), state());
        edit(&mut state, "a", true);
        saving.request(&state);
        let long_ago = Instant::now().checked_sub(FORGOTTEN_AFTER * 2).expect("a clock");
        saving.asked_at = Some(long_ago);
        assert!(saving.request(&state).is_none(), "it may still be at it");
        saving.ponged(&mut state, &saving.ping());
        assert!(saving.request(&state).is_some());
        assert!(saving.request(&state).is_none(), "one at a time");
    }

    #[test]
    fn a_server_that_has_just_been_restarted_is_asked_for_nothing() {
        let mut state = state();
        edit(&mut state, "a", true);
        let mut saving = Saving::not_before(Instant::now().checked_add(Duration::from_secs(60)));
        assert!(saving.request(&state).is_none() && saving.request_now(&state).is_none());
        let mut saving = Saving::not_before(Some(Instant::now()));
        assert!(saving.request_now(&state).is_some());
    }

    #[test]
    fn a_server_that_knows_no_requests_is_believed_by_its_notes() {
        let (mut saving, mut state) = (Saving::default(), state());
        edit(&mut state, "a", true);
        saving.noted(&mut state);
        saving.request(&state);
        saving.ponged(&mut state, &saving.ping());
        assert!(!state.unsaved, "what was noted before it was known");
        edit(&mut state, "ab", false);
        saving.noted(&mut state);
        assert!(state.unsaved, "the server did not have it yet");
        edit(&mut state, "abc", true);
        saving.noted(&mut state);
        assert!(state.unsaved, "one edit is still on its way");
    }
}
