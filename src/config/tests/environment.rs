//! `JMG__SECTION__KEY` variables.

use std::time::Duration;

use super::{env, load_with, refusal};
use crate::config::{Config, LogFormat};
use crate::types::Permission;

const TWO: &str = "
    [[servers]]
    name = 'a'
    url = 'http://a/'
    [[servers]]
    name = 'b'
    url = 'http://b/'
";

#[test]
fn overrides_are_read_as_the_type_of_their_key() {
    let config = load_with(
        "[http]\nlisten = '127.0.0.1:1'\nmax_body_bytes = 2048",
        &[
            ("JMG__HTTP__LISTEN", "localhost:9000"),
            ("JMG__HTTP__MAX_BODY_BYTES", "8_192"),
            ("jmg__http__drain_timeout", "1m"),
            ("JMG__AUTH__JUPYTER__ENABLED", "True"),
            ("JMG__TELEMETRY__LOG_FORMAT", "json"),
            ("JMG__STORE__URL", "postgres://u:p@db/x"),
            ("JMG_SINGLE", "not ours"),
            ("OTHER", "not ours"),
        ],
    );
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:9000");
    assert_eq!(config.http.max_body_bytes, 8192);
    assert_eq!(config.http.drain_timeout, Duration::from_secs(60));
    assert!(config.auth.jupyter.enabled);
    assert_eq!(config.telemetry.log_format, LogFormat::Json);
    assert_eq!(config.store.url.expose(), "postgres://u:p@db/x");
}

#[test]
fn lists_are_comma_separated_or_toml() {
    for list in ["a.org, b.org", "[\"a.org\", 'b.org']"] {
        let config = load_with("", &[("JMG__HTTP__ALLOWED_HOSTS", list)]);
        assert_eq!(config.http.allowed_hosts, ["a.org", "b.org"]);
    }
    let config = load_with("[http]\nallowed_hosts = ['a']", &[("JMG__HTTP__ALLOWED_HOSTS", "")]);
    assert!(config.http.allowed_hosts.is_empty());
    let config = load_with("", &[("JMG__HTTP__ALLOWED_HOSTS__0", "a")]);
    assert_eq!(config.http.allowed_hosts, ["a"]);
}

#[test]
fn optional_sections_can_be_made() {
    let config = load_with(
        "",
        &[
            ("JMG__AUTH__JWT__ISSUER", "https://login.example.org"),
            ("JMG__AUTH__JWT__AUDIENCE", "https://mcp.example.org/mcp"),
            ("JMG__HTTP__LISTEN", "0.0.0.0:8585"),
        ],
    );
    assert_eq!(config.auth.jwt.unwrap().issuer, "https://login.example.org");
}

#[test]
fn entries_are_overridden_and_added_by_index() {
    let config = load_with(
        TWO,
        &[
            ("JMG__SERVERS__1__URL", "http://c/x"),
            ("JMG__SERVERS__2__NAME", "d"),
            ("JMG__SERVERS__2__URL", "http://d"),
            ("JMG__TENANTS__0__NAME", "t"),
            ("JMG__TENANTS__0__PERMISSIONS", "read,write"),
        ],
    );
    let urls: Vec<_> = config.servers.iter().map(|it| it.url.as_str()).collect();
    assert_eq!(urls, ["http://a/", "http://c/x/", "http://d/"]);
    let permissions = &config.tenants[0].permissions;
    assert_eq!(*permissions, [Permission::Read, Permission::Write].into());
}

#[test]
fn more_than_ten_entries_come_in_the_order_of_their_numbers() {
    let mut variables = env(&[]);
    for i in 0..12 {
        variables.insert(format!("JMG__SERVERS__{i}__NAME"), format!("s{i}"));
        variables.insert(format!("JMG__SERVERS__{i}__URL"), format!("http://s{i}/"));
    }
    let config = Config::load(None, &variables).unwrap();
    assert_eq!(config.servers.len(), 12);
    assert_eq!(config.servers[10].name, "s10");
}

