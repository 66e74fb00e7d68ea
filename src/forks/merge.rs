//! The end of a fork: it is taken over into its document, whole or in part, or given up.

use std::sync::Arc;

use live_document::{CellDifference, DocumentContent, Edited, Overlap, TakeOver, differences, pool::Lease};
use store::ForkRecord;

use super::{ForkError, Forks, Root, base_of, encode};

/// Options of a merge, and its author.
#[derive(Clone, Copy)]
pub struct MergeForm<'a> {
    pub cells: Option<&'a [String]>,
    pub overlap: Overlap,
    pub author: &'a Arc<str>,
    pub author_name: &'a str,
    pub tool: Option<&'a str>,
}

/// Result of a merge.
pub struct Merged {
    pub edited: Edited,
    /// The cells that were taken over.
    pub cells: Vec<CellDifference>,
    /// Those in which the fork still differs.
    pub left: Vec<CellDifference>,
    /// The cells in which lines stand in both versions; nothing for a text.
    pub doubled: Vec<Option<String>>,
    /// True if the fork is gone.
    pub is_gone: bool,
}

/// A fork as it stood at one moment, beside what it began as.
pub struct ForkContent {
    pub record: ForkRecord,
    pub base: DocumentContent,
    pub content: DocumentContent,
}

impl ForkContent {
    pub fn differences(&self) -> Vec<CellDifference> {
        differences(&self.base, &self.content)
    }
}

impl Forks {
    /// A fork as it stands now, up to date with its document if it follows that.
    pub async fn read(&self, root: Root<'_>, fork_id: &str) -> Result<ForkContent, ForkError> {
        let _locked = self.merging.lock(fork_id).await;
        self.read_locked(root, fork_id).await
    }

    /// The room of a fork, up to date with its document if it follows that.
    pub async fn room(&self, root: Root<'_>, fork_id: &str) -> Result<Lease, ForkError> {
        let _locked = self.merging.lock(fork_id).await;
        let record = self.find(root, fork_id).await?;
        let fork = self.lease(root, &record).await?;
        self.bring_up(root, &fork).await?;
        Ok(fork)
    }

    async fn read_locked(&self, root: Root<'_>, fork_id: &str) -> Result<ForkContent, ForkError> {
        let record = self.find(root, fork_id).await?;
        let fork = self.lease(root, &record).await?;
        self.bring_up(root, &fork).await?;
        let record = self.kept(fork_id).await?;
        Ok(ForkContent {
            base: base_of(&record)?,
            content: fork.whole_content(),
            record,
        })
    }

    /// Takes over a fork into its document, beside what others did there meanwhile. A fork of which everything was
    /// taken is gone then.
    pub async fn merge(&self, root: Root<'_>, fork_id: &str, form: MergeForm<'_>) -> Result<Merged, ForkError> {
        let _locked = self.merging.lock(fork_id).await;
        let fork = self.read_locked(root, fork_id).await?;
        let original = self.lease_root(root).await?;
        let is_chosen = |found: &CellDifference| form.cells.is_none_or(|cells| cells.contains(&found.cell));
        let (cells, left): (Vec<_>, Vec<_>) = fork.differences().into_iter().partition(is_chosen);
        let copy = TakeOver {
            base: &fork.base,
            copy: &fork.content,
            only: form.cells,
            overlap: form.overlap,
        };
        let taken = original
            .take_over(form.author, form.author_name, form.tool, copy)
            .await?;
        let is_gone = form.cells.is_none() || fork.record.is_review && left.is_empty();
        match is_gone {
            true => self.discard(root, &fork.record).await?,
            false => {
                let base = encode(&taken.base, root.path)?;
                self.update(fork_id, |record| record.base = base).await?;
            }
        }
        Ok(Merged {
            edited: taken.edited,
            cells,
            left,
            doubled: taken.doubled,
            is_gone,
        })
    }

    /// Gives a fork up, with all that is in it.
    pub async fn discard(&self, root: Root<'_>, fork: &ForkRecord) -> Result<(), ForkError> {
        self.store.delete_fork(&fork.fork_id).await?;
        // Jupyter does not hang up when it removes a fork.
        self.pool
            .end_fork(root.server.name(), root.path, root.kind, &fork.fork_id)
            .await;
        if let Some(room_id) = &fork.room_id
            && let Err(error) = root.server.delete_fork(room_id).await
        {
            tracing::warn!(%error, fork_id = fork.fork_id, "Jupyter still lists a fork that is gone");
        }
        self.writing.forget(&fork.fork_id);
        self.merging.forget(&fork.fork_id);
        Ok(())
    }
}
