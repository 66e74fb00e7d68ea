//! Forks of documents: copies without a file, in rooms of the server or in ones that the gateway keeps itself.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterError};

use super::{Host, KeptRoom, backend::JoinedFile, connection::Connection};
use crate::{DocumentId, RoomError};

/// A copy of a document.
#[derive(Clone)]
pub struct Fork {
    pub id: Arc<str>,
    pub room: ForkRoom,
}

/// The room in which a fork is edited.
#[derive(Clone)]
pub enum ForkRoom {
    /// A fork room of the server, which it forgets when it restarts.
    Jupyter {
        room_id: String,
        root_room_id: String,
    },
    Kept(Arc<KeptRoom>),
}

impl Host {
    /// Joins the room of a fork. A room that the server does not know any more would be made anew, and be empty.
    pub(super) async fn join_fork(&self, path: &DocPath, fork: &Fork) -> Result<(Connection, JoinedFile), RoomError> {
        let connection = match &fork.room {
            ForkRoom::Kept(room) => Connection::Kept(room.connect()),
            ForkRoom::Jupyter { room_id, root_room_id } => {
                let known = self.forks(root_room_id).await?.unwrap_or_default();
                if !known.contains_key(room_id) {
                    return Err(JupyterError::NotFound {
                        server: self.name().to_owned(),
                        path: format!("fork {} of {path}", fork.id),
                    }
                    .into());
                }
                let address = format!("api/collaboration/room/{room_id}");
                Connection::Socket(Box::new(self.socket(&address, path.as_str()).await?))
            }
        };
        let file = JoinedFile {
            file_id: DocumentId::file_id_of_fork(&fork.id),
            // A fork room does not outlive the server's process.
            server_session: String::new(),
            writable: true,
            created: None,
            written: None,
        };
        Ok((connection, file))
    }
}
