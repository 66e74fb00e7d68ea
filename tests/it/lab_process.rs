//! The gateway's own JupyterLab as a process, and the environment it lives in: it starts, it
//! answers, it is gone afterwards, and what cannot work is explained.

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::Command,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use jupyter_mcp_gateway::app::lab::{Lab, LabError, LabLog, LabOptions, Venv, VenvError, VenvHost, VenvSpec};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    eventually,
    jupyter::JupyterApi,
    lab::venv,
    process::{all_command_lines, command_line, is_alive, send_signal},
};

#[tokio::test]
async fn it_starts_answers_and_stops() {
    let dir = tempdir();
    let lab = start(LabOptions {
        base_url: Some("/base/".into()),
        log: LabLog::File(dir.path().join("logs/lab.log")),
        ..options(&dir)
    });
    assert!(lab.url().ends_with("/base/"), "{}", lab.url());
    let jupyter = JupyterApi::new(lab.url(), lab.token());
    assert_eq!(jupyter.get("api/status").await.status(), 200);
    let stranger = JupyterApi::new(lab.url(), "wrong");
    assert_eq!(stranger.get("api/status").await.status(), 403);
    // Everybody on the machine can read command lines.
    assert!(!command_line(lab.pid()).contains(lab.token()));
    let kernel = jupyter.start_kernel(lab.pid()).await;

    let begun = Instant::now();
    lab.stop(Duration::from_secs(20));
    assert!(begun.elapsed() < Duration::from_secs(19), "not gracefully");
    assert!(!is_alive(lab.pid()) && !lab.is_running());
    gone(kernel).await;
    // Once more does nothing.
    lab.stop(Duration::from_secs(20));
    let log = fs::read_to_string(dir.path().join("logs/lab.log")).expect("a log");
    assert!(log.contains("Shutting down 1 kernel"), "{log}");
}

#[tokio::test]
async fn it_shares_documents_and_keeps_its_files_away_from_them() {
    let dir = tempdir();
    let lab = start(options(&dir));
    let jupyter = JupyterApi::new(lab.url(), lab.token());
    let content = json!({ "cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 });
    let notebook = json!({ "type": "notebook", "format": "json", "content": content });
    let written = jupyter.send(Method::PUT, "api/contents/a.ipynb", notebook).await;
    assert_eq!(written.status(), 201);
    let session = json!({ "type": "notebook", "format": "json" });
    let shared = jupyter
        .send(Method::PUT, "api/collaboration/session/a.ipynb", session)
        .await;
    assert_eq!(shared.status(), 201);
    let shared: Value = shared.json().await.expect("json");
    assert!(shared["fileId"].is_string(), "{shared}");
    let entries = fs::read_dir(dir.path().join("root")).expect("the notebooks").flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, [".ipynb_checkpoints", "a.ipynb"]);

    let pid = lab.pid();
    drop(lab);
    assert!(!is_alive(pid), "dropping it is enough");
}

#[tokio::test]
async fn one_that_does_not_react_is_killed_with_its_kernels() {
    let dir = tempdir();
    let lab = start(options(&dir));
    let kernel = JupyterApi::new(lab.url(), lab.token()).start_kernel(lab.pid()).await;
    let started_as = command_line(kernel);
    send_signal("-STOP", kernel);
    send_signal("-STOP", lab.pid());
    lab.stop(Duration::from_millis(100));
    assert!(!is_alive(lab.pid()));
    gone(kernel).await;
    // Nobody was left to remove what the kernel was started with.
    let (_, connection_file) = started_as.rsplit_once(" -f ").expect("a connection file");
    fs::remove_file(connection_file).expect("the kernel's connection file");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let dir = tempdir();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let wanted = LabOptions {
        port: Some(port),
        ..options(&dir)
    };
    let error = Lab::start(&venv(), wanted).expect_err("the port is taken");
    assert!(matches!(error, LabError::Ended { .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("exit status: 1"), "{message}");
    assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
}

#[test]
fn an_impatient_start_leaves_nothing_behind() {
    let dir = tempdir();
    let impatient = LabOptions {
        ready_timeout: Duration::from_millis(1),
        ..options(&dir)
    };
    let error = Lab::start(&venv(), impatient).expect_err("too early");
    assert!(matches!(error, LabError::NotReady { .. }), "{error}");
    let state = dir.path().join("state").display().to_string();
    assert!(!all_command_lines().contains(&state));
}

#[test]
fn an_environment_is_made_once_and_whole() {
    let dir = tempdir();
    let host = host(&dir, Some(venv().python()));
    // The pinned version does not exist.
    let spec = small_spec(&dir, "tiny==0.9\n");
    let said = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut progress = |line: &str| said.lock().expect("lines").push(line.to_owned());
                Venv::ensure_on(&host, &spec, &mut progress).expect("an environment");
            });
        }
    });
    let said = said.into_inner().expect("lines");
    let lines_with = |words: &str| said.iter().filter(|line| line.contains(words)).count();
    assert_eq!(lines_with("Creating"), 1, "{said:?}");
    assert_eq!(lines_with("trying the newest"), 1, "{said:?}");

    // What is left of a start that was killed in the middle is not built upon.
    let venv = Venv::ensure_on(&host, &spec, &mut |_| {}).expect("the same environment");
    fs::remove_file(venv.dir().join(".complete")).expect("the marker");
    fs::write(venv.dir().join("half-made"), "").expect("a remnant");
    let venv = Venv::ensure_on(&host, &spec, &mut |_| {}).expect("a new environment");
    assert!(!venv.dir().join("half-made").exists());
    let imported = Command::new(venv.python()).args(["-c", "import tiny"]).status();
    assert!(imported.expect("python runs").success());
}

