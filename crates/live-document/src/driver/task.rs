//! The task that keeps a room: opens it, serves its line, and comes back when that is cut.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::StreamExt;
use jupyter_client::{DocPath, JupyterError};
use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, MissedTickBehavior, interval, sleep, sleep_until},
};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_util::sync::CancellationToken;

use super::{
    Host,
    connection::{Connection, SILENCE},
    file_sync::FileSeen,
    output_throttle::Turn,
    shared::Shared,
};
use crate::{
    Room, RoomError, RoomKind, RoomStatus,
    core::{
        disconnect::{Disconnect, GONE, guarded},
        document::Document,
        inbound::receive,
        recovery::{Clocks, ServerDocument},
        saving::Saving,
        state::State,
        wire::Message,
    },
};

/// How often presences, saving and the liveness of the line are looked after.
const TICK: Duration = Duration::from_secs(3);
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_millis(2500);

/// Joins a document's room, waits until it is complete, and starts the task that keeps it.
pub(crate) async fn open(
    server: Arc<Host>,
    path: &DocPath,
    kind: RoomKind,
    presence: Duration,
) -> Result<Room, RoomError> {
    let mut line = Connection::join(&server, path, kind).await?;
    let mut document = Document::new(kind);
    let received = line.first_sync(&server, &mut document).await;
    received.map_err(|end| end.into_error(&server, path))?;
    let mut state = State::new(
        document,
        path.clone(),
        line.session.file_id.clone(),
        line.session.session_id.clone(),
    );
    state.writable = line.writable;
    let readings = server.read_documents.of(&kind.room_id(&state.file_id));
    let shared = Arc::new(Shared {
        server,
        kind,
        session_id: uuid::Uuid::new_v4().to_string(),
        created: line.created.take(),
        state: RwLock::new(state),
        status: watch::Sender::new(RoomStatus::Connected),
        bell: Notify::new(),
        moved: Notify::new(),
        save: Notify::new(),
        file: Mutex::new(FileSeen::new(line.written)),
        closing: CancellationToken::new(),
        presence,
        file_check: Mutex::default(),
        readings,
    });
    tokio::spawn(keep(Arc::clone(&shared), line));
    Ok(Room(shared))
}

/// Keeps a room until it is closed or lost for good.
async fn keep(shared: Arc<Shared>, mut line: Connection) {
    let ended = loop {
        let end = serve(&shared, &mut line).await;
        if shared.closing.is_cancelled() {
            break RoomError::Closed { path: shared.path() };
        }
        if !end.is_recoverable() {
            break end.into_error(&shared.server, &shared.read().path);
        }
        shared.status.send_replace(RoomStatus::Reconnecting);
        shared.write().clear_outbox();
        match come_back(&shared, line.heard).await {
            Ok(new_line) => line = new_line,
            Err(error) => break error,
        }
        shared.status.send_replace(RoomStatus::Connected);
        shared.bell.notify_one();
    };
    shared.status.send_replace(RoomStatus::Disconnected(ended));
    // No acknowledgement can come any more; who waits for one need not wait longer.
    drop(shared.write().document.acknowledgements.take_waiting());
}

