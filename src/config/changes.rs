//! Which keys two configs differ in, for whoever reads one again and cannot honour every change.

use super::access::AuthConfig;
use super::model::Config;
use super::reader::Section;

impl Config {
    /// The keys of which another config says something else. Lists of another length differ as a whole.
    pub fn changed_keys(&self, other: &Self) -> Vec<String> {
        let mut changed = Vec::new();
        self.compare(other, "", &mut changed);
        changed
    }
}

/// What is compared below a key.
pub(super) struct Comparison<'a> {
    path: &'a str,
    changed: &'a mut Vec<String>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(path: &'a str, changed: &'a mut Vec<String>) -> Self {
        Self { path, changed }
    }

    pub(super) fn value<T: PartialEq>(&mut self, key: &str, one: &T, other: &T) {
        if one != other {
            let key = self.key(key);
            self.changed.push(key);
        }
    }

    pub(super) fn section<S: Section>(&mut self, key: &str, one: &S, other: &S) {
        let key = self.key(key);
        one.compare(other, &key, self.changed);
    }

    pub(super) fn optional<S: Section>(&mut self, key: &str, one: Option<&S>, other: Option<&S>) {
        match (one, other) {
            (Some(one), Some(other)) => self.section(key, one, other),
            (None, None) => {}
            _ => {
                let key = self.key(key);
                self.changed.push(key);
            }
        }
    }

    pub(super) fn sections<S: Section>(&mut self, key: &str, one: &[S], other: &[S]) {
        if one.len() != other.len() {
            let key = self.key(key);
            self.changed.push(key);
            return;
        }
        for (index, (one, other)) in one.iter().zip(other).enumerate() {
            self.section(&format!("{key}[{index}]"), one, other);
        }
    }

    fn key(&self, key: &str) -> String {
        match self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}

pub(super) fn compare_all(one: &Config, other: &Config, comparison: &mut Comparison<'_>) {
    comparison.section("http", &one.http, &other.http);
    comparison.section("mcp", &one.mcp, &other.mcp);
    comparison.section("console", &one.console, &other.console);
    comparison.sections("servers", &one.servers, &other.servers);
    comparison.sections("tenants", &one.tenants, &other.tenants);
    comparison.section("auth", &one.auth, &other.auth);
    comparison.section("sessions", &one.sessions, &other.sessions);
    comparison.section("execution", &one.execution, &other.execution);
    comparison.section("images", &one.images, &other.images);
    comparison.section("answers", &one.answers, &other.answers);
    comparison.section("events", &one.events, &other.events);
    comparison.section("store", &one.store, &other.store);
    comparison.section("audit", &one.audit, &other.audit);
    comparison.section("telemetry", &one.telemetry, &other.telemetry);
}

pub(super) fn compare_auth(one: &AuthConfig, other: &AuthConfig, comparison: &mut Comparison<'_>) {
    comparison.sections("tokens", &one.tokens, &other.tokens);
    comparison.optional("jwt", one.jwt.as_ref(), other.jwt.as_ref());
    comparison.optional("jupyterhub", one.jupyterhub.as_ref(), other.jupyterhub.as_ref());
    comparison.section("oauth", &one.oauth, &other.oauth);
    comparison.section("jupyter", &one.jupyter, &other.jupyter);
}
