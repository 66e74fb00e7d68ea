//! Which room each principal used last, for as many principals as are worth remembering.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

const MAX_PRINCIPALS: usize = 4096;

#[derive(Default)]
pub(super) struct Recent(Mutex<State>);

#[derive(Default)]
struct State {
    clock: u64,
    /// When, and the session id of the room, which outlives renames of its document.
    rooms: HashMap<Arc<str>, (u64, String)>,
}

impl Recent {
    /// Notes a use; whether it was of another room than the last one.
    pub(super) fn used(&self, principal: &Arc<str>, session_id: &str) -> bool {
        let mut state = self.lock();
        state.clock += 1;
        let now = state.clock;
        if let Some((at, room)) = state.rooms.get_mut(principal) {
            *at = now;
            let is_other = room != session_id;
            if is_other {
                session_id.clone_into(room);
            }
            return is_other;
        }
        if state.rooms.len() >= MAX_PRINCIPALS {
            let oldest = state.rooms.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(principal, _)| Arc::clone(principal)) {
                state.rooms.remove(&oldest);
            }
        }
        state.rooms.insert(Arc::clone(principal), (now, session_id.to_owned()));
        true
    }

    pub(super) fn of(&self, principal: &str) -> Option<String> {
        self.lock().rooms.get(principal).map(|(_, room)| room.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_use_counts_and_the_longest_unused_is_forgotten_first() {
        let recent = Recent::default();
        let principal = |number: usize| Arc::<str>::from(number.to_string());
        assert!(recent.used(&principal(0), "a") && !recent.used(&principal(0), "a") && recent.used(&principal(0), "b"));
        for number in 1..MAX_PRINCIPALS {
            recent.used(&principal(number), "c");
        }
        recent.used(&principal(0), "b");
        recent.used(&principal(MAX_PRINCIPALS), "d");
        assert_eq!(
            (recent.of("0").as_deref(), recent.of("1"), recent.lock().rooms.len()),
            (Some("b"), None, MAX_PRINCIPALS)
        );
    }
}
