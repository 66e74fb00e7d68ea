//! The token of a gateway that somebody runs for themselves. It is kept in the user's folder, so that clients are
//! configured once.

use std::{fs, io, path::PathBuf};

use jupyter_client::Secret;

use super::{
    lab,
    private_files::{private_dir, replace, write_new},
};
use crate::config::token::new_token;

/// Length below which a token was not written by a gateway; nor was one with other characters than `new_token` uses.
const SHORTEST: usize = 16;

/// The token of earlier starts, or a new one that later starts will find. Where it cannot be kept it is for this run.
pub fn local_token(renew: bool) -> Secret {
    let kept = token_file().and_then(|file| keep(&file, renew));
    kept.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot keep the token for later starts; set JMG_CACHE_DIR to a writable folder");
        Secret::new(new_token())
    })
}

fn token_file() -> io::Result<PathBuf> {
    let dir = lab::state_dir().ok_or_else(|| io::Error::other("there is no home directory"))?;
    private_dir(&dir)?;
    Ok(dir.join("token"))
}

fn keep(file: &PathBuf, renew: bool) -> io::Result<Secret> {
    let fresh = new_token();
    let line = format!("{fresh}\n");
    if renew {
        replace(file, &line)?;
        return Ok(Secret::new(fresh));
    }
    if write_new(file, &line)? {
        return Ok(Secret::new(fresh));
    }
    super::private_files::private_file(file)?;
    let text = fs::read_to_string(file)?;
    let token = text.trim();
    let is_sound = token.len() >= SHORTEST && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_sound {
        tracing::warn!(file = %file.display(), "the file holds no valid token; making a new one");
        replace(file, &line)?;
        return Ok(Secret::new(fresh));
    }
    Ok(Secret::new(token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_until_it_is_renewed() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("token");
        let token = |renew| keep(&file, renew).expect("a token").expose().to_owned();
        let first = token(false);
        assert_eq!(token(false), first);
        let second = token(true);
        assert_ne!(first, second);
        assert_eq!(token(false), second);
        for nonsense in ["", "short", "with a space in it, so it is none"] {
            fs::write(&file, nonsense).expect("written");
            let made = token(false);
            assert!(made.len() > SHORTEST && made != nonsense);
            assert_eq!(token(false), made);
        }
    }
}
