//! One URL, two eras of the protocol. A request is read and checked once; then it is answered, and the answer is framed
//! as its era has it: as JSON in the newer one, as a stream of events that can be resumed in the older one.

mod legacy;
mod modern;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, request::Parts};
use rmcp::{
    ServerHandler,
    model::{ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcMessage, JsonRpcRequest},
};
use tokio::{sync::watch, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Answerer, Begun, Caller, PlainRequest, Reply, SessionLimits, Sessions, headers, message,
    reply::{Rejection, id_value, method_not_allowed},
};
use crate::{
    auth::Principal,
    events::{EventLimits, MemoryEvents},
    limits::Admission,
    telemetry::Metrics,
};

/// Longest interval between sweeps for idle sessions and old events.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(15);
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for work under way when the gateway stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub struct EndpointConfig {
    pub max_json_depth: usize,
    /// Beginnings of the names of clients that hide text and images beside structured content.
    pub content_only_clients: Vec<String>,
    pub sessions: SessionLimits,
    pub events: EventLimits,
}

/// The MCP endpoint, for any handler: tests mount the conformance suite's on the same stack.
pub struct Endpoint<H> {
    factory: Box<dyn Fn() -> H + Send + Sync>,
    answerer: Option<Arc<dyn Answerer>>,
    sessions: Arc<Sessions>,
    max_json_depth: usize,
    content_only_clients: Vec<String>,
    sweep_interval: Duration,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl<H: ServerHandler> Endpoint<H> {
    /// Builds the endpoint around a factory, which makes a handler per session and per request without one; what
    /// `answerer` takes is answered without a handler. Cancelling `stop` ends every stream.
    pub fn new(
        config: EndpointConfig,
        factory: impl Fn() -> H + Send + Sync + 'static,
        answerer: Option<Arc<dyn Answerer>>,
        metrics: Metrics,
        stop: &CancellationToken,
    ) -> Self {
        let (events, tasks) = (Arc::new(MemoryEvents::new(config.events)), TaskTracker::new());
        Self {
            factory: Box::new(factory),
            answerer,
            sessions: Arc::new(Sessions::new(
                config.sessions,
                events,
                metrics,
                tasks.clone(),
                stop.clone(),
            )),
            max_json_depth: config.max_json_depth,
            content_only_clients: config.content_only_clients,
            sweep_interval: (config.sessions.idle_timeout / 2).clamp(MIN_SWEEP_INTERVAL, MAX_SWEEP_INTERVAL),
            stop: stop.clone(),
            tasks,
        }
    }

    /// Closes idle sessions until `stop` is cancelled, and revoked ones as soon as principals were `replaced`.
    pub async fn sweep(&self, mut replaced: watch::Receiver<()>, stop: CancellationToken) {
        let mut interval = tokio::time::interval(self.sweep_interval);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = interval.tick() => {}
                Ok(()) = replaced.changed() => {}
            }
            self.sessions.sweep().await;
        }
        self.tasks.close();
        let _ = timeout(STOP_TIMEOUT, self.tasks.wait()).await;
    }

    /// Answers one request of an authenticated principal.
    pub async fn handle(&self, parts: Parts, body: &Bytes, principal: &Arc<Principal>) -> Reply {
        let answered = self.answer(parts, body, principal).await;
        answered.unwrap_or_else(|rejection| rejection.reply())
    }

    async fn answer(&self, parts: Parts, body: &Bytes, principal: &Arc<Principal>) -> Result<Reply, Rejection> {
        let is_modern = headers::is_modern(&parts.headers);
        match parts.method {
            Method::POST => {
                let message = message::read(body, self.max_json_depth, is_modern)?;
                headers::check_media(&parts.method, &parts.headers)?;
                headers::check_version(&parts.headers, Some(&message))?;
                headers::check_repeated(&parts.headers, &message, |tool| self.input_schema(tool, &parts))?;
                self.charge(&message, &parts)?;
                self.check_scope(&message, &parts)?;
                match is_legacy(&message, is_modern) {
                    true => self.answer_in_session(parts, message, principal).await,
                    // Boxed, since rmcp's futures are large, and would be moved once for every caller.
                    false => Box::pin(self.answer_by_itself(parts, message)).await,
                }
            }
            _ if is_modern => Ok(method_not_allowed("POST")),
            Method::GET => self.stream(&parts, principal).await,
            Method::DELETE => self.end_session(&parts, principal).await,
            _ => Ok(method_not_allowed("GET, POST, DELETE")),
        }
    }

    /// Charges for what a request wants beyond what all cost, which was charged before it was read.
    fn charge(&self, message: &ClientJsonRpcMessage, parts: &Parts) -> Result<(), Rejection> {
        let JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) = message else {
            return Ok(());
        };
        let (Some(admission), Some(caller)) = (parts.extensions.get::<Arc<Admission>>(), parts.extensions.get()) else {
            return Ok(());
        };
        let cost = self
            .answerer
            .as_ref()
            .map_or(1, |answerer| answerer.cost(request, caller));
        let charged = match cost {
            0 | 1 => Ok(()),
            cost => admission.charge(cost - 1),
        };
        let placed = charged.and_then(|()| match request {
            ClientRequest::SubscriptionsListenRequest(_) => admission.become_stream(),
            _ => Ok(()),
        });
        placed.map_err(|refusal| Rejection::limited(id_value(id), refusal))
    }

    /// Refuses a request whose caller can log in again for what it needs, so that their client does: it is told by the
    /// status, before an answer has begun.
    fn check_scope(&self, message: &ClientJsonRpcMessage, parts: &Parts) -> Result<(), Rejection> {
        let JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }) = message else {
            return Ok(());
        };
        let (Some(answerer), Some(caller)) = (&self.answerer, parts.extensions.get()) else {
            return Ok(());
        };
        match answerer.step_up(request, caller) {
            Some(step_up) => Err(Rejection::lacking_scope(id_value(id), step_up)),
            None => Ok(()),
        }
    }

    /// Returns whether a client, by the name in its `clientInfo`, hides text and images beside structured content.
    fn is_content_only(&self, client: &str) -> bool {
        let begins = |known: &String| {
            let beginning = client.as_bytes().get(..known.len());
            beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(known.as_bytes()))
        };
        self.content_only_clients.iter().any(begins)
    }

    /// The schema by which a call's headers are checked.
    fn input_schema(&self, tool: &str, parts: &Parts) -> Option<Arc<rmcp::model::JsonObject>> {
        let caller = parts.extensions.get::<Caller>();
        match (&self.answerer, caller) {
            (Some(answerer), Some(caller)) => answerer.input_schema(tool, caller),
            _ => (self.factory)().get_tool(tool).map(|tool| tool.input_schema),
        }
    }

    /// Begins to answer a request that needs nothing of its client; gives any other back.
    fn begin(&self, request: JsonRpcRequest<ClientRequest>, parts: Parts) -> Result<Begun, Box<PlainRequest>> {
        let JsonRpcRequest { id, request, .. } = request;
        let request = PlainRequest { id, request, parts };
        match &self.answerer {
            Some(answerer) => Arc::clone(answerer).begin(request),
            None => Err(Box::new(request)),
        }
    }
}

/// Returns whether a message belongs to a session. `initialize` exists only in the older versions, and a
/// self-contained request has no session, whatever version either names.
fn is_legacy(message: &ClientJsonRpcMessage, is_modern: bool) -> bool {
    match message {
        JsonRpcMessage::Request(request) => match &request.request {
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::DiscoverRequest(_) => false,
            request => !is_modern && !headers::is_self_contained(request.get_meta()),
        },
        _ => !is_modern,
    }
}
