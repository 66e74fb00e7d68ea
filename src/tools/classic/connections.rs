//! The names under which principals have connected notebooks, each principal its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jupyter_client::{DocPath, JupyterServer, RecentMap};

use crate::tools::{Call, ToolError};

const MAX_PRINCIPALS: usize = 4096;
/// Nothing disconnects a notebook, so the names that were used longest ago are forgotten instead.
const MAX_NAMES: usize = 128;

type Names = RecentMap<String, Connection>;

pub struct Connections(Mutex<RecentMap<Arc<str>, Names>>);

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) server: String,
    /// The server itself, if it was connected by its URL: it is the principal's own, and known by its names only.
    pub(super) own: Option<Arc<JupyterServer>>,
    /// Where the notebook was when it was last used.
    pub(super) path: DocPath,
    /// The room it was in then, which knows where it is now.
    pub(super) session_id: String,
}

impl Connection {
    /// The server of the notebook, if the call may use it.
    pub(super) fn find_server(&self, call: &Call) -> Result<Arc<JupyterServer>, ToolError> {
        match &self.own {
            // A client that selected servers wants no others, and an operator may have changed what is allowed.
            Some(own) if own.is_allowed_by(call.connect_urls()) => Ok(Arc::clone(own)),
            _ => call.server(Some(&self.server)).cloned(),
        }
    }
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

    /// The servers that a principal has connected by URL.
    pub fn own_servers(&self, principal: &str) -> Vec<Arc<JupyterServer>> {
        let principals = self.lock();
        let names = principals.peek(principal).into_iter().flat_map(Names::iter);
        names.filter_map(|(_, connection)| connection.own.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, RecentMap<Arc<str>, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
