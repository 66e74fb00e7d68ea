//! Events of the database for metrics. Knows no statements.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use crate::StoreError;

/// Measures what the database is asked.
pub trait StoreObserver: Send + Sync {
    fn on_operation(&self, operation: StoreOperation, succeeded: bool, took: Duration);
}

/// Kind of a request to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreOperation {
    Read,
    Write,
    /// The start of a transaction, with the wait for a connection and for SQLite's lock.
    Begin,
    Commit,
}

impl StoreOperation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Begin => "begin",
            Self::Commit => "commit",
        }
    }
}

/// Records that wait to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    pub executions: usize,
    pub activities: usize,
    pub audits: usize,
}

/// The observer of a database, once there is one. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Observed(Arc<OnceLock<Arc<dyn StoreObserver>>>);

impl Observed {
    /// Sets the observer; only the first one counts.
    pub(crate) fn set(&self, observer: Arc<dyn StoreObserver>) {
        let _ = self.0.set(observer);
    }

    /// Tells of something that was asked. Returns what came of it.
    pub(crate) fn tell<T>(
        &self,
        operation: StoreOperation,
        started: Instant,
        result: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(observer) = self.0.get() {
            observer.on_operation(operation, result.is_ok(), started.elapsed());
        }
        result
    }
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Observed")
    }
}
