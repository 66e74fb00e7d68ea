//! What a release brings: an archive, a package for Debian, and a command that Jupyter finds.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use jupyter_mcp_gateway::config::token::sha256_hex;
use reqwest::StatusCode;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{
    Agent, Era,
    command::{Ended, ended, gateway_command},
    lab,
    lab::venv,
    operator_tools::project,
    running::{Home, Running},
};

const BINARY: &str = env!("CARGO_BIN_EXE_jupyter-mcp-gateway");

/// What `deploy/dist.sh` writes.
struct Release {
    folder: TempDir,
    files: Vec<String>,
}

impl Release {
    fn packed() -> &'static Self {
        static RELEASE: LazyLock<Release> = LazyLock::new(|| {
            let folder = tempfile::tempdir().unwrap();
            let mut pack = Command::new("sh");
            pack.args(["deploy/dist.sh", BINARY]).arg(folder.path());
            // Packing well what is not shipped takes long.
            let packed = run(pack.env("DPKG_DEB_COMPRESSOR_TYPE", "none"));
            assert_eq!(packed.code, Some(0), "{}", packed.stderr);
            let files = packed.stdout.lines().map(str::to_owned).collect();
            Release { folder, files }
        });
        &RELEASE
    }

    fn file(&self, end: &str) -> Option<&str> {
        self.files.iter().map(String::as_str).find(|file| file.ends_with(end))
    }
}

fn run(command: &mut Command) -> Ended {
    ended(command.current_dir(project("")).output().expect("it runs"))
}

#[test]
fn a_release_is_packed_with_its_manual_completions_and_checksums() {
    let release = Release::packed();
    let archive = release.file(".tar.gz").unwrap();
    let listed = run(Command::new("tar").arg("-tzf").arg(archive));
    for file in [
        "/jupyter-mcp-gateway",
        "/LICENSE-MIT",
        "/completions/jupyter-mcp-gateway.zsh",
        "/man/jupyter-mcp-gateway.1",
        "/man/jupyter-mcp-gateway-serve.1",
        "/docs/deploying.md",
        "/jupyter-mcp-gateway.service",
        "/gateway.toml",
    ] {
        assert!(
            listed.stdout.lines().any(|line| line.ends_with(file)),
            "{file}: {}",
            listed.stdout
        );
    }
    let sums = fs::read_to_string(release.folder.path().join("SHA256SUMS")).unwrap();
    assert_eq!(sums.lines().count(), release.files.len(), "{sums}");
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--strict", "SHA256SUMS"]);
    if let Ok(checked) = check.current_dir(release.folder.path()).output() {
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
    let completions = gateway_command().args(["completions", "bash"]).output().unwrap();
    assert!(String::from_utf8_lossy(&completions.stdout).contains("--with-jupyter"));
}

/// A root file system with nothing but the package.
fn installed(package: &str) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let admin = root.path().join("var/lib/dpkg");
    for folder in ["info", "updates"] {
        fs::create_dir_all(admin.join(folder)).unwrap();
    }
    for file in ["status", "available"] {
        fs::write(admin.join(file), "").unwrap();
    }
    // Twice, as when a newer version follows.
    for _ in 0..2 {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.path().display()));
        dpkg.args([
            "--force-depends",
            "--force-not-root",
            "--force-script-chrootless",
            "--install",
        ]);
        let done = run(dpkg
            .arg(package)
            .env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"));
        assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    }
    root
}

