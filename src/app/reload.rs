//! Reading the config again while the gateway runs, whole or not at all. Tokens, tenants with their limits, and the files
//! of the certificate can change so; everything else is built in at start.

use std::{path::PathBuf, sync::Arc};

use super::{AppError, settings::agents, unsupported};
use crate::{
    activity::ActivityLog,
    auth::Authenticator,
    config::{AuthConfig, Config, Env},
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
}

/// Parts of a running gateway that can change.
pub struct RunningParts {
    pub authenticator: Arc<Authenticator>,
    pub limits: Arc<Limits>,
    pub tls: Option<Arc<Tls>>,
    /// Knows the agents that people can call by their names.
    pub activity: Option<Arc<ActivityLog>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    #[error(transparent)]
    Config(#[from] AppError),
    #[error("only [[tenants]] and [[auth.tokens]] can change without a restart, and something else changed too")]
    NeedsRestart,
}

impl Reload {
    /// `loaded` is what the file said, `running` what the gateway was built with.
    pub fn new(file: PathBuf, env: Env, loaded: Config, running: Config, running_parts: RunningParts) -> Self {
        Self {
            file,
            env,
            loaded,
            running,
            running_parts,
        }
    }

    /// Reads the file, and has what it says hold from now on.
    pub fn read_again(&mut self) -> Result<(), ReloadError> {
        let fresh = Config::load(Some(&self.file), &self.env).map_err(AppError::from)?;
        unsupported(&fresh).map_err(AppError::from)?;
        if !differs_in_access_only(&fresh, &self.loaded) {
            return Err(ReloadError::NeedsRestart);
        }
        let mut running = self.running.clone();
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
        (self.running, self.loaded) = (running, fresh);
        Ok(())
    }
}

fn differs_in_access_only(fresh: &Config, loaded: &Config) -> bool {
    // A token that was made for want of any other way to log in is in no config.
    let has_logins = |config: &Config| config.auth.is_configured();
    let same_otherwise = Config {
        tenants: loaded.tenants.clone(),
        auth: AuthConfig {
            tokens: loaded.auth.tokens.clone(),
            ..fresh.auth.clone()
        },
        ..fresh.clone()
    };
    same_otherwise == *loaded && has_logins(fresh) && has_logins(loaded)
}
