//! The resumable events behind streams of protocol versions up to 2025-11-25: what is needed of a log of them, and the
//! one in memory. Knows the messages of a stream and the MCP session it belongs to; nothing of HTTP or of tools.

mod audience;
mod log;
mod memory;
mod position;
mod queues;
mod size;
mod stream;

pub use audience::Audience;
pub use log::{EventLog, SessionEvents, StreamGuard, UnknownEvent};
pub use memory::{EventLimits, MemoryEvents};
