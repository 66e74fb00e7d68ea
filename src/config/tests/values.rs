//! Tests of how valid values are parsed.

use super::load;
use crate::config::{Config, validate_exposure};

#[test]
fn addresses() {
    let config = load("[http]\nlisten = 'localhost:80'\nmetrics_listen = '[::1]:9090'");
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:80");
    assert_eq!(config.http.metrics_listen.unwrap().to_string(), "[::1]:9090");
}

#[test]
fn base_urls_end_with_a_slash() {
    let config = load("[http]\npublic_url = 'https://a.org/x'\n[[servers]]\nname='a'\nurl='http://a/user/b'");
    assert_eq!(config.http.public_url.unwrap().as_str(), "https://a.org/x/");
    assert_eq!(config.servers[0].url.as_str(), "http://a/user/b/");
}

#[test]
fn hosts_and_origins_are_normalised() {
    let config = load(
        "[http]\nallowed_hosts = ['A.org', 'a.org:8080', '[::1]:1', '10.0.0.1']\n\
         allowed_origins = ['https://A.org:443/', 'http://a.org:8080', 'vscode-webview://Id']",
    );
    assert_eq!(
        config.http.allowed_hosts,
        ["a.org", "a.org:8080", "[::1]:1", "10.0.0.1"]
    );
    let origins = ["https://a.org", "http://a.org:8080", "vscode-webview://id"];
    assert_eq!(config.http.allowed_origins, origins);
}

#[test]
fn log_levels() {
    for level in [
        "info",
        "WARN",
        "info,hyper=warn",
        "off, a::b=debug",
        "info,[span{x=1}]=trace",
    ] {
        let config = load(&format!("[telemetry]\nlog_level = '{level}'"));
        assert_eq!(config.telemetry.log_level, level);
    }
}

#[test]
fn engines() {
    for url in ["sqlite::memory:", "sqlite://x.db", "postgres://h/d", "postgresql://h/d"] {
        assert_eq!(load(&format!("[store]\nurl = '{url}'")).store.url.expose(), url);
    }
    for url in ["redis://h/0", "rediss://h/0"] {
        let config = load(&format!(
            "[events]
url = '{url}'"
        ));
        assert_eq!(config.events.url.unwrap().expose(), url);
    }
    assert_eq!(
        load(
            "[events]
url = ''"
        )
        .events
        .url,
        None
    );
}

#[test]
fn an_issuer_stays_as_written() {
    let config = load("[auth.jwt]\nissuer = 'https://A.org'\naudience = 'x'");
    assert_eq!(config.auth.jwt.unwrap().issuer, "https://A.org");
}

#[test]
fn a_tenant_without_servers_has_all_in_order_unless_it_is_that_of_a_hub() {
    let config = load(
        "servers = [{ name = 'b', url = 'http://b' }, { name = 'a', url = 'http://a' }]\n\
         tenants = [{ name = 'x' }, { name = 'y', servers = ['a', 'b'] }, { name = 'z' }]\n\
         auth.jupyterhub = { url = 'http://hub/hub/api', tenant = 'z' }",
    );
    let names = |tenant| -> Vec<_> {
        let tenant = config.tenant(tenant).unwrap();
        config.servers_of(tenant).iter().map(|it| it.name.as_str()).collect()
    };
    assert_eq!(names("x"), ["b", "a"]);
    assert_eq!(names("y"), ["a", "b"]);
    assert!(names("z").is_empty());
}

#[test]
fn exposure_needs_a_way_to_log_in() {
    let mut config = Config::default();
    assert!(validate_exposure(&config).is_ok());
    config.http.listen = "[::ffff:127.0.0.1]:1".parse().unwrap();
    assert!(validate_exposure(&config).is_ok());
    config.http.listen = "[::]:1".parse().unwrap();
    let problem = validate_exposure(&config).unwrap_err();
    let said = problem.with_origin("--listen").to_string();
    assert!(
        said.starts_with("--listen: http.listen: [::]:1 can be reached"),
        "{said}"
    );
    config.auth.jupyter.enabled = true;
    assert!(validate_exposure(&config).is_ok());
}
