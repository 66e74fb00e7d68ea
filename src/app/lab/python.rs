//! Finds a Python to make environments with, and makes bare ones.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::output::{run, tail};
use super::venv::VenvError;

/// Names of Python: on some systems `python3` is older than what is installed beside it.
const NAMES: [&str; 7] = [
    "python3",
    "python",
    "python3.14",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.10",
];
const OLDEST: (u32, u32) = (3, 10);

/// Runs on Python 2 as well, to tell "too old" from "not a Python".
const PROBE: &str = "import platform, sys, sysconfig; sys.stdout.write('%d.%d %s %s' % \
    (sys.version_info[0], sys.version_info[1], platform.python_implementation(), \
    sysconfig.get_platform()))";

pub(super) struct Python {
    program: PathBuf,
    /// Major and minor: environments survive a change of the rest.
    pub(super) version: String,
    /// Identity that an environment must share with the Python that it was made by. The
    /// platform is in it because homes are shared between unlike machines.
    pub(super) identity: String,
}

impl Python {
    pub(super) fn find(chosen: Option<&Path>) -> Result<Self, VenvError> {
        let candidates: Vec<&Path> = match chosen {
            Some(program) => vec![program],
            None => NAMES.iter().map(Path::new).collect(),
        };
        let mut old = None;
        for program in &candidates {
            match probe(program) {
                Some((number, python)) if number >= OLDEST => return Ok(python),
                Some((_, python)) => old = old.or(Some(python)),
                None => {}
            }
        }
        Err(unusable(old, &candidates))
    }

    /// Makes an environment with pip in it.
    pub(super) fn make_venv(&self, dir: &Path, lock: &File) -> Result<(), VenvError> {
        let mut command = Command::new(&self.program);
        command.args(["-I", "-m", "venv"]).arg(dir);
        let finished = run(command, lock, &mut |_| {}).map_err(VenvError::io(&self.program))?;
        if finished.status.success() {
            return Ok(());
        }
        // Debian leaves the module out or, more often, only the pip that it needs.
        let said = |words| finished.lines.iter().any(|line| line.contains(words));
        Err(if said("No module named") || said("ensurepip is not available") {
            VenvError::NoVenvModule {
                python: self.program.clone(),
                version: self.version.clone(),
            }
        } else {
            VenvError::Create {
                python: self.program.clone(),
                dir: dir.to_owned(),
                output: tail(&finished.lines, 15),
            }
        })
    }
}

fn unusable(old: Option<Python>, candidates: &[&Path]) -> VenvError {
    if let Some(Python { program, version, .. }) = old {
        return VenvError::OldPython {
            python: program,
            version,
        };
    }
    let names: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
    VenvError::NoPython {
        tried: names.join(", "),
    }
}

fn probe(program: &Path) -> Option<((u32, u32), Python)> {
    let answer = Command::new(program)
        .args(["-E", "-c", PROBE])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|answer| answer.status.success())?;
    let identity = String::from_utf8(answer.stdout).ok()?;
    let (version, _) = identity.split_once(' ')?;
    let (major, minor) = version.split_once('.')?;
    let number = (major.parse().ok()?, minor.parse().ok()?);
    let python = Python {
        program: program.to_owned(),
        version: version.to_owned(),
        identity,
    };
    Some((number, python))
}
