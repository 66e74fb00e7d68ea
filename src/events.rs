//! The resumable events behind streams of protocol versions up to 2025-11-25: what is needed of a log of them, and the
//! one in memory. Knows the messages of a stream and the MCP session it belongs to; nothing of HTTP or of tools.

mod audience;
mod log;
mod memory;
mod position;
mod queues;
mod size;
mod stream;

/// Reads what a client sends to resume a stream.
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing {
    pub(crate) fn event_id(text: &str) {
        let read: Result<super::position::Position, _> = text.parse();
        if let Ok(position) = read {
            let again: Result<super::position::Position, _> = position.to_string().parse();
            assert_eq!(again.ok(), Some(position));
        }
    }
}

pub use audience::Audience;
pub use log::{EventLog, SessionEvents, StreamGuard, UnknownEvent};
pub use memory::{EventLimits, MemoryEvents};
