//! A Jupyter server's own API, as JupyterLab in a browser uses it.

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use super::{
    eventually,
    process::{children, command_line},
};

pub struct JupyterApi {
    /// Ends with a slash.
    pub url: String,
    pub token: String,
}

impl JupyterApi {
    pub fn new(url: &str, token: &str) -> Self {
        install_tls();
        Self {
            url: url.to_owned(),
            token: token.to_owned(),
        }
    }

    pub async fn get(&self, path: &str) -> Response {
        self.send(Method::GET, path, Value::Null).await
    }

    pub async fn send(&self, method: Method, path: &str, body: Value) -> Response {
        Client::new()
            .request(method, format!("{}{path}", self.url))
            .header("authorization", format!("token {}", self.token))
            .json(&body)
            .send()
            .await
            .expect("an answer of Jupyter")
    }

    /// Starts a kernel in the server whose process is given, and tells the kernel's process.
    pub async fn start_kernel(&self, server: u32) -> u32 {
        let answer = self.send(Method::POST, "api/kernels", json!({})).await;
        assert_eq!(answer.status(), 201);
        let kernel: Value = answer.json().await.expect("json");
        let connection_file = format!("kernel-{}.json", kernel["id"].as_str().expect("an id"));
        // Between its fork and its exec a kernel still looks like the server.
        eventually("the kernel runs", async || {
            let mut processes = children(server).into_iter();
            processes.find(|pid| command_line(*pid).ends_with(&connection_file))
        })
        .await
    }
}

/// For HTTP clients in tests without a gateway in this process, which would have done it. Doing it
/// again changes nothing.
pub fn install_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}
