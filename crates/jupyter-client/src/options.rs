//! Options of the connection to one server, and the observer of its requests. Does not read configuration.

use std::time::Duration;

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
    /// The W3C `traceparent` of the work that the current request is made for.
    fn traceparent(&self) -> Option<String> {
        None
    }

    /// A server answered a request, or did not.
    fn on_request(&self, server: &str, outcome: &'static str, took: Duration) {
        let _ = (server, outcome, took);
    }
}

/// Watches nothing.
impl RequestObserver for () {}
