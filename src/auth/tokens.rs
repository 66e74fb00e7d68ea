//! The gateway's own bearer tokens, kept as SHA-256 digests and compared in constant time.

use std::sync::Arc;

use parking_lot::RwLock;
use subtle::ConstantTimeEq;

use super::{
    PathRules, Principal, Tenant,
    method::{Credentials, Method, Outcome},
    tenants::TenantsByName,
};
use crate::config::{Config, TokenConfig};

/// A digest in words rather than bytes, of which comparing in constant time takes fewer steps.
type TokenDigest = [u64; 4];

/// The tokens of a config, each with its principal.
type TokenList = Box<[(TokenDigest, Arc<Principal>)]>;

/// The tokens that the config lists, which can be replaced.
pub struct OwnTokens(RwLock<Arc<TokenList>>);

impl OwnTokens {
    pub(super) fn new(config: &Config, tenants: &TenantsByName) -> Result<Self, globset::Error> {
        Ok(Self(RwLock::new(Arc::new(token_list(config, tenants)?))))
    }

    /// Puts the tokens of another config in the place of those there are, or changes nothing. Whose token is gone or may
    /// do less is revoked, the others go on.
    pub(super) fn replace(&self, config: &Config, tenants: &TenantsByName) -> Result<(), globset::Error> {
        let mut tokens = token_list(config, tenants)?;
        let mut current = self.0.write();
        for (digest, before) in &**current {
            match tokens.iter_mut().find(|(known, _)| known == digest) {
                Some((_, now)) if now.includes_rights_of(before) => *now = Arc::new(now.in_place_of(before)),
                _ => before.revoked().cancel(),
            }
        }
        *current = Arc::new(tokens);
        Ok(())
    }
}

impl Method for OwnTokens {
    /// Every digest is compared, so the time taken tells nothing.
    async fn authenticate(&self, credentials: Credentials<'_>) -> Outcome {
        let digest = words(credentials.digest);
        let tokens = Arc::clone(&self.0.read());
        let mut found = None;
        for (known, principal) in &**tokens {
            if bool::from(known[..].ct_eq(&digest[..])) {
                found = Some(principal);
            }
        }
        found.map_or(Outcome::NotMine, |principal| Outcome::Accepted(Arc::clone(principal)))
    }
}

fn token_list(config: &Config, tenants: &TenantsByName) -> Result<TokenList, globset::Error> {
    let mut tokens = Vec::new();
    for token in &config.auth.tokens {
        let Some(tenant) = tenants.get(&token.tenant) else {
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
