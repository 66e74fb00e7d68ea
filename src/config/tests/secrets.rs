//! Secrets reach their users and nobody else.

use jupyter_client::Secret;

use super::{env, load_with, parse};
use crate::config::token::{new_token, sha256, sha256_hex, token_toml};
use crate::config::{Config, ServerConfig};

const HIDDEN: &str = "hunter2-hunter2";

#[test]
fn a_secret_prints_as_redacted() {
    let secret = Secret::new(HIDDEN);
    assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
    assert_eq!(secret.expose(), HIDDEN);
    assert!(Secret::default().is_empty());
}

#[test]
fn a_config_never_shows_a_secret() {
    let text = "
        [[servers]]
        name = 'a'
        url = 'http://a/'
        token = 'hunter2-hunter2'
        [[servers]]
        name = 'b'
        url = 'http://b/'
        token_env = 'B_TOKEN'
        [[tenants]]
        name = 't'
        [[auth.tokens]]
        name = 'x'
        tenant = 't'
        token = 'hunter2-hunter2'
        [events]
        url = 'redis://:hunter2-hunter2@redis/'
        [store]
        url = 'postgres://u:hunter2-hunter2@db/x'
    ";
    let config = load_with(text, &[("B_TOKEN", HIDDEN)]);
    let shown = format!("{config:?} {config:#?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(config.servers[0].token.as_ref().unwrap().expose(), HIDDEN);
}

#[test]
fn an_error_never_shows_a_secret() {
    for bad in [
        "[[servers]]\ntoken = ['hunter2-hunter2']",
        "[[servers]]\ntoken = 'hunter2-hunter2 '",
        "[[servers]]\ntoken = hunter2-hunter2",
        "[[servers]]\ntoken = 'hunter2-hunter2",
        "[[servers]]\ntoken = \"hunter2\\-hunter2\"",
        "[[servers]]\ntoken = 'hunter2-hunter2' hunter2",
        "[[servers]]\ntoken = 'a'\ntoken = 'hunter2-hunter2'",
        "[[servers]]\ntokn = 'hunter2-hunter2'",
        "[[servers]]\nurl = 'http://u:hunter2@a/'",
        "[[servers]]\nurl = 'http://a/?token=hunter2'",
        "[[servers]]\nurl = 'a/?token=hunter2'",
        "[[servers]]\ntoken_env = 'hunter2-hunter2'",
        "[[auth.tokens]]\nsha256 = 'hunter2-hunter2'",
        "[[auth.tokens]]\ntoken = 'hunter2'",
        "[http]\nallowed_origins = ['https://u:hunter2@a']",
        "[http]\nallowed_hosts = ['u:hunter2@a']",
        "[store]\nurl = 'mysql://u:hunter2@db/'",
        "[events]\nurl = 'http://u:hunter2@db/'",
        "[telemetry]\notlp_endpoint = 'http://u:hunter2@otlp/'",
    ] {
        let error = parse(bad, &[]).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    for name in [
        "JMG__SERVERS__0__TOKEN",
        "JMG__SERVERS__0__TOKN",
        "JMG__SERVERS__0__TOKEN__X",
        "JMG__SERVERS__0__URL",
        "JMG__STORE__URL",
        "JMG__SERVERS",
    ] {
        let error = parse("", &[(name, HIDDEN)]).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_server_token_comes_from_wherever_it_was_put() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "from-file\r\n").unwrap();
    let none = ServerConfig {
        name: "a".to_owned(),
        ..ServerConfig::default()
    };
    let direct = ServerConfig {
        token: Some(Secret::new("direct")),
        ..none.clone()
    };
    let by_env = ServerConfig {
        token_env: Some("A".to_owned()),
        ..none.clone()
    };
    let by_file = ServerConfig {
        token_file: Some(file),
        ..none.clone()
    };
    let env = env(&[("A", "from-env")]);
    let of = |server: &ServerConfig| server.resolve_token(&env).unwrap().expose().to_owned();
    let found = [of(&none), of(&direct), of(&by_env), of(&by_file)];
    assert_eq!(found, ["", "direct", "from-env", "from-file"]);
}

#[test]
fn a_server_token_that_cannot_be_found_or_sent_is_an_error() {
    let server = ServerConfig {
        name: "lab-a".to_owned(),
        ..ServerConfig::default()
    };
    let server = ServerConfig {
        token_env: Some("A".to_owned()),
        ..server
    };
    let error = server.resolve_token(&env(&[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "servers[lab-a].token_env: environment variable A is not set"
    );
    let error = server.resolve_token(&env(&[("A", "hunter2\n")])).unwrap_err();
    assert!(!error.to_string().contains("hunter2"));
}

#[test]
fn new_tokens_are_long_and_differ() {
    let (one, other) = (new_token(), new_token());
    assert_ne!(one, other);
    assert_eq!(one.len(), "jmg_".len() + 64);
    assert!(one.starts_with("jmg_"));
}

#[test]
fn sha256_is_the_well_known_one() {
    let expected = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    assert_eq!(sha256_hex("test"), expected);
}

#[test]
fn the_toml_to_paste_loads_whatever_the_name() {
    for name in ["ana", "a \"b\" \\ 'c'", "Zoë = [x] # \u{1f600}", "'''", "a'''b\"\"\"c"] {
        let pasted = token_toml(name, &sha256_hex("test"));
        let config = load_with(&format!("[[tenants]]\nname = 'default'\n{pasted}"), &[]);
        assert_eq!(config.auth.tokens[0].name, name);
        assert_eq!(config.auth.tokens[0].digest(), Some(sha256("test")));
    }
    let pasted = token_toml("two\nlines", &sha256_hex("test"));
    let table: toml::Table = toml::from_str(&pasted).unwrap();
    assert_eq!(table["auth"]["tokens"][0]["name"].as_str(), Some("two\nlines"));
}

#[test]
fn a_pasted_token_and_its_plain_form_have_one_digest() {
    let text = "[[tenants]]\nname = 't'\n[[auth.tokens]]\nname = 'x'\ntenant = 't'\ntoken = 'jmg_test'";
    let config: Config = load_with(text, &[]);
    assert_eq!(config.auth.tokens[0].digest(), Some(sha256("jmg_test")));
}
