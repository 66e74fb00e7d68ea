//! The seam to whatever keeps shared documents: how one is joined, sent to, received from and saved. Today these are the
//! rooms of jupyter-collaboration; see [`super::connection`].

use std::{future::Future, time::SystemTime};

use jupyter_client::DocPath;
use tokio_tungstenite::tungstenite::Bytes;

use super::fork::Fork;
use crate::{RoomError, RoomKind, core::disconnect::Disconnect};

/// A server that keeps shared documents.
pub(crate) trait DocumentBackend: Send + Sync {
    type Connection: DocumentConnection;

    /// Joins the document at a path, or a fork of it. Nothing is synchronised yet.
    fn join(
        &self,
        path: &DocPath,
        kind: RoomKind,
        fork: Option<&Fork>,
    ) -> impl Future<Output = Result<(Self::Connection, JoinedFile), RoomError>> + Send;

    /// Modification time of a file, by the server's clock, if it says so.
    fn last_written(&self, path: &DocPath) -> impl Future<Output = Option<SystemTime>> + Send;

    /// Returns whether a file is known to be gone.
    fn is_gone(&self, path: &DocPath) -> impl Future<Output = bool> + Send;
}

/// A connection to one document.
pub(crate) trait DocumentConnection: Send {
    fn send(&mut self, frames: Vec<Vec<u8>>) -> impl Future<Output = Result<(), Disconnect>> + Send;

    /// Asks the server to write the document to disk.
    fn save(&mut self, request: u64) -> impl Future<Output = Result<(), Disconnect>> + Send;

    fn ping(&mut self, payload: &[u8]) -> impl Future<Output = Result<(), Disconnect>> + Send;

    /// Waits for what comes next; nothing is lost if it is not waited for to the end.
    fn receive(&mut self) -> impl Future<Output = Incoming> + Send;

    /// Hangs up in good order.
    fn close(&mut self) -> impl Future<Output = ()> + Send;
}

/// A message or event of a connection.
pub(crate) enum Incoming {
    Frame(Bytes),
    Pong(Bytes),
    Lost(Disconnect),
}

/// File of a document when it is joined.
pub(crate) struct JoinedFile {
    pub(crate) file_id: String,
    /// Names the server's process.
    pub(crate) server_session: String,
    /// True if the server can write the file, as far as it says.
    pub(crate) writable: bool,
    pub(crate) created: Option<String>,
    /// Modification time of the file, by the server's clock.
    pub(crate) written: Option<SystemTime>,
}
