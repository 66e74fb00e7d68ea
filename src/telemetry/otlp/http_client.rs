//! The HTTP client by which telemetry is sent. The threads that send it are no tasks, so that the runtime does the work.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use url::{Host, Url};

use super::OtlpError;

/// Longest time for one batch, as OpenTelemetry has it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer of a collector that is read.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(super) struct CollectorClient {
    http: reqwest::Client,
    runtime: Handle,
}

impl CollectorClient {
    /// A client for the collector at an address. Within a runtime.
    pub(super) fn new(endpoint: &str) -> Result<Self, OtlpError> {
        // Installing it again changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(endpoint) {
            // A proxy of the environment is for other machines.
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| OtlpError::Endpoint {
            key: "telemetry.otlp_endpoint".to_owned(),
            why: error.to_string(),
        })?;
        Ok(Self {
            http,
            runtime: Handle::current(),
        })
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let http = self.http.clone();
        let sending = self.runtime.spawn(async move {
            let mut answer = http.execute(request).await?;
            let mut response = Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                headers.clone_from(answer.headers());
            }
            let mut body = Vec::new();
            while body.len() < MAX_ANSWER_BYTES
                && let Some(chunk) = answer.chunk().await?
            {
                body.extend_from_slice(&chunk);
            }
            Ok::<_, HttpError>(response.body(Bytes::from(body))?)
        });
        sending.await?
    }
}

fn is_loopback(endpoint: &str) -> bool {
    let url = Url::parse(endpoint).ok();
    match url.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
