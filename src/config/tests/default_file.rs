//! `config/default.toml` and the model say the same.

use std::collections::BTreeSet;

use super::{load, load_with, problems};
use crate::config::{Config, Why};

const DEFAULT_TOML: &str = include_str!("../../../config/default.toml");

/// The file with its examples switched on: "#" and no space after it.
fn with_examples() -> String {
    let switch_on = |line: &'static str| match line.strip_prefix('#') {
        Some(example) if !example.is_empty() && !example.starts_with(' ') => example,
        _ => line,
    };
    let lines: Vec<_> = DEFAULT_TOML.lines().map(switch_on).collect();
    lines.join("\n")
}

#[test]
fn it_is_the_defaults() {
    assert_eq!(load(DEFAULT_TOML), Config::default());
    assert_eq!(load(""), Config::default());
}

#[test]
fn its_examples_load() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lab-b");
    std::fs::write(&file, "b-token\n").unwrap();
    let text = with_examples().replace("/run/secrets/lab-b", file.to_str().unwrap());
    let config = load_with(&text, &[("LAB_A_TOKEN", "a-token")]);
    assert_eq!(config.servers.len(), 3);
    assert_eq!(config.auth.tokens.len(), 2);
    assert!(config.auth.jwt.is_some() && config.auth.jupyterhub.is_some());
}

#[test]
fn examples_show_the_defaults_of_their_entries() {
    let minimal = r#"
        [[servers]]
        name = "lab-a"
        url = "http://127.0.0.1:8888/"
        token_env = "LAB_A_TOKEN"
        [[tenants]]
        name = "research"
        [auth.jwt]
        issuer = "https://login.example.org/realms/x"
        audience = "https://mcp.example.org/mcp"
    "#;
    let minimal = load_with(minimal, &[("LAB_A_TOKEN", "a-token")]);
    let text = with_examples().replace("token_file", "#token_file");
    let shown = load_with(&text, &[("LAB_A_TOKEN", "a-token")]);
    assert_eq!(shown.servers[0], minimal.servers[0]);
    assert_eq!(shown.auth.jwt, minimal.auth.jwt);
    let mut tenant = shown.tenants[0].clone();
    tenant.servers.clear();
    tenant.approvals.clear();
    assert_eq!(tenant, minimal.tenants[0]);
}

#[test]
fn it_has_every_key_of_the_model_and_no_other() {
    assert_eq!(keys_shown(), keys_of_the_model());
}

#[test]
fn every_key_has_a_comment_above_its_first_appearance() {
    let mut seen = BTreeSet::new();
    let (mut section, mut previous) = (String::new(), "");
    for (shown, raw) in with_examples().lines().zip(DEFAULT_TOML.lines()) {
        if let Some(name) = header(shown) {
            section = name;
        } else if let Some(key) = key(shown) {
            let first = seen.insert(format!("{section}.{key}"));
            assert!(!first || previous.starts_with("# "), "{section}.{key}");
        }
        previous = raw;
    }
}

/// The sections and the keys in them, as dotted paths.
fn keys_shown() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut section = String::new();
    for line in with_examples().lines() {
        if let Some(name) = header(line) {
            let parents = name.match_indices('.').map(|(end, _)| name[..end].to_owned());
            keys.extend(parents);
            keys.insert(name.clone());
            section = name;
        } else if let Some(key) = key(line) {
            keys.insert(format!("{section}.{key}"));
        }
    }
    keys
}

/// The model tells its keys when it refuses one that it does not have.
fn keys_of_the_model() -> BTreeSet<String> {
    const PROBE: &str = "
        zz = 0
        servers = [{ zz = 0 }]
        tenants = [{ zz = 0, approvals = [{ zz = 0 }] }]
        http.zz = 0
        mcp.zz = 0
        console.zz = 0
        auth.zz = 0
        auth.tokens = [{ zz = 0 }]
        auth.jwt.zz = 0
        auth.jupyterhub.zz = 0
        auth.oauth.zz = 0
        auth.jupyter.zz = 0
        sessions.zz = 0
        execution.zz = 0
        images.zz = 0
        answers.zz = 0
        events.zz = 0
        store.zz = 0
        audit.zz = 0
        telemetry.zz = 0
    ";
    let mut keys = BTreeSet::new();
    for problem in problems(PROBE) {
        if let Why::UnknownKey { allowed, .. } = problem.why {
            let section = problem.key.strip_suffix("zz").unwrap().replace("[0]", "");
            keys.extend(allowed.iter().map(|key| format!("{section}{key}")));
        }
    }
    keys
}

fn header(line: &str) -> Option<String> {
    let name = line.strip_prefix('[')?.trim_matches(['[', ']']);
    Some(name.to_owned())
}

fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(" = ")?;
    (!key.starts_with('#')).then_some(key)
}
