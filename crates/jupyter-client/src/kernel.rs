//! The connection to a running kernel: its messages, their framing, and its return after a cut. Knows nothing of cells, queues or outputs; what a message means is for those who listen.

mod answers;
mod connection;
mod link;
mod message;
mod queue;
mod wire;

pub use answers::is_question;
pub use link::{KernelError, KernelEvent, KernelLink, greet};
pub use message::{Channel, ExecuteRequest, Message};
#[cfg(any(test, fuzzing))]
pub(crate) use wire::decode_any;
pub(crate) use wire::{Framing, WireError};
