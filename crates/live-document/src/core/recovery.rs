//! Recovery of a document that is joined again: one decision, and one function that carries it out.
//!
//! The server's document is received into an empty one first, so that nothing is merged before it is known to belong
//! together. The decision then depends on four questions; the first row that fits counts:
//!
//! | history | server process | file | others | recovery |
//! | --- | --- | --- | --- | --- |
//! | another | any | any | any | [`Recovery::Adopt`] |
//! | same | same | any | any | [`Recovery::Continue`] |
//! | same | restarted | not written since the server's last message | typed nothing we lack | [`Recovery::RestoreOverStaleFile`] |
//! | same | restarted | not written since the server was last heard | typed something we lack | [`Recovery::ReplayUnsaved`] |
//! | same | restarted | written since, or unknown | any | [`Recovery::ReplayUnsaved`] |
//!
//! A restarted server resets its document to the file, unsaved edits or not. A file that was not written since the
//! server's last message knows nothing that our document did not, so that all of ours is restored. Otherwise the file
//! may know more, and unsaved edits are repeated where what they were about is unchanged. Where the server's clock is
//! ahead, a stale file looks like a newer one, which is the safe mistake.
//!
//! An unsaved edit is not repeated if somebody else changed what it was about; nor does it stay if Jupyter made the document
//! the same as a file that was written from outside. Its author is told. That may also happen late: whoever had received the
//! outside write before a restart brings it back, and takes out what others restored or added in its place meanwhile.

use std::time::SystemTime;

use yrs::{StateVector, block::ClientID};

use super::{
    acknowledgement::Lost,
    disconnect::{Disconnect, guarded},
    document::{Document, FileAge, Snapshot},
    edit_journal::{EditJournal, ReplayOutcome},
    state::State,
};

/// Decision about a document that was joined again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Both are merged: the connection was cut, and nothing else happened.
    Continue,
    /// Both are merged, and what the restarted server has lost is restored.
    RestoreOverStaleFile,
    /// Both are merged, and unsaved edits are repeated where the restarted server reset what they were about.
    ReplayUnsaved,
    /// The server has made a new document, which takes the place of ours; unsaved edits are repeated in it.
    /// Merging the two would duplicate cells.
    Adopt,
}

/// State of our document when the server's was received.
pub(crate) struct Ours<'a> {
    /// State vector that the server had acknowledged.
    pub(crate) acknowledged: &'a StateVector,
    /// Our state vector.
    pub(crate) has: &'a StateVector,
    /// Name of the server's process.
    pub(crate) server_session: &'a str,
}

/// State of the document that the server came back with.
pub(crate) struct Theirs<'a> {
    pub(crate) has: &'a StateVector,
    pub(crate) server_session: &'a str,
}

/// Times by which a file that is older than the document is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    /// Modification time of the file, by the server's clock, if it says so.
    pub(crate) file_written: Option<SystemTime>,
    /// Time of the server's last message before the cut, by our clock.
    pub(crate) last_heard: SystemTime,
}

/// Decides by the table above.
pub(crate) fn decide(ours: &Ours<'_>, theirs: &Theirs<'_>, clocks: Clocks) -> Recovery {
    let is_stale = || clocks.file_written.is_some_and(|written| written <= clocks.last_heard);
    if !is_same_history(ours.acknowledged, theirs.has) {
        Recovery::Adopt
    } else if ours.server_session == theirs.server_session {
        Recovery::Continue
    } else if is_stale() && !is_behind(ours.has, theirs.has) {
        Recovery::RestoreOverStaleFile
    } else {
        Recovery::ReplayUnsaved
    }
}

/// Returns whether a document is the one that the server had, or an earlier state of it: a server that was killed
/// comes back without its latest updates, which browsers then send again, and so must we.
///
/// Every document has blocks of a client with a random id: the server itself notes the path of the file. Blocks that
/// are loaded from a file belong to client 0, in any document.
pub(super) fn is_same_history(acknowledged: &StateVector, theirs: &StateVector) -> bool {
    let has_all = acknowledged.iter().all(|(client, clock)| theirs.get(client) >= *clock);
    let is_shared = |client: &ClientID| client.get() != 0 && theirs.get(client) > 0;
    has_all || acknowledged.iter().any(|(client, _)| is_shared(client))
}

/// Returns whether somebody made changes that we lack: they typed while the server was away, or just before, and came
/// back before us. One of the clients unknown here is the restarted server itself, which makes its document the same
/// as the file.
fn is_behind(ours: &StateVector, theirs: &StateVector) -> bool {
    let is_known = |client: &ClientID| ours.get(client) > 0;
    let strangers = theirs.iter().filter(|(client, _)| !is_known(client)).count();
    let mut others = theirs.iter();
    strangers > 1 || others.any(|(client, clock)| is_known(client) && *clock > ours.get(client))
}

