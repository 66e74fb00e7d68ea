//! Time limits and intervals, each with its reason. No clock and no I/O: the caller says how much time has passed.

use std::time::Duration;

// Connection.

/// Interval between checks of presences, saving and the liveness of the connection.
pub(crate) const TICK: Duration = Duration::from_secs(3);
/// Pings go out with every tick, so that a connection on which nothing came for this long is dead.
pub(crate) const CONNECTION_TIMEOUT: Duration = Duration::from_secs(20);
/// The server closes a room's socket at its leisure; nobody waits for it longer.
pub(crate) const ROOM_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The pause before the next attempt to join again, as JupyterLab makes it.
pub(crate) fn backoff(attempts: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_millis(2500);
    FIRST.saturating_mul(2_u32.saturating_pow(attempts)).min(LONGEST)
}

// The first synchronisation.

/// A large notebook may take the server a while to load.
pub(crate) const SYNC_TIMEOUT: Duration = Duration::from_secs(120);
/// A document that is loaded piece by piece is probably complete when nothing came for so long.
pub(crate) const LOADING_QUIET: Duration = Duration::from_millis(400);
/// The same before it is known to be loaded that way, which few are.
pub(crate) const FIRST_QUIET: Duration = Duration::from_millis(30);
/// A notebook without cells is still being loaded, or somebody deleted them all; then nothing comes.
pub(crate) const EMPTY_QUIET: Duration = Duration::from_secs(2);
/// Number of pings that come back without a new cell in between before a notebook counts as complete.
pub(crate) const SYNC_PINGS: u8 = 3;

// Callers.

/// Longest wait of an edit for a lost connection to come back.
pub(crate) const EDIT_RECONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait of an edit for the server's acknowledgement before it answers without.
pub(crate) const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for which somebody who typed may be about to go on.
pub(crate) const TYPING: Duration = Duration::from_secs(60);
/// Time for which the next letters of somebody who typed may be on their way here.
pub(crate) const JUST_TYPED: Duration = Duration::from_secs(10);
/// Edits that the server has not taken yet; beyond it callers are told to wait.
pub(crate) const MAX_OUTBOX_BYTES: usize = 64 * 1024 * 1024;

// Saving.

/// Next step about changes that are not on disk yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaveStep {
    /// The server saves them by itself, or people do.
    Wait,
    /// Changes are held back for a moment, so that the server shows whether people want them saved.
    HoldChanges,
    /// The server is asked to save them.
    Ask,
}

/// Decides about changes that are not on disk for some time. The server saves after a second without changes, if anybody in
/// the room wants that, or nobody is there. It does not tell newcomers who is there already, so that it is only known
/// after a while whether people want it: when they say so, when the server has saved, or when everybody has spoken.
///
/// | the server should have saved | people want it saved | step |
/// | --- | --- | --- |
/// | not yet | any | wait |
/// | yes | yes | ask: changes keep coming, or something is wrong |
/// | yes | not known | hold changes back, once |
/// | yes | no | wait: they save by hand |
pub(crate) fn save_step(unsaved_for: Duration, unchanged_for: Duration, autosave: Option<bool>) -> SaveStep {
    let is_kept_from_saving = unsaved_for >= AUTOSAVE_DELAY && unchanged_for < SAVES_AFTER;
    match autosave {
        _ if !is_kept_from_saving && unsaved_for < SAVE_OVERDUE => SaveStep::Wait,
        Some(true) => SaveStep::Ask,
        None => SaveStep::HoldChanges,
        Some(false) => SaveStep::Wait,
    }
}

