//! Forks in the pool: a fork is a document of its own beside the one that it is a copy of. Where it is, and what it held
//! when its room was last seen, is for a [`ForkKeeper`] to know.

use std::sync::{Arc, Weak};

use futures::future::BoxFuture;
use jupyter_client::{DocPath, JupyterServer};

use super::{Account, Lease, Opened, Place, Pool, PoolError};
use crate::{DocumentContent, Fork, ForkRoom, Host, Room, RoomKind};

/// The room in which a fork can be joined.
pub struct PreparedFork {
    pub room: ForkRoom,
    /// Content that a room which was made anew must be given.
    pub restore: Option<DocumentContent>,
}

/// Keeps forks while their rooms are closed, or gone with the server that had them.
pub trait ForkKeeper: Send + Sync {
    /// Finds the room of a fork, or makes it anew.
    fn prepare<'a>(
        &'a self,
        server: &'a Arc<JupyterServer>,
        path: &'a DocPath,
        kind: RoomKind,
        fork_id: &'a str,
        account: &'a Account,
    ) -> BoxFuture<'a, Result<PreparedFork, PoolError>>;

    /// Is told of a fork that was opened, and on whose account.
    fn opened(&self, room: &Room, account: &Account);
}

impl Pool {
    /// Sets who keeps forks; the first one stays.
    pub fn set_fork_keeper(&self, keeper: Weak<dyn ForkKeeper>) {
        let _ = self.fork_keeper.set(keeper);
    }

    /// A fork of the document at a path, opened if it is not.
    pub async fn lease_fork(
        self: &Arc<Self>,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        kind: RoomKind,
        fork_id: &str,
        account: &Account,
    ) -> Result<Lease, PoolError> {
        let place = Place::of_fork(server.name(), path, kind, fork_id);
        self.refresh(&place);
        loop {
            if let Opened::Here(lease) = self.open(server, &place, account).await? {
                return Ok(lease);
            }
        }
    }

    /// A lease of a fork that is open already.
    pub fn lease_open_fork(&self, server: &str, path: &DocPath, kind: RoomKind, fork_id: &str) -> Option<Lease> {
        self.lease_at(&Place::of_fork(server, path, kind, fork_id))
    }

    /// Closes a fork that is given up.
    pub async fn end_fork(&self, server: &str, path: &DocPath, kind: RoomKind, fork_id: &str) {
        let slot = self.index.write().take(&Place::of_fork(server, path, kind, fork_id));
        if let Some(slot) = slot {
            slot.close().await;
        }
    }

    pub(super) async fn open_fork(
        &self,
        host: Arc<Host>,
        place: &Place,
        fork_id: &Arc<str>,
        account: &Account,
    ) -> Result<Room, PoolError> {
        let keeper = self.fork_keeper.get().and_then(Weak::upgrade);
        let keeper = keeper.ok_or(PoolError::NoForks)?;
        let server = Arc::clone(host.server());
        let prepared = keeper
            .prepare(&server, &place.path, place.kind, fork_id, account)
            .await?;
        let fork = Fork {
            id: Arc::clone(fork_id),
            room: prepared.room,
        };
        let room = Room::open_fork(host, &place.path, place.kind, fork, self.limits.presence_timeout).await?;
        if let Some(content) = prepared.restore
            && let Err(error) = room.set_content(&"gateway".into(), content).await
        {
            room.begin_closing();
            return Err(error.into());
        }
        keeper.opened(&room, account);
        Ok(room)
    }
}
