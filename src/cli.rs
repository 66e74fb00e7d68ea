//! The command line: reads arguments, runs a command, and turns how it ended into an exit code.

mod audit;
mod check_config;
mod generated;
mod health;
mod migrate;
mod serve;
mod token;
mod tools;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};

use crate::{
    app::{AppError, place_store, unsupported},
    config::{Config, ConfigError, Env, environment},
    telemetry,
};

/// Exit codes beyond 0 and clap's 2 for wrong usage, after BSD's sysexits.
const BAD_CONFIG: u8 = 64;
const FAILED: u8 = 70;

#[derive(Parser)]
#[command(
    name = "jupyter-mcp-gateway",
    version,
    about = "One MCP endpoint for many agents, live in many Jupyter servers"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway
    Serve(serve::Arguments),
    /// Check a config file and say what is wrong with it
    CheckConfig {
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Make, list and revoke bearer tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Show the tools that agents can use
    Tools(tools::Arguments),
    /// Ask a running gateway whether it is alive, for container health checks
    Health(health::Arguments),
    /// Show the record of calls: who did what where, and whether it was allowed
    Audit(audit::Arguments),
    /// Bring the database up to date, as `serve` does when it starts
    Migrate {
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    /// Write the manual pages into a folder
    Manual {
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Failure of a command: which exit code it means is decided here and nowhere else.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}")]
    BadConfig(String),
    #[error("{0}")]
    Failed(String),
}

impl From<AppError> for CommandError {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Config(error) => Self::Config(error),
            AppError::Settings(error) => Self::BadConfig(error.to_string()),
            error @ AppError::AuditFile { .. } => Self::BadConfig(error.to_string()),
            AppError::Tls(error) => Self::BadConfig(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl CommandError {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::BadConfig(_) => BAD_CONFIG,
            Self::Failed(_) => FAILED,
        }
    }
}

/// Runs the command that the arguments name.
pub fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::CheckConfig { config } => check_config::run(&config),
        Command::Token(command) => token::run(&command),
        Command::Tools(arguments) => {
            tools::run(&arguments).map_err(|error| CommandError::Failed(format!("cannot print: {error}")))
        }
        Command::Health(arguments) => health::run(&arguments),
        Command::Audit(arguments) => audit::run(&arguments),
        Command::Migrate { config } => migrate::run(config.as_deref()),
        Command::Completions { shell } => generated::completions(Cli::command(), shell),
        Command::Manual { dir } => generated::manual(Cli::command(), &dir),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// The settings of a command that works with or without a config file.
fn load_config(file: Option<&Path>, env: &Env) -> Result<Config, CommandError> {
    let mut config = Config::load(file, env)?;
    if file.is_none() {
        place_store(&mut config);
    }
    Ok(config)
}

/// The settings of a command that works on the store, checked as `serve` checks them.
fn checked_config(file: Option<&Path>) -> Result<Config, CommandError> {
    let env = environment()?;
    let config = load_config(file, &env)?;
    require_supported(&config, &env, file)?;
    Ok(config)
}

/// Does the work of a command that needs no more than one thread.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| failed(&error))?.block_on(work))
}

/// Refuses what this version cannot honour, in the form in which all that is wrong with a config is told.
fn require_supported(config: &Config, env: &Env, file: Option<&Path>) -> Result<(), CommandError> {
    let origin = file.map_or("environment".into(), Path::to_string_lossy);
    let bad = |error: &dyn std::error::Error| CommandError::BadConfig(format!("{origin}: {error}"));
    unsupported(config).map_err(|error| bad(&error))?;
    telemetry::check(&config.telemetry, env).map_err(|error| bad(&error))
}

fn failed(error: &dyn std::error::Error) -> CommandError {
    CommandError::Failed(error.to_string())
}
