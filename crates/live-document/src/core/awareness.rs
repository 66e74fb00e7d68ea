//! Who is in the room: agents of this gateway, each with a presence of its own over the one socket,
//! and everybody else. Does no I/O.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::is_shallow_json;
use serde_json::{Map, Value, json};

use super::{
    limits::{MAX_PRESENCE_BYTES, MAX_PRESENCES},
    policy::{
        CURSOR_INTERVAL, EVERYBODY_SPOKE, EXECUTION_SHOWN_WITHIN, PRESENCE_FORGOTTEN_AFTER, PRESENCE_REFRESHED_AFTER,
        SHOWN_AGAIN_AFTER,
    },
    presence::{Activity, user},
    wire::AwarenessEntry,
};

/// Marks a presence as an agent's, which does not decide about saving.
const AGENT: &str = "agent";

#[derive(Debug)]
pub(crate) struct Awareness {
    /// As it was last told.
    now: Instant,
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
    /// Whether the server was left to decide about the first change of ours.
    decided: bool,
}

#[derive(Debug)]
struct Other {
    state: Value,
    heard: Instant,
}

/// An agent as it shows itself.
#[derive(Debug, Clone)]
pub(crate) struct Visit<'a> {
    pub(crate) id: &'a Arc<str>,
    pub(crate) name: &'a str,
    pub(crate) activity: Activity,
    /// How long it stays after the last time it did something.
    pub(crate) stays: Duration,
}

/// Where an agent's cursor is, or what it selected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cursors {
    /// The cell, if it is a notebook.
    pub(crate) cell: Option<String>,
    /// As JupyterLab shows them.
    pub(crate) ranges: Value,
    /// They cover what the agent changed, and do not merely say where it is.
    pub(crate) of_edit: bool,
}

#[derive(Debug)]
struct Agent {
    client: u64,
    clock: u64,
    name: String,
    user: Value,
    activity: Activity,
    cursors: Option<Cursors>,
    stays: Duration,
    /// What it says of itself beside its name.
    members: Map<String, Value>,
    last_active: Instant,
    /// When it was said what is true now; nothing if that is still to be said.
    last_sent: Option<Instant>,
    /// When something was said at all.
    last_said: Option<Instant>,
}

