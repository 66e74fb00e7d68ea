//! The line to a running kernel: its messages, their framing, and a connection that comes back after a
//! cut. Knows nothing of cells, queues or outputs; what a message means is for those who listen.

mod line;
mod link;
mod message;
mod queue;
mod wire;

pub use link::{KernelError, KernelEvent, KernelLink, greet};
pub use message::{Channel, ExecuteRequest, Message};
pub use wire::{Framing, WireError};
