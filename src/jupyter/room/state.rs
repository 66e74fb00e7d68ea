//! What a room consists of: the document, who is in it, and what waits to be sent.

use std::{
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Instant,
};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::{RoomKind, RoomStatus, awareness::Awareness, document::Document, wire::Message};
use crate::{jupyter::JupyterServer, types::DocPath};

/// Edits that the server has not taken yet; beyond it callers are told to wait.
const MAX_OUTBOX_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct Shared {
    pub(super) server: Arc<JupyterServer>,
    pub(super) kind: RoomKind,
    pub(super) session_id: String,
    /// When the file was made, as Jupyter says it.
    pub(super) created: Option<String>,
    pub(super) state: RwLock<State>,
    pub(super) status: watch::Sender<RoomStatus>,
    /// Rung when there is something to send.
    pub(super) bell: Notify,
    /// Rung when the room must be joined anew.
    pub(super) moved: Notify,
    pub(super) closing: CancellationToken,
}

pub(super) struct State {
    pub(super) document: Document,
    pub(super) awareness: Awareness,
    pub(super) path: DocPath,
    /// The path that the document itself named last.
    pub(super) said_path: Option<String>,
    pub(super) file_id: String,
    /// Names the server's process; another one after a reconnection means that it was restarted.
    pub(super) server_session: String,
    /// Counts the documents that the server has come back with.
    pub(super) incarnation: u64,
    outbox: Vec<Vec<u8>>,
    outbox_bytes: usize,
    /// Something of ours is not on disk yet.
    pub(super) unsaved: bool,
    /// When the document was last known to be where it is.
    pub(super) located: Instant,
    /// Whether the server can write the file.
    pub(super) writable: bool,
}

impl Shared {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn path(&self) -> String {
        self.read().path.to_string()
    }
}

impl State {
    pub(super) fn new(document: Document, path: DocPath, file_id: String, server_session: String) -> Self {
        Self {
            said_path: document.path(),
            document,
            awareness: Awareness::default(),
            path,
            file_id,
            server_session,
            incarnation: 0,
            outbox: Vec::new(),
            outbox_bytes: 0,
            unsaved: false,
            located: Instant::now(),
            writable: true,
        }
    }

    /// Removes cells that a restart of the server has left twice.
    pub(super) fn remove_doubles(&mut self) {
        if let Some(applied) = self.document.remove_doubles() {
            tracing::info!(path = %self.path, "cells were there twice after a restart of Jupyter; one of each stays");
            self.changed(applied.update);
        }
    }

    /// Notes a change of ours, which goes out next.
    pub(super) fn changed(&mut self, update: Vec<u8>) {
        self.unsaved = true;
        self.awareness.edited();
        self.send(&Message::Update(update));
    }

    /// Whether something of ours may be written to disk, but it is not known yet if people want that.
    pub(super) fn may_want_saving(&self) -> bool {
        self.unsaved && self.awareness.autosave().is_none()
    }

    /// Whether something of ours is to be written to disk, and nobody minds.
    pub(super) fn wants_saving(&self) -> bool {
        self.unsaved && self.awareness.autosave() == Some(true)
    }

    /// Whether the server is too far behind to be given more.
    pub(super) fn is_full(&self) -> bool {
        self.outbox_bytes > MAX_OUTBOX_BYTES
    }

    pub(super) fn send(&mut self, message: &Message) {
        let frame = message.encode();
        self.outbox_bytes += frame.len();
        self.outbox.push(frame);
    }

    /// Everything that waits to be sent, presences that are due included.
    pub(super) fn take_outbox(&mut self) -> Vec<Vec<u8>> {
        let due = self.awareness.due();
        if !due.is_empty() {
            self.send(&Message::Awareness(due));
        }
        self.take_edits()
    }

    pub(super) fn take_edits(&mut self) -> Vec<Vec<u8>> {
        self.outbox_bytes = 0;
        std::mem::take(&mut self.outbox)
    }

    /// Drops what was to be sent on a connection that is gone; synchronising sends it again.
    pub(super) fn clear_outbox(&mut self) {
        self.outbox.clear();
        self.outbox_bytes = 0;
    }
}
