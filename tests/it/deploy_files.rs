//! The files for operators: each is held against the program that reads it.

use std::{fs, path::Path, process::Command};

use jupyter_mcp_gateway::config::token::sha256_hex;
use serde_json::Value;

use crate::support::{
    command::{Ended, ended, gateway_command},
    operator_tools::{compose_schema, have_tools, json_of, of_debian, project, tool},
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

fn yaml(path: &str) -> Value {
    json_of("yaml_json.py", &[&project(path).display().to_string()])
}

/// No engine is to be had for tests, so the file is held against its schema, and what it refers to is looked up.
#[test]
fn the_compose_file_refers_to_what_is_there() {
    if !have_tools() {
        return;
    }
    let folder = project("deploy/compose");
    let file = folder.join("compose.yaml");
    let schema = compose_schema().display().to_string();
    let compose = json_of("compose.py", &[&schema, &file.display().to_string()]);
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

/// What the parts of the compose file say of each other.
#[test]
fn the_parts_of_compose_fit_together() {
    if !have_tools() {
        return;
    }
    let compose = yaml("deploy/compose/compose.yaml");
    let collector = yaml("deploy/compose/collector/config.yaml");
    for (name, pipeline) in collector["service"]["pipelines"].as_object().unwrap() {
        for kind in ["receivers", "processors", "exporters"] {
            for part in pipeline[kind].as_array().unwrap() {
                assert!(collector[kind][part.as_str().unwrap()].is_object(), "{name}: {part}");
            }
        }
    }
    for signal in ["traces", "metrics", "logs"] {
        assert!(collector["service"]["pipelines"][signal].is_object(), "{signal}");
    }
    let gateway = fs::read_to_string(project("deploy/compose/gateway.toml")).unwrap();
    let gateway: toml::Table = gateway.parse().unwrap();
    let receiving = &collector["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"];
    let port = receiving.as_str().unwrap().split(':').next_back().unwrap();
    let endpoint = gateway["telemetry"]["otlp_endpoint"].as_str();
    assert_eq!(endpoint, Some(format!("http://collector:{port}").as_str()));
    let metrics = gateway["http"]["metrics_listen"].as_str().unwrap();
    let target =
        &yaml("deploy/compose/prometheus/prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"][0];
    assert_eq!(*target, metrics.replace("0.0.0.0", "gateway"));

    let source = &yaml("deploy/compose/grafana/datasources.yaml")["datasources"][0];
    assert_eq!(
        (&source["type"], &source["url"]),
        (&"prometheus".into(), &"http://prometheus:9090".into())
    );
    let provider = yaml("deploy/compose/grafana/dashboards.yaml")["providers"][0].take();
    let folder = provider["options"]["path"].as_str().unwrap();
    let mounts = compose["services"]["grafana"]["volumes"].as_array().unwrap();
    let mounted = mounts.iter().filter_map(|mount| mount.as_str());
    let mounted = mounted.filter(|mount| mount.contains(&format!("dashboards:{folder}")));
    assert_eq!((provider["type"].as_str(), mounted.count()), (Some("file"), 1));
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
fn scripts_are_scripts() {
    for script in [
        "deploy/compose/environment.sh",
        "deploy/image/assemble.sh",
        "deploy/image/manifests.sh",
        "deploy/dist.sh",
        "deploy/deb/pack.sh",
        "deploy/deb/postinst",
        "deploy/deb/postrm",
        "deploy/deb/prerm",
        "deploy/desktop-bundle/pack.sh",
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
fn caddy_takes_its_configuration() {
    let Some(caddy) = of_debian("caddy", "caddy") else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let mut adapt = Command::new(caddy);
    adapt.args(["adapt", "--pretty", "--validate", "--config", "deploy/caddy/Caddyfile"]);
    let adapted = run(adapt
        .env("HOME", home.path())
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_CONFIG_HOME"));
    assert_eq!(adapted.code, Some(0), "{}", adapted.stderr);
    assert!(adapted.stdout.contains("\"Authorization\""), "{}", adapted.stdout);
}

#[test]
fn prometheus_takes_its_configuration() {
    let Some(promtool) = of_debian("prometheus", "promtool") else {
        return;
    };
    let file = "deploy/compose/prometheus/prometheus.yml";
    let checked = run(Command::new(promtool).args(["check", "config", "--syntax-only", file]));
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
}
