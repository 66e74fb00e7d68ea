//! The task that keeps a room: opens it, serves its line, and comes back when that is cut.

use std::{
    sync::{Arc, Mutex, RwLock},
    time::{Duration, SystemTime},
};

use futures::StreamExt;
use jupyter_client::{DocPath, JupyterError};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until},
};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_util::sync::CancellationToken;

use super::{
    Room, RoomError, RoomKind, RoomStatus,
    disk::FileSeen,
    document::{Document, Held, Return},
    end::{End, GONE, guarded},
    hearing::hear,
    line::{Line, SILENCE},
    replay::{Journal, Outcome},
    saving::Saving,
    state::{Origin, Shared, State},
    turn::Turn,
    wire::Message,
};
use crate::Host;

/// How often presences, saving and the liveness of the line are looked after.
const TICK: Duration = Duration::from_secs(3);
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_millis(2500);

/// Joins a document's room, waits until it is complete, and starts the task that keeps it.
pub(super) async fn open(
    server: Arc<Host>,
    path: &DocPath,
    kind: RoomKind,
    presence: Duration,
) -> Result<Room, RoomError> {
    let mut line = Line::join(&server, path, kind).await?;
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
        whereabouts: Mutex::default(),
        readings,
    });
    tokio::spawn(keep(Arc::clone(&shared), line));
    Ok(Room(shared))
}

