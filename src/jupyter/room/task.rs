//! The task that owns a room's socket: joins, listens, sends, and comes back when the line is cut.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, RwLock},
    time::{Duration, SystemTime},
};

use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};
use tokio_tungstenite::tungstenite::{Message as Frame, protocol::CloseFrame};
use tokio_util::sync::CancellationToken;
use yrs::StateVector;

use super::{
    Room, RoomError, RoomKind, RoomStatus,
    document::{Document, decode_vector, encode_vector},
    handle::{Shared, State},
    replay::{Journal, Outcome},
    saving::Saving,
    wire::{JupyterMessage, Message},
};
use crate::{
    jupyter::{DocumentKind, JupyterError, JupyterServer, collaboration::DocumentSession, socket::Socket},
    types::DocPath,
};

/// A large notebook may take the server a while to load.
const SYNC_PATIENCE: Duration = Duration::from_secs(120);
/// A document that is loaded piece by piece is probably complete when nothing came for so long.
const QUIET: Duration = Duration::from_millis(400);
/// The same before it is known to be loaded that way, which few are.
const FIRST_QUIET: Duration = Duration::from_millis(30);
/// A notebook without cells is still being loaded, or somebody deleted them all; then nothing comes.
const EMPTY_QUIET: Duration = Duration::from_secs(2);
/// How many pings come back without a new cell in between before a notebook counts as complete.
const PINGS: u8 = 3;
/// How often presences, saving and the liveness of the line are looked after.
const TICK: Duration = Duration::from_secs(3);
/// Pings go out with every tick, so silence for this long is a dead line.
const SILENCE: Duration = Duration::from_secs(20);
/// The code by which Jupyter says that a document does not exist.
const GONE: u16 = 4404;
/// What is left of the code by which servers before jupyter-collaboration 4 say that they cannot open a
/// file: it is one that nobody may send. That the file exists is known by then.
const UNSPEAKABLE: u16 = 1002;
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// How long a room that is left waits until its file has what was written in it.
const SAVE_PATIENCE: Duration = Duration::from_secs(5);
/// How often that is asked for; a server that saves something else every time saves this too.
const MAX_SAVES: usize = 3;
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_millis(2500);

