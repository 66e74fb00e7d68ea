//! What a document is known by.

use std::sync::Arc;

use super::RoomKind;

/// Names a document for as long as it exists. Its path is an attribute that changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentId {
    pub server: Arc<str>,
    /// As the server's index of files has it when the document is opened.
    pub file_id: Arc<str>,
    pub kind: RoomKind,
}
