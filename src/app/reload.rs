//! Reading the config again while the gateway runs, whole or not at all. Tokens, tenants with their limits, the tokens by
//! which Jupyter servers are reached, and the files of the certificate can change so; everything else is built in at start.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jupyter_client::Servers;
use sha2::{Digest, Sha256};

use super::{AppError, settings::agents, unsupported};
use crate::{
    activity::ActivityLog,
    auth::Authenticator,
    config::{Config, Env},
    http::Tls,
    limits::Limits,
};

pub struct Reload {
    file: PathBuf,
    env: Env,
    /// The file as it was read last.
    loaded: Config,
    /// The file's config with what the command line added.
    running: Config,
    running_parts: RunningParts,
    /// Files whose content is built in at start, by their keys.
    files: Vec<BuiltIn>,
}

/// A file that is read at start only.
struct BuiltIn {
    key: String,
    path: PathBuf,
    digest: Option<[u8; 32]>,
}

/// Parts of a running gateway that can change.
pub struct RunningParts {
    pub authenticator: Arc<Authenticator>,
    pub limits: Arc<Limits>,
    pub servers: Arc<Servers>,
    pub tls: Option<Arc<Tls>>,
    /// Knows the agents that people can call by their names.
    pub activity: Option<Arc<ActivityLog>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error(transparent)]
    Config(#[from] AppError),
    #[error(
        "needs a restart: {}; only [[tenants]], [[auth.tokens]] and the tokens of [[servers]] can change without one", .0.join(", ")
    )]
    NeedsRestart(Vec<String>),
    #[error(
        "needs a restart: the gateway was started without a way to log in and made a token of its own, or would be now"
    )]
    OtherLogins,
}

impl Reload {
    /// `loaded` is what the file said, `running` what the gateway was built with.
    pub fn new(file: PathBuf, env: Env, loaded: Config, running: Config, running_parts: RunningParts) -> Self {
        Self {
            files: built_in(&loaded),
            file,
            env,
            loaded,
            running,
            running_parts,
        }
    }

    /// Reads the file, and has what it says hold from now on. Returns the keys of files that say something else than at
    /// start, which goes unheard until a restart.
    pub fn read_again(&mut self) -> Result<Vec<String>, ReloadError> {
        let fresh = Config::load(Some(&self.file), &self.env).map_err(AppError::from)?;
        unsupported(&fresh).map_err(AppError::from)?;
        let mut changed = fresh.changed_keys(&self.loaded);
        changed.retain(|key| !can_change(key));
        if !changed.is_empty() {
            return Err(ReloadError::NeedsRestart(changed));
        }
        // A token that was made for want of any other way to log in is in no config.
        if !fresh.auth.is_configured() || !self.loaded.auth.is_configured() {
            return Err(ReloadError::OtherLogins);
        }
        let mut tokens = Vec::new();
        for server in &fresh.servers {
            tokens.push((&server.name, server.resolve_token(&self.env).map_err(AppError::from)?));
        }
        let mut running = self.running.clone();
        running.servers.clone_from(&fresh.servers);
        running.tenants.clone_from(&fresh.tenants);
        running.auth.tokens.clone_from(&fresh.auth.tokens);
        let parts = &self.running_parts;
        if let Some(tls) = &parts.tls {
            tls.reload().map_err(AppError::from)?;
        }
        parts.authenticator.replace(&running).map_err(AppError::from)?;
        parts.limits.replace(&running.all_tenants());
        if let Some(activity) = &parts.activity {
            activity.set_agents(agents(&running));
        }
        for (name, token) in tokens {
            if let Some(server) = parts.servers.get(name) {
                server.use_token(&token);
            }
        }
        (self.running, self.loaded) = (running, fresh);
        let stale = self.files.iter().filter(|file| digest_of(&file.path) != file.digest);
        Ok(stale.map(|file| file.key.clone()).collect())
    }
}

/// Returns whether a change of a key takes effect.
fn can_change(key: &str) -> bool {
    let is_server_token = || {
        let name = key.strip_prefix("servers[").and_then(|rest| rest.split_once("]."));
        name.is_some_and(|(_, name)| ["token", "token_env", "token_file"].contains(&name))
    };
    let is_in = |section: &str| {
        key.strip_prefix(section)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
    };
    is_in("tenants") || is_in("auth.tokens") || is_server_token()
}

fn built_in(config: &Config) -> Vec<BuiltIn> {
    let servers = config.servers.iter().enumerate();
    let servers = servers.map(|(i, server)| (format!("servers[{i}].ca_file"), server.ca_file.clone()));
    let hub = config.auth.jupyterhub.iter();
    let hub = hub.map(|hub| ("auth.jupyterhub.ca_file".to_owned(), hub.ca_file.clone()));
    let named = servers.chain(hub).filter_map(|(key, path)| Some((key, path?)));
    named
        .map(|(key, path)| BuiltIn {
            key,
            digest: digest_of(&path),
            path,
        })
        .collect()
}

/// The digest of a file's content; `None` if it cannot be read.
fn digest_of(path: &Path) -> Option<[u8; 32]> {
    let content = std::fs::read(path).ok()?;
    Some(Sha256::digest(content).into())
}
