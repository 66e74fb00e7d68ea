//! Owns the rules that span several keys: names are unique, references lead somewhere, and nothing is
//! exposed by accident.

use std::collections::BTreeMap;
use std::net::IpAddr;

use url::{Host, Url};

use super::access::{AuthConfig, JupyterHubConfig, LONGEST_TTL, ServerConfig, TokenConfig};
use super::error::{Problem, Why};
use super::model::Config;
use super::oauth;

/// Refuses an address that other machines can reach while nobody has to log in.
pub fn validate_exposure(config: &Config) -> Result<(), Problem> {
    let listen = config.http.listen;
    if listen.ip().to_canonical().is_loopback() || config.auth.is_configured() {
        return Ok(());
    }
    let listen = listen.to_string();
    Err(Problem::new("http.listen", Why::Exposed { listen }))
}

/// Settings that work but are hardly meant, each as `key: why`.
pub fn warnings(config: &Config) -> Vec<String> {
    let unprotected = |(i, server): (usize, &ServerConfig)| {
        let is_plain = server.url.scheme() == "http" && !is_loopback(&server.url);
        is_plain.then(|| {
            format!(
                "servers[{i}].url: {:?} is reached without TLS: its token, code and output can be read and changed on the \
                 way; use https:// (with ca_file for a certificate of your own)",
                server.name
            )
        })
    };
    let secret = config.auth.jwt.as_ref().and_then(|jwt| jwt.secret.as_ref()).map(|_| {
        "auth.jwt.secret: whoever knows it can sign a token for anybody; it is for development, a provider signs with keys \
         of its own"
            .to_owned()
    });
    let hub = config.auth.jupyterhub.as_ref().and_then(|hub| {
        let urls = [("url", Some(&hub.url)), ("servers_url", hub.servers_url.as_ref())];
        let is_plain = |url: &Url| url.scheme() == "http" && !is_loopback(url);
        let (key, _) = urls.into_iter().find(|(_, url)| url.is_some_and(is_plain))?;
        Some(format!(
            "auth.jupyterhub.{key}: JupyterHub is reached without TLS: users' tokens can be read on the way; use https:// \
             (with ca_file for a certificate of your own)"
        ))
    });
    let forgetful = config.auth.oauth.enabled && config.store.url.expose() == "sqlite::memory:";
    let forgetful =
        forgetful.then(|| "store.url: browser logins end when the gateway does; use a file or PostgreSQL".to_owned());
    let servers = config.servers.iter().enumerate().filter_map(unprotected);
    servers.chain(secret).chain(hub).chain(forgetful).collect()
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// Everything that is wrong between keys. Empty names were reported when they were read.
pub(super) fn validate(config: &Config) -> Vec<Problem> {
    let servers: Vec<_> = config.servers.iter().map(|it| it.name.as_str()).collect();
    let tenants: Vec<_> = config.tenants.iter().map(|it| it.name.as_str()).collect();
    let tokens: Vec<_> = config.auth.tokens.iter().map(|it| it.name.as_str()).collect();
    let mut problems = Vec::new();
    problems.extend(bad_names("servers", &servers, slug));
    problems.extend(bad_names("tenants", &tenants, label));
    problems.extend(bad_names("auth.tokens", &tokens, label));
    problems.extend(dangling_servers(config, &servers));
    problems.extend(dangling_tenants(&config.auth, &tenants));
    problems.extend(same_tokens(&config.auth.tokens));
    problems.extend(half_tls(config));
    problems.extend(config.auth.jupyterhub.as_ref().and_then(long_memory));
    problems.extend(oauth::validate(config));
    problems
}

/// A certificate is of no use without its key, nor the other way round.
fn half_tls(config: &Config) -> Option<Problem> {
    match (&config.http.tls_cert, &config.http.tls_key) {
        (Some(_), None) => Some(Problem::new("http.tls_cert", Why::NeedsToo("http.tls_key"))),
        (None, Some(_)) => Some(Problem::new("http.tls_key", Why::NeedsToo("http.tls_cert"))),
        _ => None,
    }
}

/// Whoever the Hub does not know any more must not get in for much longer.
fn long_memory(hub: &JupyterHubConfig) -> Option<Problem> {
    let why = || Why::BadValue {
        value: humantime::format_duration(hub.cache_ttl).to_string(),
        what: "a usable duration",
        hint: "it must be at most a minute",
    };
    (hub.cache_ttl > LONGEST_TTL).then(|| Problem::new("auth.jupyterhub.cache_ttl", why()))
}

fn bad_names(list: &str, names: &[&str], rule: fn(&str) -> Result<(), Why>) -> Vec<Problem> {
    let mut first = BTreeMap::new();
    let mut problems = Vec::new();
    for (i, &name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let key = format!("{list}[{i}].name");
        if let Err(why) = rule(name) {
            problems.push(Problem::new(&key, why));
        }
        let owner = *first.entry(name).or_insert(i);
        if owner != i {
            let (value, first) = (name.to_owned(), format!("{list}[{owner}]"));
            problems.push(Problem::new(key, Why::Duplicate { value, first }));
        }
    }
    problems
}

fn slug(name: &str) -> Result<(), Why> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.chars().all(allowed) {
        return Ok(());
    }
    Err(Why::BadValue {
        value: name.to_owned(),
        what: "a server name",
        hint: "allowed [a-z0-9-]+",
    })
}

