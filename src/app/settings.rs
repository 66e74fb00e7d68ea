//! From the operator's config to what each layer is built with.

use std::sync::Arc;

use executor::EngineSettings;
use jupyter_client::Secret;
use live_document::pool::{Pool, PoolLimits};
use store::{HistoryLimits, LogLimits, Store, StoreError, StoreLimits, file_url};

use super::{lab, private_files::private_dir};
use crate::{
    activity::KnownAgent,
    config::{Config, StoreConfig},
    error::nearest,
    events::EventLimits,
    history::History,
    http::{
        Challenges, ConnectionLimits, EdgeConfig, OriginPolicy, Timeouts, Tls, TlsError, TlsFiles, TrustedProxies,
        within_descriptors,
    },
    mcp::{EndpointConfig, SessionLimits},
    telemetry::Metrics,
    tools::{AnswerLimits, ImageLimits, catalogue},
};

/// A setting that is valid but that this version cannot honour. Starting anyway would be a silent
/// fallback to something the operator did not ask for.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error(
        "events.url: a shared event store is not supported by this version; leave it empty to keep events in memory"
    )]
    SharedEvents,
    #[error("store.url: {0}")]
    Store(StoreError),
    #[error(transparent)]
    Tls(TlsError),
    #[error("{key}.tools: {name:?} is not a tool; {advice}")]
    UnknownTool { key: String, name: String, advice: String },
}

/// Refuses what must not be ignored, and warns of what is without effect.
pub fn unsupported(config: &Config) -> Result<(), SettingsError> {
    if config.events.url.is_some() {
        return Err(SettingsError::SharedEvents);
    }
    Store::check_url(config.store.url.expose()).map_err(SettingsError::Store)?;
    if let Some(files) = tls_files(config) {
        files.load().map_err(SettingsError::Tls)?;
    }
    known_tools(config)?;
    Ok(())
}

/// Checks the names of tools in rules, which the config by itself does not know.
fn known_tools(config: &Config) -> Result<(), SettingsError> {
    let tenants = config.tenants.iter().enumerate();
    let rules = tenants.flat_map(|(tenant, config)| {
        let rules = config.approvals.iter().enumerate();
        rules.map(move |(rule, approval)| (format!("tenants[{tenant}].approvals[{rule}]"), approval))
    });
    let mut known = None;
    for (key, approval) in rules.filter(|(_, approval)| !approval.tools.is_empty()) {
        let known = known.get_or_insert_with(|| catalogue().into_iter().map(|tool| tool.name).collect::<Vec<_>>());
        let unknown = approval.tools.iter().find(|name| !known.contains(&name.as_str()));
        if let Some(name) = unknown {
            let advice = match nearest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "`jupyter-mcp-gateway tools --toolsets all` lists them".to_owned(),
            };
            return Err(SettingsError::UnknownTool {
                key,
                name: name.clone(),
                advice,
            });
        }
    }
    Ok(())
}

pub(super) fn store(config: &Config) -> StoreLimits {
    let store = &config.store;
    StoreLimits {
        per_principal: store.max_bytes_per_principal,
        total: store.max_bytes,
        keep: store.keep,
        history: HistoryLimits {
            keep: store.history_keep,
            versions_per_document: store.history_max_versions,
            bytes_per_document: store.history_max_bytes_per_document,
            bytes: store.history_max_bytes,
        },
        activity: LogLimits {
            keep: store.activity_keep,
            records: store.activity_max,
        },
        audit: LogLimits {
            keep: store.audit_keep,
            records: store.audit_max,
        },
        connections: store.max_connections,
    }
}

/// Puts the database into the user's own folder if no config file says where it goes:
/// one wherever the gateway happens to be started would surprise people, and be another one each time.
pub fn place_store(config: &mut Config) {
    if config.store.url != StoreConfig::default().url {
        return;
    }
    // Where there is no such folder, opening the database says what to do.
    if let Some(dir) = lab::state_dir().filter(|dir| private_dir(dir).is_ok()) {
        config.store.url = Secret::new(file_url(&dir.join("gateway.db")));
    }
}

