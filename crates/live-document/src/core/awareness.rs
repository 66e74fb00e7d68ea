//! Awareness of a room: agents of this gateway, each with a presence of its own over the one socket, and everybody
//! else. Does no I/O.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hasher as _},
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::is_shallow_json;
use serde_json::{Map, Value, json};

use super::{
    limits::{MAX_PRESENCE_BYTES, MAX_PRESENCES},
    policy::{
        ANNOUNCED_FOR, AWARENESS_ROUND, CURSOR_INTERVAL, CURSOR_OVERDUE, CURSOR_PAUSE, EXECUTION_SHOWN_FOR,
        PRESENCE_FORGOTTEN_AFTER, PRESENCE_REFRESHED_AFTER, SHOWN_AGAIN_AFTER,
    },
    presence::{Activity, Availability, NameTexts, user},
    wire::AwarenessEntry,
};

/// Key that marks a presence as an agent's, which has no say in saving.
const AGENT: &str = "agent";
/// Key of an agent's availability, for agents of other gateways.
pub(crate) const AVAILABILITY: &str = "availability";

#[derive(Debug)]
pub(crate) struct Awareness {
    /// Time as it was last told.
    now: Instant,
    agents: HashMap<Arc<str>, Agent>,
    others: HashMap<u64, Other>,
    /// Time since which the states of others are received.
    since: Instant,
    /// True if we edited: before that, the server knows of no agent here.
    edited: bool,
    /// True if the server saved an edit of its own accord.
    saved: bool,
    /// Value of `autosave` that agents sent last.
    said: Option<bool>,
    /// True if the server was left to decide about our first change.
    decided: bool,
    /// Last entries of agents that have left, not sent yet.
    goodbyes: Vec<AwarenessEntry>,
    /// Counts who comes and goes.
    version: u64,
}

#[derive(Debug)]
struct Other {
    state: Value,
    heard: Instant,
    /// Time of its last change.
    changed: Instant,
}

/// The presence of somebody who is here, an agent of ours or anybody else.
pub(crate) struct Presence<'a> {
    pub(crate) client: u64,
    pub(crate) state: Cow<'a, Value>,
    pub(crate) is_agent: bool,
    /// Activity of an agent of this gateway.
    pub(crate) activity: Option<Activity>,
    /// Time of their last visible activity.
    pub(crate) last_active: Instant,
}

/// An agent as it shows itself.
#[derive(Debug, Clone)]
pub(crate) struct Visit<'a> {
    pub(crate) id: &'a Arc<str>,
    pub(crate) name: &'a str,
    pub(crate) activity: Activity,
    pub(crate) availability: Option<Availability>,
    /// Time for which it stays after its last activity.
    pub(crate) stays: Duration,
}

