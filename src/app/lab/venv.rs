//! Owns the private Python environment: where it lives, that it is made once
//! even if two gateways start together, and that a half-made one is made anew.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::python::Python;
use super::{STATE, fingerprint, pip};

/// Specification of an environment. A change to any part makes another one.
#[derive(Clone, Debug)]
pub struct VenvSpec<'a> {
    pub name: &'a str,
    pub requirements: String,
    pub constraints: String,
}

impl VenvSpec<'static> {
    /// JupyterLab with collaboration, in the versions the gateway is tested with.
    pub fn lab() -> Self {
        Self {
            name: "lab",
            requirements: include_str!("requirements.txt").to_owned(),
            constraints: include_str!("constraints.txt").to_owned(),
        }
    }
}

/// Place of the environments and the Python that makes them.
#[derive(Clone, Debug)]
pub struct VenvHost {
    pub cache_dir: PathBuf,
    pub python: Option<PathBuf>,
}

impl VenvHost {
    /// Reads `JMG_CACHE_DIR`, `XDG_CACHE_HOME`, `HOME` and `JMG_PYTHON`.
    pub fn from_env() -> Result<Self, VenvError> {
        Ok(Self {
            cache_dir: cache_dir().ok_or(VenvError::NoCacheDir)?,
            python: env_path("JMG_PYTHON"),
        })
    }
}

#[derive(Debug, Error)]
pub enum VenvError {
    #[error(
        "there is no home directory to keep the private Python environment in: \
         set JMG_CACHE_DIR to a directory that you can write to"
    )]
    NoCacheDir,
    #[error(
        "no usable Python was found (tried {tried}): install Python 3.10 or newer, \
         or set JMG_PYTHON to the program to use"
    )]
    NoPython { tried: String },
    #[error(
        "{python} is Python {version}, and 3.10 or newer is needed: install one, \
         or set JMG_PYTHON to the program to use"
    )]
    OldPython { python: PathBuf, version: String },
    #[error(
        "{python} has no venv module: install it (Debian and Ubuntu: \
         `apt install python{version}-venv`), or set JMG_PYTHON to another Python"
    )]
    NoVenvModule { python: PathBuf, version: String },
    #[error(
        "{python} could not make an environment in {dir}: check that the disk is not full, \
         or set JMG_PYTHON to another Python. It said:\n{output}"
    )]
    Create {
        python: PathBuf,
        dir: PathBuf,
        output: String,
    },
    #[error(
        "pip could not install the packages: check the network (behind a proxy set HTTPS_PROXY, \
         for a package mirror PIP_INDEX_URL) and start again. It said:\n{output}"
    )]
    Install { output: String },
    #[error(
        "cannot use {path}: {source}. Make it writable, \
         or set JMG_CACHE_DIR to a directory that is"
    )]
    Io { path: PathBuf, source: io::Error },
}

impl VenvError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// A complete environment.
#[derive(Clone, Debug)]
pub struct Venv {
    dir: PathBuf,
}

impl Venv {
    /// Finds or makes the environment in the place the process's variables name.
    /// Only making it takes time (a minute or so) and the network; `progress`
    /// then hears short lines for a person to read.
    pub fn ensure(spec: &VenvSpec<'_>, progress: &mut dyn FnMut(&str)) -> Result<Self, VenvError> {
        Self::ensure_on(&VenvHost::from_env()?, spec, progress)
    }

    /// [`Venv::ensure`] in a place of the caller's choice.
    pub fn ensure_on(host: &VenvHost, spec: &VenvSpec<'_>, progress: &mut dyn FnMut(&str)) -> Result<Self, VenvError> {
        let python = Python::find(host.python.as_deref())?;
        let venv = Self {
            dir: host.cache_dir.join(dir_name(spec, &python)),
        };
        if venv.is_complete() {
            return Ok(venv);
        }
        let lock = venv.lock(progress)?;
        // Whoever held the lock meanwhile has probably made it.
        if !venv.is_complete() {
            venv.make(spec, &python, &lock, progress)?;
        }
        Ok(venv)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn python(&self) -> PathBuf {
        self.bin_dir().join("python")
    }

    pub fn bin_dir(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// The directory that this environment shares with others and their state.
    pub fn cache_dir(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// The interpreter is a link, which dangles once its Python is uninstalled.
    fn is_complete(&self) -> bool {
        self.marker().is_file() && self.python().is_file()
    }

    fn marker(&self) -> PathBuf {
        self.dir.join(".complete")
    }

    fn lock(&self, progress: &mut dyn FnMut(&str)) -> Result<File, VenvError> {
        let mut path = self.dir.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        fs::create_dir_all(self.cache_dir()).map_err(VenvError::io(self.cache_dir()))?;
        let file = File::create(&path).map_err(VenvError::io(&path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                progress("Waiting for another process that makes the Python environment ...");
            }
            Err(TryLockError::Error(source)) => return Err(VenvError::Io { path, source }),
        }
        file.lock().map_err(VenvError::io(&path))?;
        Ok(file)
    }

    /// Environments hold absolute paths, so this one is made where it will stay,
    /// and the marker comes last.
    fn make(
        &self,
        spec: &VenvSpec<'_>,
        python: &Python,
        lock: &File,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), VenvError> {
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir).map_err(VenvError::io(&self.dir))?;
        }
        progress(&format!(
            "Creating a private Python {} environment (this once) ...",
            python.version
        ));
        python.make_venv(&self.dir, lock)?;
        pip::install(self, spec, lock, progress)?;
        File::create(self.marker())
            .map_err(VenvError::io(&self.marker()))
            .map(drop)
    }
}

fn dir_name(spec: &VenvSpec<'_>, python: &Python) -> String {
    let parts = [
        spec.requirements.as_bytes(),
        spec.constraints.as_bytes(),
        python.identity.as_bytes(),
    ];
    format!("{}-{}", spec.name, fingerprint(&parts))
}

/// Directory of what the gateway keeps for this user beside its environments, without any config.
pub(in crate::app) fn state_dir() -> Option<PathBuf> {
    cache_dir().map(|dir| dir.join(STATE))
}

fn cache_dir() -> Option<PathBuf> {
    const NAME: &str = "jupyter-mcp-gateway";
    let caches = if cfg!(target_os = "macos") {
        "Library/Caches"
    } else {
        ".cache"
    };
    env_path("JMG_CACHE_DIR")
        .or_else(|| env_path("XDG_CACHE_HOME").map(|dir| dir.join(NAME)))
        .or_else(|| env::home_dir().map(|home| home.join(caches).join(NAME)))
        // The server runs in another directory, where a relative path is another one.
        .and_then(|dir| std::path::absolute(dir).ok())
}

fn env_path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
