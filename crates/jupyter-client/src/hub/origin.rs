//! A server of a Hub as a Jupyter server of this client: where it belongs, and where it is.

use std::sync::Arc;

use url::Url;

use super::{Hub, HubName, HubServer};
use crate::ServerOptions;

/// The Hub that a Jupyter server belongs to, and its name there.
#[derive(Debug, Clone)]
pub struct HubPlace {
    hub: Arc<Hub>,
    name: HubName,
}

impl HubPlace {
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub fn name(&self) -> &HubName {
        &self.name
    }
}

impl Hub {
    /// The place of a server in this Hub.
    pub(crate) fn place(self: &Arc<Self>, name: &HubName) -> HubPlace {
        HubPlace {
            hub: Arc::clone(self),
            name: name.clone(),
        }
    }

    /// Options of the connection to a server, under a name by which the gateway knows it.
    pub(crate) fn server_options(
        &self,
        name: impl Into<String>,
        server: &HubServer,
        token: crate::Secret,
    ) -> ServerOptions {
        let url = |base: Option<Url>| base.unwrap_or_else(|| self.url_of(&server.name));
        ServerOptions {
            public_url: self.public_url_of(&server.name),
            authorities: self.options.authorities.clone(),
            ..ServerOptions::new(name, url(server.url.clone()), token)
        }
    }
}
