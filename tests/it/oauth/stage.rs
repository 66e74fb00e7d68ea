//! A provider, a gateway at which people can log in, and clients that ask them to.

use std::ops::Deref;

use serde_json::{Value, json};

use super::{ALL, Site};
use crate::support::{
    Gateway, eventually,
    gateway::lab_server,
    own_lab::free_port,
    provider::{Provider, ProviderClient},
};

const KEY: &str = "a key of thirty-two characters, or more";

/// The record of logins and calls.
const AUDIT: &str = "audit.jsonl";

pub struct Stage {
    pub provider: Provider,
    site: Site,
    port: u16,
    config: String,
    client: ProviderClient,
    folder: tempfile::TempDir,
}

impl Deref for Stage {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl Stage {
    pub async fn new() -> Self {
        Self::with("").await
    }

    /// With more settings of `[auth.oauth]`.
    pub async fn with(more: &str) -> Self {
        Self::of(&["authorization_code", "refresh_token", "client_credentials"], more).await
    }

    /// At a provider that gives no refresh tokens.
    pub async fn without_refresh_tokens() -> Self {
        Self::of(&["authorization_code"], "").await
    }

    /// The gateway may get these grants.
    async fn of(grants: &[&str], more: &str) -> Self {
        let provider = Provider::start().await;
        for name in ["ana", "ben"] {
            let claims = json!({ "tenant": "research", "permissions": ALL.split(' ').collect::<Vec<_>>() });
            provider.account(name, claims).await;
        }
        let port = free_port();
        let client = provider
            .register_for(&format!("http://127.0.0.1:{port}/oauth/callback"), grants)
            .await;
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("gateway.db");
        let config = format!(
            "http.public_url = \"http://127.0.0.1:{port}\"\nstore.url = \"sqlite://{}\"\naudit.file = \"{}\"\n{}\
             [[tenants]]\nname = \"research\"\npermissions = [\"read\", \"write\", \"execute\"]\n\
             requests_per_minute = 100000\nburst = 100000\n\
             [auth.jwt]\nissuer = \"{}\"\naudience = \"http://127.0.0.1:{port}/mcp\"\npermissions_claim = \"permissions\"\n\
             [auth.oauth]\nenabled = true\nclient_id = \"{}\"\nclient_secret_env = \"SECRET\"\nencryption_key_env = \"KEY\"\n{more}\n",
            store.display(),
            folder.path().join(AUDIT).display(),
            lab_server("lab"),
            provider.issuer(),
            client.id,
        );
        let gateway = Gateway::on_port(port, &config, &[("SECRET", &client.secret), ("KEY", KEY)]).await;
        Self {
            provider,
            site: Site::new(gateway),
            port,
            config,
            client,
            folder,
        }
    }

    /// The same gateway, started again on what it has stored.
    pub async fn restarted(self) -> Self {
        self.site.gateway.drain().start();
        self.site.gateway.gone().await;
        let environment = [("SECRET", self.client.secret.as_str()), ("KEY", KEY)];
        let gateway = Gateway::on_port(self.port, &self.config, &environment).await;
        Self {
            site: Site::new(gateway),
            ..self
        }
    }

    /// Waits for a record of a login: its decision, and whose it was.
    pub async fn audited(&self, decision: &str, principal: &str) {
        eventually("the login is recorded", async || {
            let text = std::fs::read_to_string(self.folder.path().join(AUDIT)).ok()?;
            let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let is_it = |line: &Value| {
                line["tool"] == "login"
                    && line["decision"] == decision
                    && line["principal"].as_str().unwrap_or_default() == principal
            };
            lines.any(|line| is_it(&line)).then_some(())
        })
        .await;
    }
}
