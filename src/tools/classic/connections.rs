//! The names under which principals have connected notebooks, each principal its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::types::{DocPath, RecentMap};

const MAX_PRINCIPALS: usize = 4096;
/// Nothing disconnects a notebook, so the names that were used longest ago are forgotten instead.
const MAX_NAMES: usize = 128;

type Names = RecentMap<String, Connection>;

pub struct Connections(Mutex<RecentMap<Arc<str>, Names>>);

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) server: String,
    /// Where the notebook was when it was last used.
    pub(super) path: DocPath,
    /// The room it was in then, which knows where it is now.
    pub(super) session_id: String,
}

impl Default for Connections {
    fn default() -> Self {
        Self(Mutex::new(RecentMap::new(MAX_PRINCIPALS)))
    }
}

impl Connections {
    pub(super) fn get(&self, principal: &str, name: &str) -> Option<Connection> {
        self.lock().get_mut(principal)?.get_mut(name).cloned()
    }

    pub(super) fn put(&self, principal: &Arc<str>, name: &str, connection: Connection) {
        let mut principals = self.lock();
        if let Some(names) = principals.get_mut(principal) {
            names.insert(name.to_owned(), connection);
            return;
        }
        let mut names = RecentMap::new(MAX_NAMES);
        names.insert(name.to_owned(), connection);
        principals.insert(Arc::clone(principal), names);
    }

    /// The notebooks of a principal, by name.
    pub(super) fn of(&self, principal: &str) -> Vec<(String, Connection)> {
        let principals = self.lock();
        let names = principals.peek(principal).into_iter().flat_map(Names::iter);
        let mut found: Vec<_> = names
            .map(|(name, connection)| (name.clone(), connection.clone()))
            .collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found
    }

    fn lock(&self) -> MutexGuard<'_, RecentMap<Arc<str>, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
