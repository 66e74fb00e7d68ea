//! Presence in a room: who is there, and what agents show of themselves.

use std::{sync::Arc, time::SystemTime};

use crate::{
    Activity, Author, Availability, CallingLine, Participant, Position, PositionError, Room, RoomError, RunMark, User,
    core::{awareness::Visit, policy::JOINED_FOR},
    driver::global_awareness,
};

impl Room {
    /// Everybody who is known to be here, people and agents, with their cursors.
    pub fn participants(&self) -> Vec<Participant> {
        self.0.write().participants()
    }

    /// Everybody who is known to be here.
    pub fn users(&self) -> Vec<User> {
        self.0.write().users()
    }

    /// The user who made a change, if they are here.
    pub fn user_by_author(&self, author: &Author) -> Option<User> {
        self.0.read().user_by_author(author)
    }

    /// The name of who made a change, also if they have left.
    pub fn name_of(&self, author: &Author) -> Option<String> {
        self.0.read().names.name_of(author).map(|name| name.to_string())
    }

    /// The last run of a cell as far as it was seen.
    pub fn run_of(&self, cell: &str) -> RunMark {
        self.0.read().document.log().run_of(cell)
    }

    /// The lines in which somebody may be called by name, cell by cell, as the document was opened. They are given once.
    pub fn take_opening_lines(&self) -> Vec<CallingLine> {
        std::mem::take(&mut *self.0.opening_lines.lock())
    }

    /// The time since which it is known who is here.
    pub fn listening_since(&self) -> SystemTime {
        let state = self.0.write();
        let listened = state.now().saturating_duration_since(state.awareness.since());
        SystemTime::now() - listened
    }

    /// Returns whether an agent is shown here.
    pub fn shows(&self, agent: &str) -> bool {
        self.0.read().awareness.members_of(agent).is_some()
    }

    /// The cell in which an agent's cursor is.
    pub fn cell_of(&self, agent: &str) -> Option<String> {
        self.0.read().awareness.cell_of(agent)
    }

    /// Moves an agent's cursor, and selects something if that is given. Returns whether it is shown: not, if the agent
    /// says to be offline.
    pub fn point(
        &self,
        agent: &Arc<str>,
        name: &str,
        cell: Option<&str>,
        position: Position,
        selection: Option<(Position, Position)>,
    ) -> Result<bool, PositionError> {
        let mut state = self.0.write();
        let cursors = state.document.cursors_at(cell, position, selection)?;
        self.show(&mut state, agent, name, Activity::Idle, Some(cursors));
        drop(state);
        self.0.bell.notify_one();
        Ok(self.shows(agent))
    }

    /// Shows an agent here until it leaves or did nothing here for long. Returns whether it is shown.
    pub fn join(&self, agent: &Arc<str>, name: &str) -> Result<bool, RoomError> {
        let mut state = self.0.write();
        self.accepts(&state)?;
        self.show(&mut state, agent, name, Activity::Idle, None);
        state.awareness.keep(agent, JOINED_FOR);
        drop(state);
        self.0.bell.notify_one();
        Ok(self.shows(agent))
    }

    /// Takes an agent out of the room; returns whether it was shown here.
    pub fn leave(&self, agent: &str) -> bool {
        let mut state = self.0.write();
        let was_here = state.awareness.leave(agent);
        global_awareness::leave(&self.0.server, agent, Some(&state.path));
        drop(state);
        self.0.bell.notify_one();
        was_here
    }

    /// Waits until an agent is not here any more, or the room is over.
    pub async fn left(&self, agent: &str) {
        let mut versions = self.0.roster_version.subscribe();
        let gone = async { while self.shows(agent) && versions.changed().await.is_ok() {} };
        tokio::select! {
            () = gone => {}
            () = self.ended() => {}
        }
    }

    /// Shows for a moment what an agent says to everybody here.
    pub fn announce(&self, agent: &Arc<str>, name: &str, text: &str) {
        let mut state = self.0.write();
        self.show(&mut state, agent, name, Activity::Idle, None);
        state.awareness.announce(agent, text);
        drop(state);
        self.0.bell.notify_one();
    }

    /// Shows an agent that is here with the status that it declared.
    pub(crate) fn show_availability(&self, agent: &str, availability: &Availability) {
        let mut state = self.0.write();
        match self.0.server.availabilities.hides(agent) {
            true => drop(state.awareness.leave(agent)),
            false => state.awareness.set_availability(agent, Some(availability)),
        }
        drop(state);
        self.0.bell.notify_one();
    }

    pub(crate) fn visit<'a>(&self, agent: &'a Arc<str>, name: &'a str, activity: Activity) -> Visit<'a> {
        Visit {
            id: agent,
            name,
            activity,
            availability: self.0.server.availabilities.of(agent),
            stays: self.0.presence,
        }
    }
}
