//! Requests to save, and the knowledge of what is on disk. The server saves by itself after a second without changes, but
//! never while changes keep coming.
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
    document::{Document, sha256},
    policy::{REQUEST_FORGOTTEN_AFTER, SAVES_AFTER, SaveStep, save_pause},
    state::State,
    wire::SaveStatus,
};

/// State of saving on one connection.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    last_request: u64,
    /// The request under way.
    request: Option<Request>,
    asked_at: Option<Instant>,
    /// Duration of the last save until its answer.
    took: Duration,
    /// The request that the next note of a save is of, or of a later one.
    answered: Option<Request>,
    /// The last request that is known to have been done.
    confirmed: u64,
    /// Number of saves that failed, by the server's answers.
    failures: u64,
    /// Somebody wants it saved although nothing of ours is unsaved.
    is_wanted: bool,
    /// The place in the journal up to which the server had everything when it noted a save.
    noted: Option<u64>,
    /// True if the server has ignored a request.
    ignores_requests: bool,
    failed: bool,
    /// No request is made before this time.
    not_before: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    number: u64,
    /// The place in the journal up to which the server had everything when it was asked.
    covers: u64,
}

impl Saving {
    /// Saving that makes no request before a moment.
    pub(crate) fn not_before(moment: Instant) -> Self {
        Self {
            not_before: Some(moment),
            ..Self::default()
        }
    }

    /// Has the next request be made also if nothing of ours is unsaved.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// The number of the last request, of the last one that is known to have been done, and how many have failed.
    pub(crate) fn progress(&self) -> (u64, u64, u64) {
        (self.last_request, self.confirmed, self.failures)
    }

    /// Returns whether the server has a request to save that it has not answered.
    pub(crate) fn is_under_way(&self) -> bool {
        self.request.is_some() && !self.ignores_requests
    }

    /// Records that the file has what the last answered request was made for.
    fn confirm(&mut self) {
        let done = match self.ignores_requests {
            true => Some(self.last_request),
            false => self.answered.map(|request| request.number),
        };
        if let Some(number) = done {
            (self.confirmed, self.is_wanted) = (self.confirmed.max(number), false);
        }
    }

    /// Payload of the ping after a request.
    pub(crate) fn ping(&self) -> [u8; 8] {
        self.last_request.to_be_bytes()
    }

    /// Records a failed save, once.
    pub(crate) fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.failed)
    }

    /// Returns whether another request is worth its cost to the server. When changes have come to an end since the
    /// last one, one more save is the last, so that it need not wait.
    fn is_worth_asking(&self, now: Instant, unchanged_for: Duration) -> bool {
        let pause = save_pause(self.took);
        let is_last = |asked: Duration| unchanged_for >= SAVES_AFTER && asked > unchanged_for;
        self.asked_at.is_none_or(|at| {
            let asked = now.saturating_duration_since(at);
            asked >= pause || is_last(asked)
        })
    }

    /// Returns whether a request may be sent now. One that is under way would be given up for another.
    fn may_ask(&self, now: Instant) -> bool {
        let is_early = self.not_before.is_some_and(|moment| now < moment);
        let is_forgotten = self.ignores_requests
            && self
                .asked_at
                .is_some_and(|at| now.saturating_duration_since(at) > REQUEST_FORGOTTEN_AFTER);
        !is_early && (self.request.is_none() || is_forgotten)
    }

    fn ask(&mut self, covers: u64, now: Instant) -> u64 {
        self.last_request += 1;
        let number = self.last_request;
        (self.request, self.asked_at) = (Some(Request { number, covers }), Some(now));
        number
    }
}

impl State {
    /// The next request to save what the server is kept from saving, if it is worth its cost.
    pub(crate) fn request_overdue_save(&mut self) -> Option<u64> {
        // Otherwise the server will do it without being asked, and would write the file twice.
        let is_due =
            self.save_step() == SaveStep::Ask && self.saving.is_worth_asking(self.now(), self.document.unchanged_for());
        if is_due { self.request_save() } else { None }
    }

    /// The next request, unless one is under way or people do the saving.
    pub(crate) fn request_save(&mut self) -> Option<u64> {
        let now = self.now();
        if !self.saving.may_ask(now) || !self.needs_save() {
            return None;
        }
        // Requests overtake edits on the server, so only what it has already is covered.
        let covers = self.known_to_server().unwrap_or(0);
        Some(self.saving.ask(covers, now))
    }

    /// The next request of somebody who needs what is in the document on disk now, whatever people want otherwise.
    pub(crate) fn request_save_now(&mut self) -> Option<u64> {
        let now = self.now();
        if !self.saving.may_ask(now) || self.unsaved.is_none() && !self.saving.is_wanted {
            return None;
        }
        // One that does not cover what was edited last would only be in the way of the one that does.
        let covers = self.known_to_server()?;
        Some(self.saving.ask(covers, now))
    }

    /// The server answers in order, so a request that is still open when a later ping has come back was
    /// not understood.
    pub(crate) fn on_pong(&mut self, ping: &[u8]) {
        if self
            .saving
            .request
            .is_some_and(|request| request.number.to_be_bytes() == ping)
        {
            self.saving.ignores_requests = true;
            self.settle_save();
        }
    }

    pub(crate) fn on_save_answered(&mut self, response_to: u64, status: SaveStatus) {
        let now = self.now();
        let saving = &mut self.saving;
        let Some(request) = saving.request.take_if(|request| request.number == response_to) else {
            return;
        };
        // Something between us and the server answered the ping.
        saving.ignores_requests = false;
        saving.took = saving.asked_at.map_or(Duration::ZERO, |at| now - at);
        match status {
            SaveStatus::Success => saving.answered = Some(request),
            // The request has cost the server nothing.
            SaveStatus::Skipped => saving.asked_at = None,
            SaveStatus::Failed => {
                tracing::warn!(path = %self.path, "Jupyter cannot save an open document");
                (saving.failed, saving.failures) = (true, saving.failures + 1);
                self.note_file();
            }
        }
    }

    /// The server has noted in the document that it was saved.
    pub(crate) fn on_save_noted(&mut self) {
        self.saving.confirm();
        let known = self.known_to_server().filter(|_| is_text_of_file(&self.document));
        self.saving.noted = known.or(self.saving.noted);
        match known.filter(|_| self.is_left_to_autosave() || self.is_saved_by_hand()) {
            Some(mark) => self.mark_saved(mark),
            None => self.settle_save(),
        }
    }

    fn settle_save(&mut self) {
        let saved = match self.saving.ignores_requests {
            true => self.saving.noted,
            false => self.saving.answered.take().map(|request| request.covers),
        };
        if let Some(mark) = saved {
            self.mark_saved(mark);
        }
    }

    /// Records that everything up to a place in the journal is on disk.
    fn mark_saved(&mut self, mark: u64) {
        self.document.journal.saved_up_to(mark);
        if self.document.journal.mark() <= mark {
            self.unsaved = None;
        }
        self.note_file();
    }

    /// The end of the journal, if the server has all of it.
    fn known_to_server(&self) -> Option<u64> {
        let document = &self.document;
        document.acknowledgements.is_settled().then(|| document.journal.mark())
    }
}

/// Returns whether the noted hash is that of the current text. Of a notebook that cannot be told.
fn is_text_of_file(document: &Document) -> bool {
    let hash = document.file_hash();
    document.kind() != RoomKind::Text || hash.is_empty() || hash == sha256(&document.text())
}

#[cfg(test)]
mod tests;