/// Joins a document's room, waits until it is complete, and starts the task that keeps it.
pub(super) async fn open(server: Arc<JupyterServer>, path: &DocPath, kind: RoomKind) -> Result<Room, RoomError> {
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
    let shared = Arc::new(Shared {
        server,
        kind,
        session_id: uuid::Uuid::new_v4().to_string(),
        created: line.created.take(),
        state: RwLock::new(state),
        status: watch::Sender::new(RoomStatus::Connected),
        bell: Notify::new(),
        moved: Notify::new(),
        closing: CancellationToken::new(),
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
        match come_back(&shared).await {
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
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_heard = Instant::now();
    let mut saving = Saving::default();
    loop {
        let sent = tokio::select! {
            () = shared.closing.cancelled() => {
                line.leave(shared, &mut saving).await;
                return End::Cut("closed".to_owned());
            }
            () = shared.moved.notified() => return End::Cut("its directory was renamed".to_owned()),
            // Where an edit was made is said when its echo comes, so that the server is not kept from passing it on.
            () = shared.bell.notified() => {
                let edits = shared.write().take_edits();
                line.send_frames(edits).await
            }
            _ = ticks.tick() => {
                if last_heard.elapsed() > SILENCE {
                    return End::Cut("silence".to_owned());
                }
                line.look_after(shared, &mut saving).await
            }
            frame = line.socket.next() => {
                last_heard = Instant::now();
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
                    Some(Err(error)) => return End::Cut(error.to_string()),
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

/// Takes in one frame.
fn hear(shared: &Shared, frame: &[u8], saving: &mut Saving) -> Result<(), End> {
    let Some(message) = Message::decode(frame).map_err(|error| End::Malformed(error.to_string()))? else {
        return Ok(());
    };
    let mut state = shared.write();
    match message {
        Message::SyncStep1(vector) => {
            let vector = decode_vector(&vector).map_err(|error| End::Malformed(error.to_string()))?;
            state.document.acknowledgements.server_has(&vector);
            let answer = Message::SyncStep2(state.document.diff(&vector));
            state.send(&answer);
        }
        Message::SyncStep2(update) | Message::Update(update) => {
            let saves = state.document.saves();
            state
                .document
                .apply_remote(&update)
                .map_err(|error| End::Malformed(error.to_string()))?;
            if state.document.saves() > saves {
                saving.noted(&mut state);
            }
            state.remove_doubles();
            follow_rename(&mut state);
        }
        Message::Awareness(entries) => {
            if state.awareness.received(entries) {
                state.awareness.repeat_all();
            }
        }
        Message::Jupyter(text) => {
            if let Ok(JupyterMessage::Save { response_to, status }) = serde_json::from_str(&text) {
                saving.answered(&state, response_to, status);
            }
        }
    }
    Ok(())
}

/// The server's document says where its file is; only a change of that counts, since it lags behind
/// what the server's events have told already.
fn follow_rename(state: &mut State) {
    let said = state.document.path();
    if said == state.said_path {
        return;
    }
    if let Some(path) = said.as_ref().and_then(|path| DocPath::parse(path).ok())
        && path != state.path
    {
        tracing::info!(from = %state.path, to = %path, "an open document was renamed");
        state.path = path;
    }
    state.said_path = said;
}

/// Joins again after a cut, without ever merging an old document into a new one.
async fn come_back(shared: &Shared) -> Result<Line, RoomError> {
    let mut backoff = FIRST_BACKOFF;
    loop {
        let path = shared.read().path.clone();
        match shared.closing.run_until_cancelled(rejoin(shared, &path)).await {
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
        RoomError::Refused { .. } | RoomError::Jupyter(JupyterError::NotFound { .. })
    )
}

/// One attempt: the server's document is taken into a scratch one first. If it is the document we know, or an
/// earlier state of it, both are merged; otherwise the server has made a new one, which is adopted, and our
/// unsaved edits are done again in it.
async fn rejoin(shared: &Shared, path: &DocPath) -> Result<Line, RoomError> {
    let to_error = |end: End| end.into_error(&shared.server, path);
    let mut line = Line::join(&shared.server, path, shared.kind).await?;
    let mut scratch = Document::new(shared.kind);
    let received = line
        .first_sync_silently(&shared.server, &mut scratch)
        .await
        .map_err(to_error)?;
    let frames = {
        let mut state = shared.write();
        state.file_id.clone_from(&line.session.file_id);
        state.writable = line.writable;
        state.awareness.forget_others();
        state.awareness.repeat_all();
        if state.document.acknowledgements.are_of(&scratch.state_vector()) {
            let restarted = state.server_session != line.session.session_id;
            // A server that was restarted resets its document to the file, unsaved edits or not.
            let unsaved = if restarted {
                std::mem::take(&mut state.document.journal)
            } else {
                Journal::default()
            };
            for update in &received.updates {
                state
                    .document
                    .apply_remote(update)
                    .map_err(|error| to_error(End::Malformed(error.to_string())))?;
            }
            // They go out with the answer below.
            if restarted {
                state.incarnation += 1;
                let (Outcome { repeated, conflicting }, _) = state.document.repeat(unsaved);
                tracing::info!(path = %state.path, repeated, conflicting, "Jupyter was restarted; unsaved edits were looked through");
            }
        } else {
            adopt(&mut state, scratch);
        }
        if state.server_session != line.session.session_id {
            state.document.look_for_doubles();
        }
        state.server_session.clone_from(&line.session.session_id);
        if let Some(vector) = received.server_vector {
            let answer = Message::SyncStep2(state.document.diff(&vector));
            state.send(&answer);
        }
        state.remove_doubles();
        state.take_outbox()
    };
    line.send_frames(frames).await.map_err(to_error)?;
    Ok(line)
}

fn adopt(state: &mut State, new: Document) {
    state.incarnation += 1;
    let mut old = std::mem::replace(&mut state.document, new);
    std::mem::swap(&mut state.document.changed, &mut old.changed);
    state.document.changed.send_replace(SystemTime::now());
    let waiting = old.acknowledgements.take_waiting();
    let (outcome, applied) = state.document.repeat(std::mem::take(&mut old.journal));
    let Outcome { repeated, conflicting } = outcome;
    tracing::warn!(path = %state.path, repeated, conflicting, "Jupyter rebuilt an open document; it was adopted");
    for edit in applied {
        state.send(&Message::Update(edit.update));
    }
    // Who still waits learns that nothing was acknowledged, or that an edit could not be repeated.
    for caller in waiting.into_iter().filter(|_| conflicting > 0) {
        let _ = caller.send(Err(super::acknowledgement::Lost));
    }
}

/// A joined room's socket.
struct Line {
    socket: Socket,
    session: DocumentSession,
    /// Whether the server can write the file, as far as it says.
    writable: bool,
    created: Option<String>,
}

/// What the server sent until it had sent everything.
struct Received {
    /// What the server said to have, if it said so yet; some ask only after they have answered.
    server_vector: Option<StateVector>,
    updates: Vec<Vec<u8>>,
}

/// What comes next on a line, if anything comes in time.
enum Heard {
    Message(Message),
    Pong,
    Nothing,
}

impl Line {
    async fn join(server: &JupyterServer, path: &DocPath, kind: RoomKind) -> Result<Self, RoomError> {
        // Jupyter keeps a room for a minute after the last one left, even if its file is gone meanwhile.
        let (file, session) = tokio::join!(server.document(path), server.document_session(path, kind));
        if let Err(gone @ JupyterError::NotFound { .. }) = file {
            return Err(gone.into());
        }
        if matches!(&file, Ok(file) if file.kind == DocumentKind::Directory) {
            // Jupyter finds out so fast that it stops the room while it is being started. That error ends the task that
            // serves all of its rooms, so that nobody is told of edits any more, in whichever room.
            return Err(RoomError::Refused {
                server: server.name().to_owned(),
                path: path.to_string(),
                why: "it is a directory; list_documents shows what is in it".to_owned(),
            });
        }
        let session = session?;
        let (writable, created) = file.map_or((true, None), |file| (file.writable, file.created));
        // The colons must stay as they are: encoded, they name another, empty room.
        let room = kind.room_id(&session.file_id);
        let address = format!("api/collaboration/room/{room}?sessionId={}", session.session_id);
        let socket = server.socket(&address, path.as_str()).await?;
        Ok(Self {
            socket,
            session,
            writable,
            created,
        })
    }

    /// The handshake of a document that is opened for the first time.
    async fn first_sync(&mut self, server: &JupyterServer, document: &mut Document) -> Result<(), End> {
        let received = self.first_sync_silently(server, document).await?;
        match received.server_vector {
            Some(vector) => self.send(&Message::SyncStep2(document.diff(&vector))).await,
            None => Ok(()),
        }
    }

    /// Takes the server's document into an empty one, telling the server nothing of ours yet.
    async fn first_sync_silently(&mut self, server: &JupyterServer, document: &mut Document) -> Result<Received, End> {
        self.send(&Message::SyncStep1(encode_vector(&StateVector::default())))
            .await?;
        let mut received = Received {
            server_vector: None,
            updates: Vec::new(),
        };
        let malformed = |error: &dyn std::error::Error| End::Malformed(error.to_string());
        let mut synced = false;
        // A server that loads piece by piece sends cells all the time. When none came for a moment, pings
        // that come back without any tell a notebook that is complete from a server that is busy.
        let mut pings_left = 0;
        let mut until = Instant::now() + SYNC_PATIENCE;
        loop {
            match self.hear_until(until).await? {
                Heard::Message(Message::SyncStep1(vector)) => {
                    let vector = decode_vector(&vector).map_err(|error| malformed(&error))?;
                    document.acknowledgements.server_has(&vector);
                    received.server_vector = Some(vector);
                }
                Heard::Message(Message::SyncStep2(update)) => {
                    guarded(|| document.apply_remote(&update).map_err(|error| malformed(&error)))?;
                    received.updates.push(update);
                    // Jupyter gives every notebook a cell, so one without is probably being loaded.
                    let is_empty = document.kind() == RoomKind::Notebook && document.cell_count() == 0;
                    if document.kind() == RoomKind::Text || !is_empty && !server.loads_progressively() {
                        break;
                    }
                    synced = true;
                    until = Instant::now() + if is_empty { EMPTY_QUIET } else { FIRST_QUIET };
                }
                Heard::Message(Message::Update(update)) => {
                    let before = document.cell_count();
                    guarded(|| document.apply_remote(&update).map_err(|error| malformed(&error)))?;
                    received.updates.push(update);
                    if synced && document.cell_count() > before {
                        server.was_seen_loading();
                        pings_left = 0;
                        until = Instant::now() + QUIET;
                    }
                }
                Heard::Pong if pings_left == 1 => break,
                Heard::Pong if pings_left > 1 => {
                    pings_left -= 1;
                    self.ping(Vec::new()).await?;
                }
                Heard::Message(_) | Heard::Pong => {}
                Heard::Nothing if synced && pings_left == 0 => {
                    pings_left = PINGS;
                    until = Instant::now() + SILENCE;
                    self.ping(Vec::new()).await?;
                }
                Heard::Nothing => return Err(End::Cut("the server did not send the document in time".to_owned())),
            }
        }
        Ok(received)
    }

    async fn hear_until(&mut self, until: Instant) -> Result<Heard, End> {
        loop {
            match timeout_at(until, self.socket.next()).await {
                Ok(Some(Ok(Frame::Binary(bytes)))) => {
                    let message = Message::decode(&bytes).map_err(|error| End::Malformed(error.to_string()))?;
                    if let Some(message) = message {
                        return Ok(Heard::Message(message));
                    }
                }
                Ok(Some(Ok(Frame::Pong(_)))) => return Ok(Heard::Pong),
                Ok(Some(Ok(Frame::Close(close)))) => return Err(End::closed(close)),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(error))) => return Err(End::Cut(error.to_string())),
                Ok(None) => return Err(End::Cut("the server hung up".to_owned())),
                Err(_) => return Ok(Heard::Nothing),
            }
        }
    }

    /// Says goodbye for every agent and hangs up.
    async fn leave(&mut self, shared: &Shared, saving: &mut Saving) {
        // An edit may wait for the bell that this closing overtook.
        let _ = self.send_waiting(shared).await;
        // Whoever looks at the file next, a copy for instance, must find the edits there.
        let _ = timeout(SAVE_PATIENCE, self.save(shared, saving)).await;
        let farewell = shared.write().awareness.farewell();
        if !farewell.is_empty() {
            let _ = self.send(&Message::Awareness(farewell)).await;
        }
        // Hanging up with something unread resets the connection, and the server would lose the farewell.
        let closing = async {
            let _ = self.socket.close(None).await;
            while let Some(Ok(_)) = self.socket.next().await {}
        };
        let _ = timeout(CLOSE_PATIENCE, closing).await;
    }

    /// Has the server write what is not on disk yet, and waits for it.
    async fn save(&mut self, shared: &Shared, saving: &mut Saving) -> Result<(), End> {
        let mut asked = 0;
        while shared.read().wants_saving() && asked <= MAX_SAVES {
            let request = saving.request(&shared.read());
            if let Some(request) = request {
                asked += 1;
                self.send_frames(vec![request]).await?;
                self.ping(saving.ping().to_vec()).await?;
            }
            match self.socket.next().await {
                Some(Ok(Frame::Binary(bytes))) => guarded(|| hear(shared, &bytes, saving))?,
                Some(Ok(Frame::Pong(ping))) => saving.ponged(&mut shared.write(), &ping),
                Some(Ok(Frame::Close(_)) | Err(_)) | None => return Ok(()),
                Some(Ok(_)) => {}
            }
            if saving.take_failure() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn send(&mut self, message: &Message) -> Result<(), End> {
        self.send_frames(vec![message.encode()]).await
    }

    /// Sends what waits in the room.
    async fn send_waiting(&mut self, shared: &Shared) -> Result<(), End> {
        let frames = shared.write().take_outbox();
        self.send_frames(frames).await
    }

    async fn send_frames(&mut self, frames: Vec<Vec<u8>>) -> Result<(), End> {
        if frames.is_empty() {
            return Ok(());
        }
        let cut = |error: tokio_tungstenite::tungstenite::Error| End::Cut(error.to_string());
        for frame in frames {
            self.socket.feed(Frame::Binary(frame.into())).await.map_err(cut)?;
        }
        self.socket.flush().await.map_err(cut)
    }

    /// What is due from time to time: a ping, presences, and saving what keeps changing.
    async fn look_after(&mut self, shared: &Shared, saving: &mut Saving) -> Result<(), End> {
        let frames = {
            let mut state = shared.write();
            let mut frames = state.take_outbox();
            frames.extend(saving.request(&state));
            frames
        };
        self.send_frames(frames).await?;
        self.ping(saving.ping().to_vec()).await
    }

    async fn ping(&mut self, payload: Vec<u8>) -> Result<(), End> {
        let sent = self.socket.send(Frame::Ping(payload.into())).await;
        sent.map_err(|error| End::Cut(error.to_string()))
    }
}

/// How a connection ended.
#[derive(Debug)]
enum End {
    Cut(String),
    Malformed(String),
    Closed { code: u16, reason: String },
}

/// The JSON that newer servers put into the reason of a closure.
#[derive(Deserialize)]
struct CloseReason {
    reason: String,
}

impl End {
    fn closed(frame: Option<CloseFrame>) -> Self {
        match frame {
            Some(frame) => Self::Closed {
                code: frame.code.into(),
                reason: frame.reason.to_string(),
            },
            None => Self::Cut("the server closed the connection".to_owned()),
        }
    }

    /// Whether joining again may help: the line was cut, or the server wants a new session.
    fn can_be_mended(&self) -> bool {
        match self {
            Self::Cut(_) => true,
            Self::Malformed(_) => false,
            Self::Closed { code, reason } => match code {
                1003 => serde_json::from_str::<CloseReason>(reason)
                    .map_or(true, |said| said.reason != "initialization_error"),
                4400..=4599 => false,
                _ => true,
            },
        }
    }

    fn into_error(self, server: &JupyterServer, path: &DocPath) -> RoomError {
        let (name, path) = (server.name().to_owned(), path.to_string());
        match self {
            Self::Closed { code: GONE, .. } => JupyterError::NotFound { server: name, path }.into(),
            Self::Closed {
                code: 4400 | UNSPEAKABLE,
                ..
            } => {
                let why = "it is not a document of this kind (a directory, a binary file, or not a valid notebook); \
                    get_document_info shows what is in the file, and overwrite_document replaces it"
                    .to_owned();
                RoomError::Refused {
                    server: name,
                    path,
                    why,
                }
            }
            Self::Closed { reason, code } => RoomError::Refused {
                server: name,
                path,
                why: format!("{reason} (code {code})"),
            },
            Self::Cut(why) => server.unreachable(why).into(),
            Self::Malformed(why) => RoomError::Refused {
                server: name,
                path,
                why,
            },
        }
    }
}

/// A defect in decoding what came over the wire must cost one room, not the gateway.
fn guarded<T>(work: impl FnOnce() -> Result<T, End>) -> Result<T, End> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(End::Malformed("an update could not be applied".to_owned())))
}
