//! `token new`: a token that is shown once, and the lines that let it in.

use super::CommandError;
use crate::config::token::{new_token, sha256_hex, token_toml};

pub(super) fn new(name: &str) -> Result<(), CommandError> {
    if name.trim().is_empty() {
        return Err(CommandError::Failed(
            "--name must not be empty: people see it in JupyterLab".to_owned(),
        ));
    }
    let token = new_token();
    println!("Token (shown only now; give it to the agent):\n\n  {token}\n");
    println!("Paste into the config:\n\n{}", token_toml(name, &sha256_hex(&token)));
    Ok(())
}
