//! Identity: which notebook is at a path, and how queues, kernels and records follow it to another.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterError, JupyterServer, Servers};
use live_document::{
    RoomKind,
    pool::{Account, Lease, PoolError, PoolEvent},
};
use tokio::{
    sync::broadcast,
    time::{Instant, timeout},
};

use super::{Engine, Shared};
use crate::{
    core::notebook::{Notebook, is_fork},
    policy::{IDENTIFY_TIMEOUT, KERNEL_TRUSTED},
};

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
        self.shared.renamed(server, from, to).await;
    }

    /// Brings the records of a notebook up to its path, if it was renamed while nobody noticed.
    pub async fn refresh_records(&self, server: &JupyterServer, path: &DocPath) {
        let shared = &self.shared;
        if shared
            .notebooks
            .identified_since(server.name(), path, recently())
            .is_some()
        {
            return;
        }
        if let Ok(Ok(file_id)) = timeout(IDENTIFY_TIMEOUT, server.file_id_of(path)).await {
            shared.store.note_location(server.name(), &file_id, path.as_str());
        }
    }

    /// The notebook at a path. The server is asked which one that is, unless its document is open or was identified just now.
    pub(super) async fn identify(&self, server: &JupyterServer, path: &DocPath) -> Arc<Notebook> {
        let shared = &self.shared;
        if let Some(notebook) = shared.notebooks.identified_since(server.name(), path, recently()) {
            return notebook;
        }
        let asking = shared.pool.identify(server, path, RoomKind::Notebook);
        // A server without ids of files, or that cannot be reached now, has its notebooks known by their paths.
        let document = timeout(IDENTIFY_TIMEOUT, asking).await.ok().and_then(Result::ok);
        let file_id = document.map(|document| document.file_id);
        self.notebook_at(server, path, file_id.as_ref()).await
    }

    /// The notebook of a file that is at a path now.
    pub(super) async fn notebook_at(
        &self,
        server: &JupyterServer,
        path: &DocPath,
        file_id: Option<&Arc<str>>,
    ) -> Arc<Notebook> {
        let (shared, name) = (&self.shared, server.name());
        if let Some(file_id) = file_id
            && !is_fork(file_id)
            && shared.notebooks.of_file(name, file_id).is_none()
        {
            if let Some(earlier) = shared.notebooks.at(name, path)
                && earlier.file_id().is_some()
                && !shared.locate(server, &earlier).await
            {
                // Its file was replaced, as many programs do that write one.
                earlier.set_file_id(file_id);
            }
            shared.store.note_location(name, file_id, path.as_str());
        }
        let notebook = shared.notebooks.identify(name, path, file_id, Instant::now());
        let earlier = notebook.path();
        if earlier != *path {
            shared.pool.renamed(name, &earlier, path);
            shared.renamed(server, &earlier, path).await;
        }
        notebook
    }
}

impl Shared {
    /// Opens the document of a notebook that may have been renamed while nobody noticed.
    pub(crate) async fn lease(
        &self,
        server: &Arc<JupyterServer>,
        notebook: &Notebook,
        account: &Account,
    ) -> Result<Lease, PoolError> {
        if let Some(fork_id) = notebook.fork_id() {
            let path = notebook.path();
            let kind = RoomKind::Notebook;
            return self.pool.lease_fork(server, &path, kind, &fork_id, account).await;
        }
        self.locate(server, notebook).await;
        let path = notebook.path();
        self.pool.lease(server, &path, RoomKind::Notebook, account).await
    }

    /// Asks the server where a notebook is, and follows it there; returns whether it was somewhere else.
    async fn locate(&self, server: &JupyterServer, notebook: &Notebook) -> bool {
        if notebook.fork_id().is_some() {
            return false;
        }
        let (path, Some(file_id)) = (notebook.path(), notebook.file_id()) else {
            return false;
        };
        match server.path_of_file(&file_id, path.as_str()).await {
            Ok(now) if now != path => {
                self.pool.renamed(server.name(), &path, &now);
                self.renamed(server, &path, &now).await;
                true
            }
            _ => false,
        }
    }

    async fn renamed(&self, server: &JupyterServer, from: &DocPath, to: &DocPath) {
        self.notebooks.rename(server.name(), from, to);
        self.store.note_rename(server.name(), from.as_str(), to.as_str());
        if let Err(error) = rename_sessions(server, from, to).await {
            tracing::warn!(%error, "the kernel of a renamed notebook could not be told");
        }
    }
}

/// The time since which a notebook that was identified is trusted to be the same.
fn recently() -> Instant {
    let now = Instant::now();
    now.checked_sub(KERNEL_TRUSTED).unwrap_or(now)
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
