//! Global awareness, as JupyterLab's side panel lists it: one room for a whole server, in which everybody says which
//! document they are in. Agents are there while they work; and its states are received while somebody wants to know who else is.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use futures::{SinkExt, StreamExt};
use jupyter_client::{DocPath, socket::Socket};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{Notify, watch},
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use tokio_tungstenite::tungstenite::Message as Frame;

use super::Host;
use crate::{
    OnlineUser, RoomKind,
    core::{
        awareness::{Awareness, Visit},
        policy::{
            AVAILABILITY_LASTS, AWARENESS_ROUND, FIRST_ANSWER, GLOBAL_PRESENCE_INTERVAL, GLOBAL_PRESENCE_RETRY,
            LINGERS_IN_HUB, LISTENING_PATIENCE, LISTENS_FOR, backoff,
        },
        wire::{AwarenessEntry, Message},
    },
};

const ADDRESS: &str = "api/collaboration/room/JupyterLab:globalAwareness";

#[derive(Default)]
pub(crate) struct GlobalAwareness {
    state: Mutex<State>,
    /// Rung when there is something to send.
    bell: Notify,
    listening: watch::Sender<Listening>,
}

/// State of listening to others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Listening {
    #[default]
    Joining,
    Joined,
    /// Somebody has sent a state since.
    Answered,
    Failed,
}

struct State {
    awareness: Awareness,
    /// True while a task maintains it.
    is_kept: bool,
    failed: Option<Instant>,
    /// Time since which the states of others are received, if they are.
    joined: Option<Instant>,
    /// Time until which somebody wants to know who is online.
    wanted_until: Option<Instant>,
    /// Time at which the room is left, whoever is shown there, unless it is used before. `None` for a server that does
    /// not care who is connected.
    leaves_at: Option<Instant>,
}

/// Everybody who is online on a server, as far as they have been heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Online {
    pub users: Vec<OnlineUser>,
    /// Time since which it is known who is online; none if the server does not tell.
    pub since: Option<SystemTime>,
    /// Somebody who is online may not have been heard yet.
    pub is_partial: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            awareness: Awareness::new(Instant::now()),
            is_kept: false,
            failed: None,
            joined: None,
            wanted_until: None,
            leaves_at: None,
        }
    }
}

impl GlobalAwareness {
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        state.awareness.set_now(Instant::now());
        state
    }
}

/// Lists an agent as working in a document.
pub(crate) fn enter(server: &Arc<Host>, visit: &Visit<'_>, path: &DocPath) {
    let current = match RoomKind::of(path) {
        RoomKind::Notebook => format!("notebook:{path}"),
        RoomKind::Text => format!("editor:{path}"),
    };
    let members = Map::from_iter([
        ("current".to_owned(), Value::from(current)),
        ("documents".to_owned(), json!([path.as_str()])),
    ]);
    tell(server, visit, members);
}

/// Changes the state of an agent, unless the server has no room for everybody.
fn tell(server: &Arc<Host>, visit: &Visit<'_>, members: Map<String, Value>) {
    let mut state = server.global_awareness.lock();
    if state.has_failed() {
        return;
    }
    state.note_use(server);
    if state.wanted_until.is_some() {
        state.wanted_until = Some(Instant::now() + LISTENS_FOR);
    }
    if state.awareness.say(visit, members) {
        start(server, state);
    }
}

/// Lists an agent as online with a status that it declared, in whatever document it is.
pub(crate) fn declare(server: &Arc<Host>, visit: &Visit<'_>) {
    let members = {
        let mut state = server.global_awareness.lock();
        state.awareness.set_availability(visit.id, visit.availability.as_ref());
        state.awareness.members_of(visit.id)
    };
    let nowhere = || Map::from_iter([("current".to_owned(), Value::Null), ("documents".to_owned(), json!([]))]);
    tell(server, visit, members.unwrap_or_else(nowhere));
    let mut state = server.global_awareness.lock();
    state.awareness.keep(visit.id, AVAILABILITY_LASTS);
    drop(state);
    server.global_awareness.bell.notify_one();
}

/// Shows an agent's announcement for a moment.
pub(crate) fn announce(server: &Arc<Host>, visit: &Visit<'_>, text: &str) {
    declare_present(server, visit);
    server.global_awareness.lock().awareness.announce(visit.id, text);
    server.global_awareness.bell.notify_one();
}

/// Lists an agent as online if it is not.
fn declare_present(server: &Arc<Host>, visit: &Visit<'_>) {
    let is_listed = server.global_awareness.lock().awareness.members_of(visit.id).is_some();
    if !is_listed {
        let members = [("current".to_owned(), Value::Null), ("documents".to_owned(), json!([]))];
        tell(server, visit, Map::from_iter(members));
    }
}

/// Takes an agent from the list; from that of a document only if it is listed there.
pub(crate) fn leave(server: &Host, id: &str, document: Option<&DocPath>) {
    let mut state = server.global_awareness.lock();
    let is_there = document.is_none_or(|path| {
        let members = state.awareness.members_of(id);
        members.is_some_and(|members| members.get("documents") == Some(&json!([path.as_str()])))
    });
    if is_there && state.awareness.leave(id) {
        drop(state);
        server.global_awareness.bell.notify_one();
    }
}

