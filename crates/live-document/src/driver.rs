//! Driver of an open document: the task that keeps it connected, its socket and timers, and requests about its file.

mod availabilities;
mod backend;
mod connection;
mod disconnect;
mod file_check;
mod file_sync;
mod fork;
pub(crate) mod global_awareness;
mod host;
mod kept_room;
mod output_throttle;
mod roster;
pub(crate) mod shared;
pub(crate) mod task;

pub use fork::{Fork, ForkRoom};
pub use host::Host;
pub use kept_room::KeptRoom;
pub use roster::{PresenceChange, PresenceKind};
