//! The methods by which callers are known, as the config has them.

use std::sync::Arc;

use jupyter_client::{Hub, RequestObserver, Servers};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::AppError;
use crate::{
    auth::{AnyMethod, Authenticator, HubTokens, JupyterHub, JupyterTokens, JwtTokens, oidc::Provider},
    config::{Config, JwtConfig},
    telemetry::Metrics,
};

/// Builds the methods of a config. That of the Hub is given beside them, since people can log in there.
pub(super) fn authenticator(
    config: &Config,
    provider: Option<Arc<Provider>>,
    servers: &Arc<Servers>,
    metrics: &Metrics,
    background: &TaskTracker,
    stop: &CancellationToken,
) -> Result<(Authenticator, Option<HubTokens>), AppError> {
    let (mut authenticator, mut hub_tokens) = (Authenticator::new(config)?, None);
    if let (Some(jwt), Some(provider)) = (&config.auth.jwt, provider) {
        let warming_up = warm_up(Arc::clone(&provider));
        background.spawn(stop.clone().run_until_cancelled_owned(warming_up));
        let tokens = JwtTokens::new(jwt, provider, Arc::clone(authenticator.tenants()))?;
        authenticator = authenticator.with(AnyMethod::Jwt(tokens));
    }
    if let Some(hub) = &config.auth.jupyterhub {
        let observer: Arc<dyn RequestObserver> = Arc::new(metrics.clone());
        let asked = Hub::new(hub.options()?, observer)?;
        let tokens = JupyterHub::new(hub, asked, Arc::clone(servers), authenticator.tenants())?;
        hub_tokens = Some(tokens.clone());
        authenticator = authenticator.with(AnyMethod::JupyterHub(tokens));
    }
    let jupyter = &config.auth.jupyter;
    if jupyter.enabled {
        let tokens = JupyterTokens::new(jupyter, Arc::clone(servers), Arc::clone(authenticator.tenants()))?;
        authenticator = authenticator.with(AnyMethod::Jupyter(tokens));
    }
    Ok((authenticator, hub_tokens))
}

/// The OpenID provider of the config, of which there is one for all who ask it.
pub(super) fn provider(config: &Config) -> Result<Option<Arc<Provider>>, AppError> {
    let made = |jwt: &JwtConfig| Provider::new(&jwt.issuer, jwt.jwks_url.clone(), jwt.secret.clone());
    Ok(config.auth.jwt.as_ref().map(made).transpose()?.map(Arc::new))
}

/// Fetches the keys before the first caller needs them. What is wrong is in the log then, and tried again later.
async fn warm_up(provider: Arc<Provider>) {
    if provider.warm_up().await.is_ok() {
        tracing::debug!(issuer = provider.issuer(), "the keys of the OpenID provider are known");
    }
}
