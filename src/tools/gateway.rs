//! Tools about the gateway itself.

mod start;

use std::{fmt, sync::Arc};

use futures::future::join_all;
use jupyter_client::{HubError, HubServerState, JupyterServer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::start::start_server;
use super::{Call, Effect, ToolDefinition, ToolError, definition::WORK_COST};
use crate::auth::HubStates;
use crate::tools::text::{Describe, Page};
use crate::types::Toolset;

pub(super) fn tools() -> Vec<ToolDefinition> {
    vec![
        ToolDefinition::new(
            Toolset::Gateway,
            "list_servers",
            "Lists your Jupyter servers, the default first, and whether each answers.",
            Effect::Read,
            list_servers,
        ),
        ToolDefinition::new(
            Toolset::Gateway,
            "start_server",
            "Starts one of your servers in JupyterHub and waits until it is ready.",
            Effect::Add,
            start_server,
        )
        .reporting()
        .costing(WORK_COST)
        .only_for_hub(),
    ]
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
    /// In JupyterHub: running, starting, stopping or stopped
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// User who shares it
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
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
        if let Some(owner) = &self.owner {
            write!(f, ", shared by {owner}")?;
        }
        if let Some(state) = &self.state {
            write!(f, ", {state}")?;
        }
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
    let account = call.principal().hub().cloned();
    let states = match &account {
        Some(account) => Some(account.refresh().await),
        None => None,
    };
    let servers = call.latest_servers();
    let entries = servers
        .iter()
        .enumerate()
        .map(|(index, server)| entry(server, index == 0, states.as_ref()));
    Ok(ServerList {
        servers: join_all(entries).await,
    })
}

async fn entry(
    server: &Arc<JupyterServer>,
    default: bool,
    states: Option<&Result<HubStates, HubError>>,
) -> ServerEntry {
    let of_hub = server.hub().and(states);
    let state = of_hub.and_then(|states| states.as_ref().ok()?.of(server));
    let (version, error) = match (state, of_hub) {
        // The server is not asked: whoever lists servers must not keep all of theirs from being culled.
        (Some(_), _) => (None, None),
        (None, Some(Err(error))) => (None, Some(error.to_string())),
        (None, _) => match server.status().await {
            Ok(status) => (Some(status.version), None),
            Err(error) => (None, Some(error.to_string())),
        },
    };
    ServerEntry {
        name: server.name().to_owned(),
        url: server.public_base_url().to_owned(),
        default,
        reachable: error.is_none() && state.is_none_or(|state| state == HubServerState::Running),
        state: state.map(shown),
        owner: owner(server),
        version,
        error,
    }
}

fn shown(state: HubServerState) -> &'static str {
    match state {
        HubServerState::Running => "running",
        HubServerState::Starting => "starting",
        HubServerState::Stopping => "stopping",
        HubServerState::Stopped => "stopped",
    }
}

/// The user of a Hub who shares a server; its name begins with that of whoever it is shared with.
fn owner(server: &JupyterServer) -> Option<String> {
    let owner = &server.hub()?.name().owner;
    let is_shared = server.name().split('/').next() != Some(owner);
    is_shared.then(|| owner.clone())
}
