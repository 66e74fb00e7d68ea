//! How much was run in each notebook, told for all of them at once. Who ran what is not told.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use sqlx::QueryBuilder;

use super::{Store, StoreError, executions::ExecutionRecord, journal::moved};

/// What agents ran in one notebook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activity {
    pub executions: u64,
    pub last_started: Option<SystemTime>,
}

/// By server and path.
pub type Activities = HashMap<(String, String), Activity>;

impl Store {
    /// What was run by whomever, by notebook, as far as it is remembered.
    pub async fn activities(&self) -> Result<Activities, StoreError> {
        let renames = self.journal.renames();
        let noted = self.noted(|record| record.path.is_some());
        let mut query =
            QueryBuilder::new("SELECT server, path, COUNT(*), MAX(started_at) FROM executions WHERE path IS NOT NULL");
        // What is noted takes the place of what is stored.
        query.push(" AND execution_id NOT IN (");
        let mut ids = query.separated(", ");
        for record in &noted {
            ids.push_bind(&record.execution_id);
        }
        query.push(") GROUP BY server, path");
        let stored: Vec<(String, String, i64, Option<i64>)> = query.build_query_as().fetch_all(&self.pool).await?;
        let mut found = Activities::new();
        for (server, path, executions, last_started) in stored {
            let path = moved(&renames, &server, &path).unwrap_or(path);
            let last = last_started.and_then(|micros| u64::try_from(micros).ok());
            let activity = found.entry((server, path)).or_default();
            activity.executions += u64::try_from(executions).unwrap_or_default();
            activity.started(last.map(|micros| UNIX_EPOCH + Duration::from_micros(micros)));
        }
        for record in noted {
            let ExecutionRecord {
                server,
                path,
                started_at,
                ..
            } = &*record;
            if let Some(path) = path {
                let activity = found.entry((server.clone(), path.clone())).or_default();
                activity.executions += 1;
                activity.started(*started_at);
            }
        }
        Ok(found)
    }
}

impl Activity {
    fn started(&mut self, at: Option<SystemTime>) {
        self.last_started = self.last_started.max(at);
    }
}
