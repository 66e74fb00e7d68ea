//! The key of a queue: what shares a kernel waits in one.

use std::sync::Arc;

use jupyter_client::DocPath;

use crate::{Execution, driver::Place};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct QueueKey {
    pub(super) server: Arc<str>,
    pub(super) queue: Queue,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Queue {
    Notebook(DocPath),
    /// A kernel of a principal's own.
    Scratch {
        principal: Arc<str>,
        kernel_name: Option<String>,
    },
    /// The same, of an earlier process of the gateway.
    Earlier {
        execution_id: String,
    },
}

impl QueueKey {
    /// The queue that an execution is in.
    pub(super) fn of(execution: &Execution) -> Self {
        let queue = match execution.path() {
            Some(path) => Queue::Notebook(path),
            None if execution.is_resumed => Queue::Earlier {
                execution_id: execution.id.clone(),
            },
            None => Queue::Scratch {
                principal: Arc::clone(&execution.owner.principal),
                kernel_name: execution.kernel_name.clone(),
            },
        };
        Self {
            server: Arc::clone(&execution.server),
            queue,
        }
    }

    pub(super) fn notebook(server: &str, path: DocPath) -> Self {
        Self {
            server: server.into(),
            queue: Queue::Notebook(path),
        }
    }

    /// Place that the driver of the queue works for.
    pub(super) fn place(&self) -> Place {
        match &self.queue {
            Queue::Notebook(path) => Place::Notebook(path.clone()),
            Queue::Scratch { kernel_name, .. } => Place::Scratch {
                kernel_name: kernel_name.clone(),
            },
            Queue::Earlier { .. } => Place::Scratch { kernel_name: None },
        }
    }

    /// The key after a notebook, or a directory with it, got another name, if it did.
    pub(super) fn moved(&self, server: &str, from: &DocPath, to: &DocPath) -> Option<(Self, DocPath)> {
        match &self.queue {
            Queue::Notebook(path) if &*self.server == server => {
                let path = path.moved(from, to)?;
                Some((Self::notebook(server, path.clone()), path))
            }
            _ => None,
        }
    }
}
