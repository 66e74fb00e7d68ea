//! Renames: queues, kernels and records follow their notebooks.

use jupyter_client::{DocPath, JupyterError, JupyterServer, Servers};
use live_document::pool::PoolEvent;
use tokio::sync::broadcast;

use super::Engine;
use crate::driver::Command;

impl Engine {
    /// Follows notebooks to their new names, for as long as it is polled. Their kernels go with them, also where no
    /// JupyterLab is open that would see to it.
    pub async fn follow_renames(&self, servers: &Servers) {
        let mut events = self.shared.pool.events();
        loop {
            let renamed = match events.recv().await {
                Ok(PoolEvent::Renamed(renamed)) => renamed,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            if let Some(server) = servers.find(&renamed.server) {
                self.renamed(&server, &renamed.from, &renamed.to).await;
            }
        }
    }

    /// Follows a notebook, or all in a directory, to another name. Returns when the kernels are there too.
    pub async fn renamed(&self, server: &JupyterServer, from: &DocPath, to: &DocPath) {
        self.shared.store.note_rename(server.name(), from.as_str(), to.as_str());
        self.move_drivers(server.name(), from, to).await;
        if let Err(error) = rename_sessions(server, from, to).await {
            tracing::warn!(%error, "the kernel of a renamed notebook could not be told");
        }
    }

    async fn move_drivers(&self, server: &str, from: &DocPath, to: &DocPath) {
        let moved: Vec<_> = self
            .drivers
            .iter()
            .filter_map(|entry| Some((entry.key().clone(), entry.key().moved(server, from, to)?)))
            .collect();
        for (old, (key, path)) in moved {
            if let Some((_, inbox)) = self.drivers.remove(&old) {
                // A driver that has left needs no name.
                if inbox.send(Command::Renamed(path)).await.is_err() {
                    continue;
                }
                // Somebody may have asked for something under the new name already, and has a driver there.
                let second = self.drivers.insert(key, inbox.clone());
                if let Some(second) = second.filter(|second| !second.same_channel(&inbox)) {
                    let _ = second.send(Command::Retire(inbox)).await;
                }
            }
        }
        for live in &self.shared.live {
            let execution = &live.execution;
            let moved = execution.path().and_then(|path| path.moved(from, to));
            if let Some(path) = moved.filter(|_| *execution.server == *server) {
                execution.set_path(path);
                self.shared.note(execution);
            }
        }
    }
}

/// Tells Jupyter where the notebooks of its sessions are now.
async fn rename_sessions(server: &JupyterServer, from: &DocPath, to: &DocPath) -> Result<(), JupyterError> {
    for session in server.sessions().await? {
        let moved = session.doc_path().and_then(|path| path.moved(from, to));
        if let Some(path) = moved {
            server.rename_session(&session.id, &path).await?;
        }
    }
    Ok(())
}
