//! Bearer tokens, kept as SHA-256 digests and compared in constant time.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use subtle::ConstantTimeEq;
use tokio::sync::watch;

use super::{PathRules, Principal, Tenant};
use crate::{
    config::{Config, TenantConfig, TokenConfig, token::sha256},
    types::{PermissionSet, Toolset},
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("no bearer token was sent")]
    Missing,
    #[error("unknown bearer token")]
    Unknown,
}

/// A digest in words rather than bytes, of which comparing in constant time takes fewer steps.
type TokenDigest = [u64; 4];

type Tokens = Arc<[(TokenDigest, Arc<Principal>)]>;

/// Everybody who may call, by the digest of their token.
pub struct Authenticator {
    tokens: RwLock<Tokens>,
    /// Changes when principals were replaced.
    replaced: watch::Sender<()>,
}

impl Authenticator {
    /// Builds the principals of a validated config.
    pub fn new(config: &Config) -> Result<Self, globset::Error> {
        Ok(Self {
            tokens: RwLock::new(tokens(config)?.into()),
            replaced: watch::Sender::default(),
        })
    }

    /// Puts the principals of another config in the place of all there are, or changes nothing. Whose token is gone or
    /// may do less than before is revoked.
    pub fn replace(&self, config: &Config) -> Result<(), globset::Error> {
        let mut fresh = tokens(config)?;
        let mut current = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        for (digest, before) in current.iter() {
            let now = fresh.iter_mut().find(|(known, _)| known == digest);
            match now.and_then(|(_, now)| Arc::get_mut(now)) {
                Some(now) if now.has_rights_of(before) => now.replace(before),
                _ => before.revoked().cancel(),
            }
        }
        *current = fresh.into();
        drop(current);
        self.replaced.send_replace(());
        Ok(())
    }

    /// Tells when principals were replaced.
    pub fn replacements(&self) -> watch::Receiver<()> {
        self.replaced.subscribe()
    }

    /// Finds the principal of a credential. Every digest is compared, so the time taken tells nothing.
    pub fn authenticate(&self, token: &str) -> Result<Arc<Principal>, AuthError> {
        if token.is_empty() {
            return Err(AuthError::Missing);
        }
        let digest = words(sha256(token));
        let mut found = None;
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        for (known, principal) in tokens.iter() {
            if bool::from(known[..].ct_eq(&digest[..])) {
                found = Some(principal);
            }
        }
        found.cloned().ok_or(AuthError::Unknown)
    }
}

fn tokens(config: &Config) -> Result<Vec<(TokenDigest, Arc<Principal>)>, globset::Error> {
    let mut tenants = HashMap::new();
    for tenant in &config.tenants {
        tenants.insert(tenant.name.as_str(), Arc::new(tenant_from(tenant, config)?));
    }
    let mut tokens = Vec::new();
    for token in &config.auth.tokens {
        let Some(tenant) = tenants.get(token.tenant.as_str()) else {
            continue;
        };
        let Some(digest) = token.digest() else { continue };
        tokens.push((words(digest), Arc::new(principal_from(token, Arc::clone(tenant))?)));
    }
    Ok(tokens)
}

fn words(digest: [u8; 32]) -> TokenDigest {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(digest.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}

fn tenant_from(tenant: &TenantConfig, config: &Config) -> Result<Tenant, globset::Error> {
    let servers = config
        .servers_of(tenant)
        .into_iter()
        .map(|server| server.name.clone())
        .collect();
    let toolsets = Toolset::parse_list(tenant.toolsets.iter().map(String::as_str)).unwrap_or_default();
    Ok(Tenant {
        name: tenant.name.clone(),
        servers,
        connect_urls: tenant.connect_urls.clone(),
        permissions: tenant.permissions.iter().copied().collect::<PermissionSet>(),
        paths: PathRules::new(&tenant.paths)?,
        toolsets,
        max_open_rooms: tenant.max_open_rooms,
        max_concurrent_executions: tenant.max_concurrent_executions,
    })
}

fn principal_from(token: &TokenConfig, tenant: Arc<Tenant>) -> Result<Principal, globset::Error> {
    let id = format!("token:{}", token.name);
    let permissions = token.permissions.iter().copied().collect();
    Ok(Principal::new(
        &id,
        &token.name,
        tenant,
        permissions,
        PathRules::new(&token.paths)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Env;

    fn config(tenant: &str, token: &str) -> Config {
        let text = format!(
            "servers = [{{ name = \"a\", url = \"http://127.0.0.1:1/\" }}, {{ name = \"b\", url = \"http://127.0.0.1:2/\" }}]\n\
             [[tenants]]\nname = \"t\"\n{tenant}\n\
             [[auth.tokens]]\nname = \"ana\"\ntenant = \"t\"\ntoken = \"{}\"\n{token}\n",
            "x".repeat(32)
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::load(Some(file.path()), &Env::default()).unwrap()
    }

    #[test]
    fn only_who_may_do_less_is_revoked() {
        let tenant = "servers = [\"a\"]\npaths = [\"**\"]\nconnect_urls = [\"http://127.0.0.1:3/\"]";
        let token = "permissions = [\"read\", \"write\"]\npaths = [\"a/**\"]";
        for (tenant_now, token_now, is_revoked) in [
            (tenant.to_owned(), token.to_owned(), false),
            (
                tenant.replace("[\"a\"]", "[\"b\", \"a\"]"),
                token.replace("[\"read\"", "[\"execute\", \"read\""),
                false,
            ),
            (format!("{tenant}\nmax_open_rooms = 7"), token.to_owned(), false),
            (tenant.to_owned(), token.replace(", \"write\"", ""), true),
            (tenant.to_owned(), token.replace("a/**", "a/b/**"), true),
            (tenant.replace("[\"a\"]", "[\"b\"]"), token.to_owned(), true),
            (tenant.replace("**", "a/**"), token.to_owned(), true),
            (tenant.replace(":3/", ":4/"), token.to_owned(), true),
            (format!("{tenant}\npermissions = [\"read\"]"), token.to_owned(), true),
            (format!("{tenant}\ntoolsets = [\"kernel\"]"), token.to_owned(), true),
        ] {
            let authenticator = Authenticator::new(&config(tenant, token)).unwrap();
            let before = authenticator.authenticate(&"x".repeat(32)).unwrap();
            authenticator.replace(&config(&tenant_now, &token_now)).unwrap();
            assert_eq!(before.revoked().is_cancelled(), is_revoked, "{tenant_now} {token_now}");
            let now = authenticator.authenticate(&"x".repeat(32)).unwrap();
            assert!(!now.revoked().is_cancelled());
            // A principal that goes on is cut off with the one that took its place.
            let none = Config {
                auth: crate::config::AuthConfig::default(),
                ..config(tenant, token)
            };
            authenticator.replace(&none).unwrap();
            assert!(before.revoked().is_cancelled() && now.revoked().is_cancelled());
        }
    }
}
