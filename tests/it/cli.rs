//! The commands that end by themselves, as the binary.

use std::{ffi::OsStr, io::Write, os::unix::ffi::OsStrExt};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{
    Gateway,
    command::{ended, gateway_command, run},
};

fn file(content: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["serve", "--listen", "nowhere"],
        &["check-config"],
        &["token", "new"],
        &["token", "new", "--name", " "],
        &["tools", "--toolsets", "nonsense"],
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn a_bad_config_is_named_by_file_and_key_and_exits_with_64() {
    let bad = file("[http]\nlisten = \"somewhere\"\nlisen = 1\n[[servers]]\nname = \"Lab A\"\nurl = \"http://x\"\n");
    let path = bad.path().display().to_string();
    for command in ["check-config", "serve"] {
        let ended = run(&[command, "--config", &path]);
        assert_eq!(ended.code, Some(64), "{command}");
        for expected in [
            "http.listen: ",
            "http.lisen: unknown key",
            "did you mean `listen`?",
            "servers[0].name: ",
        ] {
            assert!(
                ended.stderr.contains(&format!("{path}: ")) && ended.stderr.contains(expected),
                "{command}: {}",
                ended.stderr
            );
        }
    }
    let missing = run(&["check-config", "--config", "no-such-file.toml"]);
    assert_eq!(missing.code, Some(64));
    assert!(missing.stderr.contains("no-such-file.toml"));
}

#[test]
fn variables_that_are_no_text_stop_nothing_unless_they_are_settings() {
    let undecodable = OsStr::from_bytes(b"\xff");
    let config = file("");
    let check = |variable: &str| {
        let mut command = gateway_command();
        command
            .arg("check-config")
            .arg("--config")
            .arg(config.path())
            .env(variable, undecodable);
        ended(command.output().unwrap())
    };
    let foreign = check("SOMEBODY_ELSES");
    assert_eq!(foreign.code, Some(0), "{}", foreign.stderr);
    let ours = check("JMG__HTTP__LISTEN");
    assert_eq!(ours.code, Some(64), "{}", ours.stderr);
    assert!(
        ours.stderr.starts_with("env JMG__HTTP__LISTEN: http.listen: "),
        "{}",
        ours.stderr
    );
}

#[test]
fn a_good_config_passes() {
    let good = file(include_str!("../../config/default.toml"));
    let ended = run(&["check-config", "--config", &good.path().display().to_string()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.stdout.contains("ok"));
}

#[test]
fn the_environment_overrides_and_its_errors_are_named() {
    let output = gateway_command()
        .args(["check-config", "--config"])
        .arg(file("").path())
        .env("JMG__HTTP__LISTEN", "bad")
        .output();
    let ended = ended(output.unwrap());
    assert_eq!(ended.code, Some(64));
    assert!(ended.stderr.contains("env JMG__HTTP__LISTEN"), "{}", ended.stderr);
}

#[test]
fn an_open_door_is_refused() {
    let ended = run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(ended.code, Some(64));
    assert!(
        ended.stderr.contains("--listen") && ended.stderr.contains("auth"),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_this_version_cannot_honour_is_refused() {
    let shared = file("events.url = \"redis://user:hunter2@cache\"");
    let ended = run(&["check-config", "--config", &shared.path().display().to_string()]);
    assert_eq!(ended.code, Some(64));
    assert!(
        ended.stderr.contains("events.url") && !ended.stderr.contains("hunter2"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_store_that_this_version_cannot_use_is_refused() {
    let postgres = file(
        "servers = [{ name = 'a', url = 'http://127.0.0.1:9' }]\nstore.url = \"postgres://ana:hunter2@db:port/gateway\"",
    );
    for command in ["check-config", "migrate", "serve"] {
        let ended = run(&[command, "--config", &postgres.path().display().to_string()]);
        assert_eq!(ended.code, Some(64), "{command}");
        assert!(
            ended.stderr.contains("store.url: the URL is not one of PostgreSQL: ") && !ended.stderr.contains("hunter2"),
            "{command}: {}",
            ended.stderr
        );
        let named = format!("{}: store.url: ", postgres.path().display());
        assert!(ended.stderr.starts_with(&named), "{command}: {}", ended.stderr);
    }
}

#[test]
fn migrating_says_what_it_did_and_a_second_time_does_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = file("");
    let migrate = || {
        let mut command = gateway_command();
        command
            .arg("migrate")
            .arg("--config")
            .arg(config.path())
            .current_dir(&dir);
        ended(command.output().unwrap())
    };
    let (made, again) = (migrate(), migrate());
    assert_eq!(
        (made.code, again.code),
        (Some(0), Some(0)),
        "{}{}",
        made.stderr,
        again.stderr
    );
    assert!(
        made.stdout.contains("gateway.db: applied 0001 executions"),
        "{}",
        made.stdout
    );
    assert!(
        !again.stdout.contains("applied") && again.stdout.contains("up to date"),
        "{}",
        again.stdout
    );
    assert!(dir.path().join("gateway.db").exists());
}

#[test]
fn without_a_config_the_database_is_in_the_users_folder() {
    let (home, cwd) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut command = gateway_command();
    command
        .arg("migrate")
        .env("JMG_CACHE_DIR", home.path())
        .current_dir(&cwd);
    let ended = ended(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(home.path().join("state/gateway.db").exists());
    assert_eq!(std::fs::read_dir(&cwd).unwrap().count(), 0);
}

#[test]
fn a_database_that_cannot_be_made_is_explained_and_exits_with_70() {
    // A free port, since a gateway may run on the usual one.
    let config = file(
        "servers = [{ name = 'a', url = 'http://127.0.0.1:9' }]\nhttp.listen = '127.0.0.1:0'\n\
         store.url = 'sqlite:///no/such/x.db'",
    );
    for command in ["migrate", "serve"] {
        let ended = run(&[command, "--config", &config.path().display().to_string()]);
        assert_eq!(ended.code, Some(70), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("/no/such/x.db cannot be created") && ended.stderr.contains("store.url"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_new_token_comes_with_the_lines_that_let_it_in() {
    let ended = run(&["token", "new", "--name", "ana \"the\" agent"]);
    assert_eq!(ended.code, Some(0));
    let token = ended
        .stdout
        .split_whitespace()
        .find(|word| word.starts_with("jmg_"))
        .expect("a token");
    let digest: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(ended.stdout.contains(&format!("sha256 = \"{digest}\"")));
    let pasted = &ended.stdout[ended.stdout.find("[[auth").expect("the TOML")..];
    let config = file(&format!("[[tenants]]\nname = \"default\"\n{pasted}"));
    assert_eq!(
        run(&["check-config", "--config", &config.path().display().to_string()]).code,
        Some(0)
    );
}

#[test]
fn the_catalogue_is_shown_to_people_and_programs() {
    let people = run(&["tools"]);
    assert!(
        people.stdout.contains("list_documents") && people.stdout.contains("files"),
        "{}",
        people.stdout
    );
    let programs = run(&["tools", "--toolsets", "url", "--json"]);
    let tools: Value = serde_json::from_str(&programs.stdout).unwrap();
    assert_eq!(tools.as_array().unwrap().len(), 2);
    assert_eq!(tools[0]["toolset"], "url");
    assert!(tools[0]["inputSchema"].is_object() && tools[0]["outputSchema"].is_object());
    let unknown = run(&["tools", "--toolsets", "nonsense"]);
    assert!(
        unknown.code == Some(2) && unknown.stderr.contains("allowed: gateway"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn the_page_of_tools_is_current() {
    let made = run(&["tools", "--toolsets", "all", "--markdown"]);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tools/README.md");
    let page = std::fs::read_to_string(page).unwrap_or_default();
    assert!(
        page == made.stdout,
        "src/tools/README.md is not current; run `make docs`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn health_tells_whether_a_gateway_lives() {
    let gateway = Gateway::start().await;
    let alive = run(&["health", "--url", &gateway.url("/healthz")]);
    assert_eq!((alive.code, alive.stdout.trim()), (Some(0), "ok"));
    let dead = run(&["health", "--url", "http://127.0.0.1:9/healthz"]);
    assert_eq!(dead.code, Some(70));
    assert!(dead.stderr.contains("http://127.0.0.1:9/healthz"));
}
