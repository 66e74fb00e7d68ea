//! The key of a queue: what shares a kernel waits in one.

use std::sync::Arc;

use store::ExecutionKind;

use crate::{Execution, core::notebook::Notebook, driver::Place};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum QueueKey {
    Notebook(Arc<Notebook>),
    /// A kernel of a principal's own.
    Scratch {
        server: Arc<str>,
        principal: Arc<str>,
        kernel_name: Option<String>,
    },
    /// The same, of an earlier process of the gateway.
    Earlier {
        execution_id: String,
    },
    /// A kernel for one copy of a notebook.
    Copy {
        execution_id: String,
        original: Arc<Notebook>,
        kernel_name: Option<String>,
    },
}

impl QueueKey {
    /// The queue that an execution is in.
    pub(super) fn of(execution: &Execution) -> Self {
        match &execution.notebook {
            Some(original) if execution.kind == ExecutionKind::Copy => Self::Copy {
                execution_id: execution.id.clone(),
                original: Arc::clone(original),
                kernel_name: execution.kernel_name.clone(),
            },
            Some(notebook) => Self::Notebook(Arc::clone(notebook)),
            None if execution.is_resumed => Self::Earlier {
                execution_id: execution.id.clone(),
            },
            None => Self::Scratch {
                server: Arc::clone(&execution.server),
                principal: Arc::clone(&execution.owner.principal),
                kernel_name: execution.kernel_name.clone(),
            },
        }
    }

    /// Returns whether the queue may belong to a server.
    pub(super) fn may_be_on(&self, server: &str) -> bool {
        match self {
            Self::Notebook(notebook) => *notebook.server == *server,
            Self::Scratch { server: own, .. } => **own == *server,
            Self::Earlier { .. } => true,
            Self::Copy { original, .. } => *original.server == *server,
        }
    }

    /// Place that the driver of the queue works for.
    pub(super) fn place(&self) -> Place {
        match self {
            Self::Notebook(notebook) => Place::Notebook(Arc::clone(notebook)),
            Self::Scratch { kernel_name, .. } => Place::Scratch {
                kernel_name: kernel_name.clone(),
            },
            Self::Earlier { .. } => Place::Scratch { kernel_name: None },
            Self::Copy {
                original, kernel_name, ..
            } => Place::Copy {
                original: Arc::clone(original),
                kernel_name: kernel_name.clone(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use jupyter_client::DocPath;
    use tokio::time::Instant;

    use super::*;
    use crate::core::{execution::CellRun, notebook::Notebooks, tests::owner};

    #[test]
    fn a_rename_leaves_executions_in_their_queue_and_is_in_their_records() {
        let (notebooks, path) = (Notebooks::default(), |name| DocPath::parse(name).expect("a path"));
        let execution = |name, file_id: &str| {
            let notebook = notebooks.identify("lab", &path(name), Some(&file_id.into()), Instant::now());
            let cells = vec![CellRun::cell("c".to_owned(), 0, 1000)];
            Execution::new(owner("ana"), "lab", Some(notebook), cells)
        };
        let running = execution("a.ipynb", "f");
        let (key, queued) = (QueueKey::of(&running), execution("a.ipynb", "f"));
        notebooks.rename("lab", &path("a.ipynb"), &path("b.ipynb"));
        let (later, other) = (execution("b.ipynb", "f"), execution("a.ipynb", "g"));
        for execution in [&running, &queued, &later] {
            let record = execution.record();
            assert_eq!(QueueKey::of(execution), key);
            assert_eq!(
                (record.path.as_deref(), record.file_id.as_deref()),
                (Some("b.ipynb"), Some("f"))
            );
            assert_eq!(execution.snapshot().path.as_deref(), Some("b.ipynb"));
        }
        assert_ne!(QueueKey::of(&other), key, "another file that has the old name now");
    }

    #[test]
    fn code_in_no_notebook_waits_with_that_of_the_same_principal_and_kernel() {
        let execution = |name: &str, kernel: Option<&str>| {
            let cells = vec![CellRun::code("1".to_owned(), 1000)];
            let mut execution = Execution::new(owner(name), "lab", None, cells);
            execution.kernel_name = kernel.map(str::to_owned);
            QueueKey::of(&execution)
        };
        assert_eq!(execution("ana", None), execution("ana", None));
        assert_ne!(execution("ana", None), execution("bo", None));
        assert_ne!(execution("ana", None), execution("ana", Some("ir")));
    }
}
