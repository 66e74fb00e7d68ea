//! The configured servers by name, in the order of the config, and those that agents gave the URL of.

use std::sync::{Arc, Weak};

use futures::future::join_all;
use parking_lot::Mutex;
use url::Url;

use super::{JupyterError, JupyterServer};
use crate::{RequestObserver, Secret, ServerOptions};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown server {name:?}; available: {available}")]
pub struct UnknownServer {
    pub name: String,
    pub available: String,
}

pub struct Servers {
    configured: Vec<Arc<JupyterServer>>,
    /// They live as long as whoever connected to them needs them.
    by_url: Mutex<Vec<Weak<JupyterServer>>>,
    observer: Arc<dyn RequestObserver>,
}

impl Servers {
    /// Makes the client of each server.
    pub fn new(options: &[ServerOptions], observer: &Arc<dyn RequestObserver>) -> Result<Self, reqwest::Error> {
        let server = |options| JupyterServer::new(options, Arc::clone(observer)).map(Arc::new);
        Ok(Self {
            configured: options.iter().map(server).collect::<Result<_, _>>()?,
            by_url: Mutex::default(),
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
        let by_url = || {
            let servers = self.by_url.lock();
            let mut servers = servers.iter().filter_map(Weak::upgrade);
            servers.find(|server| server.name() == name)
        };
        self.get(name).cloned().or_else(by_url)
    }

    /// Ends the connections to all kernels.
    pub async fn close_links(&self) {
        let by_url: Vec<_> = self.by_url.lock().iter().filter_map(Weak::upgrade).collect();
        let servers = self.configured.iter().chain(&by_url);
        join_all(servers.map(|server| server.close_links())).await;
    }

    /// A server at a URL that is not configured. Whether it may be asked for is for the caller to judge.
    pub fn connect(&self, url: &Url, token: &Secret) -> Result<Arc<JupyterServer>, JupyterError> {
        let made = JupyterServer::by_url(url, token, Arc::clone(&self.observer));
        let server = made.map_err(|error| JupyterError::Unreachable {
            server: url.to_string(),
            url: url.to_string(),
            why: error.without_url().to_string(),
        })?;
        let server = Arc::new(server);
        let mut servers = self.by_url.lock();
        servers.retain(|known| known.strong_count() > 0);
        servers.push(Arc::downgrade(&server));
        Ok(server)
    }
}
