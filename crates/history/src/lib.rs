//! Contents of documents over time: the operations between two contents, versions, undo and diffs. Plain values
//! without I/O; knows neither Yjs, SQL nor MCP.
//!
//! | question | where |
//! | --- | --- |
//! | the content of a document at one moment | [`Content`], [`Cell`], [`Outputs`] with their [`Blob`] |
//! | what changed from one to the next | [`Delta`] of [`Operation`]s, each with what was and what is |
//! | how it is kept | [`Delta::encode`], [`Content::encode`], [`Blob::encode`] |
//! | who made a version, and what it takes back | [`Author`], [`LoggedVersion`], [`VersionId`] |
//! | what is left if some versions had never been made | [`plan_undo`], [`undoable`], [`redoable`] |
//! | a change of an older content, in the present one | [`Delta::rebase`], [`Delta::only`] |
//! | the same for people | [`diff`], [`Delta::summary`] |
//!
//! Positions in texts count Unicode code points. Cells are known by their ids, each of which a content has once.

mod blob;
mod content;
mod delta;
mod diff;
mod encoding;
mod json;
mod operation;
mod order;
mod rebase;
#[cfg(test)]
mod testing;
pub mod text;
mod undo;
mod version;

pub use blob::{Blob, Hash, MAX_OUTPUTS, Outputs};
pub use content::{Cell, CellKind, Content, Notebook};
pub use delta::{Delta, Unfitting};
pub use diff::{Difference, Part, Status, diff};
pub use encoding::{DecodeError, MAX_DECODED};
pub use json::Json;
pub use operation::{Operation, Place};
pub use order::longest_rising;
pub use rebase::Rebased;
pub use text::Splice;
pub use undo::{oldest_needed, plan_undo, redoable, undoable};
pub use version::{Author, LoggedVersion, VersionId};
