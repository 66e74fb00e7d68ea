//! Options of the connection to one server, and the observer of its requests. Does not read configuration.

use std::time::Duration;

use http::HeaderMap;
use reqwest::Response;
use url::Url;

use crate::{Authorities, Secret};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub name: String,
    /// Ends with a slash.
    pub url: Url,
    /// Base URL for people, for links; ends with a slash. `None` means `url`.
    pub public_url: Option<Url>,
    /// Empty where the server asks for none.
    pub token: Secret,
    pub connect_timeout: Duration,
    pub request_timeout: Duration,
    /// Those who may have signed its certificate. `None` means those that the system trusts.
    pub authorities: Option<Authorities>,
}

impl ServerOptions {
    pub fn new(name: impl Into<String>, url: Url, token: Secret) -> Self {
        Self {
            name: name.into(),
            url,
            public_url: None,
            token,
            connect_timeout: CONNECT_TIMEOUT,
            request_timeout: REQUEST_TIMEOUT,
            authorities: None,
        }
    }
}

/// Measures requests, and names the trace they belong to.
pub trait RequestObserver: Send + Sync {
    /// Headers by which a server can join the trace of the current work: `traceparent`, `tracestate` and `baggage` of W3C.
    fn trace_headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    /// A server answered a request, or did not.
    fn on_request(&self, server: &str, outcome: RequestOutcome, took: Duration) {
        let _ = (server, outcome, took);
    }
}

/// Outcome of a request to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    Success,
    /// Answered with a status that says no, or with a redirect.
    Refused,
    ServerError,
    Timeout,
    Unreachable,
}

impl RequestOutcome {
    pub(super) fn of(answer: &Result<Response, reqwest::Error>) -> Self {
        match answer {
            Ok(response) if response.status().is_server_error() => Self::ServerError,
            Ok(response) if response.status().is_success() => Self::Success,
            Ok(_) => Self::Refused,
            Err(error) if error.is_timeout() => Self::Timeout,
            Err(_) => Self::Unreachable,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Refused => "refused",
            Self::ServerError => "server_error",
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
        }
    }

    /// Returns whether the server answered at all.
    pub fn is_answer(self) -> bool {
        match self {
            Self::Success | Self::Refused | Self::ServerError => true,
            Self::Timeout | Self::Unreachable => false,
        }
    }
}

/// Watches nothing.
impl RequestObserver for () {}
