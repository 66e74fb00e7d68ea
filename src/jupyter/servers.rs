//! The configured servers by name, in the order of the config.

use std::sync::Arc;

use super::JupyterServer;
use crate::{
    config::{Secret, ServerConfig},
    telemetry::Metrics,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown server {name:?}; available: {available}")]
pub struct UnknownServer {
    pub name: String,
    pub available: String,
}

#[derive(Debug)]
pub struct Servers(Vec<Arc<JupyterServer>>);

impl Servers {
    /// Makes the client of each server, given the token it is configured to use.
    pub fn new(configs: &[(ServerConfig, Secret)], metrics: &Metrics) -> Result<Self, reqwest::Error> {
        let server =
            |(config, token): &(ServerConfig, Secret)| JupyterServer::new(config, token, metrics.clone()).map(Arc::new);
        Ok(Self(configs.iter().map(server).collect::<Result<_, _>>()?))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<JupyterServer>> {
        self.0.iter()
    }

    pub fn get(&self, name: &str) -> Option<&Arc<JupyterServer>> {
        self.0.iter().find(|server| server.name() == name)
    }
}
