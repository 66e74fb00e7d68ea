//! Activity per notebook, counted over all principals. Says nothing of who ran what.

use std::{collections::HashMap, time::SystemTime};

use crate::{ExecutionKind, Store, StoreError};

/// Runs of agents in one notebook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NotebookRuns {
    pub executions: u64,
    pub last_started: Option<SystemTime>,
}

/// By server and path.
pub type RunsByNotebook = HashMap<(String, String), NotebookRuns>;

impl Store {
    /// The runs of everybody in each notebook, as far as they are remembered.
    pub async fn runs_by_notebook(&self) -> Result<RunsByNotebook, StoreError> {
        self.journal.wait_for_renames().await;
        let mut noted = self.journal.all();
        noted.retain(|record| record.path.is_some() && record.kind != ExecutionKind::Copy);
        // What is noted takes the place of what is stored.
        let ids: Vec<&str> = noted.iter().map(|record| record.execution_id.as_str()).collect();
        let mut found = RunsByNotebook::new();
        for stored in self.database.runs_by_notebook(&ids).await? {
            let runs = found.entry((stored.server, stored.path)).or_default();
            runs.add(stored.executions, stored.last_started);
        }
        for record in &noted {
            if let Some(path) = &record.path {
                let runs = found.entry((record.server.clone(), path.clone())).or_default();
                runs.add(1, record.started_at);
            }
        }
        Ok(found)
    }
}

impl NotebookRuns {
    fn add(&mut self, executions: u64, last_started: Option<SystemTime>) {
        self.executions += executions;
        self.last_started = self.last_started.max(last_started);
    }
}
