//! Recovery: what earlier processes of the gateway did not see the end of is taken up, or ended.

use std::{sync::Arc, time::SystemTime};

use futures::{StreamExt, stream::FuturesUnordered};
use jupyter_client::{DocPath, JupyterServer, Servers};
use live_document::QueuedCell;
use store::{AbandonedExecution, ExecutionRecord, ExecutionStatus, OtherGateway, Unfinished};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{Engine, Shared, is_by_url};
use crate::{
    Execution,
    driver::Command,
    policy::{MAX_ATTEMPTS, UNCLAIMED_INTERVAL, UNCLAIMED_KEPT, rewrite_pause},
};

impl Engine {
    /// Takes up what earlier processes of the gateway did not see the end of, and those that leave from now on. Where users
    /// bring the credentials of their servers, what runs there is taken up when they do.
    pub async fn recover(&self, servers: &Servers, has_users: bool) {
        let mut brought = servers.brought();
        let _ = self.brought.set(brought.clone());
        // Nobody waits for what is not taken up any more.
        let _settled = Settled(&self.settled);
        let others = self.shared.store.other_gateways().await.unwrap_or_else(|error| {
            tracing::error!(%error, "other gateways cannot be looked for");
            Vec::new()
        });
        let mut leaving: FuturesUnordered<_> = others.into_iter().map(OtherGateway::wait_until_left).collect();
        let mut unsent = FuturesUnordered::new();
        unsent.extend(self.take_over(servers, has_users).await);
        let mut cleaning_up = Box::pin(self.shut_down_orphans(servers));
        let mut is_clean = false;
        loop {
            tokio::select! {
                Some(()) = leaving.next() => {
                    unsent.extend(self.take_over(servers, has_users).await);
                    (cleaning_up, is_clean) = (Box::pin(self.shut_down_orphans(servers)), false);
                }
                Ok(()) = brought.changed(), if has_users => unsent.extend(self.take_over(servers, has_users).await),
                () = sleep(UNCLAIMED_INTERVAL), if has_users => unsent.extend(self.take_over(servers, has_users).await),
                Some(()) = unsent.next() => {}
                () = &mut cleaning_up, if !is_clean => is_clean = true,
                else => return,
            }
        }
    }

    /// Takes over what can be reached, and goes on where code runs. Returns what is left to do for what was never sent.
    async fn take_over(&self, servers: &Servers, has_users: bool) -> Vec<impl Future<Output = ()>> {
        let brought = *servers.brought().borrow();
        let reachable = servers.in_use();
        let server_of = |name: &str| reachable.iter().find(|server| server.name() == name);
        let is_wanted = |unfinished: &Unfinished| {
            let waits_for_user = has_users && !is_by_url(&unfinished.server);
            let age = unfinished.noted_at.elapsed().unwrap_or_default();
            server_of(&unfinished.server).is_some() || !waits_for_user || age > UNCLAIMED_KEPT
        };
        let unfinished = self.shared.store.take_over(is_wanted).await.unwrap_or_else(|error| {
            tracing::error!(%error, "executions of an earlier run cannot be taken up");
            Vec::new()
        });
        let mut unsent = Vec::new();
        for left in unfinished {
            let Some(server) = server_of(&left.record.server) else {
                self.shared.store.note_execution(lost(left.record));
                continue;
            };
            let execution = self.know(left);
            match execution.earlier_run() {
                // Before anything else is sent to its kernel.
                Some(_) => self.resume(&execution, server).await,
                None => unsent.push(self.end_unsent(execution, Arc::clone(server))),
            }
        }
        self.settled.send_replace(Some(brought));
        unsent
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

    async fn end_unsent(&self, execution: Arc<Execution>, server: Arc<JupyterServer>) {
        self.unmark_queued(&execution, &server).await;
        self.resume(&execution, &server).await;
    }

    async fn resume(&self, execution: &Arc<Execution>, server: &Arc<JupyterServer>) {
        self.submit(server, execution, Command::Resume(Arc::clone(execution)))
            .await;
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

/// Says, when it is dropped, that nothing more will be taken up.
struct Settled<'a>(&'a watch::Sender<Option<u64>>);

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        self.0.send_replace(Some(u64::MAX));
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
        "the gateway restarted and could not return to Jupyter server `{}`, so it is unknown how this ended",
        record.server
    ));
    for cell in record.cells.iter_mut().filter(|cell| !cell.status.is_finished()) {
        cell.status = ExecutionStatus::Lost;
    }
    record.ended_at = Some(SystemTime::now());
    record
}
