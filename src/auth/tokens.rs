//! The gateway's own bearer tokens, kept as SHA-256 digests and compared in constant time.

use std::sync::Arc;

use parking_lot::RwLock;
use subtle::ConstantTimeEq;

use super::{
    ApprovalError, PathRules, Principal, Tenant,
    method::{self, Credentials, Method, Outcome, Rejection},
    tenants::TenantsByName,
};
use crate::config::{Config, TokenConfig};

/// A digest in words rather than bytes, of which comparing in constant time takes fewer steps.
type TokenDigest = [u64; 4];

/// The tokens of a config, each with its principal.
type TokenList = Box<[(TokenDigest, Arc<Principal>)]>;

/// The tokens that the config lists, which can be replaced, and revoked beside it.
pub struct OwnTokens {
    tokens: RwLock<Arc<TokenList>>,
    /// Those that were revoked, whatever the config says.
    revoked: RwLock<Vec<TokenDigest>>,
}

impl OwnTokens {
    pub(super) fn new(config: &Config, tenants: &TenantsByName) -> Result<Self, ApprovalError> {
        Ok(Self {
            tokens: RwLock::new(Arc::new(token_list(config, tenants)?)),
            revoked: RwLock::default(),
        })
    }

    /// Refuses tokens from now on; returns whether anybody is cut off by that.
    pub(super) fn revoke(&self, digests: &[method::TokenDigest]) -> bool {
        *self.revoked.write() = digests.iter().copied().map(words).collect();
        let tokens = Arc::clone(&self.tokens.read());
        self.cut_off(&tokens)
    }

    fn cut_off(&self, tokens: &TokenList) -> bool {
        let revoked = self.revoked.read();
        let left = tokens.iter().filter(|(digest, _)| revoked.contains(digest));
        let mut has_cut_off = false;
        for (_, principal) in left.filter(|(_, principal)| !principal.revoked().is_cancelled()) {
            principal.revoked().cancel();
            has_cut_off = true;
        }
        has_cut_off
    }

    /// Puts the tokens of another config in the place of those there are, or changes nothing. Whose token is gone or may
    /// do less is revoked, the others go on.
    pub(super) fn replace(&self, config: &Config, tenants: &TenantsByName) -> Result<(), ApprovalError> {
        let mut tokens = token_list(config, tenants)?;
        let mut current = self.tokens.write();
        for (digest, before) in &**current {
            match tokens.iter_mut().find(|(known, _)| known == digest) {
                Some((_, now)) if now.includes_rights_of(before) => *now = Arc::new(now.in_place_of(before)),
                _ => before.revoked().cancel(),
            }
        }
        self.cut_off(&tokens);
        *current = Arc::new(tokens);
        Ok(())
    }
}

impl Method for OwnTokens {
    /// Every digest is compared, so the time taken tells nothing.
    async fn authenticate(&self, credentials: Credentials<'_>) -> Outcome {
        let digest = words(credentials.digest);
        let tokens = Arc::clone(&self.tokens.read());
        let mut found = None;
        for (known, principal) in &**tokens {
            if bool::from(known[..].ct_eq(&digest[..])) {
                found = Some(principal);
            }
        }
        match found {
            None => Outcome::NotMine,
            Some(principal) if principal.revoked().is_cancelled() => {
                Outcome::Rejected(Rejection::Invalid("it was revoked"))
            }
            Some(principal) => Outcome::Accepted(Arc::clone(principal)),
        }
    }
}

fn token_list(config: &Config, tenants: &TenantsByName) -> Result<TokenList, ApprovalError> {
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

fn principal_from(token: &TokenConfig, tenant: Arc<Tenant>) -> Result<Principal, ApprovalError> {
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
