//! A JupyterHub's API, each question asked with the token of the person it is about: who they are, which servers they have,
//! starting one, and logging in. Knows nothing of principals, nor for how long an answer holds.

mod error;
mod login;
mod name;
mod origin;
mod spawn;
mod user;

use std::{
    fmt,
    time::{Duration, Instant},
};

use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use rustls::ClientConfig;
use std::sync::Arc;
use url::Url;

pub use self::{
    error::HubError,
    login::HubService,
    name::HubName,
    origin::HubPlace,
    spawn::SpawnProgress,
    user::{HubServer, HubServerState, HubUser},
};
use crate::{
    Authorities, MAX_NESTING, RequestObserver, RequestOutcome, Secret,
    client::{is_loopback, message_in, root_cause},
    is_shallow_json,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Whoever calls waits for the answer.
const TIMEOUT: Duration = Duration::from_secs(8);
/// A user with hundreds of servers and groups has some hundred kilobytes.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;
/// Name of the Hub where requests are counted.
const LABEL: &str = "(hub)";

#[derive(Debug, Clone)]
pub struct HubOptions {
    /// The Hub's API; ends with a slash.
    pub api: Url,
    /// Base URL of users' servers, which are below `user/`; ends with a slash.
    pub servers: Url,
    /// The same for people, for links; ends with a slash. `None` means `servers`.
    pub public: Option<Url>,
    /// Those who may have signed its certificate. `None` means those that the system trusts.
    pub authorities: Option<Authorities>,
}

/// A Hub, asked with one token or another.
pub struct Hub {
    options: HubOptions,
    http: reqwest::Client,
    observer: Arc<dyn RequestObserver>,
}

impl Hub {
    pub fn new(options: HubOptions, observer: Arc<dyn RequestObserver>) -> Result<Self, reqwest::Error> {
        let mut http = reqwest::Client::builder();
        if is_loopback(&options.api) {
            // A proxy of the environment is for other machines.
            http = http.no_proxy();
        }
        if let Some(authorities) = &options.authorities {
            http = http.tls_backend_preconfigured(ClientConfig::clone(authorities.config()));
        }
        // No cookies: they would be one person's, and the next question is asked for another.
        let http = http
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .build()?;
        Ok(Self {
            options,
            http,
            observer,
        })
    }

    /// The URL of a Hub's servers, as far as the URL of its API tells it: both are below the same base.
    pub fn servers_of_api(api: &Url) -> Url {
        let base = api.path().strip_suffix("hub/api/").unwrap_or("/");
        let mut url = api.clone();
        url.set_path(base);
        url
    }

    /// Whose token it is, and what they have. A token that the Hub does not accept is [`HubError::Token`].
    pub async fn user(&self, token: &Secret) -> Result<HubUser, HubError> {
        let request = self.request(Method::GET, "user?include_stopped_servers=1", token)?;
        let response = self.send(request.timeout(TIMEOUT)).await?;
        let body = self.body(response).await?;
        let user = serde_json::from_slice(&body).map_err(|_| HubError::NotAHub { status: 200 })?;
        Ok(HubUser::read(user, &self.options))
    }

    /// The base URL of a server, as the names of its user and of itself make it.
    fn url_of(&self, name: &HubName) -> Url {
        name.below(&self.options.servers)
    }

    fn public_url_of(&self, name: &HubName) -> Option<Url> {
        self.options.public.as_ref().map(|base| name.below(base))
    }

    fn request(&self, method: Method, path: &str, token: &Secret) -> Result<RequestBuilder, HubError> {
        // What cannot be sent cannot be a token of the Hub.
        let mut value =
            HeaderValue::try_from(format!("token {}", token.expose())).map_err(|_| HubError::Token { status: 401 })?;
        value.set_sensitive(true);
        let url = format!("{}{path}", self.options.api);
        Ok(self.http.request(method, url).header(AUTHORIZATION, value))
    }

    /// Sends a request and makes every answer but success an error.
    async fn send(&self, request: RequestBuilder) -> Result<Response, HubError> {
        let started = Instant::now();
        let answer = request.headers(self.observer.trace_headers()).send().await;
        self.observer
            .on_request(LABEL, RequestOutcome::of(&answer), started.elapsed());
        let response = answer.map_err(|error| unreachable(&error))?;
        match response.status() {
            status if status.is_success() => Ok(response),
            _ => Err(self.refusal(response).await),
        }
    }

    async fn refusal(&self, response: Response) -> HubError {
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let is_json = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        let message = match is_json {
            true => message_in(&self.body(response).await.unwrap_or_default()),
            false => String::new(),
        };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => HubError::Token {
                status: status.as_u16(),
            },
            StatusCode::TOO_MANY_REQUESTS => HubError::Busy { message, retry_after },
            // The Hub itself, or a proxy in front of one that is being started.
            status if status.is_server_error() => HubError::Failed {
                status: status.as_u16(),
                message,
            },
            _ if !is_json => HubError::NotAHub {
                status: status.as_u16(),
            },
            StatusCode::NOT_FOUND => HubError::NotFound,
            _ => HubError::Refused { message },
        }
    }

    /// The body of an answer. One that is too large is given up as soon as that is known.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, HubError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(&error))? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(HubError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        match is_shallow_json(&body) {
            true => Ok(body),
            false => Err(HubError::TooDeep { limit: MAX_NESTING }),
        }
    }
}

fn unreachable(error: &reqwest::Error) -> HubError {
    match error.is_timeout() && !error.is_connect() {
        true => HubError::Timeout,
        false => HubError::Unreachable(root_cause(error)),
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("api", &self.options.api.as_str())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_below_the_base_of_the_api() {
        for (api, servers) in [
            ("https://hub.example.org/hub/api/", "https://hub.example.org/"),
            ("https://example.org/jupyter/hub/api/", "https://example.org/jupyter/"),
            ("http://127.0.0.1:8081/api/", "http://127.0.0.1:8081/"),
        ] {
            let api = Url::parse(api).unwrap();
            assert_eq!(Hub::servers_of_api(&api).as_str(), servers);
        }
    }
}
