//! Tests of what is taken to be saved, by the server's answers and behaviour.

use super::*;
use crate::core::{
    Activity, Edit, awareness::Visit, clock::Clock, policy::SAVE_OVERDUE, state::Origin, wire::AwarenessEntry,
};
use jupyter_client::DocPath;

fn state() -> State {
    let path = DocPath::parse("a.md").expect("a path");
    let mut state = State::new(
        Document::new(RoomKind::Text, Clock::default()),
        path,
        String::new(),
        String::new(),
    );
    // Nobody minds.
    state.awareness.record_edit();
    state.awareness.record_save();
    state
}

fn later(state: &mut State, time: Duration) {
    state.set_now(state.now() + time);
}

/// Edits, and has the server confirm it if it `arrives`.
fn edit(state: &mut State, text: &str, arrives: bool) {
    let edits = [Edit::SetText { text: text.to_owned() }];
    let applied = state.document.apply_local(&"ana".into(), &edits).expect("valid");
    state.mark_unsaved();
    if arrives {
        state.document.apply_remote(&applied.update).expect("an echo");
    }
}

#[test]
fn a_save_is_believed_when_it_was_asked_for_answered_and_noted() {
    let mut state = state();
    edit(&mut state, "a", true);
    state.on_save_noted();
    assert!(
        state.unsaved.is_some(),
        "the note of a save that may have begun before the edit"
    );
    assert!(state.request_save().is_some());
    assert!(state.request_save().is_none(), "one at a time");
    state.on_save_answered(1, SaveStatus::Success);
    state.on_pong(&1_u64.to_be_bytes());
    assert!(state.unsaved.is_some());
    state.on_save_noted();
    assert!(state.unsaved.is_none());
}

#[test]
fn a_server_that_saves_by_itself_is_believed_by_its_notes() {
    let mut state = state();
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
        availability: None,
        stays: Duration::from_secs(60),
    };
    state.awareness.show(&visit, None);
    assert!(!state.awareness.due().is_empty(), "from now on the server saves");
    state.on_save_noted();
    assert!(state.unsaved.is_some(), "before, it need not have");
    state.unsaved = None;

    let late = change(&mut state, "ab");
    state.on_save_noted();
    assert!(state.unsaved.is_some(), "it is not with the server yet");
    state.document.apply_remote(&late).expect("an echo");
    state.on_save_noted();
    assert!(state.unsaved.is_none());
}

#[test]
fn what_a_person_saved_by_hand_is_saved() {
    let mut state = state();
    let by_hand = AwarenessEntry {
        client: 1,
        clock: 1,
        state: r#"{"user":{},"autosave":false}"#.to_owned(),
    };
    state.awareness.received(vec![by_hand]);
    edit(&mut state, "a", true);
    state.on_save_noted();
    assert!(
        state.unsaved.is_some(),
        "the note of a save that may have begun before the edit"
    );
    later(&mut state, SAVE_OVERDUE);
    state.on_save_noted();
    assert!(state.unsaved.is_none());
}

#[test]
fn a_server_that_takes_long_to_save_is_asked_more_rarely() {
    let mut state = state();
    edit(&mut state, "a", true);
    later(&mut state, SAVE_OVERDUE);
    assert!(state.request_overdue_save().is_some());
    later(&mut state, Duration::from_millis(200));
    state.on_save_answered(1, SaveStatus::Success);
    later(&mut state, Duration::from_millis(3700));
    assert!(state.request_overdue_save().is_none());
    later(&mut state, Duration::from_millis(200));
    assert!(state.request_overdue_save().is_some());
}

#[test]
fn what_was_changed_last_is_saved_soon_however_long_saving_takes() {
    let mut state = state();
    edit(&mut state, "a", true);
    later(&mut state, SAVE_OVERDUE);
    let first = state.request_overdue_save().expect("a request");
    later(&mut state, Duration::from_secs(2));
    state.on_save_answered(first, SaveStatus::Success);
    state.saving.took = Duration::from_secs(60);
    edit(&mut state, "b", true);
    assert!(state.request_overdue_save().is_none(), "more may come");
    later(&mut state, SAVES_AFTER);
    let last = state.request_overdue_save();
    assert!(last.is_some(), "nothing came since, and it was not asked since");
    later(&mut state, Duration::from_secs(4));
    state.on_save_answered(2, SaveStatus::Skipped);
    assert!(state.request_overdue_save().is_some(), "it did nothing");
}

#[test]
fn a_server_that_has_just_been_restarted_is_asked_for_nothing() {
    let mut state = state();
    edit(&mut state, "a", true);
    state.saving = Saving::not_before(state.now() + Duration::from_secs(2));
    assert!(state.request_save().is_none() && state.request_save_now().is_none());
    later(&mut state, Duration::from_secs(2));
    assert!(state.request_save_now().is_some());
}

#[test]
fn a_request_that_the_server_forgot_is_made_again() {
    let mut state = state();
    edit(&mut state, "a", true);
    state.request_save();
    later(&mut state, 2 * REQUEST_FORGOTTEN_AFTER);
    assert!(state.request_save().is_none(), "it may still be at it");
    state.on_pong(&state.saving.ping());
    assert!(state.request_save().is_some());
    assert!(state.request_save().is_none(), "one at a time");
}

#[test]
fn a_server_that_knows_no_requests_is_believed_by_its_notes() {
    let mut state = state();
    edit(&mut state, "a", true);
    state.on_save_noted();
    state.request_save();
    state.on_pong(&state.saving.ping());
    assert!(state.unsaved.is_none(), "what was noted before it was known");
    edit(&mut state, "ab", false);
    state.on_save_noted();
    assert!(state.unsaved.is_some(), "the server did not have it yet");
    edit(&mut state, "abc", true);
    state.on_save_noted();
    assert!(state.unsaved.is_some(), "one edit is still on its way");
}
