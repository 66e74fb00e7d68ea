//! From the operator's config to what each layer is built with.

use crate::{
    config::Config,
    events::EventLimits,
    http::{EdgeConfig, OriginPolicy},
    mcp::{EndpointConfig, SessionLimits},
    pool::PoolLimits,
    tools::ImageLimits,
};

/// A setting that is valid but that this version cannot honour. Starting anyway would be a silent
/// fallback to something the operator did not ask for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "events.url: a shared event store is not supported by this version; leave it empty to keep events in memory"
    )]
    SharedEvents,
}

/// Refuses what must not be ignored, and warns of what is without effect.
pub fn unsupported(config: &Config) -> Result<(), SettingsError> {
    if config.events.url.is_some() {
        return Err(SettingsError::SharedEvents);
    }
    let auth = &config.auth;
    for (configured, key) in [
        (auth.jwt.is_some(), "auth.jwt"),
        (auth.jupyterhub.is_some(), "auth.jupyterhub"),
        (auth.jupyter.enabled, "auth.jupyter"),
    ] {
        if configured {
            tracing::warn!(
                key,
                "this version knows only [[auth.tokens]]; other credentials are refused"
            );
        }
    }
    Ok(())
}

pub(super) fn endpoint(config: &Config) -> EndpointConfig {
    EndpointConfig {
        max_body_bytes: config.http.max_body_bytes,
        max_json_depth: config.http.max_json_depth,
        sessions: SessionLimits {
            per_principal: config.mcp.max_sessions_per_principal,
            total: config.mcp.max_sessions,
            idle_timeout: config.mcp.session_idle_timeout,
        },
        events: EventLimits {
            max_events_per_stream: config.events.max_events_per_stream,
            max_bytes: config.events.max_bytes,
            ttl: config.events.ttl,
        },
    }
}

pub(super) fn pool(config: &Config) -> PoolLimits {
    PoolLimits {
        idle_timeout: config.sessions.idle_timeout,
        max_open_rooms: config.sessions.max_open_rooms,
    }
}

pub(super) fn images(config: &Config) -> ImageLimits {
    let images = &config.images;
    ImageLimits {
        enabled: images.enabled,
        max_width: images.max_width,
        max_height: images.max_height,
        max_bytes: images.max_bytes,
    }
}

pub(super) fn edge(config: &Config) -> EdgeConfig {
    let http = &config.http;
    EdgeConfig {
        public_url: http.public_url.clone(),
        origins: OriginPolicy::new(http.public_url.as_ref(), &http.allowed_hosts, &http.allowed_origins),
        max_body_bytes: http.max_body_bytes,
        max_header_bytes: http.max_header_bytes,
        serve_metrics: http.metrics_listen.is_none(),
    }
}
