//! Kernel starts beyond what the server tells: which are under way, which the gateway started itself, and when others
//! did.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dashmap::DashMap;
use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use crate::{DocPath, NotebookSession};

/// Number of kernels that one server starts at the same time: each takes a processor for a second or so, and a server
/// that starts dozens answers nobody meanwhile. The others wait here, before their time limits begin.
const MAX_STARTS: usize = 4;

pub(crate) struct KernelStarts {
    /// The sessions that are being started, by path, so that all who want one wait for the same: Jupyter itself would
    /// start a kernel for each that asks while the first one starts.
    sessions: DashMap<DocPath, Arc<OnceCell<NotebookSession>>>,
    /// Permits for starting kernels at the same time.
    permits: Semaphore,
    /// Kernels that the gateway itself started, and for whom, if that is known.
    own: DashMap<String, Option<Starter>>,
    /// Time when somebody else last started one.
    others: Mutex<Option<Instant>>,
}

/// The caller for whom a kernel was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Starter {
    pub id: Arc<str>,
    pub name: String,
}

impl Default for KernelStarts {
    fn default() -> Self {
        Self {
            sessions: DashMap::new(),
            permits: Semaphore::new(MAX_STARTS),
            own: DashMap::new(),
            others: Mutex::default(),
        }
    }
}

impl KernelStarts {
    /// Starts the session of a path, or waits for the one that is being started.
    pub(crate) async fn session<E>(
        &self,
        path: &DocPath,
        start: impl Future<Output = Result<NotebookSession, E>>,
    ) -> Result<NotebookSession, E> {
        let starting = Arc::clone(&self.sessions.entry(path.clone()).or_default());
        let session = starting.get_or_try_init(|| start).await;
        // What is started from now on must be looked up anew.
        self.sessions.remove_if(path, |_, other| Arc::ptr_eq(other, &starting));
        session.cloned()
    }

    /// Waits until another kernel may be started. Nobody closes the semaphore.
    pub(crate) async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.acquire().await.ok()
    }

    pub(crate) fn record_own(&self, kernel_id: &str) {
        self.own.entry(kernel_id.to_owned()).or_default();
    }

    /// Notes for whom a kernel was started, if the gateway did so and it is not known yet.
    pub(crate) fn record_starter(&self, kernel_id: &str, starter: &Starter) {
        if let Some(mut known) = self.own.get_mut(kernel_id) {
            known.get_or_insert_with(|| starter.clone());
        }
    }

    pub(crate) fn starter_of(&self, kernel_id: &str) -> Option<Starter> {
        self.own.get(kernel_id)?.clone()
    }

    pub(crate) fn on_shut_down(&self, kernel_id: &str) {
        self.own.remove(kernel_id);
    }

    pub(crate) fn is_own(&self, kernel_id: &str) -> bool {
        self.own.contains_key(kernel_id)
    }

    /// Records that a kernel was started, be it by the gateway.
    pub(crate) fn on_started(&self, kernel_id: &str) {
        if !self.is_own(kernel_id) {
            *self.others.lock() = Some(Instant::now());
        }
    }

    /// The time since somebody else last started one.
    pub(crate) fn since_others(&self) -> Option<Duration> {
        self.others.lock().map(|at| at.elapsed())
    }
}
