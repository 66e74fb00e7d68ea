//! `start_server`: a server of a JupyterHub is started when somebody asks for it, and never otherwise.

use std::{sync::Arc, time::Duration};

use jupyter_client::{HubError, HubName, JupyterServer, SpawnProgress};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use crate::{
    auth::HubAccount,
    error::ErrorKind,
    tools::{
        Call, ToolError,
        text::{Describe, Page},
    },
};

/// Time after which a start counts as failed although the Hub does not say so. Pulling an image takes some minutes.
const START_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Messages of the Hub that wait to be told; more of them are left out.
const MAX_MESSAGES: usize = 32;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartArguments {
    /// Name as in list_servers; USER/NAME makes another one of yours
    server: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct StartedServer {
    server: String,
    url: String,
    state: &'static str,
    /// Of Jupyter Server
    version: String,
}

impl Describe for StartedServer {
    fn describe(&self, page: &mut Page) {
        let Self {
            server, url, version, ..
        } = self;
        page.line(format_args!("{server} is running: {url}, Jupyter Server {version}"));
    }
}

pub(super) async fn start_server(call: Call, arguments: StartArguments) -> Result<StartedServer, ToolError> {
    let account = call.principal().hub().cloned().ok_or(ToolError::NoHub)?;
    let name = hub_name(&call, &account, arguments.server.trim())?;
    let server = follow(&call, &account, &name).await?;
    let status = server.status().await?;
    Ok(StartedServer {
        server: server.name().to_owned(),
        url: server.public_base_url().to_owned(),
        state: "running",
        version: status.version,
    })
}

/// The server that is meant, by its name in the Hub. Another one of the caller's own may be named that does not exist yet.
fn hub_name(call: &Call, account: &HubAccount, named: &str) -> Result<HubName, ToolError> {
    let unknown = match call.server(Some(named)) {
        Ok(server) => {
            let place = server.hub().map(|place| place.name().clone());
            return place.ok_or_else(|| ToolError::argument("server", format!("{named:?} is no server of JupyterHub")));
        }
        Err(unknown) => unknown,
    };
    let new = || account.new_server(named).filter(|_| !call.selects_servers());
    new().ok_or(unknown)
}

/// Starts a server and reports the progress to the client.
async fn follow(call: &Call, account: &HubAccount, name: &HubName) -> Result<Arc<JupyterServer>, ToolError> {
    let (told, mut messages) = mpsc::channel(MAX_MESSAGES);
    let starting = account.start(name, &told);
    tokio::pin!(starting);
    let until = Instant::now() + START_LIMIT;
    let client = call.client();
    loop {
        tokio::select! {
            started = &mut starting => return started.map_err(|error| explained(name, error)),
            Some(progress) = messages.recv() => client.progress(&shown(name, &progress)).await,
            () = client.cancelled() => return Err(not_waited_for(name)),
            () = call.last_call() => return Err(ToolError::Stopping),
            () = sleep_until(until) => return Err(explained(name, HubError::Silent)),
        }
    }
}

fn shown(name: &HubName, progress: &SpawnProgress) -> String {
    match progress.percent {
        Some(percent) => format!("Starting {name}, {percent}%: {}", progress.message),
        None => format!("Starting {name}: {}", progress.message),
    }
}

fn not_waited_for(name: &HubName) -> ToolError {
    ToolError::Advised {
        message: format!("the start of `{name}` is not waited for any more; it goes on, and list_servers shows it"),
        kind: ErrorKind::Upstream,
    }
}

/// Explains an error to somebody who may know nothing of the Hub.
fn explained(name: &HubName, error: HubError) -> ToolError {
    let (message, kind) = match error {
        HubError::Busy { message, retry_after } => {
            let when = match retry_after {
                Some(seconds) => format!("try again in {seconds} s"),
                None => "try again in some minutes".to_owned(),
            };
            (
                format!("JupyterHub cannot start `{name}` now ({}); {when}", plain(&message)),
                ErrorKind::Limit,
            )
        }
        HubError::Refused { message } => (
            format!("JupyterHub does not start `{name}`: {}", plain(&message)),
            ErrorKind::Conflict,
        ),
        HubError::Spawn(message) | HubError::Failed { message, .. } => (
            format!(
                "`{name}` could not be started: {}; try again once, then tell the person, who can see more in JupyterHub",
                plain(&message)
            ),
            ErrorKind::Upstream,
        ),
        HubError::Token { status } => (
            format!(
                "JupyterHub does not let your token start `{name}` (HTTP {status}); it needs the scopes servers and \
                 read:servers for it, or the person starts it in JupyterHub"
            ),
            ErrorKind::Forbidden,
        ),
        HubError::NotFound => (
            format!("JupyterHub knows no server `{name}`; list_servers shows yours"),
            ErrorKind::NotFound,
        ),
        HubError::Silent => (
            format!("JupyterHub does not tell how far the start of `{name}` is; list_servers shows whether it runs"),
            ErrorKind::Upstream,
        ),
        error @ (HubError::Unreachable(_)
        | HubError::Timeout
        | HubError::NotAHub { .. }
        | HubError::TooLarge
        | HubError::TooDeep { .. }) => (format!("`{name}` could not be started: {error}"), ErrorKind::Upstream),
    };
    ToolError::Advised { message, kind }
}

/// A sentence of the Hub as part of another.
fn plain(message: &str) -> &str {
    message.trim().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_hub_says_is_explained() {
        let name = HubName::new("ana", "gpu");
        let busy = |retry_after| HubError::Busy {
            message: "Too many users trying to log in right now.".to_owned(),
            retry_after,
        };
        for (error, words) in [
            (
                busy(Some(30)),
                "(Too many users trying to log in right now); try again in 30 s",
            ),
            (busy(None), "try again in some minutes"),
            (
                HubError::Refused {
                    message: "User ana already has the maximum of 2 named servers.".to_owned(),
                },
                "does not start `ana/gpu`: User ana already has the maximum of 2 named servers",
            ),
            (
                HubError::Spawn("Spawn failed: no memory".to_owned()),
                "could not be started: Spawn failed: no memory;",
            ),
            (HubError::Token { status: 403 }, "scopes servers"),
        ] {
            let told = explained(&name, error).to_string();
            assert!(told.contains(words), "{told}");
        }
    }
}
