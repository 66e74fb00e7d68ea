//! Forks that are kept in memory, where nothing is stored.

use async_trait::async_trait;
use dashmap::DashMap;

use super::{ForkError, ForkRecord, ForkStore};

#[derive(Default)]
pub struct MemoryForks(DashMap<String, ForkRecord>);

#[async_trait]
impl ForkStore for MemoryForks {
    async fn put_fork(&self, fork: ForkRecord) -> Result<(), ForkError> {
        self.0.insert(fork.fork_id.clone(), fork);
        Ok(())
    }

    async fn fork(&self, fork_id: &str) -> Result<Option<ForkRecord>, ForkError> {
        Ok(self.0.get(fork_id).map(|fork| fork.clone()))
    }

    async fn forks_of(&self, server: &str, file_id: &str) -> Result<Vec<ForkRecord>, ForkError> {
        let forks = self.0.iter();
        let of_file = forks.filter(|fork| fork.server == server && fork.file_id == file_id);
        Ok(of_file.map(|fork| fork.clone()).collect())
    }

    async fn delete_fork(&self, fork_id: &str) -> Result<(), ForkError> {
        self.0.remove(fork_id);
        Ok(())
    }
}
