//! No input makes the module panic, and every message stays on its line.

use proptest::prelude::*;
use proptest::string::{RegexGeneratorStrategy, string_regex};

use super::{env, parse};
use crate::config::{Config, ConfigError};

const WORDS: &str = "http|mcp|servers|tenants|auth|auth.tokens|auth.jwt|auth.jupyterhub|auth.jupyter|\
    sessions|execution|events|store|telemetry|listen|public_url|allowed_hosts|allowed_origins|name|url|\
    token|token_env|token_file|sha256|tenant|permissions|paths|toolsets|issuer|jwks_url|ttl|log_level|\
    max_body_bytes|idle_timeout|x";

fn toml_ish() -> impl Strategy<Value = String> {
    let word = WORDS.replace('.', "\\.");
    let value = "(\"[^\"\\\\\n]{0,12}\"|-?[0-9]{1,20}|true|\\[\"[a-z*!{]{0,4}\", ?[0-9]\\]|\\{ ?name = 'é' \\}|\
        \"[0-9]{1,20}(s|m|h|y)\"|\"https?://[a-z@:?*/.\\[]{0,12}\"|\"localhost:[0-9]{1,6}\"|.{0,8})";
    let line = format!("(\\[({word})\\]|\\[\\[({word})\\]\\]|({word}) = {value}|.{{0,12}})");
    prop::collection::vec(matching(&line), 0..12).prop_map(|lines| lines.join("\n"))
}

fn variable_ish() -> impl Strategy<Value = String> {
    let piece = format!("(__({WORDS}|[0-9]{{1,20}}|.{{0,3}}))");
    matching(&format!("(JMG|jmg){piece}{{0,6}}"))
}

fn matching(regex: &str) -> RegexGeneratorStrategy<String> {
    string_regex(regex).unwrap()
}

proptest! {
    #[test]
    fn any_text(text in toml_ish()) {
        check(parse(&text, &[]));
    }

    #[test]
    fn any_value_of_any_key(key in matching(&WORDS.replace('.', "\\.")), value in "\\PC{0,24}|[0-9]{1,25}[a-z]{0,2}") {
        let quoted = toml::Value::from(value);
        for section in ["http", "auth.jwt", "auth.jupyterhub", "events", "store", "audit", "telemetry"] {
            check(parse(&format!("[{section}]\n{key} = {quoted}"), &[]));
        }
        for list in ["servers", "tenants", "auth.tokens"] {
            check(parse(&format!("[[{list}]]\n{key} = {quoted}"), &[]));
            check(parse(&format!("[[{list}]]\n{key} = [{quoted}]"), &[]));
        }
    }

    #[test]
    fn any_variable(name in variable_ish(), value in ".{0,16}") {
        let servers = "servers = [{ name = 'a', url = 'http://a' }]";
        check(parse(servers, &[(&name, &value)]));
    }
}

fn check(loaded: Result<Config, ConfigError>) {
    let Err(error) = loaded else { return };
    let lines = match &error {
        ConfigError::Invalid(problems) => problems.len(),
        _ => 1,
    };
    assert_eq!(error.to_string().lines().count(), lines, "{error}");
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}1", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
        format!("a = {}1{}", "[".repeat(70), "]".repeat(70)),
    ] {
        assert!(parse(&text, &[]).is_err());
    }
    let name = format!("JMG{}", "__A".repeat(100_000));
    assert!(Config::load(None, &env(&[(&name, "x")])).is_err());
}
