//! Drives pip: what to install, what to tell a person meanwhile, and which
//! failures are worth a second try.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::output::{run, tail};
use super::venv::{Venv, VenvError, VenvSpec};

/// Installs what `spec` asks for. The pins come from one Python on one system;
/// where one of them does not exist, the newest versions that fit are tried.
pub(super) fn install(
    venv: &Venv,
    spec: &VenvSpec<'_>,
    lock: &File,
    progress: &mut dyn FnMut(&str),
) -> Result<(), VenvError> {
    let requirements = write(venv, "requirements.txt", &spec.requirements)?;
    let constraints = write(venv, "constraints.txt", &spec.constraints)?;
    let mut pinned = pip(venv, &requirements);
    pinned.arg("-c").arg(&constraints);
    let lines = match attempt(pinned, spec, lock, progress)? {
        Attempt::Done => return Ok(()),
        Attempt::Failed(lines) if !is_about_pins(&lines) => return Err(failure(&lines)),
        Attempt::Failed(lines) => lines,
    };
    tracing::debug!(output = tail(&lines, 15), "pip cannot use the pinned versions");
    progress("The tested versions cannot be had for this Python; trying the newest that fit ...");
    match attempt(pip(venv, &requirements), spec, lock, progress)? {
        Attempt::Done => Ok(()),
        Attempt::Failed(lines) => Err(failure(&lines)),
    }
}

enum Attempt {
    Done,
    Failed(Vec<String>),
}

fn attempt(
    command: Command,
    spec: &VenvSpec<'_>,
    lock: &File,
    progress: &mut dyn FnMut(&str),
) -> Result<Attempt, VenvError> {
    let program = PathBuf::from(command.get_program());
    let mut last = String::new();
    let finished = run(command, lock, &mut |line| {
        if let Some(news) = news_of(line, &spec.requirements).filter(|news| *news != last) {
            progress(&news);
            last = news;
        }
    })
    .map_err(VenvError::io(&program))?;
    Ok(if finished.status.success() {
        Attempt::Done
    } else {
        Attempt::Failed(finished.lines)
    })
}

fn pip(venv: &Venv, requirements: &Path) -> Command {
    let mut command = Command::new(venv.python());
    // Isolated, because packages on a PYTHONPATH would count as installed.
    command
        .args(["-I", "-m", "pip", "install", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar", "off", "-r"])
        .arg(requirements)
        // A user's habit of installing elsewhere would leave this place empty.
        .env("PIP_USER", "0")
        .env_remove("PIP_TARGET")
        .env_remove("PIP_PREFIX");
    command
}

fn write(venv: &Venv, name: &str, content: &str) -> Result<PathBuf, VenvError> {
    let path = venv.dir().join(name);
    fs::write(&path, content).map_err(VenvError::io(&path))?;
    Ok(path)
}

fn failure(lines: &[String]) -> VenvError {
    VenvError::Install {
        output: tail(lines, 15),
    }
}

/// Returns whether pip blames the pins, as it also does without a network. The second try then fails like the first,
/// but says why.
fn is_about_pins(lines: &[String]) -> bool {
    const COMPLAINTS: [&str; 3] = [
        "No matching distribution found",
        "ResolutionImpossible",
        "Failed to build",
    ];
    lines
        .iter()
        .any(|line| COMPLAINTS.iter().any(|words| line.contains(words)))
}

/// The news in one of pip's hundreds of lines: the packages that were
/// asked for, downloads that take time, and the last step.
fn news_of(line: &str, requirements: &str) -> Option<String> {
    let (verb, rest) = line.trim_start().split_once(' ')?;
    match verb {
        "Collecting" => {
            let package = rest.split(" (from ").next()?;
            let asked_for = requirements
                .lines()
                .any(|line| line.split(';').next().unwrap_or_default().trim() == package);
            asked_for.then(|| format!("Installing {} ...", package.replacen("==", " ", 1)))
        }
        "Downloading" => {
            let (file, size) = rest.split_once(" (")?;
            let megabytes: f64 = size.strip_suffix(" MB)")?.parse().ok()?;
            let mut parts = file.rsplit('/').next()?.split('-');
            let (name, version) = (parts.next()?, parts.next()?);
            (megabytes >= 2.0).then(|| format!("Downloading {name} {version} ({size} ..."))
        }
        "Installing" => {
            let packages = rest.strip_prefix("collected packages: ")?;
            Some(format!("Unpacking {} packages ...", packages.split(", ").count()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_is_told() {
        let asked = "jupyterlab==4.6.6\nipykernel==7.4.0; python_version >= '3.11'\n";
        let told = |line| news_of(line, asked);
        assert_eq!(
            told("Collecting jupyterlab==4.6.6 (from -r requirements.txt (line 1))").as_deref(),
            Some("Installing jupyterlab 4.6.6 ...")
        );
        assert_eq!(
            told("  Downloading jupyterlab-4.6.6-py3-none-any.whl (12.4 MB)").as_deref(),
            Some("Downloading jupyterlab 4.6.6 (12.4 MB) ...")
        );
        assert_eq!(
            told("Installing collected packages: a, b, c").as_deref(),
            Some("Unpacking 3 packages ...")
        );
        assert_eq!(
            told("Collecting ipykernel==7.4.0").as_deref(),
            Some("Installing ipykernel 7.4.0 ...")
        );
        assert_eq!(told("Collecting attrs (from jsonschema->jupyterlab)"), None);
        assert_eq!(told("  Downloading idna-3.20-py3-none-any.whl (65 kB)"), None);
        assert_eq!(told(""), None);
    }
}
