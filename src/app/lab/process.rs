//! One JupyterLab, from its start to its certain end.
//!
//! It writes Jupyter's ordinary runtime file, so that `jupyter server list`
//! shows it; the gateway's own discovery therefore finds it too.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use jupyter_client::Secret;
use parking_lot::Mutex;
use thiserror::Error;

use super::child::{Answer, Running};
use super::command::Place;
use super::hex;
use super::output::log_sink;
use super::venv::Venv;

const SHOWN_LINES: usize = 20;

#[derive(Clone)]
pub struct LabOptions {
    /// The notebooks' folder, which is made if it does not exist.
    pub root_dir: PathBuf,
    /// `None`, or an empty one, makes a random token.
    pub token: Option<String>,
    /// `None` takes any free port.
    pub port: Option<u16>,
    pub base_url: Option<String>,
    pub log: LabLog,
    /// More arguments for Jupyter. It refuses one that is given twice, so these
    /// cannot repeat what the other options set.
    pub extra_args: Vec<String>,
    pub ready_timeout: Duration,
    /// Directory of Jupyter's databases and settings. `None` is a place beside
    /// the environment: databases for each root, settings for all of them.
    pub state_dir: Option<PathBuf>,
}

impl LabOptions {
    pub fn new(root_dir: impl Into<PathBuf>) -> Self {
        Self {
            root_dir: root_dir.into(),
            token: None,
            port: None,
            base_url: None,
            log: LabLog::Tracing,
            extra_args: Vec::new(),
            ready_timeout: Duration::from_secs(60),
            state_dir: None,
        }
    }
}

#[derive(Clone, Debug)]
pub enum LabLog {
    /// Each line is a debug event of the target `jupyter`.
    Tracing,
    /// Appended to this file.
    File(PathBuf),
}

#[derive(Debug, Error)]
pub enum LabError {
    #[error("cannot use {path}: {source}. Make it writable or choose another place")]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot run {python}: {source}. Delete {venv} to have it made anew")]
    Spawn {
        python: PathBuf,
        venv: PathBuf,
        source: io::Error,
    },
    #[error(
        "JupyterLab ended before it was ready ({status}). If its last lines do not say \
         what to mend, delete {venv} to have it made anew:\n{log}"
    )]
    Ended {
        status: ExitStatus,
        venv: PathBuf,
        log: String,
    },
    #[error(
        "JupyterLab was not ready after {waited:?}. Start again when the machine is less \
         busy, or see what its last lines say:\n{log}"
    )]
    NotReady { waited: Duration, log: String },
}

impl LabError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// A running JupyterLab. Dropping it kills the server and its kernels at once.
/// If this process dies without dropping it, the server notices and stops.
pub struct Lab {
    url: String,
    token: Secret,
    pid: u32,
    running: Mutex<Running>,
}

impl Lab {
    /// Starts a server and returns when it answers. Blocks.
    pub fn start(venv: &Venv, options: LabOptions) -> Result<Self, LabError> {
        let place = Place::prepare(venv, &options)?;
        let sink = log_sink(&options.log)?;
        let mut command = place.command(venv, &options);
        command.env("JUPYTER_TOKEN", token_for(&options)?);
        let mut running = Running::spawn(command, sink).map_err(|source| LabError::Spawn {
            python: venv.python(),
            venv: venv.dir().to_owned(),
            source,
        })?;
        match running.answer(options.ready_timeout) {
            Answer::Ready { url, token } => Ok(Self {
                url,
                token: Secret::new(token),
                pid: running.pid(),
                running: Mutex::new(running),
            }),
            Answer::Ended(status) => Err(LabError::Ended {
                status,
                venv: venv.dir().to_owned(),
                log: running.last_lines(SHOWN_LINES),
            }),
            Answer::Nothing => Err(LabError::NotReady {
                waited: options.ready_timeout,
                log: running.last_lines(SHOWN_LINES),
            }),
        }
    }

    /// `http://127.0.0.1:PORT/base/`, with the slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn token(&self) -> &str {
        self.token.expose()
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the server is still running.
    pub fn is_running(&self) -> bool {
        self.running.lock().is_running()
    }

    /// Asks the server to save, to shut its kernels down and to leave, and kills
    /// what is left after `grace`. Blocks until the process is gone. Calling it
    /// once more does nothing.
    pub fn stop(&self, grace: Duration) {
        self.running.lock().stop(grace);
    }
}

/// Leaves the token out.
impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab")
            .field("url", &self.url)
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

fn token_for(options: &LabOptions) -> Result<String, LabError> {
    if let Some(token) = options.token.as_ref().filter(|token| !token.is_empty()) {
        return Ok(token.clone());
    }
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 32];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(LabError::io(source))?;
    Ok(hex(&bytes))
}
