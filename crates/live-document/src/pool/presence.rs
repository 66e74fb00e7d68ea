//! Presence on a server: who is online, who comes and goes in its open documents, and agents' availability.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use jupyter_client::JupyterServer;
use tokio::sync::broadcast;

use super::{Online, Pool};
use crate::{
    Activity, Availability, Host, PresenceChange, Room,
    core::{awareness::Visit, policy::AVAILABILITY_LASTS},
    driver::global_awareness,
};

impl Pool {
    /// Follows who comes to open documents and who leaves them, from now on.
    pub fn presences(&self) -> broadcast::Receiver<PresenceChange> {
        self.presences.subscribe()
    }

    /// Everybody who says to be online on a server. Their states are received from the first call on.
    pub async fn online(&self, server: &Arc<JupyterServer>) -> Online {
        global_awareness::online(&self.host(server, &server.name().into())).await
    }

    /// Declares how available an agent is on a server, and shows that wherever it is shown. Returns the time until which it is valid.
    pub fn set_availability(
        &self,
        server: &Arc<JupyterServer>,
        agent: &Arc<str>,
        name: &str,
        availability: &Availability,
    ) -> SystemTime {
        let host = self.host(server, &server.name().into());
        host.availabilities.set(agent, availability.clone());
        match host.availabilities.hides(agent) {
            true => global_awareness::leave(&host, agent, None),
            false => global_awareness::declare(&host, &self.visit(&host, agent, name)),
        }
        for room in self.rooms_of(server.name()) {
            room.show_availability(agent, availability);
        }
        SystemTime::now() + AVAILABILITY_LASTS
    }

    /// The status that an agent declared on a server.
    pub fn availability_of(&self, server: &str, agent: &str) -> Option<Availability> {
        self.hosts.get(server)?.availabilities.of(agent)
    }

    /// Shows for a moment in the list of who is online what an agent says to everybody. Returns whether it is shown.
    pub fn announce(&self, server: &Arc<JupyterServer>, agent: &Arc<str>, name: &str, text: &str) -> bool {
        let host = self.host(server, &server.name().into());
        if host.availabilities.hides(agent) {
            return false;
        }
        global_awareness::announce(&host, &self.visit(&host, agent, name), text);
        true
    }

    /// Time for which an agent stays visible in a room after its last activity there.
    pub fn presence_timeout(&self) -> Duration {
        self.limits.presence_timeout
    }

    fn rooms_of(&self, server: &str) -> Vec<Room> {
        let index = self.index.read();
        let rooms = index.iter().filter(|(place, _)| *place.server == *server);
        rooms.filter_map(|(_, slot)| slot.open_room().cloned()).collect()
    }

    fn visit<'a>(&self, host: &Host, agent: &'a Arc<str>, name: &'a str) -> Visit<'a> {
        Visit {
            id: agent,
            name,
            activity: Activity::Idle,
            availability: host.availabilities.of(agent),
            stays: self.limits.presence_timeout,
        }
    }
}
