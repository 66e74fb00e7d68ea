//! The names of people, as far as versions need them. Those who left are remembered, since their changes may become a version later.

use std::sync::Arc;

use lru::LruCache;

/// Number of names that are remembered.
const MAX_NAMES: usize = 256;

#[derive(Debug)]
pub(crate) struct People {
    named: LruCache<u64, Arc<str>>,
    here: Vec<Arc<str>>,
}

impl Default for People {
    fn default() -> Self {
        Self {
            named: LruCache::unbounded(),
            here: Vec::new(),
        }
    }
}

impl People {
    /// Records the name of a client.
    pub(crate) fn record(&mut self, client: u64, name: &str) {
        if self.named.get(&client).is_none_or(|known| **known != *name) {
            self.named.put(client, name.into());
        }
        if self.named.len() > MAX_NAMES {
            self.named.pop_lru();
        }
    }

    /// Records who is in the document.
    pub(crate) fn set_here(&mut self, names: impl Iterator<Item = String>) {
        self.here.clear();
        for name in names {
            if self.here.len() < MAX_NAMES && !self.here.iter().any(|known| **known == *name) {
                self.here.push(name.into());
            }
        }
    }

    pub(super) fn is_anybody_here(&self) -> bool {
        !self.here.is_empty()
    }

    /// The only person who is here, if there is just one.
    pub(super) fn only_one_here(&self) -> Vec<Arc<str>> {
        match self.here.as_slice() {
            [one] => vec![Arc::clone(one)],
            _ => Vec::new(),
        }
    }

    pub(super) fn is_anybody_named(&self, clients: &[u64]) -> bool {
        clients.iter().any(|client| self.named.contains(client))
    }

    pub(super) fn names_of(&self, clients: &[u64]) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = clients
            .iter()
            .filter_map(|client| self.named.peek(client).cloned())
            .collect();
        names.sort();
        names.dedup();
        names
    }
}