pub(super) fn endpoint(config: &Config) -> EndpointConfig {
    EndpointConfig {
        max_json_depth: config.http.max_json_depth,
        content_only_clients: config.mcp.content_only_clients.clone(),
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

/// The agents of the config, which people can call by their names before they have done anything.
pub(super) fn agents(config: &Config) -> Vec<KnownAgent> {
    let tokens = config.auth.tokens.iter();
    let agent = tokens.map(|token| KnownAgent {
        id: format!("token:{}", token.name).into(),
        name: token.name.clone(),
        tenant: token.tenant.as_str().into(),
    });
    agent.collect()
}

pub(super) fn pool(config: &Config, history: Option<&Arc<History>>) -> Pool {
    let pool = Pool::new(PoolLimits {
        idle_timeout: config.sessions.idle_timeout,
        max_open_rooms: config.sessions.max_open_rooms,
        presence_timeout: config.sessions.presence_timeout,
    });
    match history {
        Some(history) => pool.with_history(Arc::<History>::clone(history)),
        None => pool,
    }
}

/// The history of documents, if it is kept.
pub(super) fn history(config: &Config, store: &Store, metrics: &Metrics) -> Option<Arc<History>> {
    let is_kept = config.store.history;
    is_kept.then(|| History::start(store.clone(), metrics.clone()))
}

pub(super) fn engine(config: &Config) -> EngineSettings {
    EngineSettings {
        default_wait: config.execution.default_wait,
        task_after: config.execution.task_after,
        input_timeout: config.execution.input_timeout,
        max_output_bytes: config.execution.max_output_bytes,
        idle_timeout: config.sessions.idle_timeout,
        shutdown_started_kernels: config.execution.shutdown_started_kernels,
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

pub(super) fn answers(config: &Config) -> AnswerLimits {
    AnswerLimits {
        max_text_bytes: config.answers.max_text_bytes,
        max_images: config.answers.max_images,
    }
}

pub(super) fn connections(config: &Config) -> ConnectionLimits {
    let max = within_descriptors(config.http.max_connections);
    ConnectionLimits {
        max,
        max_per_address: config.http.max_connections_per_address.min(max),
        trusted_proxies: TrustedProxies::new(config.http.trusted_proxies.clone()),
        timeouts: Timeouts::default(),
    }
}

fn tls_files(config: &Config) -> Option<TlsFiles> {
    let (cert, key) = (config.http.tls_cert.clone()?, config.http.tls_key.clone()?);
    Some(TlsFiles { cert, key })
}

/// The certificate, if the gateway ends TLS itself.
pub(super) fn tls(config: &Config) -> Result<Option<Arc<Tls>>, TlsError> {
    let loaded = tls_files(config).map(Tls::new).transpose()?;
    Ok(loaded.map(Arc::new))
}

/// Where people find the page, as far as that is known before the gateway listens; none if there is no page.
pub(super) fn page(config: &Config) -> Option<String> {
    let listen = config.http.listen;
    config.console.enabled.then(|| match &config.http.public_url {
        Some(url) => format!("{}/console", url.as_str().trim_end_matches('/')),
        None if listen.port() != 0 && !listen.ip().is_unspecified() => {
            format!("{}://{listen}/console", config.http.scheme())
        }
        None => "/console of the gateway".to_owned(),
    })
}

pub(super) fn edge(config: &Config) -> EdgeConfig {
    let http = &config.http;
    EdgeConfig {
        origins: OriginPolicy::new(http.public_url.as_ref(), &http.allowed_hosts, &http.allowed_origins),
        max_body_bytes: http.max_body_bytes,
        max_header_bytes: http.max_header_bytes,
        serve_metrics: http.metrics_listen.is_none(),
        trusted_proxies: TrustedProxies::new(http.trusted_proxies.clone()),
        challenges: Challenges {
            authorization_servers: authorization_servers(config),
            public_url: http.public_url.clone(),
            scheme: http.scheme(),
        },
    }
}

/// Issuers of the tokens that are accepted here: the gateway itself where people log in with a browser.
fn authorization_servers(config: &Config) -> Vec<String> {
    let own = config.http.public_url.as_ref().filter(|_| config.auth.oauth.enabled);
    match own {
        Some(url) => vec![url.as_str().trim_end_matches('/').to_owned()],
        None => config.auth.jwt.iter().map(|jwt| jwt.issuer.clone()).collect(),
    }
}
