//! Contents of versions for the store: where it removes the oldest versions, the rest begins with a whole content.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use store::{Snapshot, SnapshotSource};

use super::{History, append::snapshot, contents::load};

/// Knows the history by a weak reference: the store, which has this, is the history's.
pub(super) struct Snapshots(Weak<History>);

impl Snapshots {
    pub(super) fn of(history: &Arc<History>) -> Self {
        Self(Arc::downgrade(history))
    }
}

#[async_trait]
impl SnapshotSource for Snapshots {
    async fn snapshot(&self, document: i64, seq: i64) -> Option<Snapshot> {
        let store = self.0.upgrade()?.store.clone();
        let loaded = load(&store, document, seq).await.ok()?.ok()?;
        Some(snapshot(&loaded.content))
    }

    fn pinned(&self) -> Vec<String> {
        let history = self.0.upgrade();
        history.map(|history| history.notices.versions()).unwrap_or_default()
    }
}
