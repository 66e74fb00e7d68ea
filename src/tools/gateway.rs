//! Tools about the gateway itself.

use futures::future::join_all;
use jupyter_client::JupyterServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Effect, ToolDefinition, ToolError};
use crate::tools::text::{Describe, Page};
use crate::types::Toolset;
use std::fmt;

pub(super) fn tools() -> Vec<ToolDefinition> {
    vec![ToolDefinition::new(
        Toolset::Gateway,
        "list_servers",
        "Lists your Jupyter servers, the default first, and whether each answers.",
        Effect::Read,
        list_servers,
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

#[derive(Serialize, JsonSchema)]
struct ServerList {
    servers: Vec<ServerEntry>,
}

#[derive(Serialize, JsonSchema)]
struct ServerEntry {
    name: String,
    url: String,
    default: bool,
    reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Describe for ServerList {
    fn describe(&self, page: &mut Page) {
        page.items(&self.servers);
    }
}

impl fmt::Display for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, url, .. } = self;
        let default = if self.default { " (default)" } else { "" };
        write!(f, "{name}{default}: {url}")?;
        if let Some(version) = &self.version {
            write!(f, ", Jupyter Server {version}")?;
        }
        match &self.error {
            Some(error) => write!(f, ", not reachable: {error}"),
            None => Ok(()),
        }
    }
}

async fn list_servers(call: Call, _: NoArguments) -> Result<ServerList, ToolError> {
    let entries = call
        .servers()
        .iter()
        .enumerate()
        .map(|(index, server)| entry(server, index == 0));
    Ok(ServerList {
        servers: join_all(entries).await,
    })
}

async fn entry(server: &JupyterServer, default: bool) -> ServerEntry {
    let (version, error) = match server.status().await {
        Ok(status) => (Some(status.version), None),
        Err(error) => (None, Some(error.to_string())),
    };
    ServerEntry {
        name: server.name().to_owned(),
        url: server.public_base_url().to_owned(),
        default,
        reachable: error.is_none(),
        version,
        error,
    }
}
