//! The names under which principals have connected notebooks, each principal its own, and their current notebooks and servers.

use std::{num::NonZeroUsize, sync::Arc};

use jupyter_client::{DocPath, JupyterServer};
use lru::LruCache;
use parking_lot::Mutex;

use crate::tools::{Call, ToolError};

const MAX_PRINCIPALS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Number of names that are kept. Most vocabularies disconnect nothing, so those used longest ago are forgotten instead.
const MAX_NAMES: NonZeroUsize = NonZeroUsize::new(128).unwrap();
/// Number of a principal's MCP sessions whose place of work is kept.
const MAX_SESSIONS: NonZeroUsize = NonZeroUsize::new(256).unwrap();

type Names = LruCache<String, Connection>;

pub struct Connections(Mutex<LruCache<Arc<str>, Known>>);

/// Names and places of one principal.
struct Known {
    names: Names,
    /// By MCP session; none for what is done in no session.
    places: LruCache<Option<Arc<str>>, Place>,
}

/// Current notebooks and server of a principal, in one MCP session or in none.
#[derive(Debug, Clone, Default)]
pub(in crate::tools) struct Place {
    /// Names of the notebooks that were activated, the active one last.
    used: Vec<String>,
    /// Server that was chosen for the next calls.
    pub(in crate::tools) server: Option<ServerRef>,
}

impl Place {
    /// Name of the active notebook.
    pub(in crate::tools) fn active(&self) -> Option<&str> {
        self.used.last().map(String::as_str)
    }

    fn forget(&mut self, name: &str) {
        self.used.retain(|used| used != name);
    }
}

/// Server that is known by its name.
#[derive(Debug, Clone)]
pub(in crate::tools) struct ServerRef {
    pub(in crate::tools) name: String,
    /// The server itself, if it was connected by its URL: it is the principal's own, and known by its names only.
    own: Option<Arc<JupyterServer>>,
}

impl ServerRef {
    pub(in crate::tools) fn of(server: &Arc<JupyterServer>) -> Self {
        Self {
            name: server.name().to_owned(),
            own: server.is_by_url().then(|| Arc::clone(server)),
        }
    }

    /// The server, if the call may use it.
    pub(in crate::tools) fn find(&self, call: &Call) -> Result<Arc<JupyterServer>, ToolError> {
        match &self.own {
            // A client that selected servers wants no others, and an operator may have changed what is allowed.
            Some(own) if own.is_allowed_by(call.connect_urls()) => Ok(Arc::clone(own)),
            _ => call.server(Some(&self.name)).cloned(),
        }
    }
}

/// Notebook that a name stands for.
#[derive(Debug, Clone)]
pub(in crate::tools) struct Connection {
    pub(in crate::tools) server: ServerRef,
    /// Path of the notebook when it was last used.
    pub(in crate::tools) path: DocPath,
    /// The room it was in then, which knows where it is now.
    pub(in crate::tools) session_id: String,
}

impl Default for Connections {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_PRINCIPALS)))
    }
}

impl Default for Known {
    fn default() -> Self {
        Self {
            names: Names::new(MAX_NAMES),
            places: LruCache::new(MAX_SESSIONS),
        }
    }
}

impl Connections {
    pub(in crate::tools) fn get(&self, principal: &str, name: &str) -> Option<Connection> {
        self.0.lock().get_mut(principal)?.names.get(name).cloned()
    }

    pub(in crate::tools) fn put(&self, principal: &Arc<str>, name: &str, connection: Connection) {
        let mut principals = self.0.lock();
        let known = principals.get_or_insert_mut(Arc::clone(principal), Known::default);
        known.names.put(name.to_owned(), connection);
    }

    /// Forgets a name, wherever it is used. Returns whether it was known.
    pub(in crate::tools) fn remove(&self, principal: &str, name: &str) -> bool {
        let mut principals = self.0.lock();
        let Some(known) = principals.get_mut(principal) else {
            return false;
        };
        for (_, place) in &mut known.places {
            place.forget(name);
        }
        known.names.pop(name).is_some()
    }

