//! Limits of what is kept. Of executions that have ended, so many bytes of each principal and in all; the oldest are
//! forgotten first.

use std::{io, time::Duration};

use serde::Serialize;

use crate::{database::Database, location::Location};

/// Bytes of a record beside its texts.
const RECORD_BYTES: usize = 512;
/// A database in memory is bounded by what a process may take.
const MAX_BYTES_IN_MEMORY: usize = 64 * MEBIBYTE;
const MAX_RECORDS_IN_MEMORY: usize = 20_000;
const MEBIBYTE: usize = 1024 * 1024;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The bounds are seen to whenever so much of the smaller one was written.
const SLACK: usize = 16;

/// Limits of what is kept, and the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of finished executions of one principal.
    pub per_principal: usize,
    /// Bytes of finished executions in all.
    pub total: usize,
    /// Age of finished executions.
    pub keep: Duration,
    pub history: HistoryLimits,
    pub activity: LogLimits,
    pub audit: LogLimits,
    /// To PostgreSQL.
    pub connections: u32,
}

/// Limits of the versions of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    pub keep: Duration,
    pub versions_per_document: usize,
    pub bytes_per_document: usize,
    pub bytes: usize,
}

/// Limits of what is only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    pub keep: Duration,
    pub records: usize,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            per_principal: 64 * MEBIBYTE,
            total: 1024 * MEBIBYTE,
            keep: 30 * DAY,
            history: HistoryLimits {
                keep: 90 * DAY,
                versions_per_document: 20_000,
                bytes_per_document: 64 * MEBIBYTE,
                bytes: 1024 * MEBIBYTE,
            },
            activity: LogLimits {
                keep: 30 * DAY,
                records: 100_000,
            },
            audit: LogLimits {
                keep: 90 * DAY,
                records: 1_000_000,
            },
            connections: 8,
        }
    }
}

impl StoreLimits {
    pub(crate) fn within(mut self, location: &Location) -> Self {
        if let Location::Memory = location {
            self.total = self.total.min(MAX_BYTES_IN_MEMORY);
            self.history.bytes = self.history.bytes.min(MAX_BYTES_IN_MEMORY);
            self.activity.records = self.activity.records.min(MAX_RECORDS_IN_MEMORY);
            self.audit.records = self.audit.records.min(MAX_RECORDS_IN_MEMORY);
        }
        self
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
    pub(crate) async fn on_written(&mut self, bytes: usize, database: &Database) {
        let StoreLimits {
            per_principal, total, ..
        } = self.limits;
        let written = self.written.map(|written| written.saturating_add(bytes));
        if written.is_some_and(|written| written < per_principal.min(total) / SLACK) {
            self.written = written;
            return;
        }
        match database.forget_oldest_executions(self.limits).await {
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
