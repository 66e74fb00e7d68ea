//! Kernels that gateways started for code in no notebook and could not shut down because they were killed.

use std::collections::{HashMap, HashSet};

use futures::future::join_all;
use jupyter_client::{JupyterError, JupyterServer, NotebookSession, RunningKernel, Servers};
use tokio::time::sleep;

use super::Engine;
use crate::policy::ORPHAN_CHECKS;

impl Engine {
    /// Shuts down those that nobody uses any more. One that is used then stays.
    pub(crate) async fn shut_down_orphans(&self, servers: &Servers) {
        for pause in ORPHAN_CHECKS {
            sleep(pause).await;
            self.look_for_orphans(servers).await;
        }
    }

    async fn look_for_orphans(&self, servers: &Servers) {
        let orphans = match self.shared.store.orphan_kernels().await {
            Ok(orphans) => orphans,
            Err(error) => return tracing::warn!(%error, "cannot look for orphaned kernels"),
        };
        let mut of_servers: HashMap<String, HashSet<String>> = HashMap::new();
        for (server, kernel) in orphans {
            of_servers.entry(server).or_default().insert(kernel);
        }
        let shutting_down = of_servers.iter().filter_map(|(name, kernels)| {
            let server = servers.get(name)?;
            Some(async move {
                if let Err(error) = self.shut_down_unused(server, kernels).await {
                    tracing::warn!(%error, server = name, "cannot shut down orphaned kernels");
                }
            })
        });
        join_all(shutting_down).await;
    }

    async fn shut_down_unused(&self, server: &JupyterServer, kernels: &HashSet<String>) -> Result<(), JupyterError> {
        // Somebody may have made one the kernel of a notebook.
        let sessions = server.sessions().await?;
        let is_used = |kernel: &RunningKernel| {
            let of_kernel = |session: &&NotebookSession| session.kernel.id == kernel.id && !session.is_private();
            let in_session = sessions.iter().find(of_kernel).is_some();
            let mut live = self.shared.live.iter();
            let runs = live.any(|live| live.execution.lock().kernel_id.as_ref() == Some(&kernel.id));
            in_session || runs || kernel.execution_state != "idle" || kernel.connections != Some(0)
        };
        let running = server.kernels().await?;
        let left_behind = running.iter().filter(|kernel| kernels.contains(&kernel.id));
        for kernel in left_behind.filter(|kernel| !is_used(kernel)) {
            server.shutdown_kernel(&kernel.id).await?;
            tracing::info!(
                kernel = kernel.id,
                server = server.name(),
                "shutting down an orphaned kernel"
            );
        }
        Ok(())
    }
}
