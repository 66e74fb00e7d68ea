//! Access tokens of an OpenID provider: `[auth.jwt]`. Tenant, permissions and name are claims.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use jupyter_client::Secret;

use super::{
    PathRules, Principal, Tenants,
    method::{Outcome, Rejection},
    oidc::{Claims, Expected, Provider, TokenError, is_jwt},
    principal::shown_name,
    verified::{Freshness, Verified, Verifier},
};
use crate::{
    config::JwtConfig,
    types::{Permission, PermissionSet},
};

/// A key that the provider has withdrawn is noticed after so long. Wrong tokens are not remembered: they are found out
/// here, and may be right as soon as the keys are read again.
const FRESHNESS: Freshness = Freshness {
    accepted: Duration::from_secs(5 * 60),
    refused: Duration::ZERO,
};
/// Prefix of scopes for this gateway.
const SCOPE_PREFIX: &str = "jupyter:";

/// The scope of a permission.
pub fn scope_of(permission: Permission) -> &'static str {
    match permission {
        Permission::Read => "jupyter:read",
        Permission::Write => "jupyter:write",
        Permission::Execute => "jupyter:execute",
        Permission::Admin => "jupyter:admin",
    }
}

pub struct JwtTokens {
    provider: Arc<Provider>,
    tenants: Arc<Tenants>,
    config: JwtConfig,
    everywhere: PathRules,
}

impl JwtTokens {
    pub fn new(
        config: &JwtConfig,
        provider: Arc<Provider>,
        tenants: Arc<Tenants>,
    ) -> Result<Verified<Self>, globset::Error> {
        let tokens = Self {
            provider,
            tenants: Arc::clone(&tenants),
            config: config.clone(),
            everywhere: PathRules::new(&["**".to_owned()])?,
        };
        Ok(Verified::new(tokens, FRESHNESS, tenants))
    }

    fn principal(&self, claims: &Claims) -> Result<Principal, Rejection> {
        let subject = claims.subject().unwrap_or_default();
        let tenant = self.tenant(claims)?;
        let permissions = self.permissions(claims);
        if permissions == PermissionSet::default() {
            return Err(Rejection::InsufficientScope(scope_of(Permission::Read)));
        }
        let id = format!("{}|{subject}", self.config.issuer);
        let name = claims.text(&self.config.name_claim).unwrap_or(subject);
        let name = shown_name(name, subject);
        let principal = Principal::new(&id, &name, tenant, permissions, self.everywhere.clone());
        // What the provider would give is for it to say.
        let principal = principal.that_can_ask_for(PermissionSet::all());
        Ok(match claims.ends_at(SystemTime::now()) {
            Some(end) => principal.expiring_at(end),
            // A time that no clock reaches.
            None => principal,
        })
    }

    /// The first tenant that the claim names: it may be a list, of groups for instance.
    fn tenant(&self, claims: &Claims) -> Result<Arc<super::Tenant>, Rejection> {
        let claim = &self.config.tenant_claim;
        let named = claims.names(claim);
        let known = named.iter().find_map(|name| self.tenants.get(name));
        known.ok_or_else(|| {
            Rejection::Forbidden(match named.is_empty() {
                true => format!(
                    "your login does not say which tenant you belong to (claim `{claim}`); ask an operator of the login \
                     service to add it"
                ),
                false => format!(
                    "this gateway has no tenant of the name that your login gives (claim `{claim}`); ask an operator of \
                     the gateway to add it, or one of the login service to correct it"
                ),
            })
        })
    }

    fn permissions(&self, claims: &Claims) -> PermissionSet {
        let words = claims.words(&self.config.permissions_claim);
        let scopes = words.iter().filter_map(|word| word.strip_prefix(SCOPE_PREFIX));
        scopes.filter_map(Permission::parse).collect()
    }
}

impl Verifier for JwtTokens {
    fn is_mine(&self, bearer: &str) -> bool {
        is_jwt(bearer)
    }

    async fn verify(&self, bearer: &Secret) -> Outcome {
        let expected = Expected::Access {
            audience: &self.config.audience,
        };
        match self.provider.validate(bearer.expose(), &expected).await {
            Ok(claims) => match self.principal(&claims) {
                Ok(principal) => Outcome::Accepted(Arc::new(principal)),
                Err(rejection) => Outcome::Rejected(rejection),
            },
            Err(TokenError::Invalid(reason)) => Outcome::Rejected(Rejection::Invalid(reason)),
            Err(TokenError::Unavailable(_)) => Outcome::Unavailable,
        }
    }
}
