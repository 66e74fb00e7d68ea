//! One open shared document: its socket, the document itself, and who is in it. The only place that
//! knows yrs. Knows nothing of MCP, of principals or of how many rooms there are.
//!
//! The document is behind one lock rather than inside the task that owns the socket: reads come straight
//! from memory, and an edit is on its way before its caller waits. The task is the only one that
//! touches the socket, and every change to the document goes through one of two functions of
//! the document: one for what comes from the server, one for what a caller wants.

mod acknowledgement;
mod awareness;
mod change_log;
mod depths;
mod disk;
mod document;
mod edit;
mod end;
mod handle;
mod hearing;
mod host;
mod json;
mod limits;
mod line;
mod lobby;
mod merge;
mod notebook;
mod people;
pub mod pool;
mod presence;
mod reader;
mod readings;
mod reconcile;
mod refusal;
mod replay;
mod saving;
mod scan;
mod shown;
mod splice;
mod state;
mod status;
mod task;
mod turn;
mod whereabouts;
mod wire;

pub use document::{CellWrite, OutputsChange, OutputsWritten, QueuedCell, RunEnd, StreamTail};
pub use edit::{CellKind, Edit, EditError, EditOptions, NewCell};
pub use handle::{Acknowledgement, CellOrder, CellWritten, Edited, Looked, Room, RoomInfo};
pub use host::Host;
pub use jupyter_client::RoomKind;
pub use notebook::Cell;
pub use people::{Cursor, Person};
pub use presence::Activity;
pub use reconcile::Merged;
pub use refusal::{Cause, Refusal, Refused};
pub use shown::Shown;
pub use splice::Splice;
pub use status::{RoomError, RoomStatus};

/// A random id for a client of a room. It has 32 bits, as in a browser: servers before
/// jupyter-collaboration 4 garble longer ones, so that what we write comes back as somebody else's.
fn new_client_id() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().1 & u64::from(u32::MAX)
}
