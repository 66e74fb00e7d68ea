//! Tests of the messages about an invalid configuration.

use super::refusal;
use crate::config::Config;

const SHA: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    let text = text.replace("SHA", SHA);
    let expected: Vec<_> = expected.iter().map(|it| format!("gateway.toml: {it}")).collect();
    assert_eq!(refusal(&text, &[]), expected.join("\n"));
}

#[test]
fn unknown_keys() {
    says(
        "[http]\nlisen = 1",
        &[
            "http.lisen: unknown key; allowed: listen, public_url, allowed_hosts, allowed_origins, \
           max_body_bytes, max_header_bytes, max_json_depth, max_connections, \
             max_connections_per_address, trusted_proxies, tls_cert, tls_key, drain_timeout, metrics_listen; did you \
           mean `listen`?",
        ],
    );
    says(
        "[[server]]\nname = 'a'",
        &[
            "server: unknown key; allowed: http, mcp, console, servers, tenants, auth, sessions, execution, \
           images, answers, events, store, audit, telemetry; did you mean `servers`?",
        ],
    );
    says(
        "[store]\n\"a\\nb\" = 1",
        &[
            "store.\"a\\nb\": unknown key; allowed: url, keep, max_bytes, max_bytes_per_principal, history, \
             history_keep, history_max_versions, history_max_bytes_per_document, history_max_bytes, activity_keep, \
             activity_max, audit_keep, audit_max, max_connections",
        ],
    );
    says(
        "[auth.jupyter]\nenable = true",
        &["auth.jupyter.enable: unknown key; allowed: enabled, tenant; did you mean `enabled`?"],
    );
}

#[test]
fn wrong_types() {
    for (text, expected) in [
        (
            "[http]\nmax_body_bytes = ''",
            "http.max_body_bytes: expected an integer, found a string",
        ),
        ("http = 3", "http: expected a table, found an integer"),
        (
            "[http]\nmax_body_bytes = '4'",
            "http.max_body_bytes: expected an integer, found a string",
        ),
        (
            "[http]\nlisten = 8585",
            "http.listen: expected a string, found an integer",
        ),
        (
            "[http]\nallowed_hosts = 'a'",
            "http.allowed_hosts: expected a list, found a string",
        ),
        (
            "[http]\nallowed_hosts = ['a', 2]",
            "http.allowed_hosts[1]: expected a string, found an integer",
        ),
        (
            "[sessions]\nidle_timeout = 300",
            "sessions.idle_timeout: expected a duration such as \"5m\", found an integer",
        ),
        (
            "[auth.jupyter]\nenabled = 'yes'",
            "auth.jupyter.enabled: expected a boolean, found a string",
        ),
        (
            "[servers]\nname = 'a'",
            "servers: expected an array of tables ([[...]]), found a table",
        ),
        ("servers = [1.5]", "servers[0]: expected a table, found a float"),
        (
            "[store]\nurl = 2020-01-01",
            "store.url: expected a string, found a date or time",
        ),
    ] {
        says(text, &[expected]);
    }
}

