//! Who is online, as JupyterLab's side panel lists it: one room for a whole server, in which everybody says which
//! document they are in. Agents are there while they work.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_tungstenite::tungstenite::Message as Frame;

use super::{RoomKind, awareness::Awareness, wire::Message};
use crate::{
    jupyter::{JupyterServer, socket::Socket},
    types::DocPath,
};

const ADDRESS: &str = "api/collaboration/room/JupyterLab:globalAwareness";
/// How often presences are looked after.
const TICK: Duration = Duration::from_secs(3);
/// A server that cannot be reached is left alone for so long.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(in crate::jupyter) struct Lobby {
    state: Mutex<State>,
    /// Rung when somebody has something to say.
    bell: Notify,
}

#[derive(Default)]
struct State {
    awareness: Awareness,
    /// Whether a task looks after it.
    is_kept: bool,
    failed: Option<Instant>,
}

impl Lobby {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says that an agent works in a document.
pub(super) fn enter(server: &Arc<JupyterServer>, id: &Arc<str>, name: &str, path: &DocPath) {
    let current = match RoomKind::of(path) {
        RoomKind::Notebook => format!("notebook:{path}"),
        RoomKind::Text => format!("editor:{path}"),
    };
    let members = Map::from_iter([
        ("current".to_owned(), Value::from(current)),
        ("documents".to_owned(), json!([path.as_str()])),
    ]);
    let mut state = server.lobby.lock();
    if state.failed.is_some_and(|failed| failed.elapsed() < TRY_AGAIN_AFTER) {
        return;
    }
    if !state.awareness.say(id, name, members) {
        return;
    }
    if std::mem::replace(&mut state.is_kept, true) {
        server.lobby.bell.notify_one();
    } else {
        tokio::spawn(keep(Arc::clone(server)));
    }
}

/// Stays in the room until nobody is left to be shown there, or it cannot be reached.
async fn keep(server: Arc<JupyterServer>) {
    let stayed = match server.socket(ADDRESS, "the list of who is online").await {
        Ok(socket) => stay(&server.lobby, socket).await,
        Err(error) => {
            tracing::debug!(%error, "agents cannot be listed as online");
            None
        }
    };
    let mut state = server.lobby.lock();
    if stayed.is_none() {
        state.failed = Some(Instant::now());
        state.awareness = Awareness::default();
    }
    // Somebody may have come while the door was being closed.
    state.is_kept = !state.awareness.is_empty();
    if state.is_kept {
        state.awareness.repeat_all();
        tokio::spawn(again(Arc::clone(&server)));
    }
}

/// A task of its own, since a future cannot contain itself.
fn again(server: Arc<JupyterServer>) -> futures::future::BoxFuture<'static, ()> {
    Box::pin(keep(server))
}

/// Returns when nobody is there any more; nothing if the line was cut.
async fn stay(lobby: &Lobby, mut socket: Socket) -> Option<()> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = lobby.bell.notified() => {}
            // What others say there is not needed.
            frame = socket.next() => match frame {
                Some(Ok(Frame::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => continue,
            },
        }
        let (due, is_empty) = {
            let mut state = lobby.lock();
            (
                state.awareness.due_with(&[], Duration::ZERO),
                state.awareness.is_empty(),
            )
        };
        if !due.is_empty() {
            let frame = Frame::Binary(Message::Awareness(due).encode().into());
            socket.send(frame).await.ok()?;
        }
        if is_empty {
            let _ = socket.close(None).await;
            return Some(());
        }
    }
}
