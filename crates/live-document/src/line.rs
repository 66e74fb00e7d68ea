//! A room's socket: joining, the first synchronisation, sending, saving and leaving.

use std::time::{Duration, SystemTime};

use futures::{SinkExt, StreamExt};
use jupyter_client::{DocPath, DocumentKind, JupyterError, collaboration::DocumentSession, socket::Socket};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::Message as Frame;
use yrs::StateVector;

use super::{
    RoomError, RoomKind,
    awareness::EVERYBODY_SPOKE,
    document::{Document, decode_vector, encode_vector},
    end::{End, guarded},
    hearing::hear,
    saving::Saving,
    state::Shared,
    turn::Turn,
    wire::Message,
};
use crate::Host;

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
/// Pings go out all the time, so silence for this long is a dead line.
pub(super) const SILENCE: Duration = Duration::from_secs(20);
/// By then a server has looked at the file of a document that it has just loaded; it does so once a second.
const LOOKS_AT_FILES_WITHIN: Duration = Duration::from_millis(1500);
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether enough time has passed to know what people want.
const LEARNING: Duration = Duration::from_secs(1);
/// How long a room that is left waits until its file has what was written in it.
const SAVE_PATIENCE: Duration = Duration::from_secs(5);
/// How often that is asked for; a server that saves something else every time saves this too.
const MAX_SAVES: usize = 3;

/// A joined room's socket.
pub(super) struct Line {
    pub(super) socket: Socket,
    pub(super) session: DocumentSession,
    /// Whether the server can write the file, as far as it says.
    pub(super) writable: bool,
    pub(super) created: Option<String>,
    /// When the file was last written, by the server's clock.
    pub(super) written: Option<SystemTime>,
    /// When the server last said something.
    pub(super) heard: SystemTime,
    /// From when on the server may be asked to save, if not at once.
    pub(super) saves_from: Option<Instant>,
    /// The last edit that was sent on it.
    last_sent: u64,
}

/// What the server sent until it had sent everything.
pub(super) struct Received {
    /// What the server said to have, if it said so yet; some ask only after they have answered.
    pub(super) server_vector: Option<StateVector>,
    pub(super) updates: Vec<Vec<u8>>,
}

/// What comes next on a line, if anything comes in time.
enum Heard {
    Message(Message),
    Pong,
    Nothing,
}

