//! A real OpenID provider of a test's own: npm's oidc-provider, with `tests/it/provider/provider.mjs` around it.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Child,
};

use super::{TIMEOUT, jupyter::install_tls, node::node_script, within};

/// A provider, which ends with the test.
pub struct Provider {
    issuer: String,
    http: reqwest::Client,
    child: Child,
}

/// A client that has registered itself there.
pub struct ProviderClient {
    pub id: String,
    pub secret: String,
}

#[allow(
    dead_code,
    reason = "accounts are for logins, not for tokens that clients get by themselves"
)]
impl Provider {
    pub async fn start() -> Self {
        Self::start_on(0).await
    }

    /// Starts it on a port, where one may have been before.
    async fn start_on(port: u16) -> Self {
        install_tls();
        let mut child = node_script("provider/provider.mjs")
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node runs");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let issuer = within(TIMEOUT, "an OpenID provider", lines.next_line()).await;
        Self {
            issuer: issuer.expect("text").expect("its issuer"),
            http: reqwest::Client::builder().no_proxy().build().expect("a client"),
            child,
        }
    }

    /// Ends it, as an outage does.
    pub async fn stop(&mut self) {
        self.child.kill().await.expect("killed");
    }

    /// Starts it again under the same address, with another key and without its clients.
    pub async fn restart(&mut self) {
        self.stop().await;
        let port = self.issuer.rsplit(':').next().and_then(|port| port.parse().ok());
        *self = Self::start_on(port.expect("a port")).await;
    }

    /// Sets how many seconds access tokens hold.
    pub async fn lifetime(&self, seconds: u32) {
        self.control("PUT", "lifetime", &json!(seconds)).await;
    }

    /// An access token of a client of its own for an audience, with these scopes.
    pub async fn token(&self, client: &ProviderClient, audience: &str, scope: &str) -> String {
        let form = [
            ("grant_type", "client_credentials"),
            ("resource", audience),
            ("scope", scope),
        ];
        let form = form.map(|(name, value)| {
            format!(
                "{name}={}",
                value.replace(':', "%3A").replace('/', "%2F").replace(' ', "+")
            )
        });
        let request = self.http.post(format!("{}/token", self.issuer));
        let request = request
            .basic_auth(&client.id, Some(&client.secret))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.join("&"));
        let answer = request.send().await.expect("an answer").text().await.expect("text");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let token = answer["access_token"].as_str();
        token.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Tells it of an account, which may log in from now on.
    pub async fn account(&self, name: &str, claims: Value) {
        self.control("PUT", &format!("accounts/{name}"), &claims).await;
    }

    /// Removes an account: nothing that it began goes on.
    pub async fn remove_account(&self, name: &str) {
        self.control("DELETE", &format!("accounts/{name}"), &Value::Null).await;
    }

    /// Sets what access tokens say beside the usual.
    pub async fn token_claims(&self, claims: Value) {
        self.control("PUT", "token", &claims).await;
    }

    /// Signs with a new key from now on; the former ones are published unless they are forgotten.
    pub async fn rotate_key(&self, forget: bool) {
        let query = if forget { "?forget=true" } else { "" };
        self.control("POST", &format!("rotate{query}"), &Value::Null).await;
    }

    /// Registers a client, which may be answered at a redirect URI and have tokens of its own.
    pub async fn register(&self, redirect_uri: &str) -> ProviderClient {
        let grants = ["authorization_code", "refresh_token", "client_credentials"];
        self.register_for(redirect_uri, &grants).await
    }

    /// The same for these grants.
    pub async fn register_for(&self, redirect_uri: &str, grants: &[&str]) -> ProviderClient {
        let metadata = json!({ "redirect_uris": [redirect_uri], "grant_types": grants });
        let request = self.http.post(format!("{}/reg", self.issuer));
        let request = request
            .header("content-type", "application/json")
            .body(metadata.to_string());
        let answer = request.send().await.expect("an answer").text().await.expect("text");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let text = |member: &str| answer[member].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        ProviderClient {
            id: text("client_id"),
            secret: text("client_secret"),
        }
    }

    async fn control(&self, method: &str, path: &str, body: &Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let request = self.http.request(method, format!("{}/test/{path}", self.issuer));
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let answer = request.body(body).send().await.expect("an answer");
        assert_eq!(answer.status(), 204, "{path}");
    }
}
