//! The composition root: a checked config becomes a bound server, which runs until told to leave.

pub mod banner;
mod browser_login;
pub mod discovery;
mod identity;
pub mod lab;
mod local_token;
mod private_files;
mod reload;
mod revocations;
mod settings;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use axum::Router;
use executor::Engine;
use jupyter_client::{RequestObserver, ServerOptions, Servers};
use live_document::pool::{Pool, PoolEvent};
use rmcp::ServerHandler;
use store::{RevokedToken, Store, StoreError};
use tokio::{
    net::TcpListener,
    sync::{broadcast, watch},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use self::browser_login::LoginServices;
pub use local_token::local_token;
pub use reload::{Reload, ReloadError, RunningParts};
pub use settings::{SettingsError, place_store, unsupported};

use crate::{
    activity::{self, ActivityLog},
    approvals::WaitingCalls,
    audit::{AuditFile, AuditSink, AuditTrail},
    auth::{ApprovalError, Authenticator, oauth::SetupError},
    config::{Config, ConfigError, Env, ServerConfig},
    console::Console,
    forks::Forks,
    history::History,
    http::{Access, ConnectionTable, Drain, Edge, Timeouts, Tls, TlsError, metrics_router, router, serve},
    limits::{Counts, Limits},
    mcp::{Answerer, Catalogue, Endpoint, GatewayHandler},
    telemetry::{Metrics, StoreState},
    tools::{Scaling, Services},
};

/// Longest time that documents and executions may take to end once they are given up.
const GIVE_UP_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("a rule of a tenant or token is not valid: {0}")]
    Rules(#[from] ApprovalError),
    #[error("cannot create an HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    BrowserLogin(#[from] SetupError),
    #[error(
        "{address} is in use by another program, perhaps another gateway: stop that one, or choose another address with \
         --listen HOST:PORT (for `make run`: JMG__HTTP__LISTEN=HOST:PORT make run)"
    )]
    InUse { address: SocketAddr },
    #[error("audit.file: {} cannot be appended to: {why}; name a file in a folder that the gateway may write to", path.display())]
    AuditFile { path: PathBuf, why: std::io::Error },
    #[error("cannot listen on {address}: {why}; choose another address with --listen HOST:PORT")]
    Bind { address: SocketAddr, why: std::io::Error },
}

impl From<globset::Error> for AppError {
    fn from(error: globset::Error) -> Self {
        Self::Rules(error.into())
    }
}

/// The addresses of a gateway, taken before anything else is started.
pub struct Listeners {
    main: std::net::TcpListener,
    metrics: Option<std::net::TcpListener>,
}

impl Listeners {
    /// Takes the addresses of a config.
    pub fn bind(config: &Config) -> Result<Self, AppError> {
        Ok(Self {
            main: listen(config.http.listen)?,
            metrics: config.http.metrics_listen.map(listen).transpose()?,
        })
    }
}

/// A gateway that is bound to its addresses and ready to run.
pub struct App {
    listener: TcpListener,
    router: Router,
    metrics: Option<(TcpListener, Router)>,
    connections: Arc<ConnectionTable>,
    authenticator: Arc<Authenticator>,
    limits: Arc<Limits>,
    tls: Option<Arc<Tls>>,
    drain: Drain,
    background: TaskTracker,
    store: Store,
    audit: Audit,
    servers: Arc<Servers>,
    history: Option<Arc<History>>,
    activity: Option<Arc<ActivityLog>>,
    /// Cancelled when documents must be closed, saved or not.
    overdue: CancellationToken,
}

impl App {
    /// Binds the gateway and builds it.
    pub async fn bind(config: &Config, env: &Env, metrics: Metrics) -> Result<Self, AppError> {
        Self::build(config, env, metrics, Listeners::bind(config)?).await
    }

