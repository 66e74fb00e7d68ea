//! Who is in the room: agents of this gateway, each with a presence of its own over the one socket,
//! and everybody else. Does no I/O.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};

use super::wire::AwarenessEntry;

/// JupyterLab forgets a presence that is silent for 30 s.
const REFRESH_AFTER: Duration = Duration::from_secs(12);
/// So does everybody else here, Jupyter included.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);
/// Whoever is in a room says so every 15 s, give or take the 3 s by which clients look at the clock.
pub(super) const EVERYBODY_SPOKE: Duration = Duration::from_secs(20);
/// A cursor that moves all the time is shown this often: what is said of it costs the server about as much as an edit,
/// and the next edit has to wait behind it.
const CURSOR_INTERVAL: Duration = Duration::from_millis(100);
/// Marks a presence as an agent's, which has no wishes of its own.
const AGENT: &str = "agent";
/// An agent that did nothing for so long has left.
const AGENT_LEAVES_AFTER: Duration = Duration::from_secs(20);
/// Colours that are readable on JupyterLab's light and dark themes.
const COLOURS: [&str; 8] = [
    "#8844ff", "#d6336c", "#0c8599", "#e8590c", "#2f9e44", "#1971c2", "#9c36b5", "#846358",
];

#[derive(Debug)]
pub(super) struct Awareness {
    agents: HashMap<Arc<str>, Agent>,
    others: HashMap<u64, Other>,
    /// Since when it is heard what people say.
    since: Instant,
    /// Whether we edited: before that, the server knows of no agent here.
    edited: bool,
    /// Whether the server saved an edit of its own accord.
    saved: bool,
    /// What agents said last of autosave.
    said: Option<bool>,
}

#[derive(Debug)]
struct Other {
    state: Value,
    heard: Instant,
}

#[derive(Debug)]
struct Agent {
    client: u64,
    clock: u64,
    user: Value,
    /// What it says of itself beside its name.
    members: Map<String, Value>,
    last_active: Instant,
    /// When it was said what is true now; nothing if that is still to be said.
    last_sent: Option<Instant>,
    /// When something was said at all.
    last_said: Option<Instant>,
}

impl Default for Awareness {
    fn default() -> Self {
        Self {
            agents: HashMap::new(),
            others: HashMap::new(),
            since: Instant::now(),
            edited: false,
            saved: false,
            said: None,
        }
    }
}

impl Awareness {
    /// Shows an agent in the room, with its cursor if it has one; else with that which it had.
    pub(super) fn show(&mut self, id: &Arc<str>, name: &str, cursors: Option<Value>) {
        let had = self
            .agents
            .get(id)
            .and_then(|agent| agent.members.get("cursors"))
            .cloned();
        let cursors = cursors.or(had).unwrap_or_else(|| json!([]));
        self.say(id, name, Map::from_iter([("cursors".to_owned(), cursors)]));
    }

    /// Shows an agent with what it says of itself. Returns whether that is news.
    pub(super) fn say(&mut self, id: &Arc<str>, name: &str, members: Map<String, Value>) -> bool {
        let now = Instant::now();
        let agent = self.agents.entry(Arc::clone(id)).or_insert_with(|| Agent {
            client: super::new_client_id(),
            clock: 0,
            user: user(id, name),
            members: Map::new(),
            last_active: now,
            last_sent: None,
            last_said: None,
        });
        agent.last_active = now;
        let is_new = agent.members != members;
        if is_new {
            agent.members = members;
            agent.last_sent = None;
        }
        is_new
    }

    /// Whether no agent is here.
    pub(super) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// What others say of themselves. Returns whether a newcomer should be told who is here.
    pub(super) fn received(&mut self, entries: Vec<AwarenessEntry>) -> bool {
        let mut newcomer = false;
        for entry in entries {
            if let Some(agent) = self.agents.values_mut().find(|agent| agent.client == entry.client) {
                // Our own echo, or somebody who takes us for gone; the next word must be newer.
                if entry.clock > agent.clock || entry.state == "null" {
                    agent.clock = agent.clock.max(entry.clock);
                    (agent.last_sent, agent.last_said) = (None, None);
                }
                continue;
            }
            match serde_json::from_str(&entry.state).unwrap_or(Value::Null) {
                Value::Null => drop(self.others.remove(&entry.client)),
                state => {
                    let heard = Instant::now();
                    newcomer |= self.others.insert(entry.client, Other { state, heard }).is_none();
                }
            }
        }
        self.others.retain(|_, other| other.is_here());
        newcomer
    }

