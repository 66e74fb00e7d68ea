//! Users of a JupyterHub, by the tokens that the Hub gave them: it is asked whose a token is. Their servers come with them.

use std::sync::Arc;

use jupyter_client::{Hub, HubError, HubUser, Secret, Servers};

use super::{
    HubAccount, PathRules, Principal, Tenants, Verified, Verifier,
    method::{Outcome, Rejection},
    principal::shown_name,
    verified::Freshness,
};
use crate::{config::JupyterHubConfig, types::PermissionSet};

/// Longer ones are somebody else's: the Hub's own have 32 characters.
const MAX_TOKEN_BYTES: usize = 1024;

/// The method of [`JupyterHubConfig`].
pub type HubTokens = Verified<JupyterHub>;

pub struct JupyterHub {
    hub: Arc<Hub>,
    servers: Arc<Servers>,
    tenants: Arc<Tenants>,
    tenant: String,
    required_scope: Option<String>,
    permissions: PermissionSet,
    paths: PathRules,
}

impl JupyterHub {
    /// The method of a validated config. The servers of users become some of `servers`.
    pub fn new(
        config: &JupyterHubConfig,
        hub: Hub,
        servers: Arc<Servers>,
        tenants: &Arc<Tenants>,
    ) -> Result<HubTokens, globset::Error> {
        let verifier = Self {
            hub: Arc::new(hub),
            servers,
            tenants: Arc::clone(tenants),
            tenant: config.tenant.clone(),
            required_scope: config.required_scope.clone(),
            permissions: config.permissions.iter().copied().collect(),
            paths: PathRules::new(&config.paths)?,
        };
        let freshness = Freshness {
            accepted: config.cache_ttl,
            refused: config.cache_ttl,
        };
        Ok(Verified::new(verifier, freshness, Arc::clone(tenants)))
    }

    /// The Hub that is asked.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    async fn principal(&self, user: &HubUser, token: &Secret) -> Outcome {
        if !user.is_user {
            let why = "it belongs to a service of JupyterHub, and only users have servers there";
            return Outcome::Rejected(Rejection::Invalid(why));
        }
        if let Some(scope) = self.required_scope.as_deref().filter(|scope| !user.has_scope(scope)) {
            let why = format!("your JupyterHub token lacks the scope {scope:?}, which this gateway requires");
            return Outcome::Rejected(Rejection::Forbidden(why));
        }
        let Some(tenant) = self.tenants.get(&self.tenant) else {
            return Outcome::Unavailable;
        };
        let account = HubAccount::new(Arc::clone(&self.hub), token.clone(), user, Arc::clone(&self.servers));
        let (id, name) = (format!("hub:{}", user.name), shown_name(&user.name, &user.name));
        let principal = Principal::new(&id, &name, tenant, self.permissions, self.paths.clone());
        let principal = principal.with_hub(account);
        Outcome::Accepted(Arc::new(match self.hub.expiry(token, user).await {
            Some(end) => principal.expiring_at(end),
            None => principal,
        }))
    }
}

impl Verifier for JupyterHub {
    /// Tokens of a Hub may look like anything but a JWT, which is another's to know.
    fn is_mine(&self, bearer: &str) -> bool {
        let is_jwt = || bearer.starts_with("eyJ") && bearer.matches('.').count() == 2;
        bearer.len() <= MAX_TOKEN_BYTES && bearer.bytes().all(|byte| byte.is_ascii_graphic()) && !is_jwt()
    }

    async fn verify(&self, bearer: &Secret) -> Outcome {
        match self.hub.user(bearer).await {
            Ok(user) => self.principal(&user, bearer).await,
            Err(HubError::Token { .. }) => Outcome::NotMine,
            Err(error) => {
                tracing::warn!(%error, "JupyterHub does not say whose a token is");
                Outcome::Unavailable
            }
        }
    }
}
