//! Forks that follow their document: its changes flow into the fork.
//!
//! Jupyter could pass on the changes themselves. But a fork of which some cells were taken over has the same text as the document by
//! changes of its own, and would get it twice. So what changed is taken over by content, as a fork is, the other way round.

use std::{sync::Arc, time::Duration};

use jupyter_client::{DocPath, JupyterServer};
use live_document::{DocumentContent, Overlap, Room, RoomError, RoomKind, TakeOver, differences, pool::Account};
use tokio::time::sleep;

use super::{ForkError, Forks, Root, base_of, encode};

/// Time in which changes are gathered, to flow together.
const GATHERED: Duration = Duration::from_millis(50);
/// The author of changes that flow into a fork.
const GATEWAY: &str = "gateway";

/// The document that an open fork follows.
pub(super) struct Followed {
    pub(super) server: Arc<JupyterServer>,
    pub(super) path: DocPath,
    pub(super) kind: RoomKind,
    pub(super) account: Account,
}

impl Followed {
    fn root(&self) -> Root<'_> {
        Root {
            server: &self.server,
            path: &self.path,
            kind: self.kind,
            account: &self.account,
        }
    }
}

impl Forks {
    /// Updates a fork from its document, if it follows that.
    pub async fn catch_up(&self, root: Root<'_>, fork: &Room) -> Result<(), ForkError> {
        let Some(fork_id) = fork.fork_id() else { return Ok(()) };
        let _locked = self.merging.lock(fork_id).await;
        self.bring_up(root, fork).await
    }

    /// The same for callers that hold the lock of the fork.
    pub(super) async fn bring_up(&self, root: Root<'_>, fork: &Room) -> Result<(), ForkError> {
        let Some(fork_id) = fork.fork_id() else { return Ok(()) };
        let record = self.kept(fork_id).await?;
        if !record.synchronize {
            return Ok(());
        }
        let now = self.lease_root(root).await?.whole_content();
        let base = base_of(&record)?;
        if base == now {
            return Ok(());
        }
        let base = encode(&pass_on(base, now, fork).await?, root.path)?;
        self.update(fork_id, |record| record.base = base).await?;
        Ok(())
    }

    /// Updates an open fork whenever its document changes, until one of them is closed.
    pub(super) async fn keep_up(&self, fork: Room, followed: Followed) {
        let original = match self.lease_root(followed.root()).await {
            Ok(original) => original,
            Err(error) => return tracing::debug!(%error, "the document of a fork cannot be followed"),
        };
        let mut changes = original.changes();
        loop {
            tokio::select! {
                () = fork.ended() => return,
                () = original.ended() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            sleep(GATHERED).await;
            changes.mark_unchanged();
            match self.catch_up(followed.root(), &fork).await {
                Ok(()) => {}
                Err(ForkError::Gone { .. }) => return,
                Err(error) => tracing::debug!(%error, "changes of a document do not reach its fork"),
            }
        }
    }
}

/// Merges the present content of the document into a fork. Where the fork changed the same place it stays as it is. Returns the base of
/// what the fork differs in then.
async fn pass_on(mut base: DocumentContent, now: DocumentContent, fork: &Room) -> Result<DocumentContent, ForkError> {
    let author: Arc<str> = GATEWAY.into();
    match fork.take_over(&author, GATEWAY, None, changed(&base, &now, None)).await {
        Ok(_) => return Ok(now),
        Err(RoomError::Edit(_)) => {}
        Err(error) => return Err(error.into()),
    }
    for found in differences(&base, &now) {
        let only = [found.cell];
        match fork
            .take_over(&author, GATEWAY, None, changed(&base, &now, Some(&only)))
            .await
        {
            Ok(taken) => base = taken.base,
            Err(RoomError::Edit(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(base)
}

fn changed<'a>(base: &'a DocumentContent, now: &'a DocumentContent, only: Option<&'a [String]>) -> TakeOver<'a> {
    TakeOver {
        base,
        copy: now,
        only,
        overlap: Overlap::Refuse,
    }
}
