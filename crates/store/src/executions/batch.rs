//! Changes to the records of executions that are written together.

use std::sync::Arc;

use crate::ExecutionRecord;

/// Renames come first: the records are newer than they are.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) renames: Vec<Arc<Rename>>,
    pub(crate) records: Vec<Arc<ExecutionRecord>>,
}

/// A file or directory whose executions have another path now.
#[derive(Debug)]
pub(crate) struct Rename {
    pub(crate) server: String,
    pub(crate) from: Origin,
    pub(crate) to: String,
}

/// The file or directory that has another path now.
#[derive(Debug)]
pub(crate) enum Origin {
    /// A file or directory at a path, with everything below it.
    Path(String),
    /// A file, by the server's id of it, wherever it was.
    File(String),
}
