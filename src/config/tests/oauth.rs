//! Browser logins: what they need.

use super::{load_with, parse, refusal};

const GOOD: &str = r#"
    [http]
    public_url = "https://mcp.example.org"
    [auth.jwt]
    issuer = "https://login.example.org"
    audience = "https://mcp.example.org/mcp"
    [auth.oauth]
    enabled = true
    client_id = "gateway"
    client_secret_env = "SECRET"
"#;

#[test]
fn the_key_is_one_of_its_own_or_the_secret_of_the_client() {
    let config = load_with(GOOD, &[("SECRET", "hunter2")]);
    let variables = [("SECRET", "hunter2"), ("KEY", "0123456789abcdef0123456789abcdef")];
    let env = super::env(&variables);
    let secrets = config.auth.oauth.secrets(&env).unwrap();
    assert_eq!(secrets.encryption_key.expose(), "hunter2");
    assert!(!format!("{secrets:?}").contains("hunter2"));
    let with_key = GOOD.replace("client_secret_env = \"SECRET\"", "encryption_key_env = \"KEY\"");
    let config = load_with(&with_key, &variables);
    let secrets = config.auth.oauth.secrets(&env).unwrap();
    assert_eq!(secrets.encryption_key.expose(), variables[1].1);
    assert!(secrets.client_secret.is_empty());
}

#[test]
fn what_is_missing_is_named() {
    for (good, bad, told) in [
        (
            "public_url = \"https://mcp.example.org\"",
            "",
            "auth.oauth.enabled: needs http.public_url too",
        ),
        (
            "https://mcp.example.org\"\n    [auth",
            "http://mcp.example.org\"\n    [auth",
            "http.public_url: browser logins",
        ),
        (
            "client_id = \"gateway\"",
            "",
            "auth.oauth.client_id: required but missing",
        ),
        (
            "client_secret_env = \"SECRET\"",
            "",
            "auth.oauth: one of client_secret_env, encryption_key_env is required",
        ),
        (
            "\"SECRET\"",
            "\"OTHER\"",
            "auth.oauth.client_secret_env: environment variable OTHER is not set",
        ),
        (
            "client_secret_env = \"SECRET\"",
            "encryption_key_env = \"SECRET\"",
            "auth.oauth.encryption_key_env: the key is too short",
        ),
        (
            "enabled = true",
            "enabled = true\nscopes = [\"profile\"]",
            "auth.oauth.scopes: must contain \"openid\"",
        ),
    ] {
        assert!(GOOD.contains(good), "{good}");
        let refused = refusal(&GOOD.replace(good, bad), &[("SECRET", "hunter2")]);
        assert!(refused.contains(told) && !refused.contains("hunter2"), "{refused}");
    }
    let without = GOOD.replace("[auth.jwt]", "[auth.none]");
    let refused = refusal(&without, &[("SECRET", "hunter2")]);
    assert!(
        refused.contains("auth.oauth.enabled: needs [auth.jwt] or [auth.jupyterhub]"),
        "{refused}"
    );
    // What is not enabled needs nothing.
    assert!(parse("[auth.oauth]\nclient_secret_env = \"NONE\"", &[]).is_ok());
}

#[test]
fn people_can_log_in_at_a_hub() {
    let jwt = GOOD.find("[auth.jwt]").unwrap()..GOOD.find("[auth.oauth]").unwrap();
    let hub =
        "[[tenants]]\nname = \"t\"\n[auth.jupyterhub]\nurl = \"https://hub.example.org/hub/api\"\ntenant = \"t\"\n";
    let with_hub = GOOD.replace(&GOOD[jwt], hub);
    let variables = [("SECRET", "hunter2"), ("KEY", "0123456789abcdef0123456789abcdef")];
    assert!(load_with(&with_hub, &variables).auth.oauth.enabled);
    for (changed, told) in [
        (
            with_hub.replace("client_secret_env = \"SECRET\"", "encryption_key_env = \"KEY\""),
            "client_secret_env: required but missing",
        ),
        (
            format!("{with_hub}scopes = [\"openid\"]\n"),
            "auth.oauth.scopes: a JupyterHub gives",
        ),
    ] {
        let refused = refusal(&changed, &variables);
        assert!(refused.contains(told), "{refused}");
    }
}
