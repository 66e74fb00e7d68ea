//! The gateway's own bearer tokens, kept as SHA-256 digests and compared in constant time.

use std::{collections::HashMap, sync::Arc};

use subtle::ConstantTimeEq;

use super::{
    ApprovalError, ApprovalRules, PathRules, Principal, Tenant,
    method::{Credentials, Method, Outcome},
};
use crate::{
    config::{Config, Review, TenantConfig, TokenConfig, token::sha256},
    types::{PermissionSet, Toolset},
};

/// A digest in words rather than bytes, of which comparing in constant time takes fewer steps.
type TokenDigest = [u64; 4];

/// The tokens that the config lists, each with its principal.
pub(super) struct OwnTokens(Box<[(TokenDigest, Arc<Principal>)]>);

impl OwnTokens {
    pub(super) fn new(config: &Config) -> Result<Self, ApprovalError> {
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
        Ok(Self(tokens.into()))
    }

    /// Takes the place of the tokens there were: whose token is gone or may do less is revoked, the others go on.
    pub(super) fn replace(&mut self, before: &Self) {
        for (digest, before) in &before.0 {
            let now = self.0.iter_mut().find(|(known, _)| known == digest);
            match now.and_then(|(_, now)| Arc::get_mut(now)) {
                Some(now) if now.includes_rights_of(before) => now.replace(before),
                _ => before.revoked().cancel(),
            }
        }
    }
}

impl Method for OwnTokens {
    /// Every digest is compared, so the time taken tells nothing.
    async fn authenticate(&self, credentials: Credentials<'_>) -> Outcome {
        let digest = words(sha256(credentials.bearer));
        let mut found = None;
        for (known, principal) in &self.0 {
            if bool::from(known[..].ct_eq(&digest[..])) {
                found = Some(principal);
            }
        }
        found.map_or(Outcome::NotMine, |principal| Outcome::Accepted(Arc::clone(principal)))
    }
}

fn words(digest: [u8; 32]) -> TokenDigest {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(digest.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    words
}

fn tenant_from(tenant: &TenantConfig, config: &Config) -> Result<Tenant, ApprovalError> {
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
        review_required: tenant.review == Review::Required,
        approvals: ApprovalRules::new(&tenant.approvals)?,
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
