//! The task of an open document: tells the state machine what happens, and carries out what comes of it.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use jupyter_client::DocPath;
use parking_lot::{Mutex, RwLock};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    Fork, Host,
    backend::{DocumentBackend, DocumentConnection, Incoming},
    file_sync::FileSeen,
    output_throttle::OutputSlot,
    shared::Shared,
};
use crate::{
    DocumentId, Room, RoomError, RoomKind, RoomStatus,
    core::{
        changes::ChangeStream,
        clock::Clock,
        disconnect::Disconnect,
        file_check::FileCheck,
        handshake::{Handshake, Step},
        life::{CloseReason, Effect, Input, Joined},
        recovery::ServerDocument,
        state::{State, Waiting},
        wire::Message,
    },
};

type Connection = <Host as DocumentBackend>::Connection;

/// Joins a document, waits until it is complete, and starts the task that keeps it.
pub(crate) async fn open(
    server: Arc<Host>,
    path: &DocPath,
    kind: RoomKind,
    fork: Option<Fork>,
    presence: Duration,
) -> Result<Room, RoomError> {
    let to_error = |end: Disconnect| end.into_error(&server, path);
    let (mut connection, file) = server.join(path, kind, fork.as_ref()).await?;
    let received = synchronise(&server, &mut connection, kind).await.map_err(to_error)?;
    if let Some(vector) = &received.server_vector {
        let answer = Message::SyncStep2(received.document.diff(vector)).encode();
        connection.send(vec![answer]).await.map_err(to_error)?;
    }
    let mut document = received.document;
    let opening_lines = match server.changes.receiver_count() {
        0 => Vec::new(),
        _ => document.all_calling(),
    };
    document.stream = Some(ChangeStream {
        document: Arc::new(DocumentId {
            server: server.name().into(),
            file_id: file.file_id.as_str().into(),
            kind,
        }),
        followers: server.changes.clone(),
    });
    let mut state = State::new(document, path.clone(), file.file_id, file.server_session);
    state.writable = file.writable;
    state.has_file = fork.is_none();
    let readings = server.read_documents.of(&kind.room_id(&state.file_id));
    let shared = Arc::new(Shared {
        kind,
        session_id: uuid::Uuid::new_v4().to_string(),
        created: file.created,
        state: RwLock::new(state),
        status: watch::Sender::new(RoomStatus::Connected),
        bell: Notify::new(),
        save: Notify::new(),
        file: Mutex::new(FileSeen::new(file.written)),
        closing: CancellationToken::new(),
        giving_up: CancellationToken::new(),
        presence,
        file_check: Mutex::new(FileCheck::new(Instant::now())),
        file_answer: Mutex::default(),
        roster: Mutex::default(),
        opening_lines: Mutex::new(opening_lines),
        roster_version: watch::Sender::new(0),
        readings,
        fork,
        server,
    });
    shared.server.tasks.spawn(keep(Arc::clone(&shared), connection));
    Ok(Room(shared))
}

/// Next step after a connection.
enum Next {
    Reconnect { after: Duration },
    Closed,
}

/// Keeps a document until it is closed or lost for good.
async fn keep(shared: Arc<Shared>, mut connection: Connection) {
    while let Next::Reconnect { after } = serve(&shared, &mut connection).await {
        match reconnect(&shared, after).await {
            Some(new) => connection = new,
            None => return,
        }
    }
}

/// Serves one connection until it is not needed any more.
async fn serve(shared: &Shared, connection: &mut impl DocumentConnection) -> Next {
    let mut slot = OutputSlot::new(&shared.server.output_throttle);
    let (mut is_closing, mut is_given_up) = (false, false);
    let mut effects = Vec::new();
    loop {
        effects.extend(flush(shared, &mut slot));
        let next = carry_out(shared, connection, &mut slot, effects).await;
        shared.tell_versions();
        shared.tell_presences();
        if let Some(next) = next {
            return next;
        }
        let timer = {
            let state = shared.read();
            if state.has_no_connection() {
                // It was moved.
                return Next::Reconnect { after: Duration::ZERO };
            }
            state.next_timer().map(tokio::time::Instant::from_std)
        };
        effects = tokio::select! {
            () = shared.closing.cancelled(), if !is_closing => {
                is_closing = true;
                shared.on(Input::Close)
            }
            () = shared.giving_up.cancelled(), if is_closing && !is_given_up => {
                is_given_up = true;
                shared.on(Input::GiveUp)
            }
            () = shared.bell.notified() => Vec::new(),
            () = shared.save.notified() => shared.on(Input::SaveRequested),
            () = slot.wait_for_change() => Vec::new(),
            () = sleep_until(timer.unwrap_or_else(tokio::time::Instant::now)), if timer.is_some() => shared.on(Input::Tick),
            incoming = connection.receive() => match incoming {
                Incoming::Frame(frame) => shared.on(Input::Frame(&frame)),
                Incoming::Pong(ping) => shared.on(Input::Pong(&ping)),
                Incoming::Lost(end) => shared.on(Input::Lost(end)),
            },
        };
    }
}

/// Sends changes of the document: edits at once, outputs of runs when the throttle lets them.
fn flush(shared: &Shared, slot: &mut OutputSlot) -> Vec<Effect> {
    let mut state = shared.write();
    let acknowledgements = &state.document.acknowledgements;
    if acknowledgements.has_all_to(slot.sent_up_to()) {
        slot.on_confirmed();
    }
    let latest = acknowledgements.latest();
    let may_send = match state.waiting() {
        Waiting::Nothing => {
            slot.on_nothing_to_send();
            false
        }
        Waiting::Edits => true,
        Waiting::WholeRuns => slot.try_take(true),
        Waiting::Outputs => slot.try_take(false),
    };
    if !may_send {
        return Vec::new();
    }
    slot.record_sent(latest);
    state.on(Input::Flush, Instant::now())
}