    /// The notebooks of a principal, by name.
    pub(in crate::tools) fn of(&self, principal: &str) -> Vec<(String, Connection)> {
        let principals = self.0.lock();
        let names = principals
            .peek(principal)
            .into_iter()
            .flat_map(|known| known.names.iter());
        let mut found: Vec<_> = names
            .map(|(name, connection)| (name.clone(), connection.clone()))
            .collect();
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        found
    }

    /// Current notebooks and server of a principal, in an MCP session or in none.
    pub(in crate::tools) fn place(&self, principal: &str, session: Option<&Arc<str>>) -> Place {
        let mut principals = self.0.lock();
        let known = principals.get_mut(principal);
        let place = known.and_then(|known| known.places.get(&session.cloned()).cloned());
        place.unwrap_or_default()
    }

    /// Makes a notebook the active one.
    pub(in crate::tools) fn activate(&self, principal: &Arc<str>, session: Option<&Arc<str>>, name: &str) {
        self.with_place(principal, session, |place| {
            place.forget(name);
            place.used.push(name.to_owned());
            let excess = place.used.len().saturating_sub(MAX_NAMES.get());
            place.used.drain(..excess);
        });
    }

    /// Chooses the server of the next calls.
    pub(in crate::tools) fn choose_server(&self, principal: &Arc<str>, session: Option<&Arc<str>>, server: ServerRef) {
        self.with_place(principal, session, |place| place.server = Some(server));
    }

    fn with_place(&self, principal: &Arc<str>, session: Option<&Arc<str>>, change: impl FnOnce(&mut Place)) {
        let mut principals = self.0.lock();
        let known = principals.get_or_insert_mut(Arc::clone(principal), Known::default);
        change(known.places.get_or_insert_mut(session.cloned(), Place::default));
    }

    /// The servers that a principal has connected by URL.
    pub fn own_servers(&self, principal: &str) -> Vec<Arc<JupyterServer>> {
        let principals = self.0.lock();
        let known = principals.peek(principal).into_iter();
        let servers = known.flat_map(|known| {
            let of_names = known.names.iter().map(|(_, connection)| &connection.server);
            of_names.chain(known.places.iter().filter_map(|(_, place)| place.server.as_ref()))
        });
        servers.filter_map(|server| server.own.clone()).collect()
    }

    /// The rooms of a principal's notebooks by their names.
    pub fn rooms(&self, principal: &str) -> Vec<(String, String)> {
        let rooms = self.of(principal).into_iter();
        rooms.map(|(name, connection)| (name, connection.session_id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(path: &str) -> Connection {
        Connection {
            server: ServerRef {
                name: "lab".to_owned(),
                own: None,
            },
            path: DocPath::parse(path).expect("a path"),
            session_id: "s".to_owned(),
        }
    }

    #[test]
    fn each_session_has_its_own_active_notebook() {
        let connections = Connections::default();
        let (ana, one, other): (Arc<str>, Arc<str>, Arc<str>) = ("ana".into(), "1".into(), "2".into());
        for name in ["a", "b"] {
            connections.put(&ana, name, connection(name));
        }
        let active = |session: Option<&Arc<str>>| connections.place(&ana, session).active().map(str::to_owned);
        connections.activate(&ana, None, "a");
        connections.activate(&ana, Some(&one), "a");
        connections.activate(&ana, Some(&one), "b");
        assert_eq!(active(None).as_deref(), Some("a"));
        assert_eq!(active(Some(&one)).as_deref(), Some("b"));
        assert_eq!(active(Some(&other)), None);
        assert!(connections.remove(&ana, "b") && !connections.remove(&ana, "b"));
        assert_eq!(active(Some(&one)).as_deref(), Some("a"), "the one before");
        assert!(connections.remove(&ana, "a"));
        assert_eq!((active(None), active(Some(&one))), (None, None));
        assert_eq!(connections.place("bob", None).active(), None);
    }
}