#[test]
fn bad_values() {
    for (text, expected) in [
        (
            "[http]\nlisten = 'localhost'",
            "http.listen: \"localhost\" is not an address; expected host:port such as \
             \"127.0.0.1:8585\"",
        ),
        (
            "[http]\npublic_url = 'mcp.example.org'",
            "http.public_url: not a URL; expected one such as \"https://host.example.org/path\"",
        ),
        (
            "[http]\npublic_url = 'ftp://mcp.example.org'",
            "http.public_url: the URL must start with http:// or https://",
        ),
        (
            "[http]\nallowed_hosts = ['https://a']",
            "http.allowed_hosts[0]: \"https://a\" is not a host; expected a host or host:port such \
             as \"mcp.example.org\"",
        ),
        (
            "[http]\nallowed_origins = ['app.example.org']",
            "http.allowed_origins[0]: \"app.example.org\" is not an origin; expected scheme://host \
             or scheme://host:port such as \"https://app.example.org\"",
        ),
        (
            "[http]\nmax_body_bytes = 1000",
            "http.max_body_bytes: 1000 is out of range; allowed: 1024 to 4294967296",
        ),
        (
            "[http]\nmax_json_depth = -1",
            "http.max_json_depth: -1 is out of range; allowed: 4 to 128",
        ),
        (
            "[http]\ndrain_timeout = '20'",
            "http.drain_timeout: \"20\" is not a duration; expected a number and a unit such as \
             \"30s\", \"5m\" or \"1h\"",
        ),
        (
            "[http]\ndrain_timeout = '0s'",
            "http.drain_timeout: \"0s\" is not a usable duration; it must be more than zero and at \
             most a year",
        ),
        (
            "[events]\nurl = 'memcached://x'",
            "events.url: the URL must be empty, or start with redis:// or rediss://",
        ),
        (
            "[store]\nurl = 'mysql://x'",
            "store.url: the URL must start with sqlite:, postgres: or postgresql:",
        ),
        (
            "[telemetry]\nlog_format = 'jsn'",
            "telemetry.log_format: \"jsn\" is not a log format; allowed: auto, pretty, json; did \
             you mean `json`?",
        ),
        (
            "[telemetry]\nlog_level = 'verbose'",
            "telemetry.log_level: \"verbose\" is not a log level; expected a level (off, error, \
             warn, info, debug, trace) or a list such as \"info,hyper=warn\"",
        ),
        (
            "[telemetry]\notlp_protocol = 'udp'",
            "telemetry.otlp_protocol: \"udp\" is not a protocol of OpenTelemetry; allowed: grpc, http/protobuf",
        ),
    ] {
        says(text, &[expected]);
    }
}

#[test]
fn servers() {
    const SERVER: &str = "[[servers]]\nname = 'lab-a'\nurl = 'http://a/'\n";
    says(
        "[[servers]]",
        &[
            "servers[0].name: required but missing",
            "servers[0].url: required but missing",
        ],
    );
    says(
        &format!("{SERVER}[[servers]]\nname = 'Lab A'\nurl = 'http://a/?token=x'"),
        &[
            "servers[1].url: the URL must not contain a query or fragment; a token goes into a key \
             of its own",
            "servers[1].name: \"Lab A\" is not a server name; allowed [a-z0-9-]+",
        ],
    );
    says(
        &format!("{SERVER}{SERVER}"),
        &["servers[1].name: \"lab-a\" is taken by servers[0]"],
    );
    says(
        &format!("{SERVER}token = 'x'\ntoken_file = '/nowhere'"),
        &["servers[0].token_file: only one of token, token_env, token_file may be set"],
    );
    says(
        &format!("{SERVER}token_env = 'LAB_A_TOKEN'"),
        &["servers[0].token_env: environment variable LAB_A_TOKEN is not set"],
    );
    says(
        &format!("{SERVER}token_file = '/nowhere/lab-a'"),
        &[
            "servers[0].token_file: cannot read /nowhere/lab-a: No such file or directory (os \
             error 2)",
        ],
    );
}

#[test]
fn tenants() {
    says(
        "[[tenants]]\nname = 'a'\nservers = ['lab-x']\npermissions = ['reed']\npaths = ['{a', '!']\n\
         toolsets = ['notebok']\nburst = 0",
        &[
            "tenants[0].permissions[0]: \"reed\" is not a permission; allowed: read, write, \
             execute, admin; did you mean `read`?",
            "tenants[0].paths[0]: \"{a\" is not a glob: unclosed alternate group; missing '}' \
             (maybe escape '{' with '[{]'?)",
            "tenants[0].paths[1]: must not be empty",
            "tenants[0].toolsets[0]: \"notebok\" is not a toolset; allowed: gateway, url, notebook, \
             kernel, execution, document, files, session, history, awareness, collab, classic, datalayer, \
             all, default; did you mean `notebook`?",
            "tenants[0].burst: 0 is out of range; allowed: 1 to 1000000",
            "tenants[0].servers[0]: \"lab-x\" is not a configured server; configured: none",
        ],
    );
    says(
        "[[tenants]]\nname = 'a'\n[[tenants]]\nname = 'a'\n[[tenants]]\nname = 'b '",
        &[
            "tenants[1].name: \"a\" is taken by tenants[0]",
            "tenants[2].name: \"b \" is not a name; it must not contain control characters, or \
             spaces at its ends",
        ],
    );
}

