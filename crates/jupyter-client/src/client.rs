//! One configured Jupyter server and its pooled HTTP client: requests in, JSON or a telling error out.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::RwLock;
use reqwest::{
    Method, Request, RequestBuilder, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, Span, field};
use url::{Host, Url};

use crate::{
    Authorities, Hub, HubPlace, HubServer, JupyterError, NotebookSession, RequestObserver, RequestOutcome, Secret,
    ServerOptions, contents::Creations, is_shallow_json, kernel_starts::KernelStarts, limits::MAX_ANSWER_BYTES,
    urls::allowed_base,
};

/// Jupyter's own messages are short; more than this of one is noise in a model's context.
const MAX_MESSAGE_CHARS: usize = 300;
/// Beside the message there may be a traceback.
const MAX_REFUSAL_BYTES: usize = 1024 * 1024;
/// Time limit for asking whether a server is there, after something strange was answered.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(3);
const MEGABYTE: usize = 1024 * 1024;

/// The one who had the gateway connect to a server.
#[derive(Debug, Clone)]
enum Origin {
    /// An operator, in the config.
    Operator,
    /// An agent, by its URL and token.
    Agent,
    /// A user of a Hub, by logging in.
    Hub(HubPlace),
}

pub struct JupyterServer {
    name: String,
    /// Ends with a slash.
    url: Url,
    /// Base URL for people, if it is another one.
    public_url: Option<Url>,
    /// True if it serves JupyterLab, once that is known.
    pub(super) has_lab: OnceCell<bool>,
    http: reqwest::Client,
    /// For those who come with a token of their own, once there is somebody.
    pub(super) guest: OnceCell<reqwest::Client>,
    /// That of a Hub's user changes with their token.
    authorization: RwLock<Option<HeaderValue>>,
    origin: Origin,
    pub(super) authorities: Option<Authorities>,
    request_timeout: Duration,
    observer: Arc<dyn RequestObserver>,
    pub(super) kernel_starts: KernelStarts,
    /// The sessions as they were a moment ago.
    pub(super) recent_sessions: Mutex<Option<(Instant, Vec<NotebookSession>)>>,
    pub(super) creations: Creations,
    /// Those that keep connections to kernels.
    pub(super) tasks: TaskTracker,
    pub(super) closing: CancellationToken,
}

impl JupyterServer {
    pub fn new(options: &ServerOptions, observer: Arc<dyn RequestObserver>) -> Result<Self, reqwest::Error> {
        let mut http = reqwest::Client::builder();
        if is_loopback(&options.url) {
            // A proxy of the environment is for other machines.
            http = http.no_proxy();
        }
        if let Some(authorities) = &options.authorities {
            http = http.tls_backend_preconfigured(ClientConfig::clone(authorities.config()));
        }
        let http = http
            // Without a cookie jar every request would be a new anonymous user to Jupyter.
            .cookie_store(true)
            // A redirect leads to the login page: better reported than followed.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(options.connect_timeout)
            .timeout(options.request_timeout)
            .tcp_nodelay(true)
            .build()?;
        Ok(Self {
            name: options.name.clone(),
            url: options.url.clone(),
            public_url: options.public_url.clone(),
            has_lab: OnceCell::new(),
            http,
            guest: OnceCell::new(),
            authorization: RwLock::new(authorization(&options.token)),
            origin: Origin::Operator,
            authorities: options.authorities.clone(),
            request_timeout: options.request_timeout,
            observer,
            kernel_starts: KernelStarts::default(),
            recent_sessions: Mutex::new(None),
            creations: Creations::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        })
    }

