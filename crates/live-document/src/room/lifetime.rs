//! The life of a room as its users see it: its connection, its renames, outside writes of its file, and its end.

use jupyter_client::DocPath;
use tokio::time::timeout;

use super::Room;
use crate::{
    RoomError, RoomStatus,
    core::{life::Input, policy::EDIT_RECONNECT_TIMEOUT},
};

impl Room {
    /// Returns whether the room can be used, now or after a reconnection.
    pub fn is_open(&self) -> bool {
        !matches!(*self.0.status.borrow(), RoomStatus::Disconnected(_))
    }

    /// Tells the room that its document has another name now, before the server's document says so.
    pub fn set_path(&self, path: &DocPath) {
        self.0.write().set_path(path.clone());
    }

    /// Tells the room that a directory above its document has another name now. Jupyter may have lost
    /// track of the document, so that this room can never be saved again; it is joined anew at the new
    /// path, where what was not saved is done again.
    pub fn rejoin_at(&self, path: &DocPath) {
        if !self.0.on(Input::Moved(path.clone())).is_empty() {
            // Whoever comes next waits for it.
            self.0.status.send_replace(RoomStatus::Reconnecting);
            self.0.bell.notify_one();
        }
    }

    /// Tells the room that its file was written from outside, and that Jupyter makes the document the same.
    pub fn mark_overwritten(&self) {
        self.0.write().mark_overwritten();
    }

    /// Returns whether acknowledged edits of this author are lost, because the file was written from outside before
    /// they were in it.
    pub fn has_discarded(&self, author: &str) -> bool {
        self.0.read().has_discarded_of(author)
    }

    /// Takes the descriptions of those edits; they are told once.
    pub fn take_discarded(&self, author: &str) -> Vec<String> {
        self.0.write().take_discarded_of(author)
    }

    /// Leaves the room without waiting for it.
    pub fn begin_closing(&self) {
        self.0.closing.cancel();
    }

    /// Leaves the room of a document that is gone, where nothing can be saved any more.
    pub async fn abandon(&self) {
        self.0.write().unsaved = None;
        self.close().await;
    }

    /// Makes a room that is being closed stop waiting for its edits to be saved.
    pub(crate) fn give_up(&self) {
        self.0.giving_up.cancel();
    }

    /// Leaves the room.
    pub async fn close(&self) {
        self.begin_closing();
        self.ended().await;
    }

    /// Waits until the room is over, whatever ends it.
    pub async fn ended(&self) {
        let mut status = self.0.status.subscribe();
        let _ = status
            .wait_for(|status| matches!(status, RoomStatus::Disconnected(_)))
            .await;
    }

    /// Returns whether the room is connected at this moment.
    pub fn is_connected(&self) -> bool {
        *self.0.status.borrow() == RoomStatus::Connected
    }

    /// Waits until the room is connected, for as long as a caller may reasonably be kept: what is in
    /// memory while the connection is down may be old.
    pub async fn connected(&self) -> Result<(), RoomError> {
        if self.is_connected() {
            return Ok(());
        }
        let mut status = self.0.status.subscribe();
        let settled = status.wait_for(|status| *status != RoomStatus::Reconnecting);
        match timeout(EDIT_RECONNECT_TIMEOUT, settled).await {
            Ok(Ok(now)) => match &*now {
                RoomStatus::Disconnected(why) => Err(why.clone()),
                RoomStatus::Connected | RoomStatus::Reconnecting => Ok(()),
            },
            Ok(Err(_)) => Err(RoomError::Closed { path: self.0.path() }),
            Err(_) => Err(RoomError::Reconnecting {
                server: self.0.server.name().to_owned(),
                path: self.0.path(),
            }),
        }
    }

    pub(super) fn lost(&self) -> RoomError {
        RoomError::Lost {
            server: self.0.server.name().to_owned(),
            path: self.0.path(),
        }
    }
}
