//! Everybody in a room or on a server, people and agents alike, as their presences tell of them. Does no I/O.

use std::time::{Instant, SystemTime};

use serde_json::Value;

use super::{
    awareness::{AVAILABILITY, Awareness, Presence},
    change_log::Author,
    people::Cursor,
    presence::{Activity, Availability, Status},
    state::State,
};

/// Characters of a text of a presence.
const MAX_TEXT: usize = 200;
/// Cursors of one presence; an editor with more has gone mad.
const MAX_CURSORS: usize = 64;
/// Documents that somebody has open.
const MAX_DOCUMENTS: usize = 200;

/// Somebody, as their presence tells of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Jupyter's name for them; unique.
    pub id: String,
    pub name: String,
    pub display_name: String,
    pub initials: String,
    pub color: String,
    pub is_agent: bool,
    /// Activity of an agent of this gateway.
    pub activity: Option<Activity>,
    pub availability: Option<Availability>,
    /// Time of their last visible activity.
    pub last_activity: SystemTime,
}

/// Somebody in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    pub user: User,
    /// The id of their Yjs client.
    pub client: u64,
    pub cursors: Vec<CursorRange>,
}

/// A cursor with what is selected from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorRange {
    pub anchor: Cursor,
    /// Position of the cursor itself.
    pub head: Cursor,
    pub is_primary: bool,
}

/// Somebody who is online on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlineUser {
    pub user: User,
    /// The widget that they look at: its kind and path, as JupyterLab says it.
    pub current: Option<String>,
    /// The paths of the documents that they have open.
    pub documents: Vec<String>,
}

impl State {
    /// Everybody who is known to be here, with their cursors.
    pub(crate) fn participants(&self) -> Vec<Participant> {
        let now = WallClock::at(self.now());
        let of = |presence: Presence<'_>| {
            let cursors = presence.state.get("cursors").and_then(Value::as_array);
            let range = |cursor: &Value| {
                Some(CursorRange {
                    anchor: self.document.locate(cursor.get("anchor")?)?,
                    head: self.document.locate(cursor.get("head")?)?,
                    is_primary: cursor["primary"] == true,
                })
            };
            Some(Participant {
                user: user(&presence, now)?,
                client: presence.client,
                cursors: cursors
                    .into_iter()
                    .flatten()
                    .take(MAX_CURSORS)
                    .filter_map(range)
                    .collect(),
            })
        };
        self.awareness.presences().filter_map(of).collect()
    }

    /// Everybody who is known to be here.
    pub(crate) fn users(&self) -> Vec<User> {
        let now = WallClock::at(self.now());
        self.awareness
            .presences()
            .filter_map(|presence| user(&presence, now))
            .collect()
    }

    /// An author who is here; of one who left only the name is known.
    pub(crate) fn user_by_author(&self, author: &Author) -> Option<User> {
        let Author::Client(client) = author else { return None };
        let now = WallClock::at(self.now());
        let mut presences = self.awareness.presences();
        presences
            .find(|presence| presence.client == *client)
            .and_then(|presence| user(&presence, now))
    }
}

impl Awareness {
    /// Everybody who says to be online.
    pub(crate) fn online(&self, now: Instant) -> Vec<OnlineUser> {
        let now = WallClock::at(now);
        let of = |presence: Presence<'_>| {
            let documents = presence.state.get("documents").and_then(Value::as_array);
            let documents = documents.into_iter().flatten().filter_map(Value::as_str);
            Some(OnlineUser {
                user: user(&presence, now)?,
                current: presence.state.get("current").and_then(Value::as_str).map(str::to_owned),
                documents: documents.take(MAX_DOCUMENTS).map(str::to_owned).collect(),
            })
        };
        self.presences().filter_map(of).collect()
    }
}

/// A moment in both counts of time.
#[derive(Clone, Copy)]
struct WallClock(Instant, SystemTime);

impl WallClock {
    fn at(now: Instant) -> Self {
        Self(now, SystemTime::now())
    }

    fn wall(self, moment: Instant) -> SystemTime {
        let ago = self.0.saturating_duration_since(moment);
        self.1.checked_sub(ago).unwrap_or(self.1)
    }
}

