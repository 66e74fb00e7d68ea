//! Events of the pool and its subscriptions.

use std::sync::Arc;

use jupyter_client::DocPath;
use tokio::sync::broadcast;

use super::Pool;
use crate::{DocumentChange, DocumentId, Room};

/// Events that a slow follower may be behind; it learns that it missed some.
pub(super) const MAX_EVENTS: usize = 256;
/// The same of changes of documents.
pub(super) const MAX_CHANGES: usize = 1024;

/// Event of the pool, for subscribers.
#[derive(Debug, Clone)]
pub enum PoolEvent {
    /// A document was opened or closed.
    Room { document: DocumentId, path: DocPath },
    /// A principal uses another room than before.
    Current { principal: Arc<str> },
    /// A file or directory has another name now.
    Renamed(Renamed),
}

/// A file or directory of a server that has another name now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    pub server: Arc<str>,
    pub from: DocPath,
    pub to: DocPath,
    /// The open documents that moved with it.
    pub documents: Vec<Moved>,
}

/// An open document that has another path now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub document: DocumentId,
    pub from: DocPath,
    pub to: DocPath,
}

impl Pool {
    /// Follows what happens to documents from now on.
    pub fn events(&self) -> broadcast::Receiver<PoolEvent> {
        self.events.subscribe()
    }

    /// Follows the changes of all open documents from now on.
    pub fn changes(&self) -> broadcast::Receiver<DocumentChange> {
        self.changes.subscribe()
    }

    pub(super) fn tell_of(&self, document: &DocumentId, room: &Room) {
        self.tell(PoolEvent::Room {
            document: document.clone(),
            path: room.info().path,
        });
    }

    pub(super) fn tell(&self, event: PoolEvent) {
        // Nobody may be following.
        let _ = self.events.send(event);
    }
}
