//! What the store needs of a database. SQLite is the one there is.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;

use crate::{ExecutionFilter, ExecutionRecord, LeftBehind, StoreError, StoreLimits, lease::Lease};

/// A database. It keeps what it is given and decides nothing: what is noted and not yet written, and who looks after
/// what, is the store's to know.
#[async_trait]
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    /// Writes all changes, as those of a gateway, or none. Says how many bytes the records take, about.
    async fn write(&self, batch: &Batch, gateway: &str) -> Result<usize, StoreError>;

    async fn execution(&self, id: &str) -> Result<Option<ExecutionRecord>, StoreError>;

    /// The newest first, up to a limit in the place of the filter's own.
    async fn executions(&self, filter: &ExecutionFilter, limit: usize) -> Result<Vec<ExecutionRecord>, StoreError>;

    /// The runs in each notebook, not counting the executions of these ids.
    async fn runs_by_notebook(&self, except: &[&str]) -> Result<Vec<NotebookRunsRow>, StoreError>;

    /// The gateways whose executions have not ended. Some executions may have none.
    async fn gateways_with_unfinished(&self) -> Result<Vec<Option<String>>, StoreError>;

    /// Gives what has not ended of one gateway to another. Of several who want it at once, each gets what no other got.
    async fn reassign_unfinished(&self, from: Option<&str>, to: &str) -> Result<Vec<LeftBehind>, StoreError>;

    /// The kernels in which code of no notebook was run.
    async fn code_kernels(&self) -> Result<Vec<CodeKernel>, StoreError>;

    /// Deletes the executions that ended before a time, and says how many.
    async fn prune(&self, before: SystemTime) -> Result<u64, StoreError>;

    /// Deletes the oldest executions that have ended as far as they exceed limits, and says how many.
    async fn forget_oldest(&self, limits: StoreLimits) -> Result<u64, StoreError>;

    /// Makes or renews a lease, which is valid for so long from now.
    async fn renew_lease(&self, lease: &Lease, valid: Duration) -> Result<(), StoreError>;

    /// All leases, also those that were not renewed in time.
    async fn leases(&self) -> Result<Vec<StoredLease>, StoreError>;

    /// Removes a gateway's lease, unless it was renewed after it was `seen`. Says whether it did.
    async fn remove_lease(&self, gateway: &str, seen: Option<&StoredLease>) -> Result<bool, StoreError>;

    /// Whether it can be read.
    async fn ping(&self) -> Result<(), StoreError>;

    async fn close(&self);
}

/// Changes that are written together. Renames come first: the records are newer than they are.
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
    /// What was at a path, or below it.
    Path(String),
    /// A file, by the server's id of it, wherever it was.
    File(String),
}

/// The runs in one notebook.
#[derive(Debug)]
pub(crate) struct NotebookRunsRow {
    pub(crate) server: String,
    pub(crate) path: String,
    pub(crate) executions: u64,
    pub(crate) last_started: Option<SystemTime>,
}

/// A kernel in which a gateway ran code of no notebook.
#[derive(Debug)]
pub(crate) struct CodeKernel {
    pub(crate) server: String,
    pub(crate) kernel: String,
    pub(crate) gateway: Option<String>,
}

/// A lease as the database has it.
#[derive(Debug, Clone)]
pub(crate) struct StoredLease {
    pub(crate) lease: Lease,
    /// By the clock of the database, in microseconds since 1970.
    pub(crate) expires_at: i64,
    /// Whether it was not renewed in time, by the same clock.
    pub(crate) has_expired: bool,
}