impl Awareness {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            now,
            agents: HashMap::new(),
            others: HashMap::new(),
            since: now,
            edited: false,
            saved: false,
            said: None,
            decided: false,
        }
    }

    pub(crate) fn tell_time(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// Shows an agent in the room, with its cursor if it has one; else with that which it had.
    pub(crate) fn show(&mut self, visit: &Visit<'_>, cursors: Option<Cursors>) {
        let had = self.agents.get(visit.id).and_then(|agent| agent.cursors.clone());
        // Where an agent runs what it just changed, people see what it changed.
        let stays = |had: &Cursors, new: &Cursors| had.of_edit && !new.of_edit && had.cell == new.cell;
        let cursors = match (had, cursors) {
            (Some(had), Some(new)) if stays(&had, &new) => Some(had),
            (had, new) => new.or(had),
        };
        let ranges = cursors
            .as_ref()
            .map_or_else(|| json!([]), |cursors| cursors.ranges.clone());
        self.say(visit, Map::from_iter([("cursors".to_owned(), ranges)]));
        if let Some(agent) = self.agents.get_mut(visit.id) {
            agent.cursors = cursors;
        }
    }

    /// Shows an agent with what it says of itself. Returns whether that is news.
    pub(crate) fn say(&mut self, visit: &Visit<'_>, members: Map<String, Value>) -> bool {
        let now = self.now;
        let mut is_new = !self.agents.contains_key(visit.id);
        let agent = self.agents.entry(Arc::clone(visit.id)).or_insert_with(|| Agent {
            client: super::new_client_id(),
            clock: 0,
            name: visit.name.to_owned(),
            user: Value::Null,
            activity: Activity::Idle,
            cursors: None,
            stays: visit.stays,
            members: Map::new(),
            last_active: now,
            last_sent: None,
            last_said: None,
        });
        let activity = agent.activity_with(visit.activity, now);
        agent.last_active = now;
        if is_new || agent.members != members || agent.activity != activity {
            is_new = true;
            agent.user = user(visit.id, visit.name, activity);
            (agent.members, agent.activity, agent.last_sent) = (members, activity, None);
        }
        is_new
    }

    /// Shows that what an agent executed has ended, if the agent is still here.
    pub(crate) fn rest(&mut self, id: &Arc<str>) {
        let now = self.now;
        if let Some(agent) = self.agents.get_mut(id).filter(|agent| agent.activity.is_execution()) {
            agent.user = user(id, &agent.name, Activity::Idle);
            (agent.activity, agent.last_sent) = (Activity::Idle, None);
            agent.last_active = now;
        }
    }

    /// What to say before the first change of ours, if agents were shown although it is not known what people want: they
    /// withdraw until it is sent, so that the server decides by itself whether to save it, and thereby tells.
    pub(crate) fn withdraw(&mut self) -> Vec<AwarenessEntry> {
        if self.decided || self.autosave().is_some() {
            self.decided = true;
            return Vec::new();
        }
        self.decided = true;
        let shown = self.agents.values_mut().filter(|agent| agent.last_said.is_some());
        shown
            .map(|agent| {
                (agent.last_sent, agent.last_said) = (None, None);
                agent.say("null".to_owned())
            })
            .collect()
    }

    /// Whether agents may keep the server from saving what somebody else changes who is silent: they say that they need
    /// not have it saved as long as it is not known what people want.
    pub(crate) fn may_keep_from_saving(&self) -> bool {
        self.said == Some(false) && self.autosave_preferences().next().is_none()
    }

    /// Whether an agent is shown with what it does, and was a moment ago.
    pub(crate) fn is_shown(&self, id: &Arc<str>, activity: Activity, now: Instant) -> bool {
        // Whoever edits or executes has also read.
        let is_same = |agent: &Agent| agent.activity == activity || activity == Activity::Reading;
        let is_fresh =
            |agent: &Agent| is_same(agent) && now.saturating_duration_since(agent.last_active) < SHOWN_AGAIN_AFTER;
        self.agents.get(id).is_some_and(is_fresh)
    }

    /// What an agent does when a run of its has ended: nothing, or what else it executes.
    pub(crate) fn activity_after_run(&self, id: &Arc<str>) -> Activity {
        let agent = self.agents.get(id).filter(|agent| agent.activity.is_execution());
        agent.map_or(Activity::Idle, |agent| agent.activity)
    }

    /// Whether no agent is here.
    pub(crate) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// What others say of themselves. Returns whether a newcomer should be told who is here.
    pub(crate) fn received(&mut self, entries: Vec<AwarenessEntry>) -> bool {
        let mut newcomer = false;
        for entry in entries {
            if let Some(agent) = self.agents.values_mut().find(|agent| agent.client == entry.client) {
                // Our own echo, or somebody who takes us for gone; the next word must be newer.
                if entry.clock > agent.clock || entry.clock == agent.clock && entry.state == "null" {
                    agent.clock = agent.clock.max(entry.clock);
                    (agent.last_sent, agent.last_said) = (None, None);
                }
                continue;
            }
            // What nobody could show is left out, and whoever it is about stays as they were.
            if entry.state.len() > MAX_PRESENCE_BYTES || !is_shallow_json(entry.state.as_bytes()) {
                continue;
            }
            match serde_json::from_str(&entry.state).unwrap_or(Value::Null) {
                Value::Null => drop(self.others.remove(&entry.client)),
                _ if self.others.len() >= MAX_PRESENCES && !self.others.contains_key(&entry.client) => {}
                state => {
                    let heard = self.now;
                    newcomer |= self.others.insert(entry.client, Other { state, heard }).is_none();
                }
            }
        }
        let now = self.now;
        self.others.retain(|_, other| other.is_here(now));
        newcomer
    }

    /// What somebody else last said of themselves.
    pub(crate) fn state_of(&self, client: u64) -> Option<&Value> {
        self.others.get(&client).map(|other| &other.state)
    }

    /// What the people who are here say of themselves, agents left aside.
    pub(crate) fn people(&self) -> impl Iterator<Item = &Value> {
        let here = self.others.values().filter(|other| other.is_here(self.now));
        here.map(|other| &other.state)
            .filter(|state| state.get(AGENT).is_none())
    }

    /// What must be said now: presences that changed or would be forgotten, and agents that left.
    ///
    /// The server saves if anybody in the room wants that, or if nobody says anything, so among people agents say
    /// that they need not have it, and likewise until it is known whether there are any.
    pub(crate) fn due(&mut self) -> Vec<AwarenessEntry> {
        if self.agents.is_empty() {
            return Vec::new();
        }
        let says = self.autosave() == Some(true) && self.autosave_preferences().next().is_none();
        if self.said.replace(says) != Some(says) {
            // What is said of saving counts from now on.
            self.repeat_all_now();
        }
        self.due_with(&[("autosave", says.into()), (AGENT, true.into())], CURSOR_INTERVAL)
    }

    /// When something is due that was said too shortly before to be said again at once, or that is said with the echo of
    /// an edit if there is one.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        let unsaid = self.agents.values().filter(|agent| agent.last_sent.is_none());
        unsaid
            .map(|agent| agent.last_said.unwrap_or(agent.last_active) + CURSOR_INTERVAL)
            .min()
    }

    /// The same, with something that all of them say, and none more often than in this interval.
    pub(crate) fn due_with(&mut self, common: &[(&str, Value)], interval: Duration) -> Vec<AwarenessEntry> {
        let now = self.now;
        let is_older = |at: Option<Instant>, age: Duration| at.is_none_or(|at| now.duration_since(at) >= age);
        let mut entries = Vec::new();
        self.agents.retain(|_, agent| {
            let left = now.duration_since(agent.last_active) > agent.stays;
            let due = is_older(agent.last_sent, PRESENCE_REFRESHED_AFTER) && is_older(agent.last_said, interval);
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
    pub(crate) fn repeat_all(&mut self) {
        for agent in self.agents.values_mut() {
            agent.last_sent = None;
        }
    }

    /// The same without waiting for the next interval.
    pub(crate) fn repeat_all_now(&mut self) {
        for agent in self.agents.values_mut() {
            (agent.last_sent, agent.last_said) = (None, None);
        }
    }

    /// All agents leave, because the room is being closed.
    pub(crate) fn farewell(&mut self) -> Vec<AwarenessEntry> {
        self.agents
            .drain()
            .map(|(_, mut agent)| agent.say("null".to_owned()))
            .collect()
    }

    /// We edited the document.
    pub(crate) fn record_edit(&mut self) {
        self.edited = true;
    }

    /// The server saved the document. While it is unknown what people want it is not asked to, so that it did says
    /// that somebody wants it, or that nobody is there.
    pub(crate) fn record_save(&mut self) {
        self.saved |= self.edited;
    }

    /// The names of those who are here, each once.
    pub(crate) fn names(&self) -> Vec<String> {
        let others = self.others.values().filter(|other| other.is_here(self.now));
        let ours = self.agents.values().map(|agent| agent.name.clone());
        let names: BTreeSet<String> = others.filter_map(Other::name).chain(ours).collect();
        names.into_iter().collect()
    }

    /// Whether people want the document saved by itself, as soon as that is known. Jupyter tells newcomers of nobody
    /// who is in a room already; what they want is known when they next speak, or by what the server does.
    pub(crate) fn autosave(&self) -> Option<bool> {
        let mut preferences = self.autosave_preferences().peekable();
        match preferences.peek() {
            Some(_) => Some(preferences.any(|wanted| wanted)),
            None => (self.saved || self.now.duration_since(self.since) > EVERYBODY_SPOKE).then_some(true),
        }
    }

    /// Whether the server is known to save by itself what is changed from now on.
    pub(crate) fn server_saves(&self) -> bool {
        self.autosave() == Some(true) && (self.said == Some(true) || self.autosave_preferences().any(|wanted| wanted))
    }

    fn autosave_preferences(&self) -> impl Iterator<Item = bool> {
        let here = self.others.values().filter(|other| other.is_here(self.now));
        here.filter_map(Other::autosave_preference)
    }
}

impl Other {
    fn is_here(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.heard) < PRESENCE_FORGOTTEN_AFTER
    }

    /// Agents of other gateways add to what is displayed what they do.
    fn name(&self) -> Option<String> {
        let user = self.state.get("user")?;
        let keys = match self.state.get(AGENT) {
            Some(_) => ["name", "display_name"],
            None => ["display_name", "name"],
        };
        let name = keys.iter().find_map(|key| user.get(key)?.as_str());
        name.filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// Whether this one wants the document saved by itself, as the server understands it.
    fn autosave_preference(&self) -> Option<bool> {
        let state = self.state.as_object().filter(|state| !state.is_empty())?;
        if state.contains_key(AGENT) {
            return None;
        }
        Some(state.get("autosave").and_then(Value::as_bool).unwrap_or(true))
    }
}

impl Agent {
    /// What it does, given what it now says to do: a single call does not hide that its code goes on.
    fn activity_with(&self, said: Activity, now: Instant) -> Activity {
        let goes_on = self.activity.is_execution() && now.duration_since(self.last_active) < EXECUTION_SHOWN_WITHIN;
        let is_call = matches!(said, Activity::Reading | Activity::Editing);
        if goes_on && is_call { self.activity } else { said }
    }

    fn say(&mut self, state: String) -> AwarenessEntry {
        self.clock += 1;
        AwarenessEntry {
            client: self.client,
            clock: self.clock,
            state,
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(awareness.farewell()[0].state, "null");
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
        let shown = |awareness: &Awareness| awareness.agents["a"].user["display_name"].clone();
        show(&mut awareness, "a", Activity::Running);
        show(&mut awareness, "a", Activity::Reading);
        assert_eq!(shown(&awareness), "a · running");
        show(&mut awareness, "a", Activity::AwaitingInput);
        assert_eq!(shown(&awareness), "a · waiting for input");
        awareness.rest(&"a".into());
        assert_eq!(shown(&awareness), "a");
        show(&mut awareness, "a", Activity::Editing);
        awareness.rest(&"a".into());
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
        patient.tell_time(patient.now + EVERYBODY_SPOKE + STAYS);
        assert_eq!(patient.autosave(), Some(true));
        patient.received(vec![entry(1, &json!({ "autosave": false }))]);
        assert_eq!(patient.autosave(), Some(false));
    }

    #[test]
    fn who_is_silent_for_long_has_left() {
        let mut awareness = Awareness::default();
        awareness.received(vec![entry(1, &json!({ "user": { "name": "Ida" }, "autosave": false }))]);
        assert_eq!(awareness.names(), ["Ida"]);
        awareness.tell_time(awareness.now + PRESENCE_FORGOTTEN_AFTER);
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
        moves(&mut awareness, 3);
        assert!(awareness.due().is_empty());
        let due = awareness.due_at().expect("later");
        assert_eq!(due, awareness.now + CURSOR_INTERVAL);
        awareness.tell_time(due);
        assert!(awareness.due()[0].state.contains("[3]"), "with where it is now");
        assert_eq!(awareness.due_at(), None);
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
}
