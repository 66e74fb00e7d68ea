//! How many bytes are kept of what has ended, of each principal and in all. The oldest is forgotten first.

use std::io;

use serde::Serialize;

use crate::{backend::Backend, sqlite::Location};

/// What a record takes beside its texts.
const RECORD_BYTES: usize = 512;
/// A database in memory is bounded by what a process may take.
const MAX_BYTES_IN_MEMORY: usize = 64 * 1024 * 1024;
/// The bounds are seen to whenever so much of the smaller one was written.
const SLACK: usize = 16;

/// Bytes of finished executions that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    pub per_principal: usize,
    pub total: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            per_principal: 64 * 1024 * 1024,
            total: 1024 * 1024 * 1024,
        }
    }
}

impl StoreLimits {
    pub(crate) fn within(self, location: &Location) -> Self {
        match location {
            Location::Memory => Self {
                total: self.total.min(MAX_BYTES_IN_MEMORY),
                ..self
            },
            Location::File(_) => self,
        }
    }
}

/// Sees to the limits while records are written.
#[derive(Debug)]
pub(crate) struct Bounds {
    limits: StoreLimits,
    /// Since the limits were last seen to; none before the first time.
    written: Option<usize>,
}

impl Bounds {
    pub(crate) fn new(limits: StoreLimits) -> Self {
        Self { limits, written: None }
    }

    /// Forgets what is too much, if so many bytes more make it worth looking.
    pub(crate) async fn on_written(&mut self, bytes: usize, backend: &dyn Backend) {
        let StoreLimits { per_principal, total } = self.limits;
        let written = self.written.map(|written| written.saturating_add(bytes));
        if written.is_some_and(|written| written < per_principal.min(total) / SLACK) {
            self.written = written;
            return;
        }
        match backend.forget_oldest(self.limits).await {
            Ok(records) => {
                self.written = Some(0);
                if records > 0 {
                    tracing::info!(records, "the oldest executions are forgotten, for their size");
                }
            }
            // It is tried again with the next that is written.
            Err(error) => tracing::warn!(%error, "old executions cannot be forgotten"),
        }
    }
}

/// About what a record with such texts takes.
pub(crate) fn record_bytes(texts: impl IntoIterator<Item = usize>) -> usize {
    RECORD_BYTES + texts.into_iter().sum::<usize>()
}

/// The length of a value as JSON.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // What cannot be written takes no place.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}
