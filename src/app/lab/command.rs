//! Says how the server is started: where it lives, what it inherits from the
//! user's environment and what it must not.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::process::{LabError, LabOptions};
use super::venv::Venv;
use super::{STATE, fingerprint};
use crate::app::private_files::{private_dir, private_file};

const LAUNCHER: &str = include_str!("launch.py");

/// Variables that a user may have set for Jupyter servers of their own, and for another
/// Python. Where data and kernels are found (`JUPYTER_PATH`, ...) stays.
const FOREIGN_VARIABLES: [&str; 8] = [
    "JUPYTER_CONFIG_PATH",
    "JUPYTER_NO_CONFIG",
    "JUPYTER_TOKEN_FILE",
    "JUPYTER_GATEWAY_URL",
    "JUPYTERLAB_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
    "PYTHONHOME",
];

/// The documents' history and the files' ids.
const DATABASES: [&str; 2] = ["ystore.db", "file_ids.db"];

/// The directories of one server, all absolute and there.
pub(super) struct Place {
    root: PathBuf,
    /// Jupyter's settings.
    config: PathBuf,
    /// Jupyter's databases. It is also the working directory, where Jupyter
    /// would look for more configuration and leave files.
    work: PathBuf,
    launcher: PathBuf,
}

impl Place {
    pub(super) fn prepare(venv: &Venv, options: &LabOptions) -> Result<Self, LabError> {
        let root = make_dir(&options.root_dir)?;
        let state = match &options.state_dir {
            Some(dir) => make_private_dir(dir)?,
            None => make_private_dir(&venv.cache_dir().join(STATE))?,
        };
        let name = fingerprint(&[root.as_os_str().as_bytes()]);
        Ok(Self {
            config: make_private_dir(&state.join("config"))?,
            work: make_databases(&state.join("roots").join(name))?,
            launcher: write_launcher(&state)?,
            root,
        })
    }

    /// The command, but for the token.
    pub(super) fn command(&self, venv: &Venv, options: &LabOptions) -> Command {
        let mut command = Command::new(venv.python());
        // Isolated, so that a PYTHONPATH meant for kernels cannot break the server.
        command.arg("-I").arg(&self.launcher);
        command.args(self.arguments(options)).args(&options.extra_args);
        for name in FOREIGN_VARIABLES {
            command.env_remove(name);
        }
        command
            .env("JUPYTER_CONFIG_DIR", &self.config)
            .env("JUPYTER_PREFER_ENV_PATH", "1")
            // As in an activated environment: `!pip install` reaches the kernel.
            .env("VIRTUAL_ENV", venv.dir())
            .env("PATH", path_with(&venv.bin_dir()))
            .current_dir(&self.work)
            // A Ctrl-C in the terminal is for the gateway, which stops the server
            // after it has saved everything.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn arguments(&self, options: &LabOptions) -> Vec<OsString> {
        let mut arguments = vec![
            argument("--ServerApp.root_dir", &self.root),
            argument("--ServerApp.port", options.port.unwrap_or(0).to_string()),
            argument("--SQLiteYStore.db_path", self.work.join(DATABASES[0])),
            argument("--BaseFileIdManager.db_path", self.work.join(DATABASES[1])),
        ];
        if let Some(base_url) = &options.base_url {
            arguments.push(argument("--ServerApp.base_url", base_url));
        }
        arguments
    }
}

fn argument(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut argument = OsString::from(name);
    argument.push("=");
    argument.push(value);
    argument
}

fn path_with(first: &Path) -> OsString {
    let inherited = env::var_os("PATH").unwrap_or_default();
    let dirs = [first.to_owned()].into_iter().chain(env::split_paths(&inherited));
    // Joining fails if a directory's name holds the separator.
    env::join_paths(dirs).unwrap_or(inherited)
}

fn make_dir(path: &Path) -> Result<PathBuf, LabError> {
    fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(LabError::io(path))
}

/// Everything in it is for its owner only: documents, settings, whatever Jupyter keeps.
fn make_private_dir(path: &Path) -> Result<PathBuf, LabError> {
    private_dir(path)
        .and_then(|()| path.canonicalize())
        .map_err(LabError::io(path))
}

/// Makes Jupyter's databases for their owner only: Jupyter would let everybody read them.
fn make_databases(dir: &Path) -> Result<PathBuf, LabError> {
    let dir = make_private_dir(dir)?;
    for name in DATABASES {
        let file = dir.join(name);
        private_file(&file).map_err(LabError::io(&file))?;
    }
    Ok(dir)
}

/// The name tells versions apart, and the renaming keeps a start at the same
/// time from reading half of it.
fn write_launcher(dir: &Path) -> Result<PathBuf, LabError> {
    let name = format!("launch-{}.py", fingerprint(&[LAUNCHER.as_bytes()]));
    let path = dir.join(&name);
    if path.exists() {
        return Ok(path);
    }
    let draft = dir.join(format!("{name}.{}", std::process::id()));
    fs::write(&draft, LAUNCHER)
        .and_then(|()| fs::rename(&draft, &path))
        .map_err(LabError::io(&path))?;
    Ok(path)
}
