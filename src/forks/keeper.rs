//! Rooms of forks: found where they are, made anew where they are gone, and followed while they are open.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use jupyter_client::{DocPath, JupyterServer, NewFork};
use live_document::{
    ForkRoom, KeptRoom, Overlap, Room, RoomKind, TakeOver, combined,
    pool::{Account, ForkKeeper, PoolError, PreparedFork},
};
use store::ForkRecord;
use tokio::time::timeout;

use super::{ForkError, Forks, Root, base_of, content_of, encode, follow::Followed};

/// Time without changes after which a fork is stored; it is at the latest after some such times.
const QUIET: Duration = Duration::from_millis(300);
const MAX_QUIETS: usize = 10;

impl ForkKeeper for Forks {
    fn prepare<'a>(
        &'a self,
        server: &'a Arc<JupyterServer>,
        path: &'a DocPath,
        kind: RoomKind,
        fork_id: &'a str,
        account: &'a Account,
    ) -> BoxFuture<'a, Result<PreparedFork, PoolError>> {
        let root = Root {
            server,
            path,
            kind,
            account,
        };
        Box::pin(async move {
            self.find_room(root, fork_id)
                .await
                .map_err(|error| failure(error, fork_id))
        })
    }

    fn opened(&self, room: &Room, account: &Account) {
        let (Some(forks), room) = (self.own.upgrade(), room.clone()) else {
            return;
        };
        let info = room.info();
        let followed = Followed {
            server: Arc::clone(room.server()),
            path: info.path,
            kind: info.kind,
            account: Account {
                principal: None,
                ..account.clone()
            },
        };
        self.tasks.spawn(async move {
            let is_followed = |record: &ForkRecord| record.synchronize;
            let fork_id = room.fork_id().unwrap_or_default();
            match forks.kept(fork_id).await.is_ok_and(|record| is_followed(&record)) {
                true => drop(tokio::join!(
                    forks.write_down(&room),
                    forks.keep_up(room.clone(), followed)
                )),
                false => forks.write_down(&room).await,
            }
        });
    }
}

impl Forks {
    async fn find_room(&self, root: Root<'_>, fork_id: &str) -> Result<PreparedFork, ForkError> {
        let record = self.kept(fork_id).await?;
        let root_room_id = root.kind.room_id(&record.file_id);
        let Some(known) = root.server.forks(&root_room_id).await? else {
            let room = KeptRoom::new(root.kind, content_of(&record)?);
            let room = ForkRoom::Kept(Arc::new(room.map_err(live_document::RoomError::from)?));
            return Ok(PreparedFork { room, restore: None });
        };
        if let Some(room_id) = record.room_id.clone().filter(|room_id| known.contains_key(room_id)) {
            let room = ForkRoom::Jupyter { room_id, root_room_id };
            return Ok(PreparedFork { room, restore: None });
        }
        self.make_room_anew(root, record).await
    }

    /// Makes another fork room in the place of one that a restarted server has forgotten.
    async fn make_room_anew(&self, root: Root<'_>, record: ForkRecord) -> Result<PreparedFork, ForkError> {
        let original = self.lease_root(root).await?;
        let file_id = original.info().file_id;
        let root_room_id = root.kind.room_id(&file_id);
        let fork = NewFork {
            title: record.title.as_deref().unwrap_or_default(),
            description: record.description.as_deref().unwrap_or_default(),
            synchronize: false,
        };
        let room_id = root.server.create_fork(&root_room_id, fork).await?;
        tracing::info!(fork_id = record.fork_id, path = %root.path, "made the room of a fork anew");
        let (mut base, mut content) = (base_of(&record)?, content_of(&record)?);
        if record.synchronize {
            let now = original.whole_content();
            let followed = TakeOver {
                base: &base,
                copy: &now,
                only: None,
                overlap: Overlap::Refuse,
            };
            if let Some(followed) = combined(&followed, &content) {
                (base, content) = (now, followed);
            }
        }
        let base = encode(&base, root.path)?;
        self.update(&record.fork_id, |record| {
            (record.room_id, record.file_id) = (Some(room_id.clone()), file_id);
            record.base = base;
        })
        .await?;
        Ok(PreparedFork {
            room: ForkRoom::Jupyter { room_id, root_room_id },
            restore: Some(content),
        })
    }

    /// Stores the changes of an open fork, whoever makes them, until it is closed.
    async fn write_down(&self, room: &Room) {
        let mut changes = room.changes();
        loop {
            let is_over = tokio::select! {
                () = room.ended() => true,
                changed = changes.changed() => changed.is_err(),
            };
            for _ in 0..MAX_QUIETS {
                if is_over || timeout(QUIET, changes.changed()).await.is_err() {
                    break;
                }
            }
            match self.save(room).await {
                Ok(()) => {}
                Err(ForkError::Gone { .. }) => return,
                Err(error) => tracing::warn!(%error, "a fork could not be stored"),
            }
            if is_over {
                return;
            }
        }
    }
}

fn failure(error: ForkError, fork_id: &str) -> PoolError {
    match error {
        ForkError::Pool(error) => error,
        ForkError::Room(error) => error.into(),
        ForkError::Jupyter(error) => PoolError::Room(error.into()),
        ForkError::Gone { .. } | ForkError::Unknown { .. } => PoolError::NoSuchFork {
            fork_id: fork_id.to_owned(),
        },
        error => PoolError::ForksUnavailable { why: error.to_string() },
    }
}