/// Carries out effects, and what comes of them.
async fn carry_out(
    shared: &Shared,
    connection: &mut impl DocumentConnection,
    slot: &mut OutputSlot,
    effects: Vec<Effect>,
) -> Option<Next> {
    let mut effects = VecDeque::from(effects);
    while let Some(effect) = effects.pop_front() {
        let done = match effect {
            Effect::Send(frames) => {
                let sending = slot.release_in_time(connection.send(frames));
                unless_given_up(shared, sending).await
            }
            Effect::Save(request) => unless_given_up(shared, connection.save(request)).await,
            Effect::Ping(payload) => unless_given_up(shared, connection.ping(&payload)).await,
            Effect::AskForFile => {
                let path = shared.read().path.clone();
                let exists = shared.fork.is_some() || !shared.server.is_gone(&path).await;
                effects.extend(shared.on(Input::FileAnswer { exists }));
                Ok(())
            }
            Effect::Connected => {
                shared.status.send_replace(RoomStatus::Connected);
                Ok(())
            }
            Effect::Reconnect { after } => {
                shared.status.send_replace(RoomStatus::Reconnecting);
                return Some(Next::Reconnect { after });
            }
            Effect::Close(reason) => {
                if reason == CloseReason::Left {
                    connection.close().await;
                }
                shared.end(reason);
                return Some(Next::Closed);
            }
        };
        if let Err(end) = done {
            // Nothing more can be sent. But a document that is over must end, or whoever closes it waits for ever.
            let closing = effects.into_iter().filter(|effect| matches!(effect, Effect::Close(_)));
            effects = shared.on(Input::Lost(end)).into_iter().chain(closing).collect();
        }
    }
    None
}

/// Waits for a server that takes what is sent, until nobody does any more.
async fn unless_given_up(
    shared: &Shared,
    sending: impl Future<Output = Result<(), Disconnect>>,
) -> Result<(), Disconnect> {
    let sent = shared.giving_up.run_until_cancelled(sending).await;
    sent.unwrap_or_else(|| Err(Disconnect::Cut("the gateway leaves".to_owned())))
}

/// Joins again after a cut, as often as it takes. Nothing if the document is closed before.
async fn reconnect(shared: &Shared, mut after: Duration) -> Option<Connection> {
    loop {
        let attempt = async {
            sleep(after).await;
            rejoin(shared).await
        };
        let joined = match shared.closing.run_until_cancelled(attempt).await {
            Some(Ok((connection, joined))) => Ok((connection, shared.on(Input::Joined(Box::new(joined))))),
            Some(Err(error)) => Err(shared.on(Input::JoinFailed(error))),
            None => Err(shared.on(Input::Close)),
        };
        let next = match joined {
            Ok((mut connection, effects)) => {
                let mut slot = OutputSlot::new(&shared.server.output_throttle);
                match carry_out(shared, &mut connection, &mut slot, effects).await {
                    None => return Some(connection),
                    Some(next) => Some(next),
                }
            }
            Err(effects) => effects.into_iter().find_map(|effect| match effect {
                Effect::Reconnect { after } => Some(Next::Reconnect { after }),
                Effect::Close(reason) => {
                    shared.end(reason);
                    Some(Next::Closed)
                }
                _ => None,
            }),
        };
        match next {
            Some(Next::Reconnect { after: pause }) => after = pause,
            Some(Next::Closed) | None => return None,
        }
    }
}

/// One attempt to join again. What becomes of our document is decided when the server's is complete.
async fn rejoin(shared: &Shared) -> Result<(Connection, Joined), RoomError> {
    let path = shared.read().path.clone();
    let (mut connection, file) = shared.server.join(&path, shared.kind, shared.fork.as_ref()).await?;
    let received = synchronise(&shared.server, &mut connection, shared.kind)
        .await
        .map_err(|end| end.into_error(&shared.server, &path))?;
    let is_restarted = shared.read().server_session != file.server_session;
    let file_written = match is_restarted {
        // What it does to a file that it finds half-written it has done by now.
        true => shared.server.last_written(&path).await.or(file.written),
        false => file.written,
    };
    let joined = Joined {
        path,
        file_id: file.file_id,
        writable: file.writable,
        file_written,
        theirs: ServerDocument {
            document: received.document,
            updates: received.updates,
            server_session: file.server_session,
        },
        server_vector: received.server_vector,
    };
    Ok((connection, joined))
}

/// Receives the server's document.
async fn synchronise(
    server: &Host,
    connection: &mut impl DocumentConnection,
    kind: RoomKind,
) -> Result<Handshake, Disconnect> {
    let clock = Clock::new(Instant::now(), SystemTime::now());
    let mut handshake = Handshake::new(kind, server.loads_progressively(), clock);
    connection.send(vec![Handshake::request()]).await?;
    loop {
        let incoming = timeout_at(handshake.until().into(), connection.receive()).await;
        let step = match incoming {
            Ok(Incoming::Frame(frame)) => handshake.on_frame(&frame, Instant::now())?,
            Ok(Incoming::Pong(_)) => handshake.on_pong(),
            Ok(Incoming::Lost(end)) => return Err(end),
            Err(_) => handshake.on_timeout(Instant::now())?,
        };
        if handshake.loads_progressively {
            server.was_seen_loading();
        }
        match step {
            Step::Wait => {}
            Step::Ping => connection.ping(&[]).await?,
            Step::Complete => return Ok(handshake),
        }
    }
}
