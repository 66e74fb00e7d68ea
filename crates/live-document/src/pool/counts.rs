//! Numbers of open documents, for metrics.

use super::Pool;
use crate::RoomStatus;

/// Number of open documents, by how they are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoomCounts {
    /// Somebody works with it, or opens it.
    pub in_use: usize,
    pub idle: usize,
    /// Its connection is down and being restored, whoever uses it.
    pub reconnecting: usize,
}

impl Pool {
    pub fn counts(&self) -> RoomCounts {
        let mut counts = RoomCounts::default();
        for (_, slot) in self.index.read().iter() {
            match slot.open_room() {
                Some(room) if *room.0.status.borrow() == RoomStatus::Reconnecting => counts.reconnecting += 1,
                Some(_) if slot.is_idle() => counts.idle += 1,
                _ => counts.in_use += 1,
            }
        }
        counts
    }

    /// Number of documents that may be open at once.
    pub fn max_open_rooms(&self) -> usize {
        self.limits.max_open_rooms
    }
}