    /// What must be said now: presences that changed or would be forgotten, and agents that left.
    ///
    /// The server saves if anybody in the room wants that, or if nobody says anything, so among people agents say
    /// that they need not have it. Until it is known whether there are any, they are silent before their first
    /// edit: what becomes of that is then for the server alone to decide, and tells.
    pub(super) fn due(&mut self) -> Vec<AwarenessEntry> {
        if self.is_silent() {
            return Vec::new();
        }
        let says = self.autosave() == Some(true) && self.wishes().next().is_none();
        if self.said.replace(says) != Some(says) {
            self.repeat_all();
            // What is said of saving counts from now on.
            for agent in self.agents.values_mut() {
                agent.last_said = None;
            }
        }
        self.due_with(&[("autosave", says.into()), (AGENT, true.into())], CURSOR_INTERVAL)
    }

    fn is_silent(&self) -> bool {
        !self.edited && self.autosave().is_none()
    }

    /// When something is due that was said too shortly before to be said again at once.
    pub(super) fn due_at(&self) -> Option<Instant> {
        if self.is_silent() {
            return None;
        }
        let unsaid = self.agents.values().filter(|agent| agent.last_sent.is_none());
        unsaid
            .filter_map(|agent| Some(agent.last_said? + CURSOR_INTERVAL))
            .min()
    }

    /// The same, with something that all of them say, and none more often than in this interval.
    pub(super) fn due_with(&mut self, common: &[(&str, Value)], interval: Duration) -> Vec<AwarenessEntry> {
        let now = Instant::now();
        let is_older = |at: Option<Instant>, age: Duration| at.is_none_or(|at| now.duration_since(at) >= age);
        let mut entries = Vec::new();
        self.agents.retain(|_, agent| {
            let left = now.duration_since(agent.last_active) > AGENT_LEAVES_AFTER;
            let due = is_older(agent.last_sent, REFRESH_AFTER) && is_older(agent.last_said, interval);
            if left {
                entries.push(agent.say("null".to_owned()));
            } else if due {
                let mut state = agent.members.clone();
                state.insert("user".to_owned(), agent.user.clone());
                state.extend(common.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
                entries.push(agent.say(Value::Object(state).to_string()));
                (agent.last_sent, agent.last_said) = (Some(now), Some(now));
            }
            !left
        });
        entries
    }

    /// Everybody says again that they are here, after a reconnection or for a newcomer.
    pub(super) fn repeat_all(&mut self) {
        for agent in self.agents.values_mut() {
            agent.last_sent = None;
        }
    }

    /// All agents leave, because the room is being closed.
    pub(super) fn farewell(&mut self) -> Vec<AwarenessEntry> {
        self.agents
            .drain()
            .map(|(_, mut agent)| agent.say("null".to_owned()))
            .collect()
    }

    /// We edited the document.
    pub(super) fn edited(&mut self) {
        self.edited = true;
    }

    /// The server saved the document. While it is unknown what people want it is not asked to, so that it did says
    /// that somebody wants it, or that nobody is there.
    pub(super) fn saved(&mut self) {
        self.saved |= self.edited;
    }

    /// The names of those who are here, each once.
    pub(super) fn names(&self) -> Vec<String> {
        let others = self.others.values().filter(|other| other.is_here());
        let users = others.filter_map(|other| other.state.get("user"));
        let users = users.chain(self.agents.values().map(|agent| &agent.user));
        let name = |user: &Value| {
            let names = ["display_name", "name"];
            let name = names.iter().find_map(|key| user.get(key)?.as_str());
            name.filter(|name| !name.is_empty()).map(str::to_owned)
        };
        let names: BTreeSet<String> = users.filter_map(name).collect();
        names.into_iter().collect()
    }

    /// Whether people want the document saved by itself, as soon as that is known. Jupyter tells newcomers of nobody
    /// who is in a room already; what they want is known when they next speak, or by what the server does.
    pub(super) fn autosave(&self) -> Option<bool> {
        let mut wishes = self.wishes().peekable();
        match wishes.peek() {
            Some(_) => Some(wishes.any(|wish| wish)),
            None => (self.saved || self.since.elapsed() > EVERYBODY_SPOKE).then_some(true),
        }
    }

    /// Whether the server is known to save by itself what is changed from now on.
    pub(super) fn server_saves(&self) -> bool {
        self.autosave() == Some(true) && (self.said == Some(true) || self.wishes().any(|wish| wish))
    }

    fn wishes(&self) -> impl Iterator<Item = bool> {
        let here = self.others.values().filter(|other| other.is_here());
        here.filter_map(Other::wish)
    }
}

impl Other {
    fn is_here(&self) -> bool {
        self.heard.elapsed() < FORGOTTEN_AFTER
    }

