//! `serve`: start-up as a list. Config, telemetry, addresses, servers, token, build, say so, run, drain.

use std::{
    io::{IsTerminal, stdin},
    net::SocketAddr,
    path::PathBuf,
    time::Duration,
};

use clap::{Args, ValueEnum};
use jupyter_client::Secret;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{CommandError, failed, load_config, require_supported};
use crate::{
    app::{
        App, Listeners, Reload,
        banner::Banner,
        discovery,
        lab::{Lab, LabOptions, Venv, VenvSpec},
        local_token,
    },
    config::{
        Config, ConfigError, Env, ServerConfig, TenantConfig, TokenConfig, base_url, environment, validate_exposure,
        warnings,
    },
    http::Drain,
    telemetry,
};

/// Name of the one tenant and the one identity without a config.
const DEFAULT_TENANT: &str = "default";
const DEFAULT_IDENTITY: &str = "agent";
/// Number of concurrent executions for somebody who has the gateway for themselves.
const LOCAL_EXECUTIONS: usize = 64;
/// Requests per minute and at once, likewise: only a client that runs wild makes more.
const LOCAL_REQUESTS: u32 = 100_000;
/// Time that the JupyterLab of `--with-jupyter` may take to shut its kernels down.
const LAB_GRACE: Duration = Duration::from_secs(5);
/// Time for what is left when everything has ended: a thread that looks up a name which nobody answers would be waited for.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(super) struct Arguments {
    /// Settings; without it the servers found on this machine are served on loopback
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the MCP endpoint
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Also start a JupyterLab on this folder, in a private Python environment
    #[arg(long, value_name = "DIR")]
    with_jupyter: Option<PathBuf>,
    /// Close an open document that nobody used for so long
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=525_600))]
    session_timeout: Option<u64>,
    /// Make another token than that of earlier starts, where the config has none
    #[arg(long)]
    new_token: bool,
    /// Show what is traced and measured, readably, on stderr
    #[arg(long, value_name = "WHERE")]
    telemetry: Option<TelemetryOutput>,
}

/// Place where telemetry is shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TelemetryOutput {
    Console,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), CommandError> {
    let env = environment()?;
    let (loaded, mut config) = load(arguments, &env)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    let entered = runtime.enter();
    let console = arguments.telemetry == Some(TelemetryOutput::Console);
    let (metrics, flush) = telemetry::init(&config.telemetry, &env, console).map_err(|error| failed(&error))?;
    // From now on, since making an environment for JupyterLab can take minutes.
    let hangup = signal(SignalKind::hangup()).map_err(|error| failed(&error))?;
    // Before anything is started that would have to be stopped again.
    let listeners = Listeners::bind(&config)?;
    let lab = arguments.with_jupyter.as_ref().map(start_lab).transpose()?;
    add_servers(&mut config, lab.as_ref(), &env)?;
    let token = add_token(&mut config, arguments.new_token)?;
    let served = runtime.block_on(async {
        let app = App::build(&config, &env, metrics, listeners).await?;
        let address = app.address().map_err(|error| failed(&error))?;
        let names: Vec<&str> = config.servers.iter().map(|server| server.name.as_str()).collect();
        tracing::info!(%address, servers = names.join(","), "listening");
        for warning in warnings(&config) {
            tracing::warn!("{warning}");
        }
        print!("{}", Banner::new(&config, address, token.as_ref(), lab.as_ref()));
        let drain = app.drain();
        let file = arguments.config.clone();
        let reload = file.map(|file| Reload::new(file, env.clone(), loaded, config.clone(), app.running_parts()));
        tokio::select! {
            () = app.run() => {}
            _ = async { tokio::join!(leave_on_signal(drain.clone()), on_hangups(hangup, reload, drain)) } => {}
        }
        tracing::info!("drained");
        Ok::<_, CommandError>(())
    });
    if let Some(lab) = lab {
        lab.stop(LAB_GRACE);
    }
    drop(flush);
    drop(entered);
    runtime.shutdown_timeout(LEFTOVERS_TIMEOUT);
    served
}

/// The config as it was written, and with what the arguments say.
fn load(arguments: &Arguments, env: &Env) -> Result<(Config, Config), CommandError> {
    let loaded = load_config(arguments.config.as_deref(), env)?;
    let mut config = loaded.clone();
    if let Some(listen) = arguments.listen {
        config.http.listen = listen;
        validate_exposure(&config).map_err(|problem| ConfigError::from(problem.with_origin("--listen")))?;
    }
    if let Some(minutes) = arguments.session_timeout {
        config.sessions.idle_timeout = Duration::from_secs(minutes * 60);
    }
    // Said first of all: a JupyterLab that was started for nothing would be a surprise.
    require_supported(&config, env, arguments.config.as_deref())?;
    Ok((loaded, config))
}

fn start_lab(root: &PathBuf) -> Result<Lab, CommandError> {
    let mut progress = |line: &str| println!("{line}");
    let venv = Venv::ensure(&VenvSpec::lab(), &mut progress).map_err(|error| failed(&error))?;
    progress("Starting JupyterLab ...");
    Lab::start(&venv, LabOptions::new(root)).map_err(|error| failed(&error))
}