impl Line {
    pub(super) async fn join(server: &Host, path: &DocPath, kind: RoomKind) -> Result<Self, RoomError> {
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
        if let Ok(file) = &file {
            file.require_size(server.name())?;
        }
        let session = session?;
        let written = file.as_ref().ok().and_then(jupyter_client::Document::written);
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
            written,
            heard: SystemTime::now(),
            saves_from: None,
            last_sent: 0,
        })
    }

    /// Notes that the server was restarted since this room was last joined. Call it when the document has come.
    ///
    /// A server that finds a notebook which was written by half when it was killed puts the file of before in its place, and
    /// goes on believing that the file is as new as the half. A save that it is asked for then looks to it like one that
    /// somebody else has overtaken: it makes the document the same as that old file. It learns better when it next looks at
    /// the file.
    pub(super) async fn joined_restarted(&mut self, server: &Host, path: &DocPath) {
        self.saves_from = Some(Instant::now() + LOOKS_AT_FILES_WITHIN);
        if let Ok(file) = server.document(path).await {
            self.written = file.written().or(self.written);
        }
    }

    /// The handshake of a document that is opened for the first time.
    pub(super) async fn first_sync(&mut self, server: &Host, document: &mut Document) -> Result<(), End> {
        let received = self.first_sync_silently(server, document).await?;
        match received.server_vector {
            Some(vector) => self.send(&Message::SyncStep2(document.diff(&vector))).await,
            None => Ok(()),
        }
    }

    /// Takes the server's document into an empty one, telling the server nothing of ours yet.
    pub(super) async fn first_sync_silently(
        &mut self,
        server: &Host,
        document: &mut Document,
    ) -> Result<Received, End> {
        self.send(&Message::SyncStep1(encode_vector(&StateVector::default())))
            .await?;
        let mut received = Received {
            server_vector: None,
            updates: Vec::new(),
        };
        let mut synced = false;
        // A server that loads piece by piece sends cells all the time. When none came for a moment, pings
        // that come back without any tell a notebook that is complete from a server that is busy.
        let mut pings_left = 0;
        let mut until = Instant::now() + SYNC_PATIENCE;
        loop {
            match self.hear_until(until).await? {
                Heard::Message(Message::SyncStep1(vector)) => {
                    let vector = decode_vector(&vector)?;
                    document.acknowledgements.server_has(&vector);
                    received.server_vector = Some(vector);
                }
                Heard::Message(Message::SyncStep2(update)) => {
                    guarded(|| Ok(document.apply_remote(&update)?))?;
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
                    guarded(|| Ok(document.apply_remote(&update)?))?;
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
                Ok(Some(Err(error))) => return Err(error.into()),
                Ok(None) => return Err(End::Cut("the server hung up".to_owned())),
                Err(_) => return Ok(Heard::Nothing),
            }
        }
    }

    /// Says goodbye for every agent and hangs up.
    pub(super) async fn leave(&mut self, shared: &Shared, saving: &mut Saving) {
        // An edit may wait for the bell that this closing overtook.
        let waiting = {
            let mut state = shared.write();
            state.end_pause();
            state.take_all()
        };
        let _ = self.send_frames(waiting).await;
        // Whoever looks at the file next, a copy for instance, must find the edits there.
        let _ = timeout(EVERYBODY_SPOKE, self.learn_wishes(shared, saving)).await;
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

    /// Waits until it is known whether people want what is not on disk yet to be saved.
    async fn learn_wishes(&mut self, shared: &Shared, saving: &mut Saving) -> Result<(), End> {
        while shared.read().may_want_saving() {
            // That nobody speaks is known when enough time has passed.
            if let Ok(heard) = timeout(LEARNING, self.hear_one(shared, saving)).await {
                heard?;
            }
        }
        Ok(())
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
            self.hear_one(shared, saving).await?;
            if saving.take_failure() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Asks the server to write the document now, for somebody who waits for that.
    pub(super) async fn save_now(&mut self, shared: &Shared, saving: &mut Saving) -> Result<(), End> {
        let request = saving.request_now(&shared.read());
        match request {
            Some(request) => {
                self.send_frames(vec![request]).await?;
                self.ping(saving.ping().to_vec()).await
            }
            None => Ok(()),
        }
    }

    async fn hear_one(&mut self, shared: &Shared, saving: &mut Saving) -> Result<(), End> {
        match self.socket.next().await {
            Some(Ok(Frame::Binary(bytes))) => guarded(|| hear(shared, &bytes, saving))?,
            Some(Ok(Frame::Pong(ping))) => saving.ponged(&mut shared.write(), &ping),
            Some(Ok(Frame::Close(close))) => return Err(End::closed(close)),
            Some(Err(error)) => return Err(error.into()),
            None => return Err(End::Cut("the server hung up".to_owned())),
            Some(Ok(_)) => {}
        }
        Ok(())
    }

    async fn send(&mut self, message: &Message) -> Result<(), End> {
        self.send_frames(vec![message.encode()]).await
    }

    /// Sends changes of the document, if there are any and somebody waits for them or it is the room's turn.
    pub(super) async fn send_changes(&mut self, shared: &Shared, turn: &mut Turn) -> Result<(), End> {
        let changes = {
            let mut state = shared.write();
            if state.document.acknowledgements.has_all_to(self.last_sent) {
                turn.is_confirmed();
            }
            if !state.has_changes() {
                turn.is_unneeded();
                return Ok(());
            }
            if !state.is_urgent() && !turn.take() {
                return Ok(());
            }
            self.last_sent = state.document.acknowledgements.latest();
            state.take_changes()
        };
        self.send_frames(changes).await
    }

    /// Sends what waits in the room and needs no turn.
    pub(super) async fn send_waiting(&mut self, shared: &Shared) -> Result<(), End> {
        let frames = shared.write().take_outbox();
        self.send_frames(frames).await
    }

    pub(super) async fn send_frames(&mut self, frames: Vec<Vec<u8>>) -> Result<(), End> {
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
    pub(super) async fn look_after(&mut self, shared: &Shared, saving: &mut Saving) -> Result<(), End> {
        let frames = {
            let mut state = shared.write();
            state.show_unsaved();
            let mut frames = state.take_outbox();
            state.pause();
            // Otherwise the server will do it without being asked, and would write the file twice.
            if state.is_kept_waiting() && saving.is_worth_asking(&state) {
                frames.extend(saving.request(&state));
            }
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
