//! `token new`: a token that is shown once, and the lines that let it in. `token list` and `token revoke`: those of the
//! config, and which of them open nothing any more, also in gateways that run.

use std::{path::PathBuf, time::SystemTime};

use clap::{Args, Subcommand};
use store::{Console, RevokedToken, StoreError};

use super::{CommandError, block_on, checked_config, failed};
use crate::{
    config::{
        Config, TokenConfig,
        token::{hex, new_token, sha256_hex, token_toml},
    },
    types::Permission,
};

#[derive(Subcommand)]
pub(super) enum TokenCommand {
    /// Print a new token once, and the TOML to paste into the config
    New {
        /// The identity that people will see in JupyterLab
        #[arg(long, value_name = "N", value_parser = name)]
        name: String,
    },
    /// List the tokens of the config, and whether they were revoked
    List(ListArguments),
    /// Have a token of the config refused, within 5 s also by gateways that run
    Revoke(RevokeArguments),
}

#[derive(Args)]
pub(super) struct ListArguments {
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct RevokeArguments {
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Its name in the config
    #[arg(long, value_name = "N")]
    name: String,
}

pub(super) fn run(command: &TokenCommand) -> Result<(), CommandError> {
    match command {
        TokenCommand::New { name } => {
            new(name);
            Ok(())
        }
        TokenCommand::List(arguments) => list(arguments),
        TokenCommand::Revoke(arguments) => revoke(arguments),
    }
}

/// Reads a name that an identity can have.
fn name(name: &str) -> Result<String, &'static str> {
    match name.trim().is_empty() {
        true => Err("it must not be empty: people see it in JupyterLab"),
        false => Ok(name.to_owned()),
    }
}

fn new(name: &str) {
    let token = new_token();
    println!("Token (shown only now; give it to the agent):\n\n  {token}\n");
    println!("Paste into the config:\n\n{}", token_toml(name, &sha256_hex(&token)));
}

fn list(arguments: &ListArguments) -> Result<(), CommandError> {
    let config = checked_config(arguments.config.as_deref())?;
    let revoked = with_store(&config, async |store| match store {
        Some(store) => store.revoked_tokens().await,
        // No gateway has run yet, or what it knows goes with it.
        None => Ok(Vec::new()),
    })?;
    for token in &config.auth.tokens {
        println!("{}", line(token, revoked_as(&revoked, token)));
    }
    let is_configured = |revoked: &&RevokedToken| {
        let tokens = &config.auth.tokens;
        tokens
            .iter()
            .any(|token| digest(token).as_ref() == Some(&revoked.digest))
    };
    for gone in revoked.iter().filter(|revoked| !is_configured(revoked)) {
        println!("{:?}  revoked {}  not in the config", gone.name, time(gone.revoked_at));
    }
    Ok(())
}

/// A token as an operator looks for it, with nothing of itself.
fn line(token: &TokenConfig, revoked: Option<&RevokedToken>) -> String {
    let permissions: Vec<&str> = token
        .permissions
        .iter()
        .map(|permission| Permission::as_str(*permission))
        .collect();
    let state = match revoked {
        Some(revoked) => format!("revoked {}", time(revoked.revoked_at)),
        None => "active".to_owned(),
    };
    let (name, tenant) = (&token.name, &token.tenant);
    let (permissions, paths) = (permissions.join(","), token.paths.join(","));
    format!("{name:?}  {state}  tenant={tenant:?}  permissions={permissions}  paths={paths}")
}

fn revoke(arguments: &RevokeArguments) -> Result<(), CommandError> {
    let config = checked_config(arguments.config.as_deref())?;
    let tokens = &config.auth.tokens;
    let found = tokens.iter().find(|token| token.name == arguments.name);
    let Some((token, digest)) = found.and_then(|token| Some((token, digest(token)?))) else {
        let names: Vec<String> = tokens.iter().map(|token| format!("{:?}", token.name)).collect();
        let names = match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        };
        return Err(CommandError::Failed(format!(
            "the config has no token {:?}; it has: {names}",
            arguments.name
        )));
    };
    let revoked = RevokedToken {
        digest,
        name: token.name.clone(),
        revoked_at: SystemTime::now(),
    };
    let is_new = with_store(&config, async |store| match store {
        Some(store) => store.revoke_token(&revoked).await,
        None => Err(StoreError::InMemory),
    });
    let told = match is_new? {
        true => "revoked",
        false => "was revoked before",
    };
    println!(
        "Token {:?} {told}. Gateways that use this store refuse it within 5 s and end what goes on in its name. It stays \
         refused, so remove it from the config at the next occasion; `token new` makes another one.",
        arguments.name
    );
    Ok(())
}

/// Does something in the store, which may be one that no other process sees.
fn with_store<T>(
    config: &Config,
    work: impl AsyncFnOnce(Option<&Console>) -> Result<T, StoreError>,
) -> Result<T, CommandError> {
    let done = block_on(async {
        let console = match Console::open_or_create(config.store.url.expose()).await {
            Ok(console) => Some(console),
            Err(StoreError::InMemory) => None,
            Err(error) => return Err(error),
        };
        let done = work(console.as_ref()).await;
        if let Some(console) = console {
            console.close().await;
        }
        done
    })?;
    done.map_err(|error| failed(&error))
}

fn digest(token: &TokenConfig) -> Option<String> {
    token.digest().map(|digest| hex(&digest))
}

fn revoked_as<'a>(revoked: &'a [RevokedToken], token: &TokenConfig) -> Option<&'a RevokedToken> {
    let digest = digest(token)?;
    revoked.iter().find(|revoked| revoked.digest == digest)
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
