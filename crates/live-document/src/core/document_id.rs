//! Identity of a document.

use std::sync::Arc;

use super::RoomKind;

/// Names a document for as long as it exists. Its path is an attribute that changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentId {
    pub server: Arc<str>,
    /// The id in the server's index of files at the time of opening.
    pub file_id: Arc<str>,
    pub kind: RoomKind,
}

/// Prefix of the `file_id` of a fork, which has no file.
const FORK: &str = "fork:";

impl DocumentId {
    /// The `file_id` of a fork.
    pub fn file_id_of_fork(fork_id: &str) -> String {
        format!("{FORK}{fork_id}")
    }

    /// The id of the fork, if it is one and not the document of a file.
    pub fn fork_id(&self) -> Option<&str> {
        self.file_id.strip_prefix(FORK)
    }

    pub fn is_fork(&self) -> bool {
        self.fork_id().is_some()
    }
}
