//! The configured servers by name, in the order of the config, and those of single principals: servers that agents gave the
//! URL of, and those of a Hub's users.

use std::sync::{Arc, Weak};

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;
use url::Url;

use super::{JupyterError, JupyterServer};
use crate::{Hub, HubServer, RequestObserver, Secret, ServerOptions};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown server {name:?}; available: {available}")]
pub struct UnknownServer {
    pub name: String,
    pub available: String,
}

pub struct Servers {
    configured: Vec<Arc<JupyterServer>>,
    /// Servers of single principals, each under a name of its own. They live as long as whoever they belong to needs them.
    own: Mutex<Vec<Weak<JupyterServer>>>,
    /// Number of times that a Hub's user brought the credentials of a server that nobody had.
    brought: watch::Sender<u64>,
    observer: Arc<dyn RequestObserver>,
}

impl Servers {
    /// Makes the client of each server.
    pub fn new(options: &[ServerOptions], observer: &Arc<dyn RequestObserver>) -> Result<Self, reqwest::Error> {
        let server = |options| JupyterServer::new(options, Arc::clone(observer)).map(Arc::new);
        Ok(Self {
            configured: options.iter().map(server).collect::<Result<_, _>>()?,
            own: Mutex::default(),
            brought: watch::Sender::default(),
            observer: Arc::clone(observer),
        })
    }

    /// The configured ones.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<JupyterServer>> {
        self.configured.iter()
    }

    /// A configured one.
    pub fn get(&self, name: &str) -> Option<&Arc<JupyterServer>> {
        self.configured.iter().find(|server| server.name() == name)
    }

    /// Any that is in use, whoever's it is.
    pub fn find(&self, name: &str) -> Option<Arc<JupyterServer>> {
        self.get(name).cloned().or_else(|| self.find_own(name))
    }

    fn find_own(&self, name: &str) -> Option<Arc<JupyterServer>> {
        let servers = self.own.lock();
        let mut servers = servers.iter().filter_map(Weak::upgrade);
        servers.find(|server| server.name() == name)
    }

    /// All that are in use: the configured ones, and those of single principals.
    pub fn in_use(&self) -> Vec<Arc<JupyterServer>> {
        let own = self.own.lock();
        let own = own.iter().filter_map(Weak::upgrade);
        self.configured.iter().cloned().chain(own).collect()
    }

    /// Counts the servers of a Hub that come into use, before anybody uses them.
    pub fn brought(&self) -> watch::Receiver<u64> {
        self.brought.subscribe()
    }

    /// Ends the connections to all kernels.
    pub async fn close_links(&self) {
        let servers = self.in_use();
        join_all(servers.iter().map(|server| server.close_links())).await;
    }

    /// A server at a URL that is not configured. Whether it may be asked for is for the caller to judge.
    pub fn connect(&self, url: &Url, token: &Secret) -> Result<Arc<JupyterServer>, JupyterError> {
        let made = JupyterServer::by_url(url, token, Arc::clone(&self.observer));
        let server = made.map_err(|error| JupyterError::Unreachable {
            server: url.to_string(),
            url: url.to_string(),
            why: error.without_url().to_string(),
        })?;
        Ok(keep(&mut self.own.lock(), server))
    }

    /// A server of a Hub as one of its users reaches it. It is the same for as long as it is used, so that its rooms and
    /// connections go on when the user comes with another token.
    ///
    /// `name` must hold who reaches it: rooms, queues and records are known by the names of their servers, so that two
    /// users with access to one server share none of them, and each is seen by those alone whose token reaches it.
    pub fn of_hub(
        &self,
        hub: &Arc<Hub>,
        name: &str,
        server: &HubServer,
        token: &Secret,
    ) -> Result<Arc<JupyterServer>, reqwest::Error> {
        let is_it = |known: &JupyterServer| known.hub().is_some_and(|place| *place.name() == server.name);
        let mut servers = self.own.lock();
        let mut known = servers.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|known| known.name() == name && is_it(known)) {
            known.use_token(token);
            return Ok(known);
        }
        drop(known);
        let made = JupyterServer::of_hub(hub, name, server, token, Arc::clone(&self.observer))?;
        let made = keep(&mut servers, made);
        self.brought.send_modify(|count| *count += 1);
        Ok(made)
    }
}

fn keep(servers: &mut Vec<Weak<JupyterServer>>, server: JupyterServer) -> Arc<JupyterServer> {
    let server = Arc::new(server);
    servers.retain(|known| known.strong_count() > 0);
    servers.push(Arc::downgrade(&server));
    server
}
