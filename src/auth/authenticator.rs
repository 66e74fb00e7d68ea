//! Bearer tokens, kept as SHA-256 digests and compared in constant time.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use subtle::ConstantTimeEq;

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
}

impl Authenticator {
    /// Builds the principals of a validated config.
    pub fn new(config: &Config) -> Result<Self, globset::Error> {
        Ok(Self {
            tokens: RwLock::new(tokens(config)?),
        })
    }

    /// Puts the principals of another config in the place of all there are, or changes nothing.
    pub fn replace(&self, config: &Config) -> Result<(), globset::Error> {
        let tokens = tokens(config)?;
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        Ok(())
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

fn tokens(config: &Config) -> Result<Tokens, globset::Error> {
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
    Ok(tokens.into())
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