/// The server's document as it was received after joining again.
pub(crate) struct ServerDocument {
    /// The updates, in one document of their own.
    pub(crate) document: Document,
    pub(crate) updates: Vec<Vec<u8>>,
    pub(crate) server_session: String,
}

impl State {
    /// Decides how to recover the document that the server came back with, and does so.
    pub(crate) fn recover(&mut self, theirs: ServerDocument, clocks: Clocks) -> Result<Recovery, Disconnect> {
        let restarted = self.server_session != theirs.server_session;
        let recovery = decide(
            &Ours {
                acknowledged: self.document.acknowledgements.acknowledged(),
                has: &self.document.state_vector(),
                server_session: &self.server_session,
            },
            &Theirs {
                has: &theirs.document.state_vector(),
                server_session: &theirs.server_session,
            },
            clocks,
        );
        if recovery != Recovery::Continue {
            self.document.pause_recording();
        }
        self.carry_out(recovery, theirs.document, &theirs.updates)?;
        if restarted {
            self.document.watch_for_duplicates();
        }
        self.server_session = theirs.server_session;
        // Before the server is answered, so that it never has a cell twice: it would give one of them another id.
        self.remove_duplicates();
        if recovery != Recovery::Continue {
            self.document.resume_recording();
        }
        Ok(recovery)
    }

    fn carry_out(&mut self, recovery: Recovery, theirs: Document, updates: &[Vec<u8>]) -> Result<(), Disconnect> {
        match recovery {
            Recovery::Continue => self.merge(updates, Document::apply_live),
            Recovery::RestoreOverStaleFile => {
                let before = self.document.snapshot();
                // What the server took out is brought back: nobody removed it.
                let unsaved = std::mem::take(&mut self.document.journal);
                self.merge(updates, Document::apply_remote)?;
                self.identify_cells(&before, FileAge::Stale);
                self.document.journal = unsaved;
                let changes = self.document.restore(&before);
                if changes > 0 {
                    self.mark_unsaved();
                }
                tracing::info!(path = %self.path, changes, "Jupyter restarted; restored what it had lost");
                Ok(())
            }
            Recovery::ReplayUnsaved => {
                let before = self.document.snapshot();
                let unsaved = std::mem::take(&mut self.document.journal);
                self.merge(updates, Document::apply_remote)?;
                self.identify_cells(&before, FileAge::MaybeNewer);
                self.repeat(unsaved, &before, Some(&theirs));
                Ok(())
            }
            Recovery::Adopt => {
                self.adopt(theirs);
                Ok(())
            }
        }
    }

    /// Takes in what the server sent. What people typed while the connection was down counts as typing; what a
    /// restarted server made of its document does not.
    fn merge(
        &mut self,
        updates: &[Vec<u8>],
        take: fn(&mut Document, &[u8]) -> Result<(), super::document::UpdateError>,
    ) -> Result<(), Disconnect> {
        let document = &mut self.document;
        updates
            .iter()
            .try_for_each(|update| guarded(|| Ok(take(document, update)?)))
    }

    /// Gives cells that a restarted server made anew the ids they had.
    fn identify_cells(&mut self, before: &Snapshot, file: FileAge) {
        self.incarnation += 1;
        if self.document.identify_cells(before, file).is_some() {
            self.mark_unsaved();
            tracing::info!(path = %self.path, "Jupyter restarted; recognised the cells that it recreated");
        }
    }

    /// Repeats unsaved edits, which go out with the answer to the server, and returns how many could not be.
    fn repeat(&mut self, unsaved: EditJournal, before: &Snapshot, theirs: Option<&Document>) -> usize {
        let outcome = self.document.repeat(unsaved, before, theirs);
        let ReplayOutcome {
            repeated, conflicting, ..
        } = outcome;
        tracing::info!(path = %self.path, repeated, conflicting, "Jupyter restarted; checked unsaved edits");
        self.tell_discarded(outcome.discarded);
        conflicting
    }

