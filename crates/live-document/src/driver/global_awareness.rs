//! Who is online, as JupyterLab's side panel lists it: one room for a whole server, in which everybody says which
//! document they are in. Agents are there while they work.

use std::{sync::Arc, time::Instant};

use futures::{SinkExt, StreamExt};
use jupyter_client::{DocPath, socket::Socket};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use tokio::{
    sync::Notify,
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_tungstenite::tungstenite::Message as Frame;

use super::Host;
use crate::{
    RoomKind,
    core::{
        awareness::{Awareness, Visit},
        policy::{GLOBAL_PRESENCE_INTERVAL, GLOBAL_PRESENCE_RETRY, backoff},
        wire::{AwarenessEntry, Message},
    },
};

const ADDRESS: &str = "api/collaboration/room/JupyterLab:globalAwareness";

#[derive(Default)]
pub(crate) struct GlobalAwareness {
    state: Mutex<State>,
    /// Rung when somebody has something to say.
    bell: Notify,
}

struct State {
    awareness: Awareness,
    /// Whether a task looks after it.
    is_kept: bool,
    failed: Option<Instant>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            awareness: Awareness::new(Instant::now()),
            is_kept: false,
            failed: None,
        }
    }
}

impl GlobalAwareness {
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        state.awareness.tell_time(Instant::now());
        state
    }
}

/// Says that an agent works in a document.
pub(crate) fn enter(server: &Arc<Host>, visit: &Visit<'_>, path: &DocPath) {
    let current = match RoomKind::of(path) {
        RoomKind::Notebook => format!("notebook:{path}"),
        RoomKind::Text => format!("editor:{path}"),
    };
    let members = Map::from_iter([
        ("current".to_owned(), Value::from(current)),
        ("documents".to_owned(), json!([path.as_str()])),
    ]);
    let mut state = server.global_awareness.lock();
    if state
        .failed
        .is_some_and(|failed| failed.elapsed() < GLOBAL_PRESENCE_RETRY)
    {
        return;
    }
    if !state.awareness.say(visit, members) {
        return;
    }
    if std::mem::replace(&mut state.is_kept, true) {
        server.global_awareness.bell.notify_one();
    } else {
        let (closing, keeping) = (server.closing.clone(), keep(Arc::clone(server)));
        server
            .tasks
            .spawn(async move { closing.run_until_cancelled(keeping).await });
    }
}

/// Says that what an agent executed has ended.
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
                stay(&server.global_awareness, socket).await;
            }
            Err(error) => {
                tracing::debug!(%error, "agents cannot be listed as online");
                if !was_joined {
                    server.global_awareness.lock().give_up();
                    return;
                }
            }
        }
        if !server.global_awareness.lock().goes_on() {
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

    /// What is to be said now; agents that have left say so once.
    fn due(&mut self) -> Vec<AwarenessEntry> {
        self.awareness.due_at_most_every(GLOBAL_PRESENCE_INTERVAL)
    }

    /// Whether somebody is to be shown in the room when it is joined again, and whoever that is says so then.
    fn goes_on(&mut self) -> bool {
        self.due();
        self.awareness.repeat_all_now();
        self.is_kept = !self.awareness.is_empty();
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
            // What others say there is not needed.
            frame = socket.next() => match frame {
                Some(Ok(Frame::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
        }
        let (due, is_empty) = {
            let mut state = global_awareness.lock();
            (state.due(), state.awareness.is_empty())
        };
        if !due.is_empty() {
            let frame = Frame::Binary(Message::Awareness(due).encode().into());
            if socket.send(frame).await.is_err() {
                return;
            }
        }
        if is_empty {
            let _ = socket.close(None).await;
            return;
        }
    }
}