#[tokio::test]
async fn the_package_for_debian_is_installed_and_starts() {
    let Some(package) = Release::packed().file(".deb") else {
        println!("skipped: there is no dpkg-deb here");
        return;
    };
    let shown = run(Command::new("dpkg-deb").args(["--info", package]));
    for line in [
        format!(" Version: {}", env!("CARGO_PKG_VERSION")),
        " Package: jupyter-mcp-gateway".to_owned(),
        " Recommends: ca-certificates".to_owned(),
    ] {
        assert!(
            shown.stdout.lines().any(|found| found == line),
            "{line}: {}",
            shown.stdout
        );
    }
    assert!(shown.stdout.contains("Depends: libc6 (>= 2."), "{}", shown.stdout);
    let listed = run(Command::new("dpkg-deb").args(["--contents", package]));
    let strangers = listed.stdout.lines().find(|line| !line.contains(" root/root "));
    assert_eq!(strangers, None, "everything is root's");

    let root = installed(package);
    let at = |path: &str| -> PathBuf { root.path().join(path) };
    for file in [
        "usr/share/man/man1/jupyter-mcp-gateway-serve.1.gz",
        "usr/share/bash-completion/completions/jupyter-mcp-gateway",
        "usr/share/zsh/vendor-completions/_jupyter-mcp-gateway",
        "usr/share/fish/vendor_completions.d/jupyter-mcp-gateway.fish",
        "usr/share/doc/jupyter-mcp-gateway/copyright",
        "usr/share/doc/jupyter-mcp-gateway/docs/operating.md",
    ] {
        assert!(at(file).is_file(), "{file}");
    }
    let unit = fs::read_to_string(at("usr/lib/systemd/system/jupyter-mcp-gateway.service")).unwrap();
    assert!(
        unit.starts_with("[Unit]\n") && unit.contains("\nExecStart=/usr/bin/jupyter-mcp-gateway serve "),
        "{unit}"
    );
    assert!(!unit.contains("/usr/local/"), "{unit}");

    // The config that it brings is an example; named are a server and a token of one's own.
    let (program, config) = (
        at("usr/bin/jupyter-mcp-gateway"),
        at("etc/jupyter-mcp-gateway/gateway.toml"),
    );
    let mode = fs::metadata(&program).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let example = fs::read_to_string(&config).unwrap();
    let token = "token-of-an-operator";
    let digest = example.lines().find_map(|line| line.strip_prefix("sha256 = ")).unwrap();
    let mine = example
        .replace("https://jupyter.example.org/", lab().url())
        .replace(digest, &format!("\"{}\"", sha256_hex(token)))
        .replace("metrics_listen = \"0.0.0.0:9090\"\n", "")
        .replace("public_url = \"https://mcp.example.org\"\n", "");
    fs::write(&config, mine).unwrap();
    let home = Home::new();
    let mut command = home.serve_on("127.0.0.1:0");
    command.arg("--config").arg(&config).env("LAB_A_TOKEN", lab().token());
    let running = Running::start(with_program(&program, &command)).await;
    let agent = Agent::connect_to(running.url(), token, Era::Modern).await;
    let servers = agent.call("list_servers", json!({})).await.ok();
    assert_eq!(servers["servers"][0]["name"], "lab-a", "{servers}");
    let healthy = reqwest::get(running.url().replace("/mcp", "/healthz")).await.unwrap();
    assert_eq!(healthy.status(), StatusCode::OK);
    running.signal("-TERM");
    assert_eq!(running.ended().await.code, Some(0));

    // A config that somebody has changed stays when a newer version follows, and the state goes only with a purge.
    let state = at("var/lib/private/jupyter-mcp-gateway");
    fs::create_dir_all(&state).unwrap();
    for (action, is_kept) in [("--remove", true), ("--purge", false)] {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.path().display()));
        dpkg.args([
            "--force-not-root",
            "--force-script-chrootless",
            action,
            "jupyter-mcp-gateway",
        ]);
        let done = run(dpkg.env("PATH", "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"));
        assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
        assert_eq!((config.exists(), state.exists()), (is_kept, is_kept), "{action}");
    }
}

/// The same command of another program.
fn with_program(program: &Path, command: &Command) -> Command {
    let mut other = Command::new(program);
    other.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        other.current_dir(folder);
    }
    other
}

#[test]
fn jupyter_finds_the_command() {
    let jupyter = venv().bin_dir().join("jupyter");
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = Path::new(BINARY).parent().unwrap().display().to_string();
    let mut command = Command::new(jupyter);
    command.args(["mcp-gateway", "--version"]);
    let said = run(command.env("PATH", format!("{folder}:{path}")));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(
        said.stdout.trim(),
        concat!("jupyter-mcp-gateway ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn all_that_is_released_has_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("helm/jupyter-mcp-gateway/Chart.yaml", format!("\nversion: {version}\n")),
        (
            "helm/jupyter-mcp-gateway/Chart.yaml",
            format!("\nappVersion: {version}\n"),
        ),
        (
            "deploy/kubernetes/gateway.yaml",
            format!("image: jupyter-mcp-gateway:{version}\n"),
        ),
        (
            "deploy/claude-code-plugin/.claude-plugin/plugin.json",
            format!("\n  \"version\": \"{version}\",\n"),
        ),
        (
            "deploy/desktop-bundle/manifest.json",
            format!("\n  \"version\": \"{version}\",\n"),
        ),
    ] {
        let text = fs::read_to_string(project(file)).unwrap();
        assert!(text.contains(&line), "{file}: {line}");
    }
}
