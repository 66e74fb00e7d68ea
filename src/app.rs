//! The composition root: a checked config becomes a bound server, which runs until told to leave.

pub mod banner;
pub mod discovery;
pub mod lab;
mod settings;

use std::{net::SocketAddr, sync::Arc};

use axum::Router;
use rmcp::ServerHandler;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use settings::{SettingsError, unsupported};

use crate::{
    auth::Authenticator,
    config::{Config, ConfigError, Env, Secret, ServerConfig},
    http::{Drain, Edge, metrics_router, router, serve},
    jupyter::Servers,
    mcp::{Catalogue, Endpoint, GatewayHandler},
    pool::Pool,
    telemetry::Metrics,
};

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("a path rule is not a glob: {0}")]
    Glob(#[from] globset::Error),
    #[error("an HTTP client cannot be made: {0}")]
    Client(#[from] reqwest::Error),
    #[error("{address} cannot be listened on: {why}; choose another address with --listen")]
    Bind { address: SocketAddr, why: std::io::Error },
}

/// A gateway that is bound to its addresses and ready to run.
pub struct App {
    listener: TcpListener,
    router: Router,
    metrics: Option<(TcpListener, Router)>,
    drain: Drain,
    background: TaskTracker,
}

impl App {
    /// Builds the gateway and binds it.
    pub async fn bind(config: &Config, env: &Env, metrics: Metrics) -> Result<Self, AppError> {
        let pool = Arc::new(Pool::new(settings::pool(config)));
        let handler = GatewayHandler::new(
            Arc::new(Catalogue::new()),
            Arc::clone(&pool),
            settings::images(config),
            metrics.clone(),
        );
        let app = Self::bind_with(config, env, metrics, move || handler.clone()).await?;
        let stop = app.drain.stop_token().clone();
        app.background.spawn(async move { pool.sweep(stop).await });
        Ok(app)
    }

    /// The same with another MCP handler on the same stack, as the conformance suite needs.
    pub async fn bind_with<H: ServerHandler>(
        config: &Config,
        env: &Env,
        metrics: Metrics,
        factory: impl Fn() -> H + Clone + Send + Sync + 'static,
    ) -> Result<Self, AppError> {
        unsupported(config)?;
        install_tls();
        let drain = Drain::new(config.http.drain_timeout);
        let servers = Arc::new(Servers::new(&with_tokens(config, env)?, &metrics)?);
        let authenticator = Authenticator::new(config)?;
        let endpoint = Endpoint::new(settings::endpoint(config), factory, metrics.clone(), drain.stop_token());
        let endpoint = Arc::new(endpoint);
        let background = TaskTracker::new();
        background.spawn(sweep(Arc::clone(&endpoint), drain.stop_token().clone()));
        let edge = Edge::new(
            settings::edge(config),
            authenticator,
            servers,
            endpoint,
            metrics.clone(),
            drain.clone(),
        );
        let metrics = match config.http.metrics_listen {
            Some(address) => Some((listen(address).await?, metrics_router(metrics))),
            None => None,
        };
        let listener = listen(config.http.listen).await?;
        Ok(Self {
            listener,
            router: router(Arc::new(edge)),
            metrics,
            drain,
            background,
        })
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The handle by which the gateway is told to leave.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// The whole service, for tests that put something in front of it.
    pub fn map_router(mut self, change: impl FnOnce(Router) -> Router) -> Self {
        self.router = change(self.router);
        self
    }

    /// Serves until told to leave and drained.
    pub async fn run(self) {
        if let Some((listener, router)) = self.metrics {
            self.background.spawn(serve(listener, router, self.drain.clone()));
        }
        serve(self.listener, self.router, self.drain).await;
        self.background.close();
        self.background.wait().await;
    }
}

async fn sweep<H: ServerHandler>(endpoint: Arc<Endpoint<H>>, stop: CancellationToken) {
    endpoint.sweep(stop).await;
}

fn with_tokens(config: &Config, env: &Env) -> Result<Vec<(ServerConfig, Secret)>, ConfigError> {
    let resolve = |server: &ServerConfig| Ok((server.clone(), server.resolve_token(env)?));
    config.servers.iter().map(resolve).collect()
}

async fn listen(address: SocketAddr) -> Result<TcpListener, AppError> {
    TcpListener::bind(address)
        .await
        .map_err(|why| AppError::Bind { address, why })
}

/// One TLS provider for the whole process; installing it again changes nothing.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
