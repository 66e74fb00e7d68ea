//! Recovery: what earlier processes of the gateway did not see the end of is taken up, or ended.

use std::{sync::Arc, time::SystemTime};

use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use jupyter_client::{DocPath, JupyterServer, Servers};
use live_document::QueuedCell;
use store::{AbandonedExecution, ExecutionRecord, ExecutionStatus, OtherGateway};
use tokio::time::{Instant, sleep};

use super::{Engine, Shared};
use crate::{
    Execution,
    driver::Command,
    policy::{MAX_ATTEMPTS, rewrite_pause},
};

impl Engine {
    /// Takes up what earlier processes of the gateway did not see the end of, and those that leave from now on.
    pub async fn recover(&self, servers: &Servers) {
        let others = self.shared.store.other_gateways().await.unwrap_or_else(|error| {
            tracing::error!(%error, "other gateways cannot be looked for");
            Vec::new()
        });
        self.take_over(servers).await;
        let mut leaving: FuturesUnordered<_> = others.into_iter().map(OtherGateway::wait_until_left).collect();
        let mut cleaning_up = Box::pin(self.shut_down_orphans(servers));
        let mut is_clean = false;
        loop {
            tokio::select! {
                Some(()) = leaving.next() => {
                    self.take_over(servers).await;
                    (cleaning_up, is_clean) = (Box::pin(self.shut_down_orphans(servers)), false);
                }
                () = &mut cleaning_up, if !is_clean => is_clean = true,
                else => return,
            }
        }
    }

    async fn take_over(&self, servers: &Servers) {
        let unfinished = match self.shared.store.take_over().await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                tracing::error!(%error, "executions of an earlier run cannot be taken up");
                self.settled.send_replace(true);
                return;
            }
        };
        let known = unfinished
            .into_iter()
            .filter_map(|left| match servers.get(&left.record.server) {
                Some(server) => Some((self.know(left), Arc::clone(server))),
                None => {
                    self.shared.store.note_execution(lost(left.record));
                    None
                }
            });
        let known: Vec<(Arc<Execution>, Arc<JupyterServer>)> = known.collect();
        self.settled.send_replace(true);
        join_all(known.iter().map(|(execution, server)| self.resume(execution, server))).await;
    }

    /// Makes an execution of an earlier process one of this.
    fn know(&self, left: AbandonedExecution) -> Arc<Execution> {
        let limit = self.shared.settings.max_output_bytes;
        let ExecutionRecord {
            server, path, file_id, ..
        } = &left.record;
        let path = path.as_deref().and_then(|path| DocPath::parse(path).ok());
        let file_id: Option<Arc<str>> = file_id.as_deref().map(Into::into);
        let notebooks = &self.shared.notebooks;
        let notebook = path.map(|path| notebooks.identify(server, &path, file_id.as_ref(), Instant::now()));
        let execution = Arc::new(Execution::resumed(left, notebook, limit));
        tracing::info!(
            execution_id = execution.id,
            "an execution of an earlier run is taken up"
        );
        self.shared.add(&execution);
        execution
    }

    async fn resume(&self, execution: &Arc<Execution>, server: &Arc<JupyterServer>) {
        if execution.earlier_run().is_none() {
            self.unmark_queued(execution, server).await;
        }
        let command = Command::Resume(Arc::clone(execution));
        self.submit(server, execution, command).await;
    }

    /// Shows cells that an earlier process queued, and that will not run, as they were before. A server that cannot be
    /// reached yet is tried again in the background, since its rooms may have outlived the connection to it.
    async fn unmark_queued(&self, execution: &Arc<Execution>, server: &Arc<JupyterServer>) {
        let cells = execution.take_queued(true);
        if cells.is_empty() || self.shared.try_unmark(execution, server, &cells).await {
            return;
        }
        let (shared, execution, server) = (Arc::clone(&self.shared), Arc::clone(execution), Arc::clone(server));
        self.shared.tasks.spawn(async move {
            let trying = async {
                for attempts in 0..MAX_ATTEMPTS {
                    sleep(rewrite_pause(attempts)).await;
                    if shared.try_unmark(&execution, &server, &cells).await {
                        return;
                    }
                }
            };
            shared.stopping.run_until_cancelled(trying).await;
        });
    }
}

impl Shared {
    /// Shows cells as not queued, if that can be done; returns whether there is nothing more to do.
    async fn try_unmark(&self, execution: &Execution, server: &Arc<JupyterServer>, cells: &[QueuedCell]) -> bool {
        let Some(notebook) = &execution.notebook else {
            return true;
        };
        match self.lease(server, notebook, &execution.owner.account()).await {
            Ok(room) => room.unmark_queued(&execution.owner.principal, cells).is_ok(),
            Err(error) => {
                tracing::debug!(%error, "cells that did not run may still look as if they were to");
                !error.is_transient()
            }
        }
    }
}

/// The record of an execution that nothing more can be learned of.
fn lost(mut record: ExecutionRecord) -> ExecutionRecord {
    record.status = ExecutionStatus::Lost;
    record.reason = Some(format!(
        "the gateway restarted without Jupyter server `{}`, so it is unknown how this ended",
        record.server
    ));
    for cell in record.cells.iter_mut().filter(|cell| !cell.status.is_finished()) {
        cell.status = ExecutionStatus::Lost;
    }
    record.ended_at = Some(SystemTime::now());
    record
}