/// Everybody who is online. States of others are received from the first call on, which waits a moment for them.
pub(crate) async fn online(server: &Arc<Host>) -> Online {
    listen(server);
    let mut listening = server.global_awareness.listening.subscribe();
    let joined = listening.wait_for(|listening| *listening != Listening::Joining);
    let is_joined = timeout(LISTENING_PATIENCE, joined)
        .await
        .is_ok_and(|joined| joined.is_ok());
    if is_joined && *listening.borrow() == Listening::Joined {
        let since = server.global_awareness.lock().listened_for();
        let patience = FIRST_ANSWER.saturating_sub(since.unwrap_or_default());
        // States that come later count from then on.
        let _ = timeout(
            patience,
            listening.wait_for(|listening| *listening == Listening::Answered),
        )
        .await;
    }
    let state = server.global_awareness.lock();
    let listened = state.listened_for();
    Online {
        users: state.awareness.online(Instant::now()),
        since: listened.map(|listened| SystemTime::now() - listened),
        is_partial: listened.is_none_or(|listened| listened < AWARENESS_ROUND),
    }
}

fn listen(server: &Arc<Host>) {
    let mut state = server.global_awareness.lock();
    if state.has_failed() {
        return;
    }
    state.note_use(server);
    state.wanted_until = Some(Instant::now() + LISTENS_FOR);
    start(server, state);
}

/// Starts the task that maintains the room, or wakes it.
fn start(server: &Arc<Host>, mut state: MutexGuard<'_, State>) {
    if std::mem::replace(&mut state.is_kept, true) {
        server.global_awareness.bell.notify_one();
        return;
    }
    server.global_awareness.listening.send_replace(Listening::Joining);
    let (closing, keeping) = (server.closing.clone(), keep(Arc::clone(server)));
    server
        .tasks
        .spawn(async move { closing.run_until_cancelled(keeping).await });
}

/// Shows that an agent's execution has ended.
pub(crate) fn end_execution(server: &Host, id: &Arc<str>) {
    server.global_awareness.lock().awareness.end_execution(id);
    server.global_awareness.bell.notify_one();
}

/// Stays in the room until nobody is left to be shown there, and comes back when the connection is cut.
async fn keep(server: Arc<Host>) {
    let (mut attempts, mut was_joined) = (0, false);
    loop {
        match server.socket(ADDRESS, "the list of who is online").await {
            Ok(socket) => {
                (attempts, was_joined) = (0, true);
                server.global_awareness.lock().joined = Some(Instant::now());
                server.global_awareness.listening.send_replace(Listening::Joined);
                stay(&server.global_awareness, socket).await;
                server.global_awareness.lock().joined = None;
            }
            Err(error) => {
                tracing::debug!(%error, "agents cannot be listed as online");
                if !was_joined {
                    server.global_awareness.lock().give_up();
                    server.global_awareness.listening.send_replace(Listening::Failed);
                    return;
                }
            }
        }
        if !server.global_awareness.lock().prepare_to_rejoin() {
            return;
        }
        sleep(backoff(attempts)).await;
        attempts += 1;
    }
}

impl State {
    /// Shows nobody for a while.
    fn give_up(&mut self) {
        self.failed = Some(Instant::now());
        self.awareness = Awareness::new(Instant::now());
        self.is_kept = false;
    }

    /// Returns whether the server had no room for everybody a short while ago.
    fn has_failed(&self) -> bool {
        self.failed
            .is_some_and(|failed| failed.elapsed() < GLOBAL_PRESENCE_RETRY)
    }

    /// Has the room left some time after this. A Hub takes a connection for activity: it would never stop a server that
    /// an agent has said for an hour to be available on.
    fn note_use(&mut self, server: &Host) {
        self.leaves_at = server.hub().map(|_| Instant::now() + LINGERS_IN_HUB);
    }

    /// Returns whether somebody is shown in the room, or wants to know who else is.
    fn is_needed(&self) -> bool {
        let now = Instant::now();
        let is_wanted = self.wanted_until.is_some_and(|until| until > now);
        (!self.awareness.is_empty() || is_wanted) && self.leaves_at.is_none_or(|leaves_at| leaves_at > now)
    }

    fn listened_for(&self) -> Option<Duration> {
        self.joined.map(|joined| joined.elapsed())
    }

    /// Takes a message of others.
    fn receive(&mut self, frame: &[u8]) -> bool {
        let Ok(Some(Message::Awareness(entries))) = Message::decode(frame) else {
            return false;
        };
        if self.awareness.received(entries) {
            // Jupyter does not tell newcomers who is there.
            self.awareness.repeat_all();
        }
        true
    }

    /// States to send now; agents that have left send theirs once.
    fn due(&mut self) -> Vec<AwarenessEntry> {
        self.awareness.due_at_most_every(GLOBAL_PRESENCE_INTERVAL)
    }

    /// Returns whether somebody is to be shown when the room is joined again; their states are then sent anew.
    fn prepare_to_rejoin(&mut self) -> bool {
        self.due();
        self.awareness.repeat_all_now();
        self.is_kept = self.is_needed();
        self.is_kept
    }
}

/// Returns when nobody is there any more, or when the connection is cut.
async fn stay(global_awareness: &GlobalAwareness, mut socket: Socket) {
    let mut ticks = interval(GLOBAL_PRESENCE_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = global_awareness.bell.notified() => {}
            frame = socket.next() => match frame {
                Some(Ok(Frame::Close(_)) | Err(_)) | None => return,
                Some(Ok(Frame::Binary(frame))) => {
                    if global_awareness.lock().receive(&frame) {
                        global_awareness.listening.send_replace(Listening::Answered);
                    }
                    continue;
                }
                Some(Ok(_)) => continue,
            },
        }
        let (due, is_needed) = {
            let mut state = global_awareness.lock();
            (state.due(), state.is_needed())
        };
        if !due.is_empty() {
            let frame = Frame::Binary(Message::Awareness(due).encode().into());
            if socket.send(frame).await.is_err() {
                return;
            }
        }
        if !is_needed {
            let _ = socket.close(None).await;
            return;
        }
    }
}
