//! The names under which principals have connected notebooks, each principal its own.

use std::{num::NonZeroUsize, sync::Arc};

use jupyter_client::{DocPath, JupyterServer};
use lru::LruCache;
use parking_lot::Mutex;

use crate::tools::{Call, ToolError};

const MAX_PRINCIPALS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Number of names that are kept. Nothing disconnects a notebook, so those used longest ago are forgotten instead.
const MAX_NAMES: NonZeroUsize = NonZeroUsize::new(128).unwrap();

type Names = LruCache<String, Connection>;

pub struct Connections(Mutex<LruCache<Arc<str>, Names>>);

/// Notebook that a name stands for.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) server: String,
    /// The server itself, if it was connected by its URL: it is the principal's own, and known by its names only.
    pub(super) own: Option<Arc<JupyterServer>>,
    /// Path of the notebook when it was last used.
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
        Self(Mutex::new(LruCache::new(MAX_PRINCIPALS)))
    }
}

impl Connections {
    pub(super) fn get(&self, principal: &str, name: &str) -> Option<Connection> {
        self.0.lock().get_mut(principal)?.get(name).cloned()
    }

    pub(super) fn put(&self, principal: &Arc<str>, name: &str, connection: Connection) {
        let mut principals = self.0.lock();
        let names = principals.get_or_insert_mut(Arc::clone(principal), || Names::new(MAX_NAMES));
        names.put(name.to_owned(), connection);
    }

    /// The notebooks of a principal, by name.
    pub(super) fn of(&self, principal: &str) -> Vec<(String, Connection)> {
        let principals = self.0.lock();
        let names = principals.peek(principal).into_iter().flat_map(Names::iter);
        let mut found: Vec<_> = names
            .map(|(name, connection)| (name.clone(), connection.clone()))
            .collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found
    }

    /// The servers that a principal has connected by URL.
    pub fn own_servers(&self, principal: &str) -> Vec<Arc<JupyterServer>> {
        let principals = self.0.lock();
        let names = principals.peek(principal).into_iter().flat_map(Names::iter);
        names.filter_map(|(_, connection)| connection.own.clone()).collect()
    }
}
