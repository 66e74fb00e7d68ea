//! Which room each principal used last, for as many principals as are worth remembering.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jupyter_client::RecentMap;

const MAX_PRINCIPALS: usize = 4096;

/// By principal the session id of the room, which outlives renames of its document.
pub(super) struct Recent(Mutex<RecentMap<Arc<str>, String>>);

impl Default for Recent {
    fn default() -> Self {
        Self(Mutex::new(RecentMap::new(MAX_PRINCIPALS)))
    }
}

impl Recent {
    /// Notes a use; whether it was of another room than the last one.
    pub(super) fn used(&self, principal: &Arc<str>, session_id: &str) -> bool {
        let mut rooms = self.lock();
        let Some(room) = rooms.get_mut(principal) else {
            rooms.insert(Arc::clone(principal), session_id.to_owned());
            return true;
        };
        let is_other = room != session_id;
        if is_other {
            session_id.clone_into(room);
        }
        is_other
    }

    pub(super) fn of(&self, principal: &str) -> Option<String> {
        self.lock().peek(principal).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, RecentMap<Arc<str>, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
