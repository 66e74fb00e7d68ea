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
/// An agent that did nothing for so long has left.
const AGENT_LEAVES_AFTER: Duration = Duration::from_secs(20);
/// Colours that are readable on JupyterLab's light and dark themes.
const COLOURS: [&str; 8] = [
    "#8844ff", "#d6336c", "#0c8599", "#e8590c", "#2f9e44", "#1971c2", "#9c36b5", "#846358",
];

#[derive(Debug, Default)]
pub(super) struct Awareness {
    agents: HashMap<Arc<str>, Agent>,
    others: HashMap<u64, Value>,
}

#[derive(Debug)]
struct Agent {
    client: u64,
    clock: u64,
    user: Value,
    /// What it says of itself beside its name.
    members: Map<String, Value>,
    last_active: Instant,
    last_sent: Option<Instant>,
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
                    agent.last_sent = None;
                }
                continue;
            }
            match serde_json::from_str(&entry.state).unwrap_or(Value::Null) {
                Value::Null => drop(self.others.remove(&entry.client)),
                state => newcomer |= self.others.insert(entry.client, state).is_none(),
            }
        }
        newcomer
    }

    /// What must be said now: presences that changed or would be forgotten, and agents that left.
    pub(super) fn due(&mut self) -> Vec<AwarenessEntry> {
        let autosave = self.autosave();
        self.due_with(&[("autosave", autosave.into())])
    }

    /// The same, with something that all of them say.
    pub(super) fn due_with(&mut self, common: &[(&str, Value)]) -> Vec<AwarenessEntry> {
        let now = Instant::now();
        let mut entries = Vec::new();
        self.agents.retain(|_, agent| {
            let left = now.duration_since(agent.last_active) > AGENT_LEAVES_AFTER;
            let due = agent
                .last_sent
                .is_none_or(|sent| now.duration_since(sent) > REFRESH_AFTER);
            if left {
                entries.push(agent.say("null".to_owned()));
            } else if due {
                let mut state = agent.members.clone();
                state.insert("user".to_owned(), agent.user.clone());
                state.extend(common.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
                entries.push(agent.say(Value::Object(state).to_string()));
                agent.last_sent = Some(now);
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

    pub(super) fn forget_others(&mut self) {
        self.others.clear();
    }

    /// The names of those who are here, each once.
    pub(super) fn names(&self) -> Vec<String> {
        let users = self.others.values().filter_map(|state| state.get("user"));
        let users = users.chain(self.agents.values().map(|agent| &agent.user));
        let name = |user: &Value| {
            let names = ["display_name", "name"];
            let name = names.iter().find_map(|key| user.get(key)?.as_str());
            name.filter(|name| !name.is_empty()).map(str::to_owned)
        };
        let names: BTreeSet<String> = users.filter_map(name).collect();
        names.into_iter().collect()
    }

    /// Whether people want their documents saved by themselves. The server saves if anybody in the room
    /// does, so an agent must not speak up against a person who switched it off. One who did so before we
    /// joined is known when they next speak, which JupyterLab does every 15 s: Jupyter tells newcomers of
    /// nobody, and to hold back until then would keep agents unseen and, where they are alone, unsaved.
    pub(super) fn autosave(&self) -> bool {
        let mut choices = self
            .others
            .values()
            .filter_map(|state| state.get("autosave").and_then(Value::as_bool))
            .peekable();
        choices.peek().is_none() || choices.any(|choice| choice)
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
        let due = awareness.due();
        assert_eq!((due.len(), due[0].clock), (1, 1), "clocks start at 1");
        let state: Value = serde_json::from_str(&due[0].state).expect("json");
        assert_eq!(
            (&state["user"]["initials"], &state["autosave"]),
            (&json!("AA"), &json!(true))
        );
        assert!(awareness.due().is_empty());
        assert_eq!(awareness.farewell()[0].state, "null");
    }

    #[test]
    fn a_person_who_switched_autosave_off_is_respected() {
        let mut awareness = Awareness::default();
        awareness.received(vec![
            entry(1, &json!({ "user": {}, "autosave": false })),
            entry(2, &json!({})),
        ]);
        assert!(!awareness.autosave());
        assert!(awareness.names().is_empty(), "nobody here has a name");
        awareness.received(vec![entry(3, &json!({ "autosave": true }))]);
        assert!(awareness.autosave());
        awareness.received(vec![entry(3, &Value::Null)]);
        assert!(!awareness.autosave());
    }

    #[test]
    fn an_agent_that_somebody_declared_gone_comes_back() {
        let mut awareness = Awareness::default();
        awareness.show(&"a".into(), "a", None);
        let said = awareness.due().remove(0);
        awareness.received(vec![AwarenessEntry {
            state: "null".to_owned(),
            clock: 9,
            ..said
        }]);
        assert_eq!(awareness.due()[0].clock, 10);
    }
}
