//! A gateway at which people can log in, as its clients see it.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU16, Ordering},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use super::Browser;
use crate::support::Gateway;

/// Where clients are answered. Nobody listens there: the browser stops at it.
pub const CALLBACK: &str = "http://127.0.0.1:9/callback";
pub const ALL: &str = "jupyter:read jupyter:write jupyter:execute jupyter:admin";

pub struct Site {
    pub gateway: Gateway,
    http: reqwest::Client,
}

/// A client that has registered itself, as a client of a gateway sees itself.
#[derive(Clone)]
pub struct Client {
    pub id: String,
    pub verifier: String,
}

impl Site {
    pub fn new(gateway: Gateway) -> Self {
        Self {
            gateway,
            http: reqwest::Client::builder().no_proxy().build().expect("a client"),
        }
    }

    pub fn url(&self, path: &str) -> String {
        self.gateway.url(path)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.http.get(self.url(path)).send().await.expect("an answer")
    }

    /// The challenge to whoever sends no token.
    pub async fn challenge(&self) -> String {
        let answer = self.get("/mcp").await;
        assert_eq!(answer.status(), 401);
        answer.headers()["www-authenticate"].to_str().expect("text").to_owned()
    }

    pub async fn document(&self, path: &str) -> Value {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), 200, "{path}");
        answer.json().await.expect("JSON")
    }

    pub async fn register(&self, metadata: &Value) -> (StatusCode, Value) {
        let answer = self.http.post(self.url("/oauth/register")).json(metadata).send().await;
        let answer = answer.expect("an answer");
        (answer.status(), answer.json().await.expect("JSON"))
    }

    /// A client that registers itself.
    pub async fn client(&self) -> Client {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let metadata = json!({ "client_name": "<b>Agent</b>", "redirect_uris": [CALLBACK] });
        let (status, answer) = self.register(&metadata).await;
        assert_eq!(status, 201, "{answer}");
        Client {
            id: answer["client_id"].as_str().expect("an id").to_owned(),
            verifier: format!("{:0>43}", NEXT.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// The URL at which a login begins, with other parameters than usual; an empty one is left out.
    pub fn authorize_url(&self, client: &Client, other: &[(&str, &str)]) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&client.verifier));
        let resource = self.url("/mcp");
        let mut parameters = HashMap::from([
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", CALLBACK),
            ("state", "the client's state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
            ("scope", ALL),
        ]);
        parameters.extend(other.iter().copied());
        let given = parameters.into_iter().filter(|(_, value)| !value.is_empty());
        Url::parse_with_params(&self.url("/oauth/authorize"), given)
            .expect("a URL")
            .into()
    }

    /// The code for a client that a person has allowed to act for them.
    pub async fn code(&self, client: &Client, account: &str) -> String {
        let answer = Browser::new().allow(&self.authorize_url(client, &[]), account).await;
        answer["code"].clone()
    }

    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> (StatusCode, Value) {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self.http.post(self.url(path)).body(body);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.send().await.expect("an answer");
        let status = answer.status();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Redeems a code.
    pub async fn redeem(&self, client: &Client, code: &str) -> (StatusCode, Value) {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", &client.id),
            ("code", code),
            ("redirect_uri", CALLBACK),
            ("code_verifier", &client.verifier),
        ];
        self.post("/oauth/token", &form).await
    }

    pub async fn refresh(&self, client: &Client, tokens: &Value) -> (StatusCode, Value) {
        let refresh_token = tokens["refresh_token"].as_str().expect("a refresh token");
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &client.id),
            ("refresh_token", refresh_token),
        ];
        self.post("/oauth/token", &form).await
    }

    /// A client with the tokens of somebody who has allowed it everything.
    pub async fn tokens(&self, account: &str) -> (Client, Value) {
        let client = self.client().await;
        let code = self.code(&client, account).await;
        let (status, tokens) = self.redeem(&client, &code).await;
        assert_eq!(status, 200, "{tokens}");
        (client, tokens)
    }

    /// The status with which a request with an access token is answered.
    pub async fn status_of(&self, tokens: &Value) -> u16 {
        let token = tokens["access_token"].as_str().expect("an access token");
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let request = self.http.post(self.url("/mcp")).bearer_auth(token).json(&list);
        let request = request.header("accept", "application/json, text/event-stream");
        let answer = request.header("mcp-protocol-version", "2025-11-25").send().await;
        answer.expect("an answer").status().as_u16()
    }

    /// Returns whether an access token is one that is known.
    pub async fn is_known(&self, tokens: &Value) -> bool {
        self.status_of(tokens).await != 401
    }
}