/// Cursor or selection of an agent.
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
    activity: Activity,
    availability: Option<Availability>,
    /// Its announcement, and when that ends.
    announcement: Option<(String, Instant)>,
    cursors: Option<Cursors>,
    stays: Duration,
    /// Members of its state beside its name.
    members: Map<String, Value>,
    last_active: Instant,
    /// Time when its current state was sent; none if that is still due.
    last_sent: Option<Instant>,
    /// Time when any state was last sent.
    last_said: Option<Instant>,
    /// Digest of that state, unless it is to be repeated.
    last_state: Option<u64>,
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
            goodbyes: Vec::new(),
            version: 0,
        }
    }

    pub(crate) fn set_now(&mut self, now: Instant) {
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

    /// Shows an agent with its declared status. Returns whether that changed anything.
    pub(crate) fn say(&mut self, visit: &Visit<'_>, members: Map<String, Value>) -> bool {
        let now = self.now;
        let mut is_new = !self.agents.contains_key(visit.id);
        let agent = self.agents.entry(Arc::clone(visit.id)).or_insert_with(|| Agent {
            client: super::new_client_id(),
            clock: 0,
            name: visit.name.to_owned(),
            activity: Activity::Idle,
            availability: None,
            announcement: None,
            cursors: None,
            stays: visit.stays,
            members: Map::new(),
            last_active: now,
            last_sent: None,
            last_said: None,
            last_state: None,
        });
        let activity = agent.activity_with(visit.activity, now);
        agent.last_active = now;
        self.version += u64::from(is_new);
        let is_same =
            (&agent.members, agent.activity, &agent.availability) == (&members, activity, &visit.availability);
        if is_new || !is_same {
            is_new = true;
            (agent.members, agent.activity, agent.last_sent) = (members, activity, None);
            agent.availability.clone_from(&visit.availability);
        }
        is_new
    }

    /// Shows an agent that is here with another status.
    pub(crate) fn set_availability(&mut self, id: &str, availability: Option<&Availability>) {
        if let Some(agent) = self.agents.get_mut(id) {
            agent.availability = availability.cloned();
            (agent.last_sent, agent.last_active) = (None, self.now);
        }
    }

    /// Shows for a moment the announcement of an agent that is here.
    pub(crate) fn announce(&mut self, id: &str, text: &str) {
        if let Some(agent) = self.agents.get_mut(id) {
            agent.announcement = Some((text.to_owned(), self.now + ANNOUNCED_FOR));
            (agent.last_sent, agent.last_active) = (None, self.now);
        }
    }

    /// Keeps an agent that is here for longer than others.
    pub(crate) fn keep(&mut self, id: &str, stays: Duration) {
        if let Some(agent) = self.agents.get_mut(id) {
            agent.stays = agent.stays.max(stays);
        }
    }

    /// Removes an agent; returns whether it was here.
    pub(crate) fn leave(&mut self, id: &str) -> bool {
        let Some(mut agent) = self.agents.remove(id) else {
            return false;
        };
        self.version += 1;
        if agent.last_said.is_some() {
            self.goodbyes.push(agent.say("null".to_owned()));
        }
        true
    }

    /// Changes whenever somebody comes or goes.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Everybody who is here.
    pub(crate) fn presences(&self) -> impl Iterator<Item = Presence<'_>> {
        let others = self.others.iter().filter(|(_, other)| other.is_here(self.now));
        let others = others.map(|(client, other)| Presence {
            client: *client,
            state: Cow::Borrowed(&other.state),
            is_agent: other.state.get(AGENT).is_some(),
            activity: None,
            last_active: other.changed,
        });
        let agents = self.agents.iter().map(|(id, agent)| Presence {
            client: agent.client,
            state: Cow::Owned(agent.state(id, &[])),
            is_agent: true,
            activity: Some(agent.activity),
            last_active: agent.last_active,
        });
        others.chain(agents)
    }

    /// The text beside an agent's name, if it is here.
    pub(crate) fn members_of(&self, id: &str) -> Option<Map<String, Value>> {
        self.agents.get(id).map(|agent| agent.members.clone())
    }

    /// The cell in which an agent's cursor is.
    pub(crate) fn cell_of(&self, id: &str) -> Option<String> {
        self.agents.get(id)?.cursors.as_ref()?.cell.clone()
    }

    /// The time since which the states of others are received.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Forgets others who sent nothing for too long.
    fn forget_silent(&mut self) {
        let (now, before) = (self.now, self.others.len());
        self.others.retain(|_, other| other.is_here(now));
        self.version += u64::from(self.others.len() != before);
    }

    /// Shows that what an agent executed has ended, if the agent is still here.
    pub(crate) fn end_execution(&mut self, id: &Arc<str>) {
        let now = self.now;
        if let Some(agent) = self.agents.get_mut(id).filter(|agent| agent.activity.is_execution()) {
            (agent.activity, agent.last_sent) = (Activity::Idle, None);
            agent.last_active = now;
        }
    }

    /// Withdraws agents that were shown before our first change, if it is not known what people want: until it is
    /// sent, the server decides by itself whether to save, and so shows what they want.
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

    /// Returns whether agents may keep the server from saving the changes of somebody who sends no awareness: they
    /// say that they need no saving as long as it is not known what people want.
    pub(crate) fn may_block_autosave(&self) -> bool {
        self.said == Some(false) && self.autosave_preferences().next().is_none()
    }

    /// Returns whether an agent was shown with this activity a moment ago.
    pub(crate) fn is_shown(&self, id: &Arc<str>, activity: Activity, now: Instant) -> bool {
        // Whoever edits or executes has also read.
        let is_same = |agent: &Agent| agent.activity == activity || activity == Activity::Reading;
        let is_fresh =
            |agent: &Agent| is_same(agent) && now.saturating_duration_since(agent.last_active) < SHOWN_AGAIN_AFTER;
        self.agents.get(id).is_some_and(is_fresh)
    }

    /// Activity of an agent after the end of one of its runs: idle, or what else it executes.
    pub(crate) fn activity_after_run(&self, id: &Arc<str>) -> Activity {
        let agent = self.agents.get(id).filter(|agent| agent.activity.is_execution());
        agent.map_or(Activity::Idle, |agent| agent.activity)
    }

    /// Returns whether no agent is here.
    pub(crate) fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Takes in the states of others. Returns whether a newcomer should be told who is here.
    pub(crate) fn received(&mut self, entries: Vec<AwarenessEntry>) -> bool {
        let mut newcomer = false;
        for entry in entries {
            if let Some(agent) = self.agents.values_mut().find(|agent| agent.client == entry.client) {
                // Our own echo, or somebody who believes that we left; our next state must be newer.
                if entry.clock > agent.clock || entry.clock == agent.clock && entry.state == "null" {
                    agent.clock = agent.clock.max(entry.clock);
                    (agent.last_sent, agent.last_said) = (None, None);
                }
                continue;
            }
            // States that nobody could show are ignored: the client stays as it was.
            if entry.state.len() > MAX_PRESENCE_BYTES || !is_shallow_json(entry.state.as_bytes()) {
                continue;
            }
            match serde_json::from_str(&entry.state).unwrap_or(Value::Null) {
                Value::Null => self.version += u64::from(self.others.remove(&entry.client).is_some()),
                _ if self.others.len() >= MAX_PRESENCES && !self.others.contains_key(&entry.client) => {}
                state => newcomer |= self.hear(entry.client, state),
            }
        }
        self.forget_silent();
        newcomer
    }

    /// Records the state of somebody else; returns whether they are new here.
    fn hear(&mut self, client: u64, state: Value) -> bool {
        let heard = self.now;
        let known = self.others.get(&client);
        let changed = known
            .filter(|known| known.state == state)
            .map_or(heard, |known| known.changed);
        let is_new = known.is_none_or(|known| known.state.get("user") != state.get("user"));
        self.version += u64::from(is_new);
        let other = Other { state, heard, changed };
        self.others.insert(client, other).is_none()
    }

    /// Last state of another client.
    pub(crate) fn state_of(&self, client: u64) -> Option<&Value> {
        self.others.get(&client).map(|other| &other.state)
    }

    /// Everybody else who has sent a state.
    pub(crate) fn clients(&self) -> impl Iterator<Item = u64> {
        self.others.keys().copied()
    }

    /// States of the people who are here, without agents.
    pub(crate) fn people(&self) -> impl Iterator<Item = &Value> {
        let here = self.others.values().filter(|other| other.is_here(self.now));
        here.map(|other| &other.state)
            .filter(|state| state.get(AGENT).is_none())
    }

    /// States to send now: presences that changed or would expire, and agents that left.
    ///
    /// The server saves if anybody in the room wants that, or if nobody says anything, so among people agents say
    /// that they need not have it, and likewise until it is known whether there are any.
    pub(crate) fn due(&mut self) -> Vec<AwarenessEntry> {
        self.forget_silent();
        if self.agents.is_empty() {
            return std::mem::take(&mut self.goodbyes);
        }
        let says = self.autosave() == Some(true) && self.autosave_preferences().next().is_none();
        if self.said.replace(says) != Some(says) {
            // Preferences about saving count from now on.
            self.repeat_all_now();
        }
        self.due_with(&[("autosave", says.into()), (AGENT, true.into())], Agent::shown_from)
    }

    /// Time when the next unsent state is due.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        if !self.goodbyes.is_empty() {
            return Some(self.now);
        }
        let unsaid = self.agents.values().filter(|agent| agent.last_sent.is_none());
        // Who is new is shown with the echo of an edit, if there is one soon.
        let new_from = |agent: &Agent| agent.last_active + CURSOR_PAUSE;
        let from = |agent: &Agent| agent.last_said.map_or_else(|| new_from(agent), |_| agent.shown_from());
        unsaid.map(from).min()
    }

    /// The same for a list of who is online, where cursors are not shown.
    pub(crate) fn due_at_most_every(&mut self, interval: Duration) -> Vec<AwarenessEntry> {
        self.forget_silent();
        let is_from = |agent: &Agent| agent.last_said.map_or(agent.last_active, |said| said + interval);
        self.due_with(&[(AGENT, true.into())], is_from)
    }

    /// The same, with something that all of them say, and from when on each says something new.
    fn due_with(&mut self, common: &[(&str, Value)], shown_from: impl Fn(&Agent) -> Instant) -> Vec<AwarenessEntry> {
        let now = self.now;
        let mut entries = std::mem::take(&mut self.goodbyes);
        let before = self.agents.len();
        self.agents.retain(|id, agent| {
            agent.end_announcement(now);
            let left = now.duration_since(agent.last_active) > agent.stays;
            let due = match agent.last_sent {
                Some(sent) => now.duration_since(sent) >= PRESENCE_REFRESHED_AFTER,
                None => now >= shown_from(agent),
            };
            if left {
                entries.push(agent.say("null".to_owned()));
            } else if due {
                let state = agent.state(id, common).to_string();
                if agent.is_known_as(&state, now) {
                    agent.last_sent = agent.last_said;
                } else {
                    agent.last_state = Some(digest(&state));
                    entries.push(agent.say(state));
                    (agent.last_sent, agent.last_said) = (Some(now), Some(now));
                }
            }
            !left
        });
        self.version += u64::from(self.agents.len() != before);
        entries
    }

    /// Sends all presences again, after a reconnection or for a newcomer.
    pub(crate) fn repeat_all(&mut self) {
        for agent in self.agents.values_mut() {
            (agent.last_sent, agent.last_state) = (None, None);
        }
    }

    /// The same without waiting for the next interval.
    pub(crate) fn repeat_all_now(&mut self) {
        for agent in self.agents.values_mut() {
            (agent.last_sent, agent.last_said) = (None, None);
        }
    }

    /// Removes all agents, because the room is being closed.
    pub(crate) fn remove_all(&mut self) -> Vec<AwarenessEntry> {
        self.version += u64::from(!self.agents.is_empty());
        let goodbyes = std::mem::take(&mut self.goodbyes);
        let leaving = self.agents.drain().map(|(_, mut agent)| agent.say("null".to_owned()));
        goodbyes.into_iter().chain(leaving).collect()
    }

    /// Records that we edited the document.
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

    /// Returns whether people want autosave, as soon as that is known. Jupyter does not tell newcomers who is in a
    /// room already; their preference is known when they next send their state, or by what the server does.
    pub(crate) fn autosave(&self) -> Option<bool> {
        let mut preferences = self.autosave_preferences().peekable();
        match preferences.peek() {
            Some(_) => Some(preferences.any(|wanted| wanted)),
            None => (self.saved || self.now.duration_since(self.since) > AWARENESS_ROUND).then_some(true),
        }
    }

    /// Returns whether the server is known to save later changes by itself.
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

    /// Agents of other gateways add their activity to the displayed name.
    fn name(&self) -> Option<String> {
        let user = self.state.get("user")?;
        let keys = match self.state.get(AGENT) {
            Some(_) => ["name", "display_name"],
            None => ["display_name", "name"],
        };
        let name = keys.iter().find_map(|key| user.get(key)?.as_str());
        name.filter(|name| !name.is_empty()).map(str::to_owned)
    }

    /// Autosave preference of this client, as the server understands it.
    fn autosave_preference(&self) -> Option<bool> {
        let state = self.state.as_object().filter(|state| !state.is_empty())?;
        if state.contains_key(AGENT) {
            return None;
        }
        Some(state.get("autosave").and_then(Value::as_bool).unwrap_or(true))
    }
}

