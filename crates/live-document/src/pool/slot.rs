//! One document's place in the pool, and the leases that keep it.

use std::{
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

use crate::{DocumentId, Room};

pub(super) struct Slot {
    pub(super) room: OnceCell<Room>,
    /// Known when the room is open, and the same from then on.
    pub(super) id: OnceLock<DocumentId>,
    pub(super) tenant: Arc<str>,
    leases: AtomicUsize,
    /// Milliseconds after the pool's start.
    last_used: AtomicU64,
}

impl Slot {
    pub(super) fn new(tenant: &Arc<str>) -> Self {
        Self {
            room: OnceCell::new(),
            id: OnceLock::new(),
            tenant: Arc::clone(tenant),
            leases: AtomicUsize::new(0),
            last_used: AtomicU64::new(0),
        }
    }

    /// The room, if it is open.
    pub(super) fn open_room(&self) -> Option<&Room> {
        self.room.get().filter(|room| room.is_open())
    }

    /// Leases the room, if it is open.
    pub(super) fn lease(self: &Arc<Self>, started: Instant) -> Option<Lease> {
        let room = self.open_room()?.clone();
        let hold = Hold::new(self, started);
        Some(Lease { room, hold })
    }

    pub(super) fn is_session(&self, session_id: &str) -> bool {
        self.open_room().is_some_and(|room| room.session_id() == session_id)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.leases.load(Ordering::Acquire) == 0
    }

    pub(super) fn idle_for(&self, started: Instant) -> Duration {
        started.elapsed().saturating_sub(self.last_used())
    }

    /// Time of its last use, counted from the pool's start.
    pub(super) fn last_used(&self) -> Duration {
        Duration::from_millis(self.last_used.load(Ordering::Relaxed))
    }

    pub(super) fn begin_closing(&self) {
        if let Some(room) = self.room.get() {
            room.begin_closing();
        }
    }

    pub(super) fn give_up(&self) {
        if let Some(room) = self.room.get() {
            room.give_up();
        }
    }

    pub(super) async fn close(&self) {
        if let Some(room) = self.room.get() {
            room.close().await;
        }
    }

    fn touch(&self, started: Instant) {
        let now = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(now, Ordering::Relaxed);
    }
}

/// The right to use a room; as long as it lives the room is not closed for being idle.
pub struct Lease {
    pub(super) room: Room,
    pub(super) hold: Hold,
}

impl Lease {
    /// Identity of the document, whatever its path.
    pub fn document_id(&self) -> Option<&DocumentId> {
        self.hold.slot.id.get()
    }
}

impl Deref for Lease {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

/// Counts a user of a slot, however its work ends.
pub(super) struct Hold {
    pub(super) slot: Arc<Slot>,
    started: Instant,
}

impl Hold {
    pub(super) fn new(slot: &Arc<Slot>, started: Instant) -> Self {
        slot.leases.fetch_add(1, Ordering::AcqRel);
        slot.touch(started);
        Self {
            slot: Arc::clone(slot),
            started,
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.slot.touch(self.started);
        self.slot.leases.fetch_sub(1, Ordering::AcqRel);
    }
}
