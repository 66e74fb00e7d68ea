//! Forks that follow their document: what people change in it flows into the fork.
//!
//! Jupyter sees to that for its own fork rooms, but only for as long as the room of the document is the same one. Where
//! that is over, or the gateway keeps the fork itself, what changed since is taken over as a fork is, the other way round.

use std::time::Duration;

use live_document::{Room, TakeOver};
use store::ForkRecord;
use tokio::time::timeout;

use super::{ForkError, Forks, Root, base_of, encode};

/// How long Jupyter may take to pass on changes of a document.
const PASSED_ON_WITHIN: Duration = Duration::from_millis(500);
/// The author of what flows into a fork.
const GATEWAY: &str = "gateway";

impl Forks {
    /// Brings a fork that follows its document up to it, and returns what is kept of it then.
    pub async fn catch_up(&self, root: Root<'_>, record: ForkRecord, fork: &Room) -> Result<ForkRecord, ForkError> {
        if !record.synchronize {
            return Ok(record);
        }
        let original = self.lease_root(root).await?;
        let (now, history) = original.content_with_history();
        let encoded = encode(&now, root.path)?;
        if encoded == record.base {
            return Ok(record);
        }
        let mut changes = fork.changes();
        let passed_on = async { while !fork.has_all_of(&history) && changes.changed().await.is_ok() {} };
        let is_passed_on = record.room_id.is_some() && timeout(PASSED_ON_WITHIN, passed_on).await.is_ok();
        if !is_passed_on {
            let base = base_of(&record)?;
            let changed = TakeOver {
                base: &base,
                copy: &now,
                only: None,
                force: false,
            };
            if let Err(error) = fork.take_over(&GATEWAY.into(), GATEWAY, None, changed).await {
                tracing::debug!(%error, path = %root.path, "changes of a document do not fit its fork");
                return Ok(record);
            }
        }
        self.update(&record.fork_id, |fork| fork.base = encoded).await
    }
}