/// Other names are for people to read, in JupyterLab and in logs.
fn label(name: &str) -> Result<(), Why> {
    if !name.chars().any(char::is_control) && name.trim() == name {
        return Ok(());
    }
    Err(Why::BadValue {
        value: name.to_owned(),
        what: "a name",
        hint: "it must not contain control characters, or spaces at its ends",
    })
}

fn dangling_servers(config: &Config, servers: &[&str]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (i, tenant) in config.tenants.iter().enumerate() {
        for (j, name) in tenant.servers.iter().enumerate() {
            let key = format!("tenants[{i}].servers[{j}]");
            problems.extend(dangling(key, name, "server", servers));
        }
    }
    problems
}

fn dangling_tenants(auth: &AuthConfig, tenants: &[&str]) -> Vec<Problem> {
    let of_token = |(i, token): (usize, &TokenConfig)| {
        let key = format!("auth.tokens[{i}].tenant");
        dangling(key, &token.tenant, "tenant", tenants)
    };
    let tokens = auth.tokens.iter().enumerate().filter_map(of_token);
    let hub = auth
        .jupyterhub
        .as_ref()
        .and_then(|hub| dangling("auth.jupyterhub.tenant".to_owned(), &hub.tenant, "tenant", tenants));
    let jupyter = auth.jupyter.tenant.as_ref();
    let jupyter = jupyter.and_then(|tenant| dangling("auth.jupyter.tenant".to_owned(), tenant, "tenant", tenants));
    tokens.chain(hub).chain(jupyter).collect()
}

fn dangling(key: String, name: &str, kind: &'static str, known: &[&str]) -> Option<Problem> {
    if name.is_empty() || known.contains(&name) {
        return None;
    }
    let why = Why::Dangling {
        value: name.to_owned(),
        kind,
        known: known.iter().map(|&it| it.to_owned()).collect(),
    };
    Some(Problem::new(key, why))
}

/// Two entries for one token would make it a matter of chance who its bearer is.
fn same_tokens(tokens: &[TokenConfig]) -> Vec<Problem> {
    let mut first = BTreeMap::new();
    let same = |(i, token): (usize, &TokenConfig)| {
        let owner = *first.entry(token.digest()?).or_insert(i);
        let first = format!("auth.tokens[{owner}]");
        let problem = Problem::new(format!("auth.tokens[{i}]"), Why::SameToken { first });
        (owner != i).then_some(problem)
    };
    tokens.iter().enumerate().filter_map(same).collect()
}
