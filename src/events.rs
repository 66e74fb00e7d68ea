//! The resumable event store behind streams of protocol versions up to 2025-11-25.
//! Knows the messages of a stream and the MCP session it belongs to; nothing of HTTP or of tools.

mod audience;
mod memory;
mod stream;

pub use audience::Audience;
pub use memory::{EventLimits, MemoryEvents};
pub use stream::Held;