/// Time within which the server saves a change, if somebody wants that and no other changes keep it from doing so.
const AUTOSAVE_DELAY: Duration = Duration::from_millis(1500);
/// Time within which a restarted server looks at the file of a document that it has just loaded; it does so once a
/// second. It finds a notebook that was half-written when it was killed, puts the earlier file in its place, and goes on
/// believing that the file is as new as the half. A save that it is asked for before it has looked again seems to it to be
/// overtaken by somebody else's, and it makes the document the same as that old file.
pub(crate) const FILE_POLL_INTERVAL: Duration = Duration::from_millis(1500);
/// Time without a change after which the server saves by itself.
pub(crate) const SAVES_AFTER: Duration = Duration::from_secs(1);
/// Time for which changes are held back, once, so that the server shows whether people want them saved: it waits for a
/// second without any, which may never be, and then writes for a while.
pub(crate) const CHANGES_HELD_FOR: Duration = Duration::from_secs(2);
/// Time after which a change counts as not saved by the server.
pub(crate) const SAVE_OVERDUE: Duration = Duration::from_secs(3);
/// Time after which a request that was passed over is not answered any more. A server that has just begun another save
/// can forget it.
pub(crate) const REQUEST_FORGOTTEN_AFTER: Duration = Duration::from_secs(15);
/// Longest wait of a closing document until its edits are in the file: whoever reads the file next, to copy
/// it for instance, must find the edits there.
pub(crate) const LEAVE_SAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of requests for that save; a server that saves something else every time saves this too.
pub(crate) const LEAVE_SAVES: usize = 3;
/// Interval between checks whether enough time has passed to know if people want their document saved.
pub(crate) const LEAVE_TICK: Duration = Duration::from_secs(1);
/// Time limit for edits to reach the disk, for code that is about to run.
pub(crate) const SAVE_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for somebody who asks for nothing else. A large notebook takes the server some seconds.
pub(crate) const REQUESTED_SAVE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause before a save is requested again that the server gave up because of an edit.
pub(crate) const ASK_AGAIN: Duration = Duration::from_millis(500);

/// Pause between requests to save while changes keep the server from saving: writing a notebook costs it as much as
/// running some dozens of small cells, which would have to wait for it.
pub(crate) fn save_pause(took: Duration) -> Duration {
    took.saturating_mul(20).min(Duration::from_secs(12))
}

// The file.

/// Longest delay between the announcement that a document is overwritten and the overwriting.
pub(crate) const OVERWRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time until an open document follows its file, which Jupyter checks once a second.
pub(crate) const FILE_SYNC_TIMEOUT: Duration = Duration::from_secs(4);
/// A file that is older than this when its document is opened is in the document.
pub(crate) const FILE_POLL_MARGIN: Duration = Duration::from_secs(3);
/// Longest wait of a call whose file was not checked for too long while others check theirs with the same server, and
/// of a call that reads for the answer: the document in memory is good enough while the server is busy.
pub(crate) const FILE_CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// A document is in steady use after so many calls in a row, none of which came long after the one before.
pub(crate) const STEADY_CALLS: u32 = 3;
/// A file that was checked is trusted to be where it was for this long at least, and at most.
pub(crate) const MIN_TRUST: Duration = Duration::from_secs(1);
pub(crate) const MAX_TRUST: Duration = Duration::from_secs(15);

/// Time for which a file is trusted to be in its place: a multiple of the time to ask, so that asking does not keep
/// the server busy. The faster of the last two answers counts; one that came late by chance says nothing.
pub(crate) fn file_trust([one, other]: [Duration; 2]) -> Duration {
    one.min(other).saturating_mul(50).clamp(MIN_TRUST, MAX_TRUST)
}

// Versions.

/// Time without changes after which people's work becomes a version.
pub(crate) const VERSION_QUIET: Duration = Duration::from_secs(5);
/// Longest time until people's work becomes a version although they do not pause.
pub(crate) const VERSION_LONGEST: Duration = Duration::from_secs(60);
/// Time without changes after which a write from outside becomes a version. It comes in a few changes, one right after
/// another.
pub(crate) const OUTSIDE_QUIET: Duration = Duration::from_secs(1);
/// Time limit for a diff. Its result by then is right too, only coarser, so that more of it may conflict.
pub(crate) const DIFF_TIMEOUT: Duration = Duration::from_millis(20);

// Outputs of runs.

/// Longest time for which a document has the right to send outputs, whether they were confirmed or not.
pub(crate) const LONGEST_OUTPUT_SLOT: Duration = Duration::from_millis(500);

/// Time for which the server is left alone after it confirmed outputs, if other documents have some, or the same one has more
/// runs that are over: storing a change takes it several times as long as confirming it.
pub(crate) fn output_rest(confirmed_after: Duration) -> Duration {
    (confirmed_after * 4).min(Duration::from_millis(60))
}

// The pool.

/// Bounds of the interval between checks for idle rooms, which is a part of their idle time.
pub(crate) const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(100);
pub(crate) const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between checks whether anybody still needs a server's events.
pub(crate) const FEED_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Pause before the events of a server are asked for again after they ended.
pub(crate) const FEED_RETRY: Duration = Duration::from_secs(2);

// Presence.