    /// Builds the gateway on addresses that are taken.
    pub async fn build(config: &Config, env: &Env, metrics: Metrics, listeners: Listeners) -> Result<Self, AppError> {
        install_tls();
        let store = open_store(config).await?;
        let audit = Audit::open(config, &store)?;
        let revoked = store.revoked_tokens().await?;
        let history = settings::history(config, &store, &metrics);
        let pool = Arc::new(settings::pool(config, history.as_ref()));
        let measured = Arc::new(metrics.clone());
        let engine = Engine::observed(settings::engine(config), Arc::clone(&pool), store.clone(), measured);
        let engine = Arc::new(engine);
        watch_work(&metrics, &pool, &engine);
        let drain = Drain::new(config.http.drain_timeout);
        let servers = Arc::new(Servers::new(&server_options(config, env)?, &observer(&metrics))?);
        let background = TaskTracker::new();
        let limits = Limits::new(&config.all_tenants(), metrics.clone());
        let counting = (Arc::clone(&pool), Arc::clone(&engine));
        limits.watch(move |tenant| Counts {
            rooms: counting.0.count_of(tenant),
            executions: counting.1.running_of(tenant),
        });
        let activity = Arc::new(ActivityLog::new(settings::agents(config), store.clone()));
        let services = Services {
            servers: Arc::clone(&servers),
            pool: Arc::clone(&pool),
            engine: Arc::clone(&engine),
            forks: Forks::new(&pool, store.clone(), background.clone()),
            history: history.clone(),
            images: settings::images(config),
            answers: settings::answers(config),
            scaling: Arc::new(Scaling::within(Arc::clone(&limits))),
            connections: Arc::default(),
            activity: Arc::clone(&activity),
            audit: Arc::clone(&audit.sink),
            waiting: Arc::new(WaitingCalls::new(settings::page(config))),
            last_call: drain.last_call_token().clone(),
            background: background.clone(),
        };
        let for_people = config.console.enabled.then(|| services.clone());
        let leaving = drain.leaving_token().clone();
        let handler = GatewayHandler::new(
            Arc::new(Catalogue::new(config.mcp.route_headers)),
            services,
            metrics.clone(),
            leaving,
        );
        let handler = Arc::new(handler);
        let answerer: Arc<dyn Answerer> = Arc::<GatewayHandler>::clone(&handler);
        let factory = move || handler.fresh();
        let parts = Parts {
            listeners,
            servers,
            metrics,
            store,
            audit,
            revoked,
            drain,
            background,
            history: history.clone(),
            limits,
            for_people,
        };
        let mut app = Self::assemble(config, env, parts, factory, Some(answerer))?;
        app.activity = Some(Arc::clone(&activity));
        let following = activity::follow(activity, &pool, history.as_deref(), app.drain.stop_token().clone());
        app.background.spawn(following);
        let rooms = CancellationToken::new();
        let rooms_close = rooms.clone();
        let (stop, servers) = (app.drain.stop_token().clone(), Arc::clone(&app.servers));
        let has_users = config.auth.jupyterhub.is_some();
        let (overdue, rooms_overdue) = (app.overdue.clone(), app.overdue.clone());
        app.background.spawn(async move {
            let work = async {
                tokio::join!(engine.recover(&servers, has_users), engine.follow_renames(&servers));
            };
            stop.run_until_cancelled(work).await;
            stop.cancelled().await;
            if overdue.run_until_cancelled(engine.stop()).await.is_none() {
                tracing::warn!("executions did not end before the drain deadline");
            }
            // The rooms stay open until what the workers still have to write is in them.
            rooms.cancel();
            servers.close_links().await;
        });
        if let Some(history) = history {
            let following = follow_renames(history, pool.events());
            app.background
                .spawn(rooms_close.clone().run_until_cancelled_owned(following));
        }
        app.background
            .spawn(async move { pool.sweep(rooms_close, rooms_overdue).await });
        Ok(app)
    }

    /// Binds a gateway with another MCP handler on the same stack, as the conformance suite needs.
    pub async fn bind_with<H: ServerHandler>(
        config: &Config,
        env: &Env,
        metrics: Metrics,
        factory: impl Fn() -> H + Clone + Send + Sync + 'static,
    ) -> Result<Self, AppError> {
        let store = open_store(config).await?;
        let drain = Drain::new(config.http.drain_timeout);
        install_tls();
        let servers = Arc::new(Servers::new(&server_options(config, env)?, &observer(&metrics))?);
        let limits = Limits::new(&config.all_tenants(), metrics.clone());
        let parts = Parts {
            listeners: Listeners::bind(config)?,
            servers,
            metrics,
            audit: Audit::open(config, &store)?,
            revoked: Vec::new(),
            store,
            drain,
            background: TaskTracker::new(),
            history: None,
            limits,
            for_people: None,
        };
        Self::assemble(config, env, parts, factory, None)
    }

