//! Documents shared with people in Jupyter collaboration rooms. Knows nothing of MCP, of principals or of what
//! documents are used for.
//!
//! | module | what it owns |
//! | --- | --- |
//! | [`Room`] | what callers hold of an open document: reads from memory, edits that wait for their acknowledgement |
//! | [`pool`] | the open documents of all servers: leases, limits, renames |
//! | `driver` | the task of an open document: its socket, its timers, and requests about its file |
//! | `core` | the document and its whole life without I/O: model on yrs, edits, revisions, recovery, saving, presence |
//!
//! The document is behind one lock rather than inside the task that owns the socket: reads come straight
//! from memory, and an edit is on its way before its caller waits. The task is the only one that
//! touches the socket, and the document changes in two ways only: an update of the server is applied, or a transaction
//! of our own is begun and finished.

mod core;
mod driver;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod pool;
mod room;

pub use crate::core::{
    Activity, Author, Availability, CallingLine, Cause, Cell, CellDifference, CellKind, CellWrite, ChangeKind, Cursor,
    CursorRange, Difference, DocumentChange, DocumentContent, DocumentId, Edit, EditError, EditOptions, HistorySink,
    Loss, Merged, NewCell, OnlineUser, OutputsChange, OutputsWritten, Overlap, Participant, Person, Position,
    PositionError, QueuedCell, Recorded, Refusal, Refused, RoomError, RoomStatus, RunEnd, RunMark, Source,
    SourceChange, Splice, Status, StreamTail, TakeOver, User, combined, differences,
};
pub use driver::{Fork, ForkRoom, Host, KeptRoom, PresenceChange, PresenceKind};
pub use jupyter_client::RoomKind;
pub use room::{
    Acknowledgement, CellNameError, CellOrder, CellWritten, CellsRead, ContentRead, DeltaOptions, DeltaOutcome, Edited,
    Planned, Room, RoomInfo, ShortIds, SourceShown, TakenOver,
};
