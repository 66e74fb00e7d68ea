//! The life of a document, with a clock of the test's own.

use super::*;
use crate::core::{Edit, RoomKind, clock::Clock, document::Document, policy::SAVE_OVERDUE, wire::AwarenessEntry};

const MOMENT: Duration = Duration::from_millis(10);

/// A text document with a server that only says what the test has it say.
struct Life {
    state: State,
    server: Document,
    now: Instant,
}

impl Life {
    fn new() -> Self {
        let clock = Clock::default();
        let mut server = Document::new(RoomKind::Text, clock);
        let text = "file".to_owned();
        server
            .apply_local(&"lab".into(), &[Edit::SetText { text }])
            .expect("valid");
        let mut document = Document::new(RoomKind::Text, clock);
        let all = server.diff(&StateVector::default());
        document.apply_remote(&all).expect("valid");
        let path = DocPath::parse("a.md").expect("a path");
        let state = State::new(document, path, "id".to_owned(), "one".to_owned());
        let now = clock.now();
        Self { state, server, now }
    }

    fn on(&mut self, input: Input<'_>) -> Vec<Effect> {
        self.now += MOMENT;
        self.state.on(input, self.now)
    }

    fn later(&mut self, time: Duration) -> Vec<Effect> {
        self.now += time;
        self.on(Input::Tick)
    }

    fn edit(&mut self, text: &str) {
        let edits = [Edit::SetText { text: text.to_owned() }];
        let applied = self.state.document.apply_local(&"ana".into(), &edits).expect("valid");
        self.state.changed(applied.update, crate::core::state::Origin::Caller);
    }

    /// Sends what waits, and has the server confirm it.
    fn exchange(&mut self) {
        for effect in self.on(Input::Flush) {
            let Effect::Send(frames) = effect else { continue };
            for frame in frames {
                if let Ok(Some(Message::Update(update))) = Message::decode(&frame) {
                    self.server.apply_remote(&update).expect("it fits");
                }
                self.on(Input::Frame(&frame));
            }
        }
    }

    fn person(&mut self, autosave: bool) {
        let state = format!(r#"{{"user":{{}},"autosave":{autosave}}}"#);
        let entry = AwarenessEntry {
            client: 1,
            clock: 1,
            state,
        };
        self.on(Input::Frame(&Message::Awareness(vec![entry]).encode()));
    }

    fn joined(&self, path: &str, session: &str) -> Input<'static> {
        let mut document = Document::new(RoomKind::Text, Clock::default());
        let all = self.server.diff(&StateVector::default());
        document.apply_remote(&all).expect("valid");
        Input::Joined(Box::new(Joined {
            path: DocPath::parse(path).expect("a path"),
            file_id: "id".to_owned(),
            writable: true,
            file_written: None,
            theirs: ServerDocument {
                document,
                updates: vec![all],
                server_session: session.to_owned(),
            },
            server_vector: Some(self.server.state_vector()),
        }))
    }
}

fn cut() -> Input<'static> {
    Input::Lost(Disconnect::Cut("test".to_owned()))
}

fn unreachable() -> RoomError {
    RoomError::Reconnecting {
        server: "lab".to_owned(),
        path: "a.md".to_owned(),
    }
}

fn reconnects_after(effects: &[Effect]) -> Option<u128> {
    match effects {
        [Effect::Reconnect { after }] => Some(after.as_millis()),
        _ => None,
    }
}

fn asks_to_save(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Save(_)))
}

#[test]
fn a_cut_is_mended_with_growing_pauses() {
    let mut life = Life::new();
    assert_eq!(reconnects_after(&life.on(cut())), Some(0));
    assert_eq!(life.state.next_timer(), None, "the driver joins");
    let pauses: Vec<_> = (0..3)
        .map(|_| reconnects_after(&life.on(Input::JoinFailed(unreachable()))))
        .collect();
    assert_eq!(pauses, [Some(100), Some(200), Some(400)]);
    let joined = life.joined("a.md", "one");
    assert_eq!(life.on(joined).pop(), Some(Effect::Connected));
    assert_eq!(reconnects_after(&life.on(cut())), Some(0), "from the beginning");
}

#[test]
fn what_cannot_be_joined_is_over() {
    let mut life = Life::new();
    life.on(cut());
    let gone = RoomError::Refused {
        server: "lab".to_owned(),
        path: "a.md".to_owned(),
        why: "no".to_owned(),
    };
    let effects = life.on(Input::JoinFailed(gone.clone()));
    assert_eq!(effects, [Effect::Close(CloseReason::CannotJoin(gone))]);
    assert!(life.on(Input::Close).is_empty(), "once");
}