    fn assemble<H: ServerHandler>(
        config: &Config,
        env: &Env,
        parts: Parts,
        factory: impl Fn() -> H + Clone + Send + Sync + 'static,
        answerer: Option<Arc<dyn Answerer>>,
    ) -> Result<Self, AppError> {
        let Parts {
            listeners,
            servers,
            metrics,
            store,
            audit,
            revoked,
            drain,
            background,
            history,
            limits,
            for_people,
        } = parts;
        let tls = settings::tls(config)?;
        if let Some(tls) = &tls {
            background.spawn(Arc::clone(tls).watch(drain.stop_token().clone()));
        }
        background.spawn(Limits::sweep_regularly(
            Arc::downgrade(&limits),
            drain.stop_token().clone(),
        ));
        let provider = identity::provider(config)?;
        let (authenticator, hub) = identity::authenticator(
            config,
            provider.clone(),
            &servers,
            &metrics,
            &background,
            drain.stop_token(),
        )?;
        let services = LoginServices { provider, hub };
        let (authenticator, oauth) = browser_login::with_logins(config, env, services, &store, authenticator)?;
        let authenticator = Arc::new(authenticator);
        let endpoint = Endpoint::new(
            settings::endpoint(config),
            factory,
            answerer,
            metrics.clone(),
            drain.stop_token(),
        );
        let endpoint = Arc::new(endpoint);
        background.spawn(compact(store.clone(), drain.stop_token().clone()));
        metrics.know_servers(config.servers.iter().map(|server| server.name.as_str()));
        watch_store(&metrics, &store, audit.file.clone(), history.as_ref(), &drain);
        let replaced = authenticator.replacements();
        background.spawn(Arc::clone(&authenticator).watch_expiry(drain.stop_token().clone()));
        authenticator.revoke(&revocations::digests(&revoked));
        let revoking = revocations::follow(store.clone(), Arc::clone(&authenticator), revoked);
        background.spawn(drain.stop_token().clone().run_until_cancelled_owned(revoking));
        background.spawn(sweep(Arc::clone(&endpoint), replaced, drain.stop_token().clone()));
        let console = for_people.map(|services| {
            let idle_timeout = config.console.session_idle_timeout;
            let (authenticator, limits) = (Arc::clone(&authenticator), Arc::clone(&limits));
            let console = Console::new(services, authenticator, limits, store.clone(), idle_timeout);
            let console = console.with_logins(oauth.clone());
            Arc::new(console)
        });
        let edge = Edge::new(
            settings::edge(config),
            Access {
                authenticator: Arc::clone(&authenticator),
                limits: Arc::clone(&limits),
                audit: Arc::clone(&audit.sink),
                oauth,
            },
            Arc::clone(&servers),
            endpoint,
            store.clone(),
            metrics.clone(),
            drain.clone(),
        )
        .with_console(console);
        let connections = Arc::new(ConnectionTable::new(settings::connections(config), metrics.clone()));
        let metrics = match listeners.metrics {
            Some(listener) => {
                let router = metrics_router(metrics, settings::edge(config).origins);
                Some((accepting(listener)?, router))
            }
            None => None,
        };
        Ok(Self {
            listener: accepting(listeners.main)?,
            router: router(Arc::new(edge)),
            metrics,
            connections,
            authenticator,
            limits,
            tls,
            drain,
            background,
            store,
            audit,
            servers,
            history,
            activity: None,
            overdue: CancellationToken::new(),
        })
    }

    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address of the metrics, if they have one of their own.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        let (listener, _) = self.metrics.as_ref()?;
        listener.local_addr().ok()
    }

    /// The handle by which the gateway is told to leave.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// The parts that can change, for whoever reads the config again.
    pub fn running_parts(&self) -> RunningParts {
        RunningParts {
            authenticator: Arc::clone(&self.authenticator),
            limits: Arc::clone(&self.limits),
            servers: Arc::clone(&self.servers),
            tls: self.tls.clone(),
            activity: self.activity.clone(),
        }
    }

    /// The whole service, for tests that put something in front of it.
    pub fn map_router(mut self, change: impl FnOnce(Router) -> Router) -> Self {
        self.router = change(self.router);
        self
    }

    /// Sets other timeouts of clients, for tests that cannot wait so long.
    pub fn with_timeouts(mut self, timeouts: Timeouts) -> Self {
        self.connections = Arc::new(self.connections.with_timeouts(timeouts));
        self
    }

    /// Serves until told to leave and drained.
    pub async fn run(self) {
        let connections = self.connections;
        if let Some((listener, router)) = self.metrics {
            let metrics = serve(listener, None, router, Arc::clone(&connections), self.drain.clone());
            self.background.spawn(metrics);
        }
        serve(self.listener, self.tls, self.router, connections, self.drain.clone()).await;
        self.background.close();
        let given_up = async {
            self.drain.wait_until_overdue().await;
            self.overdue.cancel();
            tokio::time::sleep(GIVE_UP_TIMEOUT).await;
        };
        tokio::select! {
            () = self.background.wait() => {}
            () = given_up => {
                tracing::error!(left = self.background.len(), "leaving although something has not ended");
            }
        }
        // The rooms are closed, and everything in them is recorded.
        if let Some(history) = self.history {
            history.close().await;
        }
        // What ends last is recorded last.
        self.audit.close().await;
        self.store.close().await;
    }
}

/// Destination of the records of calls.
struct Audit {
    sink: Arc<dyn AuditSink>,
    trail: Arc<AuditTrail>,
    file: Option<Arc<AuditFile>>,
    tasks: TaskTracker,
    /// Ends them, also if the gateway cannot be built.
    stop: DropGuard,
}

