//! Rooms of jupyter-collaboration over WebSockets.

use std::time::SystemTime;

use futures::{SinkExt, StreamExt};
use jupyter_client::{DocPath, DocumentKind, JupyterError, socket::Socket};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as Frame;

use super::{
    Fork, Host,
    backend::{DocumentBackend, DocumentConnection, Incoming, JoinedFile},
    kept_room::KeptConnection,
};
use crate::{
    RoomError, RoomKind,
    core::{disconnect::Disconnect, policy::ROOM_CLOSE_TIMEOUT, wire::save_request},
};

/// A connection to a room.
pub(crate) enum Connection {
    /// A room of the server.
    Socket(Box<Socket>),
    /// One that the gateway keeps itself.
    Kept(KeptConnection),
}

impl DocumentBackend for Host {
    type Connection = Connection;

    async fn join(
        &self,
        path: &DocPath,
        kind: RoomKind,
        fork: Option<&Fork>,
    ) -> Result<(Connection, JoinedFile), RoomError> {
        if let Some(fork) = fork {
            return self.join_fork(path, fork).await;
        }
        // Jupyter keeps a room for a minute after the last one left, even if its file is gone meanwhile.
        let (file, session) = tokio::join!(self.document(path), self.document_session(path, kind));
        if let Err(gone @ JupyterError::NotFound { .. }) = file {
            return Err(gone.into());
        }
        if matches!(&file, Ok(file) if file.kind == DocumentKind::Directory) {
            // Jupyter finds out so fast that it stops the room while it is being started. That error ends the task that
            // serves all of its rooms, so that nobody is told of edits any more, in whichever room.
            return Err(RoomError::Refused {
                server: self.name().to_owned(),
                path: path.to_string(),
                why: "it is a directory; list_documents shows what is in it".to_owned(),
            });
        }
        if let Ok(file) = &file {
            file.require_size(self.name())?;
        }
        let session = session?;
        let written = file.as_ref().ok().and_then(jupyter_client::Document::written);
        let (writable, created) = file.map_or((true, None), |file| (file.writable, file.created));
        // The colons must stay as they are: encoded, they name another, empty room.
        let room = kind.room_id(&session.file_id);
        let address = format!("api/collaboration/room/{room}?sessionId={}", session.session_id);
        let socket = self.socket(&address, path.as_str()).await?;
        let file = JoinedFile {
            file_id: session.file_id,
            server_session: session.session_id,
            writable,
            created,
            written,
        };
        Ok((Connection::Socket(Box::new(socket)), file))
    }

    async fn last_written(&self, path: &DocPath) -> Option<SystemTime> {
        self.document(path).await.ok()?.written()
    }

    async fn is_gone(&self, path: &DocPath) -> bool {
        matches!(self.exists(path).await, Ok(false))
    }
}

impl DocumentConnection for Connection {
    async fn send(&mut self, frames: Vec<Vec<u8>>) -> Result<(), Disconnect> {
        match self {
            Self::Socket(socket) => {
                for frame in frames {
                    socket.feed(Frame::Binary(frame.into())).await.map_err(cut)?;
                }
                socket.flush().await.map_err(cut)
            }
            Self::Kept(room) => room.send(&frames),
        }
    }

    async fn save(&mut self, request: u64) -> Result<(), Disconnect> {
        match self {
            Self::Socket(_) => self.send(vec![save_request(request)]).await,
            Self::Kept(_) => Ok(()),
        }
    }

    async fn ping(&mut self, payload: &[u8]) -> Result<(), Disconnect> {
        match self {
            Self::Socket(socket) => socket.send(Frame::Ping(payload.to_vec().into())).await.map_err(cut),
            Self::Kept(room) => {
                room.ping(payload);
                Ok(())
            }
        }
    }

    async fn receive(&mut self) -> Incoming {
        let socket = match self {
            Self::Socket(socket) => socket,
            Self::Kept(room) => return room.receive().await,
        };
        loop {
            return match socket.next().await {
                Some(Ok(Frame::Binary(bytes))) => Incoming::Frame(bytes),
                Some(Ok(Frame::Pong(payload))) => Incoming::Pong(payload),
                Some(Ok(Frame::Close(close))) => Incoming::Lost(Disconnect::closed(close)),
                Some(Ok(_)) => continue,
                Some(Err(error)) => Incoming::Lost(error.into()),
                None => Incoming::Lost(Disconnect::Cut("the server hung up".to_owned())),
            };
        }
    }

    async fn close(&mut self) {
        let Self::Socket(socket) = self else { return };
        // Hanging up with something unread resets the connection, and the server would lose what was said last.
        let closing = async {
            let _ = (**socket).close(None).await;
            while let Some(Ok(_)) = socket.next().await {}
        };
        let _ = timeout(ROOM_CLOSE_TIMEOUT, closing).await;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn cut(error: tokio_tungstenite::tungstenite::Error) -> Disconnect {
    Disconnect::Cut(error.to_string())
}
