//! One Jupyter server as its open documents share it: who is listed as online there, how often it is asked for files, which room
//! sends changes, and what agents read.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jupyter_client::JupyterServer;
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    availabilities::Availabilities, file_check::FileChecks, global_awareness::GlobalAwareness,
    output_throttle::OutputThrottle, roster::PresenceChange,
};
use crate::{DocumentChange, core::readings::ReadDocuments};

pub struct Host {
    server: Arc<JupyterServer>,
    pub(crate) changes: broadcast::Sender<DocumentChange>,
    /// The channel for people who come and go.
    pub(crate) presences: broadcast::Sender<PresenceChange>,
    /// Availabilities that agents declared.
    pub(crate) availabilities: Availabilities,
    /// It was seen to send a notebook piece by piece.
    loads_progressively: AtomicBool,
    /// List of agents that are online.
    pub(crate) global_awareness: GlobalAwareness,
    /// File checks of its rooms.
    pub(crate) file_checks: FileChecks,
    /// Decides which of them sends outputs.
    pub(crate) output_throttle: Arc<OutputThrottle>,
    /// The tasks of its documents.
    pub(crate) tasks: TaskTracker,
    /// Ends what goes on without an open document.
    pub(crate) closing: CancellationToken,
    /// Readings of its documents by principals.
    pub(crate) read_documents: ReadDocuments,
}

impl Host {
    /// A server whose documents nobody follows.
    pub fn new(server: Arc<JupyterServer>) -> Self {
        Self::followed(server, broadcast::Sender::new(1), broadcast::Sender::new(1))
    }

    /// A server the changes of whose documents, and who comes and goes there, are sent to those who follow them.
    pub(crate) fn followed(
        server: Arc<JupyterServer>,
        changes: broadcast::Sender<DocumentChange>,
        presences: broadcast::Sender<PresenceChange>,
    ) -> Self {
        Self {
            server,
            changes,
            presences,
            availabilities: Availabilities::default(),
            loads_progressively: AtomicBool::new(false),
            global_awareness: GlobalAwareness::default(),
            file_checks: FileChecks::default(),
            output_throttle: Arc::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            read_documents: ReadDocuments::default(),
        }
    }

    /// Ends all of its tasks, when its documents are closed.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub fn server(&self) -> &Arc<JupyterServer> {
        &self.server
    }

    /// Returns whether a notebook that has some of its cells may still be loading. A server does not say so, but the
    /// first to open a notebook sees it.
    pub(crate) fn loads_progressively(&self) -> bool {
        self.loads_progressively.load(Ordering::Relaxed)
    }

    pub(crate) fn was_seen_loading(&self) {
        self.loads_progressively.store(true, Ordering::Relaxed);
    }
}

impl Deref for Host {
    type Target = JupyterServer;

    fn deref(&self) -> &JupyterServer {
        &self.server
    }
}