#[test]
fn messages_name_the_variable() {
    for (name, value, expected) in [
        (
            "JMG__HTTP__LISTEN",
            "x",
            "http.listen: \"x\" is not an address; expected host:port such as \"127.0.0.1:8585\"",
        ),
        (
            "JMG__STORE__ULR",
            "x",
            "store.ulr: unknown key; allowed: url, keep, max_bytes, max_bytes_per_principal, history, \
             history_keep, history_max_versions, history_max_bytes_per_document, history_max_bytes, activity_keep, \
             activity_max, audit_keep, audit_max, max_connections; did you mean `url`?",
        ),
        (
            "JMG__STOER__URL",
            "x",
            "stoer: unknown key; allowed: http, mcp, console, servers, tenants, auth, sessions, execution, \
             images, answers, events, store, audit, telemetry; did you mean `store`?",
        ),
        ("JMG__HTTP", "x", "http: expected a table, found text"),
        (
            "JMG__SERVERS",
            "x",
            "servers: expected an array of tables ([[...]]), found text",
        ),
        (
            "JMG__SERVERS__3__NAME",
            "x",
            "servers[3]: entry 3 does not follow the 2 that exist",
        ),
        (
            "JMG__SERVERS__A__NAME",
            "x",
            "servers: expected a table, found an array",
        ),
        ("JMG__HTTP__0", "x", "http: expected a table, found an array"),
        (
            "JMG__SERVERS__1__NAME",
            "a",
            "servers[1].name: \"a\" is taken by servers[0]",
        ),
        (
            "JMG__SERVERS__0__TOKEN_ENV",
            "NO",
            "servers[0].token_env: environment variable NO is not set",
        ),
        (
            "JMG__MCP__MAX_SESSIONS",
            "many",
            "mcp.max_sessions: \"many\" is not an integer; expected digits such as 1000",
        ),
        (
            "JMG__AUTH__JUPYTER__ENABLED",
            "yes",
            "auth.jupyter.enabled: \"yes\" is not a boolean; expected true or false",
        ),
        (
            "JMG__HTTP__ALLOWED_HOSTS",
            "[a",
            "http.allowed_hosts: not a list; expected values separated by commas, or a TOML array",
        ),
        (
            "JMG__",
            "x",
            "\"\": unknown key; allowed: http, mcp, console, servers, tenants, auth, sessions, \
          execution, images, answers, events, store, audit, telemetry",
        ),
    ] {
        let said = refusal(TWO, &[(name, value)]);
        assert_eq!(said, format!("env {name}: {expected}"));
    }
}

#[test]
fn a_missing_key_is_asked_of_whoever_made_the_entry() {
    let said = refusal("", &[("JMG__SERVERS__0__NAME", "a")]);
    assert_eq!(said, "env JMG__SERVERS__0__NAME: servers[0].url: required but missing");
}

#[test]
fn exposure_by_a_variable_is_blamed_on_it() {
    let error = Config::load(None, &env(&[("JMG__HTTP__LISTEN", "0.0.0.0:1")])).unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with("env JMG__HTTP__LISTEN: http.listen: 0.0.0.0:1 can be"),
        "{said}"
    );
}

#[test]
fn two_spellings_of_one_variable_are_refused() {
    let pairs = [("JMG__STORE__URL", "sqlite:a"), ("jmg__store__url", "sqlite:b")];
    assert_eq!(
        refusal("", &pairs),
        "env jmg__store__url: store.url: also set by JMG__STORE__URL; names of variables are \
         case-insensitive"
    );
}

/// Every key of the default file, set through the environment to what the file says.
#[test]
fn the_defaults_survive_the_way_through_the_environment() {
    let text = include_str!("../../../config/default.toml");
    let file: toml::Table = toml::from_str(text).unwrap();
    let mut variables = env(&[]);
    flatten("JMG_", &toml::Value::Table(file), &mut variables);
    assert!(variables.len() > 25);
    assert_eq!(Config::load(None, &variables).unwrap(), Config::default());
}

fn flatten(prefix: &str, value: &toml::Value, variables: &mut crate::config::Env) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(&format!("{prefix}__{}", key.to_uppercase()), value, variables);
            }
        }
        toml::Value::String(text) => {
            variables.insert(prefix.replacen("JMG___", "JMG__", 1), text.clone());
        }
        other => {
            variables.insert(prefix.replacen("JMG___", "JMG__", 1), other.to_string());
        }
    }
}
