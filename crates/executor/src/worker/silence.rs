//! A kernel that says nothing of a run for a while: is it at work on it, or has it forgotten it? What a kernel says
//! of its own end can be lost, for instance when it is restarted just as something is sent to it.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use jupyter_client::{JupyterError, RunningKernel};
use tokio::time::Instant;

use super::Worker;

/// How long a kernel may say nothing before it is asked about.
const SILENCE: Duration = Duration::from_secs(5);

impl Worker {
    /// When to ask whether the kernel is still at work, if something runs there or waits for it.
    pub(super) fn asks_at(&self) -> Option<Instant> {
        let kernel = self.kernel.as_ref().filter(|kernel| kernel.link.is_connected());
        let awaits = self.active.is_some() || self.is_kernel_awaited();
        let waits = awaits && self.asking.is_none() && kernel.is_some();
        waits.then(|| self.heard_at + SILENCE)
    }

    pub(super) fn ask(&mut self) {
        let Some(kernel) = &self.kernel else { return };
        let (server, id) = (Arc::clone(&self.server), kernel.link.kernel_id().to_owned());
        self.asking = Some(async move { server.kernel(&id).await }.boxed());
    }

    /// A kernel that is not busy has ended the run or never had it; it answers a question after whatever it may
    /// still say of it.
    pub(super) async fn told(&mut self, state: Result<Option<RunningKernel>, JupyterError>) {
        self.asking = None;
        self.heard_at = Instant::now();
        match state {
            Ok(Some(kernel)) if kernel.execution_state != "busy" => match &self.kernel {
                // It did not answer on this line; on a new one it is asked again.
                Some(kernel) if self.has_asked() || self.active.is_none() => kernel.link.renew(),
                _ => {
                    self.raise_barrier("the kernel is no longer running this, and how it ended is unknown")
                        .await;
                }
            },
            Ok(Some(_)) => {}
            Ok(None) => self.kernel_is_gone("it no longer exists"),
            // A server that cannot be asked will be missed on the line to the kernel too.
            Err(error) => tracing::debug!(%error, "a silent kernel could not be asked about"),
        }
    }

    /// Whether the kernel has been asked something behind what runs, and has not answered.
    fn has_asked(&self) -> bool {
        let behind = self.barrier.as_ref().map(|barrier| &barrier.behind);
        behind.is_some() && behind == self.active.as_ref().map(|active| &active.run.msg_id)
    }
}
