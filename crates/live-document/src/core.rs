//! A shared document and its whole life: no I/O, and no clock but the one that it is told. The only place that knows yrs.
//!
//! | question | where |
//! | --- | --- |
//! | the states of a document, its inputs and effects | `life`, `inbound`, `handshake` |
//! | recovery when it is joined again | `recovery`, with `document/{restore,cell_identity,duplicate_cells}`, `edit_journal` |
//! | how it is stored, read and changed | `document`, `notebook`, `json`, `splice`, `matches` |
//! | what the server has, and what the disk has | `acknowledgement`, `saving` |
//! | who did what, and what others may not overwrite | `change_log`, `changes`, `readings`, `reconcile`, `merge`, `three_way`, `refusal` |
//! | which versions history is told of | `recorder`, `versions`, `history_sink`, with `document/{recording,delta}` |
//! | who is there | `awareness`, `presence`, `people`, `users` |
//! | what is on the wire, and what of it is refused | `wire`, `reader`, `scan`, `depths`, `limits` |
//! | how long things may take, and how often they are done | `policy`, `file_check`, `clock` |
//!
//! [`state::State`] holds all of it behind one lock.

pub(crate) mod acknowledgement;
pub(crate) mod awareness;
pub(crate) mod change_log;
pub(crate) mod changes;
pub(crate) mod clock;
mod content;
mod depths;
pub(crate) mod disconnect;
pub(crate) mod document;
mod document_id;
mod edit;
pub(crate) mod edit_journal;
pub(crate) mod file_check;
pub(crate) mod handshake;
mod history_sink;
mod inbound;
mod json;
pub(crate) mod life;
mod limits;
mod matches;
mod merge;
mod notebook;
pub(crate) mod people;
pub(crate) mod policy;
pub(crate) mod presence;
mod reader;
pub(crate) mod readings;
pub(crate) mod reconcile;
pub(crate) mod recorder;
pub(crate) mod recovery;
pub(crate) mod refusal;
pub(crate) mod saving;
pub(crate) mod scan;
mod splice;
pub(crate) mod state;
mod status;
pub(crate) mod three_way;
pub(crate) mod users;
mod versions;
pub(crate) mod wire;

pub use change_log::{Author, RunMark};
pub use changes::{CallingLine, ChangeKind, DocumentChange};
pub use content::DocumentContent;
pub use document::{
    CellWrite, OutputsChange, OutputsWritten, Position, PositionError, QueuedCell, RunEnd, Source, SourceChange,
    StreamTail,
};
pub use document_id::DocumentId;
pub use edit::{CellKind, Edit, EditError, EditOptions, NewCell};
pub use history_sink::{HistorySink, Loss, Recorded};
pub(crate) use jupyter_client::RoomKind;
pub use notebook::Cell;
pub use people::{Cursor, Person};
pub use presence::{Activity, Availability, Status};
pub use reconcile::Merged;
pub use refusal::{Cause, Refusal, Refused};
pub use splice::Splice;
pub use status::{RoomError, RoomStatus};
pub use three_way::{CellDifference, Difference, Overlap, TakeOver, combined, differences};
pub use users::{CursorRange, OnlineUser, Participant, User};

/// A random id for a client of a room. It has 32 bits, as in a browser: servers before
/// jupyter-collaboration 4 garble longer ones, so that our writes come back as somebody else's.
fn new_client_id() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().1 & u64::from(u32::MAX)
}
