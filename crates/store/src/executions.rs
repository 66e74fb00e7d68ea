//! Executions in the store: records that are not written yet take the place of stored ones.

mod batch;
mod table;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) use batch::{Batch, Origin, Rename};

use crate::{AbandonedExecution, ExecutionFilter, ExecutionRecord, Store, StoreError, row::micros};

/// Executions that are taken over in one statement, which has a limited number of parameters.
const TAKEN_AT_ONCE: usize = 500;

/// An execution that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    pub(crate) execution_id: String,
    /// The gateway that looks after it, if any ever did.
    pub(crate) gateway: Option<String>,
    pub server: String,
    /// Time when that gateway last wrote it.
    pub noted_at: SystemTime,
}

impl Store {
    /// Queues a record without waiting: the newest version of each execution is written in the
    /// background.
    pub fn note_execution(&self, record: ExecutionRecord) {
        self.journal.note(record);
    }

    /// Records that a notebook, or all in a directory, has another name now: what was run there goes with it.
    pub fn note_rename(&self, server: &str, from: &str, to: &str) {
        self.journal.note_rename(server, Origin::Path(from.to_owned()), to);
    }

    /// Records where a file is: what was run there before it got its name goes with it.
    pub fn note_location(&self, server: &str, file_id: &str, path: &str) {
        self.journal.note_rename(server, Origin::File(file_id.to_owned()), path);
    }

    /// An execution of this principal; those of others do not exist.
    pub async fn execution(
        &self,
        tenant: &str,
        principal: &str,
        id: &str,
    ) -> Result<Option<ExecutionRecord>, StoreError> {
        // First what is not yet written: what leaves there meanwhile is in the database.
        let record = match self.journal.get(id) {
            Some(noted) => Some(Arc::unwrap_or_clone(noted)),
            None => {
                self.journal.wait_for_renames().await;
                self.database.execution(id).await?
            }
        };
        Ok(record.filter(|record| record.belongs_to(tenant, principal)))
    }

    /// The newest first.
    pub async fn executions(&self, filter: ExecutionFilter) -> Result<Vec<ExecutionRecord>, StoreError> {
        self.journal.wait_for_renames().await;
        let mut noted = self.journal.all();
        noted.retain(|record| record.belongs_to(&filter.tenant, &filter.principal));
        // What is noted may take the place of what is stored and no longer fit the filter.
        let limit = filter.limit.saturating_add(noted.len());
        let mut found = self.database.executions(&filter, limit).await?;
        let newer: HashSet<&str> = noted.iter().map(|record| record.execution_id.as_str()).collect();
        found.retain(|record| !newer.contains(record.execution_id.as_str()));
        let fitting = noted.iter().filter(|record| filter.fits(record));
        found.extend(fitting.map(|record| ExecutionRecord::clone(record)));
        found.sort_by_cached_key(|record| Reverse((micros(record.created_at), record.execution_id.clone())));
        found.truncate(filter.limit);
        Ok(found)
    }

    /// Takes over executions that have not ended and whose gateway has left, as far as they are wanted. Each is given to one
    /// gateway only, whoever asks at the same time; the others stay for whoever wants them later.
    pub async fn take_over(
        &self,
        is_wanted: impl Fn(&Unfinished) -> bool,
    ) -> Result<Vec<AbandonedExecution>, StoreError> {
        // In this order: a gateway has its lease before it has executions.
        let unfinished = self.database.unfinished_executions().await?;
        let present = self.sweep_leases().await?;
        let mut wanted: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
        for execution in unfinished {
            let owner = &execution.gateway;
            if owner.as_ref().is_none_or(|owner| !present.contains(owner)) && is_wanted(&execution) {
                wanted
                    .entry(execution.gateway)
                    .or_default()
                    .push(execution.execution_id);
            }
        }
        let mut taken = Vec::new();
        for (owner, executions) in &wanted {
            for some in executions.chunks(TAKEN_AT_ONCE) {
                let reassigned = self.database.reassign(some, owner.as_deref(), &self.lease.gateway);
                taken.extend(reassigned.await?);
            }
        }
        Ok(taken)
    }

    /// The kernels of their own, with their servers, in which gateways that have left ran code of no notebook.
    pub async fn orphan_kernels(&self) -> Result<Vec<(String, String)>, StoreError> {
        let kernels = self.database.code_kernels().await?;
        let present = self.sweep_leases().await?;
        let orphans = kernels
            .into_iter()
            .filter(|kernel| kernel.gateway.as_ref().is_none_or(|gateway| !present.contains(gateway)));
        Ok(orphans.map(|orphan| (orphan.server, orphan.kernel)).collect())
    }

    /// Forgets the executions that ended longer ago than this, and says how many.
    pub(crate) async fn prune_executions(&self, keep: Duration) -> Result<u64, StoreError> {
        let oldest = SystemTime::now().checked_sub(keep).unwrap_or(UNIX_EPOCH);
        self.database.prune_executions(oldest).await
    }
}
