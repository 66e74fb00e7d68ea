//! Browser logins, as the config has them.

use std::sync::Arc;

use store::Store;

use super::AppError;
use crate::{
    auth::{
        AnyMethod, Authenticator, HubTokens,
        oauth::{HubLogins, OAuth, OAuthSettings, OAuthTokens, OpenIdLogins, Upstream},
        oidc::Provider,
    },
    config::{Config, Env},
};

/// Whoever can tell who logs in.
pub(super) struct LoginServices {
    pub(super) provider: Option<Arc<Provider>>,
    pub(super) hub: Option<HubTokens>,
}

/// Adds the tokens of browser logins to the methods of a config, if people can log in.
pub(super) fn with_logins(
    config: &Config,
    env: &Env,
    services: LoginServices,
    store: &Store,
    authenticator: Authenticator,
) -> Result<(Authenticator, Option<Arc<OAuth>>), AppError> {
    let settings = OAuthSettings::from_config(config, env)?;
    // Where there are both, people log in at the provider.
    let upstream = match (services.provider.zip(config.auth.jwt.as_ref()), services.hub) {
        (Some((provider, jwt)), _) => Some(Upstream::OpenId(Box::new(OpenIdLogins::new(provider, jwt)))),
        (None, hub) => hub.map(|hub| Upstream::Hub(HubLogins::new(hub))),
    };
    let (Some(settings), Some(upstream)) = (settings, upstream) else {
        return Ok((authenticator, None));
    };
    let tenants = Arc::clone(authenticator.tenants());
    let oauth = Arc::new(OAuth::new(settings, upstream, store.clone(), tenants));
    let tokens = OAuthTokens::new(Arc::clone(&oauth))?;
    Ok((authenticator.with(AnyMethod::OAuth(tokens)), Some(oauth)))
}