impl Agent {
    /// Activity after a new one was reported: a single call does not hide that code of the agent still runs.
    fn activity_with(&self, said: Activity, now: Instant) -> Activity {
        let goes_on = self.activity.is_execution() && now.duration_since(self.last_active) < EXECUTION_SHOWN_FOR;
        let is_call = matches!(said, Activity::Idle | Activity::Reading | Activity::Editing);
        if goes_on && is_call { self.activity } else { said }
    }

    /// Its awareness state, with the members that all agents have.
    fn state(&self, id: &str, common: &[(&str, Value)]) -> Value {
        let mut state = self.members.clone();
        let texts = NameTexts {
            activity: self.activity,
            availability: self.availability.as_ref(),
            announcement: self.announcement.as_ref().map(|(text, _)| text.as_str()),
        };
        state.insert("user".to_owned(), user(id, &self.name, texts));
        if let Some(Availability { status, message }) = &self.availability {
            state.insert(
                AVAILABILITY.to_owned(),
                json!({ "status": status.as_str(), "message": message }),
            );
        }
        state.extend(common.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        Value::Object(state)
    }

    /// Removes its announcement once that was shown for long enough.
    fn end_announcement(&mut self, now: Instant) {
        if self.announcement.take_if(|(_, until)| *until <= now).is_some() {
            self.last_sent = None;
        }
    }

    /// Returns whether everybody was told this state last, and need not hear it again yet. An agent that runs one short cell
    /// after the other is often back at it by the time at which it may say something again.
    fn is_known_as(&self, state: &str, now: Instant) -> bool {
        let is_recent = |said: Instant| now.saturating_duration_since(said) < PRESENCE_REFRESHED_AFTER;
        self.last_state == Some(digest(state)) && self.last_said.is_some_and(is_recent)
    }

    /// The time from which it is shown as it is now.
    fn shown_from(&self) -> Instant {
        let paused = self.last_active + CURSOR_PAUSE;
        self.last_said.map_or(self.last_active, |said| {
            paused.clamp(said + CURSOR_INTERVAL, said + CURSOR_OVERDUE)
        })
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

fn digest(state: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(state.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests;
