//! Owns the way from a file and the environment to a checked `Config`; the only place of the module
//! that reads files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use jupyter_client::{Authorities, Hub, HubOptions, Secret, ServerOptions};

use super::access::{JupyterHubConfig, ServerConfig};
use super::env::{Origins, not_text, overlay};
use super::error::{ConfigError, Problem, Why};
use super::model::Config;
use super::node::{Node, table};
use super::oauth;
use super::parse;
use super::reader::read;
use super::validate::{validate, validate_exposure};

/// The environment, as a value so that tests have their own.
pub type Env = BTreeMap<String, String>;

/// The environment of this process. Variables that are no text are other programs', unless they are settings.
pub fn environment() -> Result<Env, ConfigError> {
    texts(std::env::vars_os())
}

fn texts(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Env, ConfigError> {
    let (mut env, mut problems) = (Env::new(), Vec::new());
    for (name, value) in variables {
        match (name.to_str(), value.into_string()) {
            (Some(name), Ok(value)) => drop(env.insert(name.to_owned(), value)),
            _ => problems.extend(not_text(&name.to_string_lossy())),
        }
    }
    match problems.is_empty() {
        true => Ok(env),
        false => Err(ConfigError::Invalid(problems)),
    }
}

impl Config {
    /// Reads the file, if there is one, lays the environment over it and checks the whole.
    pub fn load(source: Option<&Path>, env: &Env) -> Result<Self, ConfigError> {
        let Some(path) = source else {
            return Self::from_toml("", "environment", env);
        };
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::from_toml(&text, &file, env),
            Err(source) => Err(ConfigError::Unreadable { file, source }),
        }
    }

    /// The same for a text; `file_name` is what messages call it.
    pub fn from_toml(text: &str, file_name: &str, env: &Env) -> Result<Self, ConfigError> {
        let entries = toml::from_str(text).map_err(|error| syntax(text, file_name, &error))?;
        let mut root = Node::Table(table(entries));
        let mut origins = Origins::new(file_name);
        let mut problems = overlay(&mut root, env, &mut origins);
        let config: Self = match root {
            Node::Table(table) => read("", table, &mut problems),
            _ => Self::default(),
        };
        problems.extend(validate(&config));
        problems.extend(unresolved(&config, env));
        problems.extend(validate_exposure(&config).err());
        if problems.is_empty() {
            return Ok(config);
        }
        Err(ConfigError::Invalid(locate(problems, &origins)))
    }
}

impl ServerConfig {
    /// Options of the connection to the server.
    pub fn options(&self, env: &Env) -> Result<ServerOptions, ConfigError> {
        Ok(ServerOptions {
            name: self.name.clone(),
            url: self.url.clone(),
            public_url: self.public_url.clone(),
            token: self.resolve_token(env)?,
            connect_timeout: self.connect_timeout,
            request_timeout: self.request_timeout,
            authorities: self.authorities()?,
        })
    }

    /// The token to send to this server; empty if it needs none.
    pub fn resolve_token(&self, env: &Env) -> Result<Secret, ConfigError> {
        let named = |(key, why)| Problem::new(format!("servers[{}].{key}", self.name), why);
        self.find_token(env).map_err(|found| named(found).into())
    }

    /// Those who may have signed the server's certificate, if they are not those of the system.
    fn authorities(&self) -> Result<Option<Authorities>, ConfigError> {
        let named = |why| Problem::new(format!("servers[{}].ca_file", self.name), why).into();
        self.find_authorities().map_err(named)
    }

    fn find_authorities(&self) -> Result<Option<Authorities>, Why> {
        self.ca_file.as_deref().map(authorities).transpose()
    }

    fn find_token(&self, env: &Env) -> Result<Secret, (&'static str, Why)> {
        if let Some(token) = &self.token {
            Ok(token.clone())
        } else if let Some(variable) = &self.token_env {
            token_from_env(variable, env).map_err(|why| ("token_env", why))
        } else if let Some(path) = &self.token_file {
            token_from_file(path).map_err(|why| ("token_file", why))
        } else {
            Ok(Secret::default())
        }
    }
}

