//! Tests of the presences shown to people, and of their autosave preferences.

use super::*;

impl Default for Awareness {
    fn default() -> Self {
        Self::new(Instant::now())
    }
}

const STAYS: Duration = Duration::from_secs(60);

fn show(awareness: &mut Awareness, id: &str, activity: Activity) {
    let id: Arc<str> = id.into();
    let name = id.strip_prefix("token:").unwrap_or(&id).to_owned();
    let visit = Visit {
        id: &id,
        name: &name,
        activity,
        availability: None,
        stays: STAYS,
    };
    awareness.show(&visit, None);
}

fn state_of(entry: &AwarenessEntry) -> Value {
    serde_json::from_str(&entry.state).expect("json")
}

fn entry(client: u64, state: &Value) -> AwarenessEntry {
    AwarenessEntry {
        client,
        clock: 1,
        state: state.to_string(),
    }
}

#[test]
fn an_agent_is_announced_once_and_says_goodbye() {
    let mut awareness = Awareness::default();
    show(&mut awareness, "token:ana agent", Activity::Reading);
    let due = awareness.due();
    assert_eq!((due.len(), due[0].clock), (1, 1), "clocks start at 1");
    let state = state_of(&due[0]);
    assert_eq!(
        (&state["user"]["display_name"], &state["autosave"]),
        (&json!("ana agent · reading"), &json!(false))
    );
    assert!(awareness.due().is_empty());
    assert_eq!(awareness.remove_all()[0].state, "null");
}

#[test]
fn who_was_shown_before_it_is_known_what_people_want_withdraws_for_the_first_change() {
    let mut awareness = Awareness::default();
    assert!(awareness.withdraw().is_empty(), "nobody was shown");
    let mut awareness = Awareness::default();
    show(&mut awareness, "a", Activity::Reading);
    assert_eq!(awareness.due().len(), 1);
    let gone = awareness.withdraw();
    assert_eq!((gone.len(), &*gone[0].state), (1, "null"));
    awareness.record_edit();
    assert_eq!(awareness.due().len(), 1, "and is back");
    assert!(awareness.withdraw().is_empty(), "once");
    let mut known = Awareness::default();
    known.received(vec![entry(1, &json!({ "user": {}, "autosave": false }))]);
    show(&mut known, "a", Activity::Reading);
    assert_eq!(known.due().len(), 1);
    assert!(known.withdraw().is_empty(), "people say what they want");
}

#[test]
fn a_call_does_not_hide_that_code_goes_on() {
    let mut awareness = Awareness::default();
    let shown = |awareness: &Awareness| awareness.agents["a"].state("a", &[])["user"]["display_name"].clone();
    show(&mut awareness, "a", Activity::Running);
    show(&mut awareness, "a", Activity::Reading);
    assert_eq!(shown(&awareness), "a · running");
    show(&mut awareness, "a", Activity::AwaitingInput);
    assert_eq!(shown(&awareness), "a · waiting for input");
    awareness.end_execution(&"a".into());
    assert_eq!(shown(&awareness), "a");
    show(&mut awareness, "a", Activity::Editing);
    awareness.end_execution(&"a".into());
    assert_eq!(shown(&awareness), "a · editing", "only an execution ends");
    assert_eq!(awareness.names(), ["a"]);
}

#[test]
fn where_an_agent_runs_what_it_changed_the_change_stays_selected() {
    let mut awareness = Awareness::default();
    let id: Arc<str> = "a".into();
    let cursors = |cell: &str, ranges: Value, of_edit: bool| {
        Some(Cursors {
            cell: Some(cell.to_owned()),
            ranges,
            of_edit,
        })
    };
    let mut at = |cursors| {
        let visit = Visit {
            id: &id,
            name: "a",
            activity: Activity::Editing,
            availability: None,
            stays: STAYS,
        };
        awareness.show(&visit, cursors);
        awareness.agents["a"].members["cursors"].clone()
    };
    assert_eq!(at(cursors("c1", json!(["edit"]), true)), json!(["edit"]));
    assert_eq!(at(cursors("c1", json!(["run"]), false)), json!(["edit"]));
    assert_eq!(at(cursors("c2", json!(["run"]), false)), json!(["run"]));
    assert_eq!(at(None), json!(["run"]));
}

fn autosave_said(due: &[AwarenessEntry]) -> Value {
    let state: Value = serde_json::from_str(&due[0].state).expect("json");
    state["autosave"].clone()
}

#[test]
fn a_person_who_switched_autosave_off_is_respected() {
    let mut awareness = Awareness::default();
    awareness.received(vec![
        entry(1, &json!({ "user": {}, "autosave": false })),
        entry(2, &json!({})),
        entry(4, &json!({ "autosave": true, "agent": true })),
    ]);
    assert_eq!(awareness.autosave(), Some(false));
    assert!(awareness.names().is_empty(), "nobody here has a name");
    awareness.received(vec![entry(3, &json!({ "user": {} }))]);
    assert_eq!(awareness.autosave(), Some(true), "who says nothing of it wants it");
    awareness.received(vec![entry(3, &Value::Null)]);
    assert_eq!(awareness.autosave(), Some(false));
}

#[test]
fn what_people_want_is_unknown_until_the_server_shows_it_or_everybody_spoke() {
    let mut awareness = Awareness::default();
    show(&mut awareness, "a", Activity::Editing);
    awareness.record_save();
    assert_eq!(awareness.autosave(), None, "it may have been asked to");
    awareness.record_edit();
    assert_eq!(autosave_said(&awareness.due()), false);
    awareness.record_save();
    assert_eq!(awareness.autosave(), Some(true));
    assert_eq!(autosave_said(&awareness.due()), true);
    awareness.received(vec![entry(1, &json!({ "autosave": true }))]);
    assert_eq!(autosave_said(&awareness.due()), false, "people decide");
    let mut patient = Awareness { ..Awareness::default() };
    patient.set_now(patient.now + AWARENESS_ROUND + STAYS);
    assert_eq!(patient.autosave(), Some(true));
    patient.received(vec![entry(1, &json!({ "autosave": false }))]);
    assert_eq!(patient.autosave(), Some(false));
}

