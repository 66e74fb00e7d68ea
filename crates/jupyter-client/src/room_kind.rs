//! The two kinds of rooms in which Jupyter shares documents, and how it names them.

use crate::DocPath;

/// Kind of document in a room, and Jupyter's names for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RoomKind {
    Notebook,
    Text,
}

impl RoomKind {
    /// The kind of room that a file has.
    pub fn of(path: &DocPath) -> Self {
        match path.is_notebook() {
            true => Self::Notebook,
            false => Self::Text,
        }
    }

    /// Jupyter's id of the room of a file.
    pub fn room_id(self, file_id: &str) -> String {
        format!("{}:{}:{file_id}", self.format(), self.file_type())
    }

    pub fn format(self) -> &'static str {
        match self {
            Self::Notebook => "json",
            Self::Text => "text",
        }
    }

    pub fn file_type(self) -> &'static str {
        match self {
            Self::Notebook => "notebook",
            Self::Text => "file",
        }
    }
}