impl JupyterHubConfig {
    /// Options of the connection to the Hub and to its users' servers.
    pub fn options(&self) -> Result<HubOptions, ConfigError> {
        let named = |why| Problem::new("auth.jupyterhub.ca_file", why);
        let servers = self.servers_url.clone();
        Ok(HubOptions {
            api: self.url.clone(),
            servers: servers.unwrap_or_else(|| Hub::servers_of_api(&self.url)),
            public: self.public_url.clone(),
            authorities: self.find_authorities().map_err(named)?,
        })
    }

    fn find_authorities(&self) -> Result<Option<Authorities>, Why> {
        self.ca_file.as_deref().map(authorities).transpose()
    }
}

fn authorities(path: &Path) -> Result<Authorities, Why> {
    Authorities::read(path).map_err(|cause| Why::UnreadableFile {
        path: path.display().to_string(),
        cause,
    })
}

fn token_from_env(variable: &str, env: &Env) -> Result<Secret, Why> {
    let variable = variable.to_owned();
    match env.get(&variable) {
        Some(value) => parse::sendable(&Node::Text(value.clone())),
        None => Err(Why::VariableUnset { variable }),
    }
}

fn token_from_file(path: &Path) -> Result<Secret, Why> {
    let text = std::fs::read_to_string(path).map_err(|error| Why::UnreadableFile {
        path: path.display().to_string(),
        cause: error.to_string(),
    })?;
    // Editors and `echo` end a file with a newline that is no part of the token.
    let token = text.trim_end_matches(['\r', '\n']);
    parse::sendable(&Node::Text(token.to_owned()))
}

fn unresolved(config: &Config, env: &Env) -> Vec<Problem> {
    let problems = |(i, server): (usize, &ServerConfig)| {
        let token = server.find_token(env).err();
        let authorities = server.find_authorities().err().map(|why| ("ca_file", why));
        let problem = move |(key, why)| Problem::new(format!("servers[{i}].{key}"), why);
        token.into_iter().chain(authorities).map(problem)
    };
    let hub = config.auth.jupyterhub.iter().filter_map(|hub| {
        let why = hub.find_authorities().err()?;
        Some(Problem::new("auth.jupyterhub.ca_file", why))
    });
    let servers = config.servers.iter().enumerate().flat_map(problems);
    servers.chain(hub).chain(oauth::unresolved(config, env)).collect()
}

fn locate(problems: Vec<Problem>, origins: &Origins) -> Vec<Problem> {
    let locate = |problem: Problem| match problem.origin {
        Some(_) => problem,
        None => {
            let origin = origins.of(&problem.key);
            problem.with_origin(origin)
        }
    };
    problems.into_iter().map(locate).collect()
}

/// The parser's own rendering quotes the line, which may hold a secret, so only its message is used.
fn syntax(text: &str, file: &str, error: &toml::de::Error) -> ConfigError {
    let offset = error.span().map_or(0, |span| span.start);
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    ConfigError::Syntax {
        file: file.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        message: error.message().replace('\n', ", "),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn variable(name: &[u8], value: &[u8]) -> (OsString, OsString) {
        (OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec()))
    }

    #[test]
    fn variables_that_are_no_text_matter_only_where_they_are_settings() {
        let foreign = [variable(b"A\xff", b"1"), variable(b"B", b"\xff"), variable(b"C", b"1")];
        let env = texts(foreign.into_iter()).expect("nothing of ours");
        assert_eq!(env.into_iter().collect::<Vec<_>>(), [("C".to_owned(), "1".to_owned())]);
        let setting = [variable(b"jmg__http__listen", b"\xff")];
        let error = texts(setting.into_iter()).expect_err("ours").to_string();
        assert_eq!(
            error,
            "env jmg__http__listen: http.listen: the variable is not valid UTF-8"
        );
        assert!(texts([variable(b"JMG__A\xff", b"1")].into_iter()).is_err());
    }
}
