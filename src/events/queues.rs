//! The order in which events are forgotten: of whoever holds most of them the oldest first, so that nobody's pushes out
//! another's.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::position::Position;

/// Events that are kept, by tenant, each in the order of arrival.
#[derive(Default)]
pub(super) struct Queues {
    by_owner: HashMap<Arc<str>, Queue>,
    bytes: usize,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Queued>,
    bytes: usize,
}

struct Queued {
    position: Position,
    bytes: usize,
    stored_at: Instant,
}

impl Queues {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, owner: Arc<str>, position: Position, bytes: usize, now: Instant) {
        self.bytes += bytes;
        let queue = self.by_owner.entry(owner).or_default();
        queue.bytes += bytes;
        queue.events.push_back(Queued {
            position,
            bytes,
            stored_at: now,
        });
    }

    /// Takes out an event that is too old or, while there are more bytes than that, too much.
    pub(super) fn pop(&mut self, max_bytes: usize, ttl: Duration, now: Instant) -> Option<Position> {
        let is_expired = |queue: &Queue| {
            let oldest = queue.events.front();
            oldest.is_some_and(|oldest| now.duration_since(oldest.stored_at) > ttl)
        };
        let is_over = self.bytes > max_bytes;
        let mut queues = self.by_owner.iter_mut();
        let (owner, queue) = match is_over {
            true => queues.max_by_key(|(_, queue)| queue.bytes)?,
            false => queues.find(|(_, queue)| is_expired(queue))?,
        };
        let Queued { position, bytes, .. } = queue.events.pop_front()?;
        queue.bytes -= bytes;
        self.bytes -= bytes;
        if queue.events.is_empty() {
            let owner = Arc::clone(owner);
            self.by_owner.remove(&owner);
        }
        Some(position)
    }
}
