//! `token new`: a token that is shown once, and the lines that let it in.

use crate::config::token::{new_token, sha256_hex, token_toml};

/// Reads a name that an identity can have.
pub(super) fn name(name: &str) -> Result<String, &'static str> {
    match name.trim().is_empty() {
        true => Err("it must not be empty: people see it in JupyterLab"),
        false => Ok(name.to_owned()),
    }
}

pub(super) fn new(name: &str) {
    let token = new_token();
    println!("Token (shown only now; give it to the agent):\n\n  {token}\n");
    println!("Paste into the config:\n\n{}", token_toml(name, &sha256_hex(&token)));
}
