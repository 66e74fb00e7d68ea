//! Browser logins, as the config has them.

use std::sync::Arc;

use store::Store;

use super::AppError;
use crate::{
    auth::{
        AnyMethod, Authenticator,
        oauth::{OAuth, OAuthSettings, OAuthTokens},
        oidc::Provider,
    },
    config::{Config, Env},
};

/// Adds the tokens of browser logins to the methods of a config, if people can log in.
pub(super) fn with_logins(
    config: &Config,
    env: &Env,
    provider: Option<Arc<Provider>>,
    store: &Store,
    authenticator: Authenticator,
) -> Result<(Authenticator, Option<Arc<OAuth>>), AppError> {
    let settings = OAuthSettings::from_config(config, env)?;
    let (Some(settings), Some(provider)) = (settings, provider) else {
        return Ok((authenticator, None));
    };
    let tenants = Arc::clone(authenticator.tenants());
    let tokens = OAuthTokens::new(store.clone(), Arc::clone(&tenants))?;
    let oauth = OAuth::new(settings, provider, store.clone(), tenants);
    let authenticator = authenticator.with(AnyMethod::OAuth(tokens));
    Ok((authenticator, Some(Arc::new(oauth))))
}
