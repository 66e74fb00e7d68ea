//! How much was run in each notebook, told for all of them at once. Who ran what is not told.

use std::{collections::HashMap, time::SystemTime};

use crate::{ExecutionKind, Store, StoreError};

/// Activity of agents in one notebook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    pub executions: u64,
    pub last_started: Option<SystemTime>,
}

/// By server and path.
pub type Activities = HashMap<(String, String), Activity>;

impl Store {
    /// The activity of everybody in each notebook, as far as it is remembered.
    pub async fn activities(&self) -> Result<Activities, StoreError> {
        self.journal.wait_for_renames().await;
        let mut noted = self.journal.all();
        noted.retain(|record| record.path.is_some() && record.kind != ExecutionKind::Copy);
        // What is noted takes the place of what is stored.
        let ids: Vec<&str> = noted.iter().map(|record| record.execution_id.as_str()).collect();
        let mut found = Activities::new();
        for stored in self.backend.activities(&ids).await? {
            let activity = found.entry((stored.server, stored.path)).or_default();
            activity.add(stored.executions, stored.last_started);
        }
        for record in &noted {
            if let Some(path) = &record.path {
                let activity = found.entry((record.server.clone(), path.clone())).or_default();
                activity.add(1, record.started_at);
            }
        }
        Ok(found)
    }
}

impl Activity {
    fn add(&mut self, executions: u64, last_started: Option<SystemTime>) {
        self.executions += executions;
        self.last_started = self.last_started.max(last_started);
    }
}