#[test]
fn who_is_silent_for_long_has_left() {
    let mut awareness = Awareness::default();
    awareness.received(vec![entry(1, &json!({ "user": { "name": "Ida" }, "autosave": false }))]);
    assert_eq!(awareness.names(), ["Ida"]);
    awareness.set_now(awareness.now + PRESENCE_FORGOTTEN_AFTER);
    awareness.since = awareness.now;
    assert_eq!(awareness.autosave(), None);
    assert!(awareness.names().is_empty());
}

#[test]
fn a_cursor_that_moves_all_the_time_is_shown_now_and_then() {
    let mut awareness = Awareness::default();
    let id: Arc<str> = "a".into();
    awareness.record_edit();
    let moves = |awareness: &mut Awareness, position: u32| {
        let visit = Visit {
            id: &id,
            name: "a",
            activity: Activity::Editing,
            availability: None,
            stays: STAYS,
        };
        let (ranges, of_edit) = (json!([position]), true);
        awareness.show(
            &visit,
            Some(Cursors {
                cell: None,
                ranges,
                of_edit,
            }),
        );
    };
    moves(&mut awareness, 1);
    moves(&mut awareness, 2);
    assert_eq!(awareness.due().len(), 1, "the first time at once");
    let said = awareness.now;
    moves(&mut awareness, 3);
    assert!(awareness.due().is_empty());
    assert_eq!(awareness.due_at(), Some(said + CURSOR_INTERVAL));
    awareness.set_now(said + CURSOR_INTERVAL);
    moves(&mut awareness, 4);
    assert!(awareness.due().is_empty(), "an edit may follow");
    assert_eq!(awareness.due_at(), Some(said + CURSOR_INTERVAL + CURSOR_PAUSE));
    awareness.set_now(said + CURSOR_OVERDUE);
    moves(&mut awareness, 5);
    assert!(awareness.due()[0].state.contains("[5]"), "with where it is now");
    assert_eq!(awareness.due_at(), None);
}

#[test]
fn a_state_that_everybody_knows_is_not_told_again_but_for_newcomers() {
    let mut awareness = Awareness::default();
    show(&mut awareness, "a", Activity::Reading);
    let told = awareness.due().remove(0);
    awareness.set_now(awareness.now + CURSOR_OVERDUE);
    show(&mut awareness, "a", Activity::Running);
    show(&mut awareness, "a", Activity::Reading);
    awareness.end_execution(&"a".into());
    show(&mut awareness, "a", Activity::Reading);
    awareness.set_now(awareness.now + CURSOR_OVERDUE);
    assert!(awareness.due().is_empty() && awareness.due_at().is_none());
    awareness.repeat_all();
    awareness.set_now(awareness.now + CURSOR_OVERDUE);
    assert_eq!(awareness.due()[0].state, told.state);
    awareness.set_now(awareness.now + PRESENCE_REFRESHED_AFTER);
    assert_eq!(awareness.due()[0].state, told.state, "so that nobody takes it for gone");
}

#[test]
fn an_agent_that_somebody_declared_gone_comes_back() {
    let mut awareness = Awareness::default();
    show(&mut awareness, "a", Activity::Editing);
    awareness.record_edit();
    let said = awareness.due().remove(0);
    awareness.received(vec![AwarenessEntry {
        state: "null".to_owned(),
        clock: 9,
        ..said
    }]);
    assert_eq!(awareness.due()[0].clock, 10);
}

#[test]
fn an_agent_that_leaves_says_goodbye_and_what_it_announced_ends() {
    let mut awareness = Awareness::default();
    show(&mut awareness, "a", Activity::Idle);
    awareness.due();
    let version = awareness.version();
    awareness.announce("a", "look here");
    awareness.set_now(awareness.now + CURSOR_OVERDUE);
    let name = |due: &[AwarenessEntry]| state_of(&due[0])["user"]["display_name"].clone();
    assert_eq!(name(&awareness.due()), "a · look here");
    awareness.set_now(awareness.now + ANNOUNCED_FOR);
    assert_eq!(name(&awareness.due()), "a");
    assert!(awareness.leave("a") && !awareness.leave("a"));
    assert_eq!(awareness.due_at(), Some(awareness.now));
    assert_eq!(awareness.due()[0].state, "null");
    assert!(awareness.version() > version && awareness.due().is_empty());
}

#[test]
fn who_is_silent_for_too_long_is_gone_and_who_repeats_themselves_was_not_active() {
    let mut awareness = Awareness::default();
    let person = json!({ "user": { "username": "h", "name": "Hanna" }, "current": "notebook:a.ipynb", "documents": ["a.ipynb"] });
    awareness.received(vec![entry(1, &person)]);
    let (said, version) = (awareness.now, awareness.version());
    awareness.set_now(said + Duration::from_secs(15));
    awareness.received(vec![entry(1, &person)]);
    let online = awareness.presences().map(|presence| presence.last_active);
    assert_eq!(online.collect::<Vec<_>>(), [said]);
    assert_eq!(awareness.version(), version);
    awareness.set_now(said + Duration::from_secs(50));
    assert!(awareness.due().is_empty() && awareness.presences().next().is_none());
    assert!(awareness.version() > version);
}