    /// Whether this one wants the document saved by itself, as the server understands it.
    fn wish(&self) -> Option<bool> {
        let state = self.state.as_object().filter(|state| !state.is_empty())?;
        if state.contains_key(AGENT) {
            return None;
        }
        Some(state.get("autosave").and_then(Value::as_bool).unwrap_or(true))
    }
}

impl Agent {
    fn say(&mut self, state: String) -> AwarenessEntry {
        self.clock += 1;
        AwarenessEntry {
            client: self.client,
            clock: self.clock,
            state,
        }
    }
}

/// The user as JupyterLab shows it. The user panel hides entries with the viewer's own name and merges
/// equal ones, so the username is the principal's unique id.
fn user(id: &str, name: &str) -> Value {
    let initials: String = name
        .split(|c: char| !c.is_alphanumeric())
        .filter_map(|word| word.chars().next())
        .take(2)
        .collect();
    let colour = id
        .bytes()
        .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
        % COLOURS.len();
    json!({
        "username": id,
        "name": name,
        "display_name": name,
        "initials": initials.to_uppercase(),
        "color": COLOURS[colour],
        "avatar_url": null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let id: Arc<str> = "token:ana".into();
        awareness.show(&id, "ana agent", None);
        assert!(awareness.due().is_empty(), "silent before the first edit");
        awareness.edited();
        let due = awareness.due();
        assert_eq!((due.len(), due[0].clock), (1, 1), "clocks start at 1");
        let state: Value = serde_json::from_str(&due[0].state).expect("json");
        assert_eq!(
            (&state["user"]["initials"], &state["autosave"]),
            (&json!("AA"), &json!(false))
        );
        assert!(awareness.due().is_empty());
        assert_eq!(awareness.farewell()[0].state, "null");
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
        awareness.show(&"a".into(), "a", None);
        awareness.saved();
        assert_eq!(awareness.autosave(), None, "it may have been asked to");
        awareness.edited();
        assert_eq!(autosave_said(&awareness.due()), false);
        awareness.saved();
        assert_eq!(awareness.autosave(), Some(true));
        assert_eq!(autosave_said(&awareness.due()), true);
        awareness.received(vec![entry(1, &json!({ "autosave": true }))]);
        assert_eq!(autosave_said(&awareness.due()), false, "people decide");
        let mut patient = Awareness {
            since: Instant::now().checked_sub(EVERYBODY_SPOKE).expect("a clock"),
            ..Awareness::default()
        };
        assert_eq!(patient.autosave(), Some(true));
        patient.received(vec![entry(1, &json!({ "autosave": false }))]);
        assert_eq!(patient.autosave(), Some(false));
    }

    #[test]
    fn who_is_silent_for_long_has_left() {
        let mut awareness = Awareness::default();
        awareness.received(vec![entry(1, &json!({ "user": { "name": "Ida" }, "autosave": false }))]);
        assert_eq!(awareness.names(), ["Ida"]);
        for other in awareness.others.values_mut() {
            other.heard = other.heard.checked_sub(FORGOTTEN_AFTER).expect("a clock");
        }
        assert_eq!(awareness.autosave(), None);
        assert!(awareness.names().is_empty());
    }

    #[test]
    fn a_cursor_that_moves_all_the_time_is_shown_now_and_then() {
        let mut awareness = Awareness::default();
        let id: Arc<str> = "a".into();
        awareness.edited();
        let mut moves = |position: u32| awareness.show(&id, "a", Some(json!([position])));
        moves(1);
        moves(2);
        assert_eq!(awareness.due_at(), None, "the first time at once");
        assert_eq!(awareness.due().len(), 1);
        awareness.show(&id, "a", Some(json!([3])));
        assert!(awareness.due().is_empty());
        let due = awareness.due_at().expect("later");
        assert!(due > Instant::now() && due <= Instant::now() + CURSOR_INTERVAL);
        let agent = awareness.agents.get_mut(&id).expect("there");
        agent.last_said = Instant::now().checked_sub(CURSOR_INTERVAL);
        assert!(awareness.due()[0].state.contains("[3]"), "with where it is now");
        assert_eq!(awareness.due_at(), None);
    }

    #[test]
    fn an_agent_that_somebody_declared_gone_comes_back() {
        let mut awareness = Awareness::default();
        awareness.show(&"a".into(), "a", None);
        awareness.edited();
        let said = awareness.due().remove(0);
        awareness.received(vec![AwarenessEntry {
            state: "null".to_owned(),
            clock: 9,
            ..said
        }]);
        assert_eq!(awareness.due()[0].clock, 10);
    }
}