#[test]
fn an_edit_that_was_made_while_it_was_cut_goes_out_with_the_answer() {
    let mut life = Life::new();
    life.on(cut());
    life.edit("file and more");
    assert!(life.on(Input::Flush).is_empty(), "there is no connection");
    let joined = life.joined("a.md", "one");
    let effects = life.on(joined);
    let [Effect::Send(frames), Effect::Connected] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    let Ok(Some(Message::SyncStep2(update))) = Message::decode(&frames[0]) else {
        panic!("an answer");
    };
    life.server.apply_remote(&update).expect("it fits");
    assert_eq!((life.server.text().as_str(), frames.len()), ("file and more", 1));
}

#[test]
fn a_document_that_moved_while_it_was_joined_is_joined_again() {
    let mut life = Life::new();
    let path = DocPath::parse("b/a.md").expect("a path");
    assert_eq!(reconnects_after(&life.on(Input::Moved(path))), Some(0));
    let joined = life.joined("a.md", "one");
    assert_eq!(reconnects_after(&life.on(joined)), Some(0));
    let joined = life.joined("b/a.md", "one");
    assert_eq!(life.on(joined).pop(), Some(Effect::Connected));
}

#[test]
fn silence_is_a_cut_and_every_tick_pings() {
    let mut life = Life::new();
    assert!(matches!(life.on(Input::Tick).as_slice(), [Effect::Ping(_)]));
    assert_eq!(life.state.next_timer(), Some(life.now + TICK));
    assert!(life.on(Input::Tick).is_empty(), "not yet again");
    assert!(matches!(life.later(TICK).as_slice(), [Effect::Ping(_)]));
    assert_eq!(reconnects_after(&life.later(CONNECTION_TIMEOUT)), Some(0));
}

#[test]
fn a_malformed_frame_is_the_end() {
    let mut life = Life::new();
    let effects = life.on(Input::Frame(&[0, 2, 200]));
    assert!(
        matches!(
            effects.as_slice(),
            [Effect::Close(CloseReason::Lost(Disconnect::Malformed(_)))]
        ),
        "{effects:?}"
    );
}

#[test]
fn a_failed_save_has_the_file_looked_for_and_a_missing_one_ends_the_document() {
    let mut life = Life::new();
    life.person(true);
    life.edit("more");
    life.exchange();
    assert!(asks_to_save(&life.later(SAVE_OVERDUE)));
    let failed = Message::Jupyter(r#"{"type":"save","responseTo":1,"status":"failed"}"#.to_owned()).encode();
    assert!(life.on(Input::Frame(&failed)).contains(&Effect::AskForFile));
    assert!(life.on(Input::FileAnswer { exists: true }).is_empty());
    let effects = life.on(Input::FileAnswer { exists: false });
    assert!(matches!(
        effects.as_slice(),
        [Effect::Close(CloseReason::Lost(Disconnect::Closed { code: GONE, .. }))]
    ));
}

#[test]
fn who_leaves_with_everything_saved_leaves_at_once() {
    let mut life = Life::new();
    assert_eq!(life.on(Input::Close), [Effect::Close(CloseReason::Left)]);
}

#[test]
fn who_leaves_saves_first_if_people_want_that() {
    let mut life = Life::new();
    life.person(true);
    life.edit("more");
    life.exchange();
    assert!(asks_to_save(&life.on(Input::Close)));
    assert!(life.later(Duration::from_secs(1)).is_empty(), "it waits");
    let effects = life.later(LEAVE_SAVE_TIMEOUT);
    assert_eq!(effects, [Effect::Close(CloseReason::Left)], "but not for ever");
}

#[test]
fn who_leaves_people_who_save_by_hand_does_not_save() {
    let mut life = Life::new();
    life.person(false);
    life.edit("more");
    life.exchange();
    assert!(!asks_to_save(&life.later(SAVE_OVERDUE)));
    assert_eq!(life.on(Input::Close), [Effect::Close(CloseReason::Left)]);
}

#[test]
fn who_leaves_before_it_is_known_what_people_want_waits_for_that() {
    let mut life = Life::new();
    life.edit("more");
    life.exchange();
    assert!(life.on(Input::Close).is_empty());
    assert!(life.state.next_timer().is_some_and(|at| at <= life.now + LEAVE_TICK));
    assert!(asks_to_save(&life.later(AWARENESS_ROUND)), "nobody spoke");
}

#[test]
fn a_cut_while_leaving_is_the_end() {
    let mut life = Life::new();
    life.edit("more");
    life.on(Input::Close);
    assert_eq!(life.on(cut()), [Effect::Close(CloseReason::Left)]);
}