/// Interval between refreshes of a presence; JupyterLab forgets one that sends nothing for 30 s.
pub(crate) const PRESENCE_REFRESHED_AFTER: Duration = Duration::from_secs(12);
/// Time after which a presence that sends nothing is forgotten, as by JupyterLab and Jupyter.
pub(crate) const PRESENCE_FORGOTTEN_AFTER: Duration = Duration::from_secs(30);
/// Time within which everybody in a room has sent a state: every 15 s, and clients look at the clock every 3 s.
pub(crate) const AWARENESS_ROUND: Duration = Duration::from_secs(20);
/// Pause of an agent after which its cursor is shown. Showing it costs the server about as much as an edit, and
/// the next edit has to wait behind it: Jupyter's sockets have Nagle's algorithm on, so that to a client which delays its
/// acknowledgements, as most do, that is 40 ms.
pub(crate) const CURSOR_PAUSE: Duration = Duration::from_millis(60);
/// Shortest interval between two such updates, however its agent pauses.
pub(crate) const CURSOR_INTERVAL: Duration = Duration::from_millis(500);
/// Time after which the cursor is shown although its agent does not pause.
pub(crate) const CURSOR_OVERDUE: Duration = Duration::from_secs(2);
/// Shortest interval at which an agent's activity is sent to a whole server.
pub(crate) const GLOBAL_PRESENCE_INTERVAL: Duration = Duration::from_secs(1);
/// Time for which an announcement stands beside an agent's name.
pub(crate) const ANNOUNCED_FOR: Duration = Duration::from_secs(30);
/// Time for which a status that an agent declared is valid.
pub(crate) const AVAILABILITY_LASTS: Duration = Duration::from_secs(3600);
/// Time for which an agent that joined a session stays after its last activity there.
pub(crate) const JOINED_FOR: Duration = Duration::from_secs(3600);
/// Time for which the list of who is online is followed after somebody asked for it.
pub(crate) const LISTENS_FOR: Duration = Duration::from_secs(15 * 60);
/// The same on a server of a Hub, and the time for which agents are listed as online there after their last call.
pub(crate) const LINGERS_IN_HUB: Duration = Duration::from_secs(5 * 60);
/// Longest wait of a question who is online until that room is joined.
pub(crate) const LISTENING_PATIENCE: Duration = Duration::from_secs(3);
/// Longest wait from then on for the first answer.
pub(crate) const FIRST_ANSWER: Duration = Duration::from_millis(700);
/// Time for which a server is left alone that has no room for everybody.
pub(crate) const GLOBAL_PRESENCE_RETRY: Duration = Duration::from_secs(30);
/// Time for which an agent that goes on with the same activity is not shown again.
pub(crate) const SHOWN_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Time after which an execution that was not shown again has ended unnoticed.
pub(crate) const EXECUTION_SHOWN_FOR: Duration = Duration::from_secs(25);

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn attempts_come_ever_more_rarely_up_to_a_bound() {
        assert_eq!(
            [0, 1, 4, 5, 1000].map(backoff),
            [100, 200, 1600, 2500, 2500].map(millis)
        );
    }

    #[test]
    fn a_slow_server_is_asked_more_rarely_for_files() {
        let answers = |one: u64, other: u64| file_trust([millis(one), millis(other)]);
        assert_eq!(answers(0, 100), MIN_TRUST, "once is chance");
        assert_eq!(answers(200, 100), millis(5000));
        assert_eq!(answers(10_000, 10_000), MAX_TRUST);
        assert_eq!(answers(10_000, 1), MIN_TRUST);
    }

    #[test]
    fn the_server_is_asked_to_save_when_it_should_have_and_people_want_it() {
        let busy = |unsaved_for: u64, autosave| save_step(millis(unsaved_for), millis(200), autosave);
        assert_eq!(busy(1499, Some(true)), SaveStep::Wait);
        assert_eq!(busy(1500, Some(true)), SaveStep::Ask);
        assert_eq!(busy(1500, None), SaveStep::HoldChanges);
        assert_eq!(busy(60_000, Some(false)), SaveStep::Wait);
        let quiet = |unsaved_for: u64| save_step(millis(unsaved_for), millis(1000), Some(true));
        assert_eq!(
            [2999, 3000].map(quiet),
            [SaveStep::Wait, SaveStep::Ask],
            "it may be at it"
        );
    }

    #[test]
    fn a_server_that_takes_long_to_save_is_asked_more_rarely_but_not_too_rarely() {
        assert_eq!(
            [0, 200, 60_000].map(millis).map(save_pause),
            [0, 4000, 12_000].map(millis)
        );
    }

    #[test]
    fn a_server_rests_as_long_as_it_takes_to_note_something_down() {
        assert_eq!([0, 5, 500].map(millis).map(output_rest), [0, 20, 60].map(millis));
    }
}
