//! Owns the rules of browser logins that span several keys, and the secrets that they need.

use jupyter_client::Secret;

use super::access::OAuthConfig;
use super::error::{ConfigError, Problem, Why};
use super::load::Env;
use super::model::Config;
use super::node::Node;
use super::parse;
use super::validate::is_loopback;

/// Characters that a key must have to be hard to guess.
const MIN_KEY_CHARS: usize = 32;

/// Secrets of browser logins.
#[derive(Debug, Clone)]
pub struct OAuthSecrets {
    /// Empty for a public client.
    pub client_secret: Secret,
    /// From which keys are derived.
    pub encryption_key: Secret,
}

impl OAuthConfig {
    /// The secrets that the environment has.
    pub fn secrets(&self, env: &Env) -> Result<OAuthSecrets, ConfigError> {
        let named = |(key, why): (&str, Why)| Problem::new(format!("auth.oauth.{key}"), why);
        self.find_secrets(env).map_err(|found| named(found).into())
    }

    fn find_secrets(&self, env: &Env) -> Result<OAuthSecrets, (&'static str, Why)> {
        let read = |key: &'static str, variable: &Option<String>| match variable {
            Some(variable) => from_env(variable, env).map_err(|why| (key, why)).map(Some),
            None => Ok(None),
        };
        let client_secret = read("client_secret_env", &self.client_secret_env)?;
        let key = read("encryption_key_env", &self.encryption_key_env)?;
        if key
            .as_ref()
            .is_some_and(|key| key.expose().chars().count() < MIN_KEY_CHARS)
        {
            let why = "the key is too short; expected at least 32 characters, as `openssl rand -hex 32` prints them";
            return Err(("encryption_key_env", Why::BadHidden(why)));
        }
        Ok(OAuthSecrets {
            encryption_key: key.or_else(|| client_secret.clone()).unwrap_or_default(),
            client_secret: client_secret.unwrap_or_default(),
        })
    }
}

fn from_env(variable: &str, env: &Env) -> Result<Secret, Why> {
    let variable = variable.to_owned();
    match env.get(&variable) {
        Some(value) if !value.is_empty() => parse::secret(&Node::Text(value.clone())),
        _ => Err(Why::VariableUnset { variable }),
    }
}

/// Settings that browser logins lack, if they are enabled.
pub(super) fn validate(config: &Config) -> Vec<Problem> {
    let oauth = &config.auth.oauth;
    if !oauth.enabled {
        return Vec::new();
    }
    let mut problems = Vec::new();
    match &config.http.public_url {
        None => problems.push(Problem::new("auth.oauth.enabled", Why::NeedsToo("http.public_url"))),
        Some(url) if url.scheme() != "https" && !is_loopback(url) => {
            let why = "browser logins (auth.oauth) need https://, except on this machine";
            problems.push(Problem::new("http.public_url", Why::BadHidden(why)));
        }
        Some(_) => {}
    }
    if config.auth.jwt.is_none() && config.auth.jupyterhub.is_none() {
        let service = "[auth.jwt] or [auth.jupyterhub], the service to log in at,";
        problems.push(Problem::new("auth.oauth.enabled", Why::NeedsToo(service)));
    }
    if oauth.client_id.is_empty() {
        problems.push(Problem::new("auth.oauth.client_id", Why::Missing));
    }
    if oauth.client_secret_env.is_none() && oauth.encryption_key_env.is_none() {
        let needed = Why::OneOfRequired(&["client_secret_env", "encryption_key_env"]);
        problems.push(Problem::new("auth.oauth", needed));
    }
    if config.auth.jwt.is_none() {
        problems.extend(beside_a_hub(oauth));
    } else if !oauth.scopes.iter().any(|scope| scope == "openid") {
        let why = "must contain \"openid\", without which a provider does not say who logged in";
        problems.push(Problem::new("auth.oauth.scopes", Why::BadHidden(why)));
    }
    problems
}

/// What a JupyterHub demands of its services, and what it does not know.
fn beside_a_hub(oauth: &OAuthConfig) -> Vec<Problem> {
    let mut problems = Vec::new();
    if oauth.client_secret_env.is_none() && oauth.encryption_key_env.is_some() {
        problems.push(Problem::new("auth.oauth.client_secret_env", Why::Missing));
    }
    if oauth.scopes != OAuthConfig::default().scopes {
        let why = "a JupyterHub gives what its service's oauth_client_allowed_scopes says; leave this out";
        problems.push(Problem::new("auth.oauth.scopes", Why::BadHidden(why)));
    }
    problems
}

/// The secrets that the environment lacks.
pub(super) fn unresolved(config: &Config, env: &Env) -> Option<Problem> {
    let oauth = &config.auth.oauth;
    let found = oauth.enabled.then(|| oauth.find_secrets(env).err()).flatten();
    found.map(|(key, why)| Problem::new(format!("auth.oauth.{key}"), why))
}