/// Keeps a room until it is closed or lost for good.
async fn keep(shared: Arc<Shared>, mut line: Line) {
    let ended = loop {
        let end = serve(&shared, &mut line).await;
        if shared.closing.is_cancelled() {
            break RoomError::Closed { path: shared.path() };
        }
        if !end.can_be_mended() {
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
async fn serve(shared: &Shared, line: &mut Line) -> End {
    let mut ticks = interval_at(line.saves_from.unwrap_or_else(Instant::now), TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_heard = Instant::now();
    let mut saving = Saving::not_before(line.saves_from.map(Instant::into_std));
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
                return End::Cut("closed".to_owned());
            }
            () = shared.moved.notified() => return End::Cut("its directory was renamed".to_owned()),
            () = shared.bell.notified() => Ok(()),
            () = shared.save.notified() => line.save_now(shared, &mut saving).await,
            () = turn.changes() => Ok(()),
            () = sleep_until(waits_until.unwrap_or_else(Instant::now)), if waits_until.is_some() => line.send_waiting(shared).await,
            _ = ticks.tick() => {
                if last_heard.elapsed() > SILENCE {
                    return End::Cut("silence".to_owned());
                }
                line.look_after(shared, &mut saving).await
            }
            frame = line.socket.next() => {
                last_heard = Instant::now();
                if let Some(Ok(_)) = &frame {
                    line.heard = SystemTime::now();
                }
                match frame {
                    Some(Ok(Frame::Binary(bytes))) => match guarded(|| hear(shared, &bytes, &mut saving)) {
                        Ok(()) if saving.take_failure() && is_gone(shared).await => {
                            return End::Closed { code: GONE, reason: "the file was deleted".to_owned() };
                        }
                        Ok(()) => line.send_waiting(shared).await,
                        Err(end) => return end,
                    },
                    Some(Ok(Frame::Pong(ping))) => {
                        saving.ponged(&mut shared.write(), &ping);
                        Ok(())
                    }
                    Some(Ok(Frame::Close(close))) => return End::closed(close),
                    Some(Ok(_)) => Ok(()),
                    Some(Err(error)) => return error.into(),
                    None => return End::Cut("the server hung up".to_owned()),
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
async fn come_back(shared: &Shared, last_heard: SystemTime) -> Result<Line, RoomError> {
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

/// One attempt: the server's document is taken into a scratch one first. If it is the document we know, or an
/// earlier state of it, both are merged; otherwise the server has made a new one, which is adopted, and our
/// unsaved edits are done again in it.
async fn rejoin(shared: &Shared, path: &DocPath, last_heard: SystemTime) -> Result<Line, RoomError> {
    let to_error = |end: End| end.into_error(&shared.server, path);
    let mut line = Line::join(&shared.server, path, shared.kind).await?;
    let mut scratch = Document::new(shared.kind);
    let received = line
        .first_sync_silently(&shared.server, &mut scratch)
        .await
        .map_err(to_error)?;
    let restarted = shared.read().server_session != line.session.session_id;
    if restarted {
        line.joined_restarted(&shared.server, path).await;
    }
    let frames = {
        let mut state = shared.write();
        state.file_id.clone_from(&line.session.file_id);
        state.writable = line.writable;
        state.awareness.repeat_all();
        if state.document.acknowledgements.are_of(&scratch.state_vector()) {
            // A server that was restarted resets its document to the file, unsaved edits or not. A file that was
            // not written since the server was last heard knows nothing that the document did not. (Where the server's clock
            // is ahead, the edits are looked through one by one instead.)
            let is_outdated = line.written.is_some_and(|written| written <= last_heard)
                // Somebody who typed while the server was away and came back before us must not lose that.
                && !state.document.is_behind(&scratch.state_vector());
            let held = restarted.then(|| state.document.held());
            let unsaved = if restarted && !is_outdated {
                std::mem::take(&mut state.document.journal)
            } else {
                Journal::default()
            };
            for update in &received.updates {
                // What people typed while the line was down, unless it is what a restarted server made of its document.
                let take = if restarted {
                    Document::apply_remote
                } else {
                    Document::apply_live
                };
                guarded(|| Ok(take(&mut state.document, update)?)).map_err(to_error)?;
            }
            // They go out with the answer below.
            if let Some(held) = held {
                state.incarnation += 1;
                let came = if is_outdated { Return::Outdated } else { Return::Newer };
                if state.document.recognise(&held, came).is_some() {
                    state.is_to_be_saved();
                    tracing::info!(path = %state.path, "Jupyter restarted; recognised the cells that it recreated");
                }
                if is_outdated {
                    bring_back(&mut state, &held);
                } else {
                    let (Outcome { repeated, conflicting }, _) = state.document.repeat(unsaved);
                    tracing::info!(path = %state.path, repeated, conflicting, "Jupyter restarted; checked unsaved edits");
                }
            }
        } else {
            adopt(&mut state, scratch);
        }
        if restarted {
            state.document.look_for_doubles();
        }
        state.server_session.clone_from(&line.session.session_id);
        // Before the answer, so that the server never has a cell twice: it would give one of them another id.
        state.remove_doubles();
        if let Some(vector) = received.server_vector {
            let answer = Message::SyncStep2(state.document.diff(&vector));
            state.send(&answer);
        }
        state.take_all()
    };
    line.send_frames(frames).await.map_err(to_error)?;
    Ok(line)
}

/// Brings back what a restarted server has lost.
fn bring_back(state: &mut State, held: &Held) {
    let changes = state.document.bring_back(held);
    if changes > 0 {
        state.is_to_be_saved();
    }
    tracing::info!(path = %state.path, changes, "Jupyter restarted; restored what it had lost");
}

fn adopt(state: &mut State, new: Document) {
    state.incarnation += 1;
    let held = state.document.held().of_another_document();
    let mut old = std::mem::replace(&mut state.document, new);
    std::mem::swap(&mut state.document.changed, &mut old.changed);
    state.document.changed.send_replace(SystemTime::now());
    let waiting = old.acknowledgements.take_waiting();
    if let Some(recognised) = state.document.recognise(&held, Return::Newer) {
        state.send_change(recognised.update, Origin::Caller);
    }
    let (outcome, applied) = state.document.repeat(std::mem::take(&mut old.journal));
    let Outcome { repeated, conflicting } = outcome;
    tracing::warn!(path = %state.path, repeated, conflicting, "Jupyter rebuilt an open document; adopted it");
    for edit in applied {
        state.send_change(edit.update, Origin::Caller);
    }
    // Who still waits learns that nothing was acknowledged, or that an edit could not be repeated.
    for caller in waiting.into_iter().filter(|_| conflicting > 0) {
        let _ = caller.send(Err(super::acknowledgement::Lost));
    }
}