/// The user of a presence; none if it names nobody.
fn user(presence: &Presence<'_>, now: WallClock) -> Option<User> {
    let user = presence.state.get("user")?;
    let text = |member: &str| {
        user.get(member)
            .and_then(Value::as_str)
            .map(printable)
            .filter(|text| !text.is_empty())
    };
    let name = text("name")
        .or_else(|| text("display_name"))
        .or_else(|| text("username"))?;
    Some(User {
        id: text("username").unwrap_or_else(|| name.clone()),
        display_name: text("display_name").unwrap_or_else(|| name.clone()),
        initials: text("initials").unwrap_or_default(),
        color: text("color").unwrap_or_default(),
        is_agent: presence.is_agent,
        activity: presence.activity,
        availability: availability(&presence.state),
        last_activity: now.wall(presence.last_active),
        name,
    })
}

/// Availability that somebody declares: an agent as gateways say it, a person as extensions of JupyterLab may.
fn availability(state: &Value) -> Option<Availability> {
    let Some(said) = state.get(AVAILABILITY) else {
        let status = state.get("status").or_else(|| state.get("user")?.get("status"))?;
        return Some(Availability {
            status: Status::parse(&status.as_str()?.to_lowercase())?,
            message: None,
        });
    };
    let message = said.get("message").and_then(Value::as_str).map(printable);
    Some(Availability {
        status: Status::parse(said.get("status")?.as_str()?)?,
        message: message.filter(|message| !message.is_empty()),
    })
}

fn printable(text: &str) -> String {
    let printable = text.chars().filter(|character| !character.is_control());
    let printable: String = printable.take(MAX_TEXT).collect();
    printable.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::{
        RoomKind,
        awareness::{Cursors, Visit},
        clock::Clock,
        document::Document,
        wire::AwarenessEntry,
    };

    #[test]
    fn people_and_agents_are_told_with_their_cursors() {
        let mut document = Document::new(RoomKind::Text, Clock::default());
        let edit = crate::Edit::SetText {
            text: "one\nzwö𝄞lf".to_owned(),
        };
        document.apply_local(&"token:ana".into(), &[edit]).expect("valid");
        let path = jupyter_client::DocPath::parse("a.md").expect("a path");
        let mut state = State::new(document, path, String::new(), String::new());
        let position = json!({ "type": null, "tname": "source", "item": null, "assoc": 0 });
        let person = json!({
            "user": { "username": "h1", "name": "Hanna", "display_name": "Hanna B\u{7}", "initials": "HB", "color": "red" },
            "cursors": [{ "anchor": position, "head": position, "primary": true, "empty": true }, { "head": 7 }],
        });
        let entry = |client: u64, state: &Value| AwarenessEntry {
            client,
            clock: 1,
            state: state.to_string(),
        };
        let nobody = json!({ "user": { "name": "" } });
        state
            .awareness
            .received(vec![entry(7, &person), entry(8, &nobody), entry(9, &json!(3))]);
        let visit = Visit {
            id: &"token:ana".into(),
            name: "ana",
            activity: Activity::Editing,
            availability: Some(Availability {
                status: Status::Busy,
                message: Some("reading".to_owned()),
            }),
            stays: std::time::Duration::from_secs(1),
        };
        let ranges = state
            .document
            .pointed_at(None, &[(4..7, true)])
            .expect("a place")
            .ranges;
        let cursors = Cursors {
            cell: None,
            ranges,
            of_edit: true,
        };
        state.awareness.show(&visit, Some(cursors));
        let mut participants = state.participants();
        participants.sort_by(|a, b| a.user.id.cmp(&b.user.id));
        let [hanna, ana] = &participants[..] else {
            panic!("{participants:?}")
        };
        assert_eq!((hanna.client, hanna.user.display_name.as_str()), (7, "Hanna B"));
        assert!(!hanna.user.is_agent && ana.user.is_agent);
        let end = |line, column| Cursor {
            cell: None,
            line,
            column,
        };
        assert_eq!(hanna.cursors.len(), 1, "what cannot be read is left out");
        assert_eq!(hanna.cursors[0].head, end(2, 6), "the end of the text, in code points");
        assert_eq!((&ana.cursors[0].anchor, &ana.cursors[0].head), (&end(2, 0), &end(2, 3)));
        assert_eq!(ana.user.availability, visit.availability);
        assert_eq!(
            state.user_by_author(&Author::Client(7)).map(|user| user.id).as_deref(),
            Some("h1")
        );
    }
}