/// Handles one connection until it ends.
async fn serve(shared: &Shared, line: &mut Connection) -> Disconnect {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_heard = Instant::now();
    let mut saving = Saving::default();
    let mut turn = Turn::new(&shared.server.turns);
    loop {
        // Where an edit was made is said when its echo comes, so that the server is not kept from passing it on.
        if let Err(end) = line.send_changes(shared, &mut turn).await {
            return end;
        }
        let waits_until = shared.read().waits_until();
        let sent = tokio::select! {
            () = shared.closing.cancelled() => {
                line.leave(shared, &mut saving).await;
                return Disconnect::Cut("closed".to_owned());
            }
            () = shared.moved.notified() => return Disconnect::Cut("its directory was renamed".to_owned()),
            () = shared.bell.notified() => Ok(()),
            () = shared.save.notified() => line.save_now(shared, &mut saving).await,
            () = turn.changes() => Ok(()),
            () = sleep_until(waits_until.unwrap_or_else(Instant::now)), if waits_until.is_some() => line.send_waiting(shared).await,
            _ = ticks.tick() => {
                if last_heard.elapsed() > SILENCE {
                    return Disconnect::Cut("silence".to_owned());
                }
                line.look_after(shared, &mut saving).await
            }
            frame = line.socket.next() => {
                last_heard = Instant::now();
                if let Some(Ok(_)) = &frame {
                    line.heard = SystemTime::now();
                }
                match frame {
                    Some(Ok(Frame::Binary(bytes))) => match guarded(|| receive(&mut shared.write(), &bytes, &mut saving)) {
                        Ok(()) if saving.take_failure() && is_gone(shared).await => {
                            return Disconnect::Closed { code: GONE, reason: "the file was deleted".to_owned() };
                        }
                        Ok(()) => line.send_waiting(shared).await,
                        Err(end) => return end,
                    },
                    Some(Ok(Frame::Pong(ping))) => {
                        saving.ponged(&mut shared.write(), &ping);
                        Ok(())
                    }
                    Some(Ok(Frame::Close(close))) => return Disconnect::closed(close),
                    Some(Ok(_)) => Ok(()),
                    Some(Err(error)) => return error.into(),
                    None => return Disconnect::Cut("the server hung up".to_owned()),
                }
            }
        };
        if let Err(end) = sent {
            return end;
        }
    }
}

/// Whether the document's file is not there any more. Jupyter goes on taking edits for it all the same.
async fn is_gone(shared: &Shared) -> bool {
    let path = shared.read().path.clone();
    matches!(shared.server.exists(&path).await, Ok(false))
}

/// Joins again after a cut, without ever merging an old document into a new one.
async fn come_back(shared: &Shared, last_heard: SystemTime) -> Result<Connection, RoomError> {
    let mut backoff = FIRST_BACKOFF;
    loop {
        let path = shared.read().path.clone();
        match shared
            .closing
            .run_until_cancelled(rejoin(shared, &path, last_heard))
            .await
        {
            None => return Err(RoomError::Closed { path: path.to_string() }),
            Some(Ok(line)) => return Ok(line),
            Some(Err(error)) if !worth_retrying(&error) => return Err(error),
            Some(Err(error)) => tracing::debug!(%error, %path, "a room cannot be joined again yet"),
        }
        if shared.closing.run_until_cancelled(sleep(backoff)).await.is_none() {
            return Err(RoomError::Closed { path: path.to_string() });
        }
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

fn worth_retrying(error: &RoomError) -> bool {
    !matches!(
        error,
        RoomError::Refused { .. }
            | RoomError::Excess { .. }
            | RoomError::Jupyter(JupyterError::NotFound { .. } | JupyterError::LargeDocument { .. })
    )
}

/// One attempt to join again. The server's document is received into an empty one first; what becomes of ours is decided
/// when it is complete.
async fn rejoin(shared: &Shared, path: &DocPath, last_heard: SystemTime) -> Result<Connection, RoomError> {
    let to_error = |end: Disconnect| end.into_error(&shared.server, path);
    let mut line = Connection::join(&shared.server, path, shared.kind).await?;
    let mut document = Document::new(shared.kind);
    let received = line
        .first_sync_silently(&shared.server, &mut document)
        .await
        .map_err(to_error)?;
    let theirs = ServerDocument {
        document,
        updates: received.updates,
        server_session: line.session.session_id.clone(),
    };
    let clocks = Clocks {
        file_written: line.written,
        last_heard,
    };
    let frames = {
        let mut state = shared.write();
        state.file_id.clone_from(&line.session.file_id);
        state.writable = line.writable;
        state.awareness.repeat_all();
        state.recover(theirs, clocks).map_err(to_error)?;
        if let Some(vector) = received.server_vector {
            let answer = Message::SyncStep2(state.document.diff(&vector));
            state.send(&answer);
        }
        state.take_all()
    };
    line.send_frames(frames).await.map_err(to_error)?;
    Ok(line)
}