    /// Replaces our document by the server's.
    fn adopt(&mut self, theirs: Document) {
        self.incarnation += 1;
        let before = self.document.snapshot().of_another_document();
        let mut old = std::mem::replace(&mut self.document, theirs);
        std::mem::swap(&mut self.document.changed, &mut old.changed);
        self.document.stream = old.stream.take();
        self.document.take_recorder_of(&mut old);
        self.document.mark_adopted();
        self.document.set_now(old.clock().now());
        let waiting = old.acknowledgements.take_waiting();
        tracing::warn!(path = %self.path, "Jupyter rebuilt an open document; adopted it");
        self.document.identify_cells(&before, FileAge::MaybeNewer);
        let conflicting = self.repeat(std::mem::take(&mut old.journal), &before, None);
        // Who still waits learns that nothing was acknowledged, or that an edit could not be repeated.
        for caller in waiting.into_iter().filter(|_| conflicting > 0) {
            let _ = caller.send(Err(Lost));
        }
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const FILE: u64 = 0;
    const SERVER: u64 = 7;
    const WE: u64 = 8;
    const BROWSER: u64 = 9;

    fn vector(clocks: &[(u64, u32)]) -> StateVector {
        let mut vector = StateVector::default();
        for (client, clock) in clocks {
            vector.set_max(ClientID::new(*client), *clock);
        }
        vector
    }

    /// A case of the table: everything else is as after an ordinary cut.
    struct Case {
        theirs: StateVector,
        restarted: bool,
        /// Seconds after the server was last heard.
        written: Option<i64>,
    }

    impl Default for Case {
        fn default() -> Self {
            Self {
                theirs: ours(),
                restarted: false,
                written: Some(-60),
            }
        }
    }

    fn ours() -> StateVector {
        vector(&[(FILE, 10), (SERVER, 3), (WE, 5), (BROWSER, 4)])
    }

    #[track_caller]
    fn assert_decides(case: &Case, expected: Recovery) {
        let last_heard = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let shift = |seconds: i64| match u64::try_from(seconds) {
            Ok(after) => last_heard + Duration::from_secs(after),
            Err(_) => last_heard - Duration::from_secs(seconds.unsigned_abs()),
        };
        let ours = ours();
        let decided = decide(
            &Ours {
                acknowledged: &ours,
                has: &ours,
                server_session: "one",
            },
            &Theirs {
                has: &case.theirs,
                server_session: if case.restarted { "other" } else { "one" },
            },
            Clocks {
                file_written: case.written.map(shift),
                last_heard,
            },
        );
        assert_eq!(decided, expected);
    }

    #[test]
    fn another_history_is_adopted_whatever_else_is_true() {
        let theirs = vector(&[(FILE, 12), (70, 3)]);
        for (restarted, written) in [(false, Some(-60)), (true, Some(-60)), (true, Some(60)), (true, None)] {
            let theirs = theirs.clone();
            assert_decides(
                &Case {
                    theirs,
                    restarted,
                    written,
                },
                Recovery::Adopt,
            );
        }
    }

    #[test]
    fn what_is_loaded_from_a_file_is_no_shared_history() {
        let theirs = vector(&[(FILE, 10)]);
        assert_decides(
            &Case {
                theirs,
                ..Case::default()
            },
            Recovery::Adopt,
        );
    }

    #[test]
    fn the_same_process_continues_whenever_the_file_was_written() {
        for written in [Some(-60), Some(60), None] {
            assert_decides(
                &Case {
                    written,
                    ..Case::default()
                },
                Recovery::Continue,
            );
        }
    }

    #[test]
    fn an_earlier_state_is_the_same_history() {
        let theirs = vector(&[(FILE, 10), (SERVER, 3)]);
        assert_decides(
            &Case {
                theirs: theirs.clone(),
                ..Case::default()
            },
            Recovery::Continue,
        );
        let restarted = Case {
            theirs,
            restarted: true,
            ..Case::default()
        };
        assert_decides(&restarted, Recovery::RestoreOverStaleFile);
    }

    #[test]
    fn a_restart_over_a_stale_file_restores() {
        for written in [Some(-60), Some(0)] {
            let case = Case {
                restarted: true,
                written,
                ..Case::default()
            };
            assert_decides(&case, Recovery::RestoreOverStaleFile);
        }
    }

    #[test]
    fn a_restart_after_which_somebody_typed_replays() {
        let theirs = vector(&[(FILE, 10), (SERVER, 3), (WE, 5), (BROWSER, 5)]);
        let case = Case {
            theirs,
            restarted: true,
            ..Case::default()
        };
        assert_decides(&case, Recovery::ReplayUnsaved);
    }

    #[test]
    fn a_restart_after_which_a_newcomer_typed_replays() {
        let theirs = vector(&[(FILE, 10), (SERVER, 3), (WE, 5), (BROWSER, 4), (71, 2), (72, 1)]);
        let case = Case {
            theirs,
            restarted: true,
            ..Case::default()
        };
        assert_decides(&case, Recovery::ReplayUnsaved);
    }

    #[test]
    fn what_the_restarted_server_itself_wrote_does_not_keep_from_restoring() {
        let theirs = vector(&[(FILE, 10), (SERVER, 3), (WE, 5), (BROWSER, 4), (71, 2)]);
        let case = Case {
            theirs,
            restarted: true,
            ..Case::default()
        };
        assert_decides(&case, Recovery::RestoreOverStaleFile);
    }

    #[test]
    fn a_restart_with_a_file_that_may_be_newer_replays() {
        for written in [Some(1), None] {
            let case = Case {
                restarted: true,
                written,
                ..Case::default()
            };
            assert_decides(&case, Recovery::ReplayUnsaved);
        }
    }
}