#[test]
fn an_unfit_python_is_explained() {
    let dir = tempdir();
    let refuse = |python: PathBuf| {
        let spec = small_spec(&dir, "");
        Venv::ensure_on(&host(&dir, Some(python)), &spec, &mut |_| {}).expect_err("unfit")
    };
    let missing = refuse("/nonexistent/python".into());
    assert!(matches!(missing, VenvError::NoPython { .. }), "{missing}");

    let old = refuse(fake_python(&dir, "old", "printf '3.8 CPython linux-x86_64'"));
    assert!(old.to_string().contains("is Python 3.8, and 3.10"), "{old}");

    let script = "case \"$*\" in *venv*) echo 'ensurepip is not available.'; exit 1;; esac
                  printf '3.12 CPython linux-x86_64'";
    let bare = refuse(fake_python(&dir, "bare", script));
    assert!(bare.to_string().contains("apt install python3.12-venv"), "{bare}");
}

fn tempdir() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn options(dir: &TempDir) -> LabOptions {
    LabOptions {
        state_dir: Some(dir.path().join("state")),
        ..LabOptions::new(dir.path().join("root"))
    }
}

fn start(options: LabOptions) -> Lab {
    Lab::start(&venv(), options).expect("JupyterLab")
}

async fn gone(pid: u32) {
    eventually("the process is gone", async || (!is_alive(pid)).then_some(())).await;
}

fn host(dir: &TempDir, python: Option<PathBuf>) -> VenvHost {
    VenvHost {
        cache_dir: dir.path().join("cache"),
        python,
    }
}

/// One package, from a folder instead of the network.
fn small_spec(dir: &TempDir, constraints: &str) -> VenvSpec<'static> {
    let wheels = dir.path().join("wheels");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/python/tiny_wheel.py");
    let written = Command::new(venv().python()).arg(script).arg(&wheels).status();
    assert!(written.expect("python runs").success());
    VenvSpec {
        name: "small",
        requirements: format!("--no-index\n--find-links {}\ntiny==1.0\n", wheels.display()),
        constraints: constraints.to_owned(),
    }
}

/// The shell writes it: a file that this process has open cannot be run, and other tests' children
/// inherit it for a moment.
fn fake_python(dir: &TempDir, name: &str, script: &str) -> PathBuf {
    let path = dir.path().join(name);
    let write = "printf '%s\\n' '#!/bin/sh' \"$2\" > \"$1\" && chmod +x \"$1\"";
    let written = Command::new("sh")
        .args(["-c", write, "sh"])
        .arg(&path)
        .arg(script)
        .status();
    assert!(written.expect("a shell").success());
    path
}
