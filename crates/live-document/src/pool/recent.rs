//! The room that each principal used last, for a bounded number of principals.

use std::{num::NonZeroUsize, sync::Arc};

use lru::LruCache;
use parking_lot::Mutex;

const MAX_PRINCIPALS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// By principal the session id of the room, which outlives renames of its document.
pub(super) struct Recent(Mutex<LruCache<Arc<str>, String>>);

impl Default for Recent {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_PRINCIPALS)))
    }
}

impl Recent {
    /// Records a use; returns whether it was of another room than the last one.
    pub(super) fn used(&self, principal: &Arc<str>, session_id: &str) -> bool {
        let mut rooms = self.0.lock();
        let Some(room) = rooms.get_mut(principal) else {
            rooms.put(Arc::clone(principal), session_id.to_owned());
            return true;
        };
        let is_other = room != session_id;
        if is_other {
            session_id.clone_into(room);
        }
        is_other
    }

    pub(super) fn of(&self, principal: &str) -> Option<String> {
        self.0.lock().peek(principal).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_use_counts() {
        let recent = Recent::default();
        let ana = Arc::<str>::from("ana");
        assert!(recent.used(&ana, "a") && !recent.used(&ana, "a") && recent.used(&ana, "b"));
        assert_eq!((recent.of("ana").as_deref(), recent.of("bob")), (Some("b"), None));
    }
}
