//! The servers that a request may use.

use std::sync::Arc;

use jupyter_client::{JupyterServer, Servers, UnknownServer};

use crate::auth::Principal;

/// Servers that a request may use, the default first: the principal's, narrowed by the client's URL.
#[derive(Debug, Clone)]
pub struct Scope {
    servers: Arc<[Arc<JupyterServer>]>,
    /// The client wanted these and no others.
    is_narrowed: bool,
}

impl Scope {
    /// Narrows a principal's servers to those the client selected; no selection means all of them.
    pub fn new(principal: &Principal, all: &Servers, selected: &[String]) -> Result<Self, UnknownServer> {
        let named = principal.servers().iter().filter_map(|name| all.get(name)).cloned();
        let of_hub = principal.hub().map(|account| account.servers()).unwrap_or_default();
        let own: Arc<[Arc<JupyterServer>]> = named.chain(of_hub).collect();
        let whole = Self {
            servers: own,
            is_narrowed: false,
        };
        if selected.is_empty() {
            return Ok(whole);
        }
        let servers: Result<Arc<[_]>, _> = selected.iter().map(|name| whole.find(name).cloned()).collect();
        Ok(Self {
            servers: servers?,
            is_narrowed: true,
        })
    }

    pub fn servers(&self) -> &[Arc<JupyterServer>] {
        &self.servers
    }

    /// Returns whether only some of the tenant's servers were selected, so that the others must not be used.
    pub fn is_narrowed(&self) -> bool {
        self.is_narrowed
    }

    /// A server by its name, or by the one it has in its Hub if that means no other.
    pub(super) fn find(&self, name: &str) -> Result<&Arc<JupyterServer>, UnknownServer> {
        let mut servers = self.servers.iter();
        let in_hub = || {
            let is_it =
                |server: &&Arc<JupyterServer>| server.hub().is_some_and(|place| place.name().to_string() == name);
            self.servers.iter().find(is_it)
        };
        let found = servers.find(|server| server.name() == name).or_else(in_hub);
        found.ok_or_else(|| self.unknown(name))
    }

    pub(super) fn unknown(&self, name: &str) -> UnknownServer {
        let names: Vec<&str> = self.servers.iter().map(|server| server.name()).collect();
        let available = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        UnknownServer {
            name: name.chars().take(100).collect(),
            available,
        }
    }
}
