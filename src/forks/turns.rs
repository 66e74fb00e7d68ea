//! Turns: what is done to one fork is done one after the other.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Default)]
pub(super) struct Turns(DashMap<String, Arc<Semaphore>>);

impl Turns {
    /// Waits for the turn at a fork, which lasts as long as what is returned.
    pub(super) async fn take(&self, fork_id: &str) -> Option<OwnedSemaphorePermit> {
        let one = || Arc::new(Semaphore::new(1));
        let turns = Arc::clone(&self.0.entry(fork_id.to_owned()).or_insert_with(one));
        // It is never closed.
        turns.acquire_owned().await.ok()
    }

    /// Forgets a fork that is gone.
    pub(super) fn forget(&self, fork_id: &str) {
        self.0.remove(fork_id);
    }
}