/// The servers of the config, else of the environment, else those found running. The JupyterLab that
/// was asked for comes first, and then nothing is looked for.
fn add_servers(config: &mut Config, lab: Option<&Lab>, env: &Env) -> Result<(), CommandError> {
    if config.servers.is_empty() {
        config.servers.extend(server_from_env(env)?);
    }
    match lab {
        Some(lab) => config
            .servers
            .insert(0, server(&unused_name("local", config), lab.url(), lab.token())?),
        // Whoever logs in with a Hub brings their own.
        None if config.servers.is_empty() && config.auth.jupyterhub.is_none() => {
            for found in discovery::running_servers() {
                config
                    .servers
                    .push(server(&found.name, &found.url, found.token.expose())?);
            }
        }
        None => {}
    }
    if config.servers.is_empty() && config.auth.jupyterhub.is_none() {
        let hint = "no Jupyter server: none is configured and none was found running on this machine; \
                    start one, set JUPYTERLAB_URL, or use --with-jupyter DIR";
        return Err(CommandError::BadConfig(hint.to_owned()));
    }
    Ok(())
}

fn server_from_env(env: &Env) -> Result<Option<ServerConfig>, CommandError> {
    let Some(url) = env.get("JUPYTERLAB_URL").filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let token = env.get("JUPYTERLAB_TOKEN").map(String::as_str).unwrap_or_default();
    match server("default", url, token) {
        Err(CommandError::BadConfig(why)) => Err(CommandError::BadConfig(format!("JUPYTERLAB_URL: {why}"))),
        server => server.map(Some),
    }
}

fn server(name: &str, url: &str, token: &str) -> Result<ServerConfig, CommandError> {
    let url = base_url(url).map_err(|why| CommandError::BadConfig(format!("the URL of server {name}: {why}")))?;
    let token = Some(Secret::new(token.to_owned()));
    Ok(ServerConfig {
        name: name.to_owned(),
        url,
        token,
        ..ServerConfig::default()
    })
}

fn unused_name(wanted: &str, config: &Config) -> String {
    let taken = |name: &str| config.servers.iter().any(|server| server.name == name);
    let mut name = wanted.to_owned();
    for number in 2.. {
        if !taken(&name) {
            break;
        }
        name = format!("{wanted}-{number}");
    }
    name
}

/// Adds one token, the same at every start, if there is no other way to log in.
fn add_token(config: &mut Config, renew: bool) -> Result<Option<Secret>, CommandError> {
    if config.auth.is_configured() {
        return match renew {
            false => Ok(None),
            true => Err(CommandError::BadConfig(
                "--new-token: the config says who may log in; make a token for it with `jupyter-mcp-gateway token new`"
                    .to_owned(),
            )),
        };
    }
    let token = local_token(renew);
    if config.tenants.is_empty() {
        config.tenants.push(TenantConfig {
            name: DEFAULT_TENANT.to_owned(),
            // Whoever starts it so shares it with nobody; the limits are for a team.
            max_concurrent_executions: LOCAL_EXECUTIONS,
            requests_per_minute: LOCAL_REQUESTS,
            burst: LOCAL_REQUESTS,
            ..TenantConfig::default()
        });
    }
    config.auth.tokens.push(TokenConfig {
        name: DEFAULT_IDENTITY.to_owned(),
        tenant: config.tenants[0].name.clone(),
        token: Some(token.clone()),
        permissions: crate::types::Permission::ALL.into(),
        ..TokenConfig::default()
    });
    Ok(Some(token))
}

/// Reads the config again whenever it is asked to. A terminal that is closed says the same, and then nobody is there any
/// more who could stop the gateway.
async fn on_hangups(mut hangup: Signal, mut reload: Option<Reload>, drain: Drain) {
    let had_terminal = stdin().is_terminal();
    while hangup.recv().await.is_some() {
        if had_terminal && !stdin().is_terminal() {
            tracing::info!("the terminal was closed; draining");
            drain.start();
            continue;
        }
        match reload.as_mut().map(Reload::read_again) {
            None => tracing::warn!("SIGHUP: there is no config file to reload; restart to change settings"),
            Some(Ok(stale)) => {
                tracing::info!("SIGHUP: reloaded tokens and tenants");
                if !stale.is_empty() {
                    let keys = stale.join(", ");
                    tracing::warn!("SIGHUP: needs a restart: {keys}; the files that they name have changed");
                }
            }
            Some(Err(error)) => tracing::error!(%error, "SIGHUP: cannot apply the new config; keeping the old one"),
        }
    }
    std::future::pending::<()>().await;
}

/// The first signal starts to leave; a second one means now.
async fn leave_on_signal(drain: Drain) {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("cannot catch signals; the gateway will not drain when it is stopped");
        return std::future::pending().await;
    };
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => {},
            _ = interrupt.recv() => {},
        }
    };
    next().await;
    tracing::info!("draining");
    drain.start();
    next().await;
    tracing::warn!("leaving without waiting");
    drain.stop_token().cancel();
    std::future::pending::<()>().await;
}