#[test]
fn tokens() {
    const TENANTS: &str = "[[tenants]]\nname = 'a'\n[[tenants]]\nname = 'b'\n";
    const TOKEN: &str = "[[auth.tokens]]\nname = 'x'\ntenant = 'a'\n";
    says(
        &format!("{TENANTS}{TOKEN}"),
        &["auth.tokens[0]: one of sha256, token is required"],
    );
    says(
        &format!("{TENANTS}{TOKEN}token = '12345678'\nsha256 = 'SHA'"),
        &["auth.tokens[0].token: only one of sha256, token may be set"],
    );
    says(
        &format!("{TENANTS}{TOKEN}token = '1234567'"),
        &["auth.tokens[0].token: too short; expected at least 8 characters"],
    );
    says(
        &format!("{TENANTS}{TOKEN}sha256 = '1234567'"),
        &[
            "auth.tokens[0].sha256: not a SHA-256 hash; expected 64 hexadecimal digits as `token \
             new` prints them",
        ],
    );
    says(
        &format!("{TENANTS}{TOKEN}sha256 = 'SHA'\n{TOKEN}sha256 = 'sha256:SHA'"),
        &[
            "auth.tokens[1].name: \"x\" is taken by auth.tokens[0]",
            "auth.tokens[1]: the same bearer token as auth.tokens[0]",
        ],
    );
    says(
        "[[tenants]]\nname = 'b'\n[auth]\njupyterhub = { url = 'http://hub/', tenant = 'c' }\n\
         [[auth.tokens]]\nname = 'x'\ntenant = 'a'\nsha256 = 'SHA'",
        &[
            "auth.tokens[0].tenant: \"a\" is not a configured tenant; configured: b",
            "auth.jupyterhub.tenant: \"c\" is not a configured tenant; configured: b",
        ],
    );
}

#[test]
fn jwt() {
    says(
        "[auth.jwt]\nissuer = 'x'",
        &[
            "auth.jwt.issuer: not a URL; expected one such as \"https://host.example.org/path\"",
            "auth.jwt.audience: required but missing",
        ],
    );
}

#[test]
fn exposure() {
    says(
        "[http]\nlisten = '0.0.0.0:8585'",
        &[
            "http.listen: 0.0.0.0:8585 can be reached from other machines, but nobody would have \
             to log in; add [[auth.tokens]] (see `token new`), [auth.jwt], [auth.jupyterhub] or \
             auth.jupyter.enabled = true, or listen on 127.0.0.1",
        ],
    );
}

#[test]
fn everything_wrong_is_said_at_once() {
    says(
        "[http]\nlisten = 'x'\n[mcp]\nmax_sessions = 0\n[[servers]]\nname = 'a'\nurl = 'x'\n[foo]",
        &[
            "http.listen: \"x\" is not an address; expected host:port such as \"127.0.0.1:8585\"",
            "mcp.max_sessions: 0 is out of range; allowed: 1 to 1000000",
            "servers[0].url: not a URL; expected one such as \"https://host.example.org/path\"",
            "foo: unknown key; allowed: http, mcp, console, servers, tenants, auth, sessions, execution, \
             images, answers, events, store, audit, telemetry",
        ],
    );
}

#[test]
fn syntax_errors_have_a_line_and_a_column() {
    says(
        "[http]\nlisten = ",
        &["line 2, column 10: string values must be quoted, expected literal string"],
    );
    says(
        "[http]\nlisten = 'a'\nlisten = 'b'",
        &["line 3, column 1: duplicate key"],
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let path = std::path::Path::new("/nowhere/gateway.toml");
    let error = Config::load(Some(path), &super::env(&[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/nowhere/gateway.toml: cannot be read: No such file or directory (os error 2)"
    );
}