    /// Ends the connections to its kernels, which run on. Requests can still be made.
    pub async fn close_links(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// One that no operator configured, at the URL and with the token that an agent gave. Its name is like no configured
    /// one's, nor like that of any other: rooms and queues are known by the names of their servers.
    pub(super) fn by_url(
        url: &Url,
        token: &Secret,
        observer: Arc<dyn RequestObserver>,
    ) -> Result<Self, reqwest::Error> {
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let name = format!("{}#{}", url.as_str().trim_end_matches('/'), &unique[..8]);
        let options = ServerOptions::new(name, url.clone(), token.clone());
        let server = Self::new(&options, observer)?;
        Ok(Self {
            origin: Origin::Agent,
            ..server
        })
    }

    /// A server of a Hub that its user works in, under a name that no other user's has.
    pub(super) fn of_hub(
        hub: &Arc<Hub>,
        name: &str,
        server: &HubServer,
        token: &Secret,
        observer: Arc<dyn RequestObserver>,
    ) -> Result<Self, reqwest::Error> {
        let made = Self::new(&hub.server_options(name, server, token.clone()), observer)?;
        Ok(Self {
            origin: Origin::Hub(hub.place(&server.name)),
            ..made
        })
    }

    /// Returns whether an agent connected to it by URL, so that nobody else uses it.
    pub fn is_by_url(&self) -> bool {
        matches!(self.origin, Origin::Agent)
    }

    /// The Hub that it belongs to, if it does.
    pub fn hub(&self) -> Option<&HubPlace> {
        match &self.origin {
            Origin::Hub(place) => Some(place),
            Origin::Operator | Origin::Agent => None,
        }
    }

    /// Uses another token from now on.
    pub fn use_token(&self, token: &Secret) {
        let now = authorization(token);
        if *self.authorization.read() != now {
            *self.authorization.write() = now;
        }
    }

    /// Returns whether one of these base URLs allows connecting to it.
    pub fn is_allowed_by(&self, connect_urls: &[Url]) -> bool {
        allowed_base(self.url.as_str(), connect_urls).is_some()
    }

    /// Returns whether it is the server at a URL, reached with this token.
    pub fn is_at(&self, url: &Url, token: &Secret) -> bool {
        self.url == *url && *self.authorization.read() == authorization(token)
    }

    /// Records that a kernel was started.
    pub fn on_kernel_started(&self, kernel_id: &str) {
        self.kernel_starts.on_started(kernel_id);
    }

    /// The time since somebody last started a kernel, as far as the server told.
    pub fn kernels_changed(&self) -> Option<Duration> {
        self.kernel_starts.since_others()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The base URL as people write it, without a trailing slash.
    pub fn base_url(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// The base URL by which people reach it, without a trailing slash.
    pub fn public_base_url(&self) -> &str {
        self.public_url
            .as_ref()
            .unwrap_or(&self.url)
            .as_str()
            .trim_end_matches('/')
    }

    /// The URLs below which it is found, each with a slash at its end.
    pub(super) fn bases(&self) -> impl Iterator<Item = &Url> {
        std::iter::once(&self.url).chain(&self.public_url)
    }

    pub(super) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// The header by which sockets are authorized.
    pub(super) fn authorization(&self) -> Option<String> {
        let authorization = self.authorization.read();
        authorization.as_ref()?.to_str().ok().map(str::to_owned)
    }

    pub(super) fn authorization_value(&self) -> Option<HeaderValue> {
        self.authorization.read().clone()
    }

    /// Host and port to connect to.
    pub(super) fn authority(&self) -> (&str, u16) {
        let host = self.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        (host, self.url.port_or_known_default().unwrap_or(80))
    }

    /// A request for an API path that is already percent-encoded, e.g. `api/contents/a%20b.ipynb`.
    pub(super) fn request(&self, method: Method, api_path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{api_path}", self.url));
        match self.authorization.read().clone() {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        }
    }

    /// Sends a request about `subject` (the path a message should name) and reads a JSON answer.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        subject: &str,
    ) -> Result<T, JupyterError> {
        self.json_within(MAX_ANSWER_BYTES, request, subject).await
    }

    /// The same, with an answer of so many bytes at most.
    pub(super) async fn json_within<T: DeserializeOwned>(
        &self,
        limit: usize,
        request: RequestBuilder,
        subject: &str,
    ) -> Result<T, JupyterError> {
        let response = self.send(request, subject).await?;
        let (status, what) = (response.status(), described(&response));
        let body = self.body(response, limit, subject).await?;
        if !is_shallow_json(&body) {
            return Err(JupyterError::TooDeep {
                server: self.name.clone(),
                path: subject.to_owned(),
            });
        }
        serde_json::from_slice(&body).map_err(|_| self.not_jupyter(status, what))
    }

    /// The body of an answer. One that is too large is given up as soon as that is known.
    pub(super) async fn body(
        &self,
        mut response: Response,
        limit: usize,
        subject: &str,
    ) -> Result<Vec<u8>, JupyterError> {
        let started = Instant::now();
        let too_large = || JupyterError::TooLarge {
            server: self.name.clone(),
            path: subject.to_owned(),
            limit: limit / MEGABYTE,
        };
        let declared = response.content_length().unwrap_or_default();
        if usize::try_from(declared).map_or(true, |declared| declared > limit) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.transport_error(&error, started))?
        {
            if body.len() + chunk.len() > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Sends a request and makes every answer but success an error.
    pub(super) async fn send(&self, request: RequestBuilder, subject: &str) -> Result<Response, JupyterError> {
        let response = self.answer(request).await?;
        match response.status() {
            status if status.is_success() => Ok(response),
            _ => Err(self.refusal(response, subject).await),
        }
    }

    /// Sends a request that Jupyter answers with nothing. Whatever else answers with something else.
    pub(super) async fn send_no_content(&self, request: RequestBuilder, subject: &str) -> Result<(), JupyterError> {
        let response = self.send(request, subject).await?;
        match response.status() {
            StatusCode::NO_CONTENT => Ok(()),
            status => Err(self.not_jupyter(status, described(&response))),
        }
    }

    /// Sends a request and returns whatever status comes back.
    pub(super) async fn answer(&self, request: RequestBuilder) -> Result<Response, JupyterError> {
        let (client, request) = request.build_split();
        let started = Instant::now();
        let mut request = request.map_err(|error| self.transport_error(&error, started))?;
        let span = self.request_span(&request);
        // Within its span, so that what the server does belongs to this request.
        request
            .headers_mut()
            .extend(span.in_scope(|| self.observer.trace_headers()));
        let answer = client.execute(request).instrument(span.clone()).await;
        let outcome = RequestOutcome::of(&answer);
        if let Ok(response) = &answer {
            span.record("http.response.status_code", response.status().as_u16());
        }
        if outcome != RequestOutcome::Success {
            span.record("error.type", outcome.as_str());
            span.record("otel.status_code", "error");
        }
        self.observer.on_request(self.label(), outcome, started.elapsed());
        answer.map_err(|error| self.transport_error(&error, started))
    }

    /// The span of a request that is made for somebody. What the gateway asks on its own account is no part of a trace.
    fn request_span(&self, request: &Request) -> Span {
        if Span::current().is_none() {
            return Span::none();
        }
        let (method, (address, port)) = (request.method().as_str(), self.authority());
        tracing::debug_span!(
            "jupyter",
            otel.name = method,
            otel.kind = "client",
            http.request.method = method,
            // Neither the query nor the user of a URL, which may be secret.
            url.path = request.url().path(),
            server.address = address,
            server.port = port,
            jmg.jupyter.server = self.label(),
            http.response.status_code = field::Empty,
            error.type = field::Empty,
            otel.status_code = field::Empty,
        )
    }

    /// The name by which it is measured: as many names as agents give, or as a Hub has users, would be as many series.
    pub(super) fn label(&self) -> &str {
        match &self.origin {
            Origin::Operator => &self.name,
            Origin::Agent => "(by url)",
            Origin::Hub(_) => "(hub server)",
        }
    }

    /// Headers by which it can join the trace of the current work.
    pub(super) fn trace_headers(&self) -> HeaderMap {
        self.observer.trace_headers()
    }

    async fn refusal(&self, response: Response, subject: &str) -> JupyterError {
        let status = response.status();
        let is_json = response
            .headers()
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
        let what = described(&response);
        let server = self.name.clone();
        if self.is_stopped(status, is_json).await {
            return JupyterError::Stopped { server };
        }
        if status.is_redirection() || status == StatusCode::UNAUTHORIZED {
            return self.refused_token(status);
        }
        let message = match is_json {
            true => message_in(
                &self
                    .body(response, MAX_REFUSAL_BYTES, subject)
                    .await
                    .unwrap_or_default(),
            ),
            false => String::new(),
        };
        match status {
            // The same status also says that the file system forbids it, which no token can change.
            StatusCode::FORBIDDEN if !message.starts_with("Permission denied") => self.refused_token(status),
            _ if !is_json => self.not_jupyter(status, what),
            StatusCode::NOT_FOUND => JupyterError::NotFound {
                server,
                path: subject.to_owned(),
            },
            StatusCode::CONFLICT => JupyterError::Exists {
                server,
                path: subject.to_owned(),
            },
            _ => JupyterError::Refused {
                server,
                status: status.as_u16(),
                message,
            },
        }
    }

    /// Returns whether a refusal is one in the place of a Hub's server that does not run. The Hub says so with 424 where it
    /// sees that a program asks, and with a redirect, a page about a missing cookie or 405 where it does not; requests to
    /// a named server may get to the default server of its user, which knows no such page; and where a server died
    /// without the Hub's knowing, the proxy says that it cannot be reached.
    pub(super) async fn is_stopped(&self, status: StatusCode, is_json: bool) -> bool {
        let is_of_jupyter = is_json && status != StatusCode::SERVICE_UNAVAILABLE;
        match self.hub() {
            None => false,
            Some(_) if status == StatusCode::FAILED_DEPENDENCY => true,
            Some(_) => !is_of_jupyter && !self.is_up().await,
        }
    }

    /// Returns whether a Jupyter server answers, rather than something in its place. What cannot be told is taken for yes.
    async fn is_up(&self) -> bool {
        let asking = self.request(Method::GET, "api").timeout(PRESENCE_TIMEOUT);
        let Ok(response) = self.answer(asking).await else {
            return true;
        };
        let is_success = response.status().is_success();
        let body = self.body(response, MAX_REFUSAL_BYTES, "api").await.unwrap_or_default();
        is_success && serde_json::from_slice::<Value>(&body).is_ok_and(|api| api["version"].is_string())
    }

    /// The error for a refused token; who can do something about it differs with who gave it.
    pub(super) fn refused_token(&self, status: StatusCode) -> JupyterError {
        let (server, status) = (self.name.clone(), status.as_u16());
        match &self.origin {
            Origin::Operator => JupyterError::Credentials { server, status },
            Origin::Agent => JupyterError::Token { server, status },
            Origin::Hub(_) => JupyterError::HubToken { server, status },
        }
    }

    fn not_jupyter(&self, status: StatusCode, what: &str) -> JupyterError {
        JupyterError::NotJupyter {
            server: self.name.clone(),
            status: status.as_u16(),
            what: what.to_owned(),
        }
    }

    pub(super) fn transport_error(&self, error: &reqwest::Error, started: Instant) -> JupyterError {
        if error.is_timeout() && !error.is_connect() {
            return self.timed_out(started.elapsed());
        }
        self.unreachable(root_cause(error))
    }

    /// Some questions are given less time than others, so that it is said how long this one waited.
    pub(super) fn timed_out(&self, after: Duration) -> JupyterError {
        let rounded = after + Duration::from_millis(500);
        JupyterError::Timeout {
            server: self.name.clone(),
            seconds: rounded.as_secs().max(1),
        }
    }

    pub fn unreachable(&self, why: String) -> JupyterError {
        JupyterError::Unreachable {
            server: self.name.clone(),
            url: self.base_url().to_owned(),
            why,
        }
    }
}

impl fmt::Debug for JupyterServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JupyterServer")
            .field("name", &self.name)
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

pub(super) fn authorization(token: &Secret) -> Option<HeaderValue> {
    if token.is_empty() {
        return None;
    }
    let mut value = HeaderValue::try_from(format!("token {}", token.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Describes a body that is not JSON.
fn described(response: &Response) -> &'static str {
    let kind = response.headers().get(CONTENT_TYPE);
    match kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        true => "HTML",
        false => "something else",
    }
}

pub(super) fn message_in(body: &[u8]) -> String {
    let readable = Some(body).filter(|body| is_shallow_json(body));
    let body: Value = readable
        .and_then(|body| serde_json::from_slice(body).ok())
        .unwrap_or_default();
    let message = body
        .get("message")
        .or_else(|| body.get("error"))
        .and_then(Value::as_str)
        .unwrap_or("no reason given");
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// The innermost cause is what a person can act on ("Connection refused"); the outer ones repeat the URL.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