impl Audit {
    fn open(config: &Config, store: &Store) -> Result<Self, AppError> {
        let open = |path: &PathBuf| {
            let opened = AuditFile::open(path).map(Arc::new);
            opened.map_err(|why| AppError::AuditFile {
                path: path.clone(),
                why,
            })
        };
        let file = config.audit.file.as_ref().map(open).transpose()?;
        let trail = AuditTrail::new(store.clone(), file.clone(), config.audit.required);
        let trail = Arc::new(trail);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let (counted, counting) = (Arc::clone(&trail), stop.clone());
        tasks.spawn(async move { counting.run_until_cancelled(counted.count_regularly()).await });
        if let Some(file) = file.clone() {
            let stop = stop.clone();
            tasks.spawn(async move { stop.run_until_cancelled(file.write()).await });
        }
        Ok(Self {
            sink: Arc::<AuditTrail>::clone(&trail),
            trail,
            file,
            tasks,
            stop: stop.drop_guard(),
        })
    }

    /// Returns when everything is written, unless the disk does not take it.
    async fn close(self) {
        self.trail.close().await;
        drop(self.stop);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Parts that every gateway is put together from.
struct Parts {
    listeners: Listeners,
    servers: Arc<Servers>,
    metrics: Metrics,
    store: Store,
    audit: Audit,
    /// Tokens that were revoked before.
    revoked: Vec<RevokedToken>,
    drain: Drain,
    background: TaskTracker,
    history: Option<Arc<History>>,
    limits: Arc<Limits>,
    /// Services of the page for people, if there is one.
    for_people: Option<Services>,
}

/// Tells the history of files and directories that have other names, open or not.
async fn follow_renames(history: Arc<History>, mut events: broadcast::Receiver<PoolEvent>) {
    loop {
        match events.recv().await {
            Ok(PoolEvent::Renamed(renamed)) => {
                history.note_rename(&renamed.server, renamed.from.as_str(), renamed.to.as_str());
            }
            // A file whose rename was missed is found by its id when it is opened.
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

async fn open_store(config: &Config) -> Result<Store, AppError> {
    unsupported(config)?;
    let limits = settings::store(config);
    Ok(Box::pin(Store::open(config.store.url.expose(), limits)).await?)
}

async fn sweep<H: ServerHandler>(endpoint: Arc<Endpoint<H>>, replaced: watch::Receiver<()>, stop: CancellationToken) {
    endpoint.sweep(replaced, stop).await;
}

async fn compact(store: Store, stop: CancellationToken) {
    store.compact_regularly(stop).await;
}

/// Measures what is open and what runs, for as long as it is there.
fn watch_work(metrics: &Metrics, pool: &Arc<Pool>, engine: &Arc<Engine>) {
    let (rooms, executions) = (Arc::downgrade(pool), Arc::downgrade(engine));
    metrics.watch_rooms(pool.max_open_rooms(), move || Some(rooms.upgrade()?.counts()));
    metrics.watch_executions(move || Some(executions.upgrade()?.counts()));
}

fn watch_store(
    metrics: &Metrics,
    store: &Store,
    audit_file: Option<Arc<AuditFile>>,
    history: Option<&Arc<History>>,
    drain: &Drain,
) {
    store.observe(Arc::new(metrics.clone()));
    let (lost, backlog, is_up) = (store.lost_records(), store.backlog(), store.is_writing());
    let history = history.map(Arc::downgrade);
    let versions = move || {
        history
            .as_ref()
            .and_then(Weak::upgrade)
            .map_or(0, |history| history.pending())
    };
    let read = Arc::new(move || StoreState {
        is_up: is_up(),
        backlog: backlog(),
        versions: versions(),
        lost: lost(),
        lost_to_audit_file: audit_file.as_ref().map_or(0, |file| file.lost()),
    });
    let drain = drain.clone();
    metrics.watch_store(move || read(), move || drain.is_draining());
}

fn server_options(config: &Config, env: &Env) -> Result<Vec<ServerOptions>, ConfigError> {
    let resolve = |server: &ServerConfig| server.options(env);
    config.servers.iter().map(resolve).collect()
}

fn observer(metrics: &Metrics) -> Arc<dyn RequestObserver> {
    Arc::new(metrics.clone())
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener, AppError> {
    let listener = std::net::TcpListener::bind(address);
    listener
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|why| match why.kind() {
            std::io::ErrorKind::AddrInUse => AppError::InUse { address },
            _ => AppError::Bind { address, why },
        })
}

fn accepting(listener: std::net::TcpListener) -> Result<TcpListener, AppError> {
    let address = listener.local_addr();
    TcpListener::from_std(listener).map_err(|why| AppError::Bind {
        address: address.unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0))),
        why,
    })
}

/// One TLS provider for the whole process; installing it again changes nothing.
fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
