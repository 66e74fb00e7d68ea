//! One lock per fork, so that its changes are made one after the other.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Default)]
pub(super) struct Locks(DashMap<String, Arc<Semaphore>>);

impl Locks {
    /// Waits for the lock of a fork, which is held until the permit is dropped.
    pub(super) async fn lock(&self, fork_id: &str) -> Option<OwnedSemaphorePermit> {
        let one = || Arc::new(Semaphore::new(1));
        let lock = Arc::clone(&self.0.entry(fork_id.to_owned()).or_insert_with(one));
        // It is never closed.
        lock.acquire_owned().await.ok()
    }

    /// Forgets a fork that is gone.
    pub(super) fn forget(&self, fork_id: &str) {
        self.0.remove(fork_id);
    }
}
