//! Questions to services that tell who somebody is: over a client of their own, with limits on time and size, and never
//! redirected.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode, redirect::Policy};
use serde::de::DeserializeOwned;

/// Time for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for a whole answer.
const TIMEOUT: Duration = Duration::from_secs(8);
/// Key sets and discovery documents have some kilobytes.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// Reason why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it answered with status {0}")]
    Status(u16),
    #[error("its answer is larger than {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
    #[error("its answer is not what it should be: {0}")]
    Malformed(String),
}

/// A client for such questions. Proxies of the environment are used, except for this machine itself.
pub fn client(is_local: bool) -> Result<Client, reqwest::Error> {
    let builder = Client::builder();
    let builder = if is_local { builder.no_proxy() } else { builder };
    builder
        // Who redirects could send secrets elsewhere, or have keys come from there.
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .tcp_nodelay(true)
        .build()
}

/// Sends a request and reads its answer as JSON.
pub async fn json<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, OutboundError> {
    let (status, body) = answer(request).await?;
    if !status.is_success() {
        return Err(OutboundError::Status(status.as_u16()));
    }
    parse(&body)
}

/// Reads JSON that somebody else wrote.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, OutboundError> {
    if !jupyter_client::is_shallow_json(body) {
        return Err(OutboundError::Malformed("it is nested too deeply".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| {
        // The error may quote the text, which may hold secrets.
        OutboundError::Malformed(format!("line {}, column {}", error.line(), error.column()))
    })
}

/// Sends a request and reads its answer, whatever its status.
pub async fn answer(request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), OutboundError> {
    let unreachable = |error: reqwest::Error| OutboundError::Unreachable(error.without_url().to_string());
    let mut response = request.send().await.map_err(unreachable)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(OutboundError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok((response.status(), body))
}
