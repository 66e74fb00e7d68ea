//! Availability that agents declare on a server; bounded in number and in time.

use std::{num::NonZeroUsize, sync::Arc, time::Instant};

use lru::LruCache;
use parking_lot::Mutex;

use crate::core::{Availability, Status, policy::AVAILABILITY_LASTS};

const MAX_AGENTS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// By principal what it said, and until when that holds.
pub(crate) struct Availabilities(Mutex<LruCache<Arc<str>, (Availability, Instant)>>);

impl Default for Availabilities {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_AGENTS)))
    }
}

impl Availabilities {
    pub(crate) fn set(&self, principal: &Arc<str>, availability: Availability) {
        let until = Instant::now() + AVAILABILITY_LASTS;
        self.0.lock().put(Arc::clone(principal), (availability, until));
    }

    /// The availability that a principal declared, if it still holds.
    pub(crate) fn of(&self, principal: &str) -> Option<Availability> {
        let mut known = self.0.lock();
        let (availability, until) = known.peek(principal)?;
        if *until > Instant::now() {
            return Some(availability.clone());
        }
        known.pop(principal);
        None
    }

    /// Returns whether a principal is not to be shown.
    pub(crate) fn hides(&self, principal: &str) -> bool {
        self.of(principal).is_some_and(|said| said.status == Status::Offline)
    }
}
