//! MCP sessions of protocol versions up to 2025-11-25: who owns them, how many there may be, how long
//! they live, and streams that survive a lost connection.
//!
//! rmcp's own manager runs the sessions. It is wrapped because it knows no owner, keeps a silent
//! session only five minutes even in the middle of a call, and lets one stalled reader hold up
//! everything else in its session. Here readers follow the event store, which never waits for them.
//! Requests that need nothing of their client do not pass rmcp at all.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use dashmap::DashMap;
use futures::{FutureExt, StreamExt, future::ready, stream};
use parking_lot::Mutex;
use rmcp::{
    ServerHandler,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, Extensions, JsonRpcMessage, JsonRpcNotification,
        JsonRpcRequest, JsonRpcResponse, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    serve_server,
    transport::{
        TransportAdapterIdentity,
        streamable_http_server::session::{
            EventId, EventStream, ServerSseMessage, SessionId, SessionManager,
            local::{LocalSessionManager, LocalSessionManagerError, SessionConfig, SessionError},
        },
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Begun, Written, reply::stored_response};
use crate::{
    auth::Principal,
    events::{EventLog, SessionEvents, StreamGuard},
    limits::{self, Refusal, Reservation},
    telemetry::Metrics,
};

#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    pub per_principal: usize,
    pub total: usize,
    pub idle_timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many MCP sessions are busy (limit {limit}); close one with DELETE, or try again later")]
pub(super) struct TooManySessions {
    limit: usize,
}

/// Reason why a session could not be begun.
#[derive(Debug, thiserror::Error)]
pub(super) enum BeginError {
    #[error(transparent)]
    TooMany(#[from] TooManySessions),
    #[error(transparent)]
    Limited(#[from] Refusal),
    #[error(transparent)]
    Failed(#[from] LocalSessionManagerError),
}

/// A place among a principal's sessions, given back when dropped.
struct Admission {
    principal: Arc<str>,
    counts: Arc<DashMap<Arc<str>, usize>>,
    total: Arc<AtomicUsize>,
    /// The place among the sessions of the tenant.
    _of_tenant: Option<Reservation>,
}

struct Session {
    /// The owner as it was authenticated last: clients renew their tokens.
    principal: Mutex<Arc<Principal>>,
    _admission: Admission,
    opened: Instant,
    /// Milliseconds after the manager's start.
    last_used: AtomicU64,
    /// Requests that are being worked on, and streams that somebody listens to.
    busy: AtomicUsize,
    /// True if its client understands events that carry only an id to resume from. Clients of older versions take
    /// them for malformed messages.
    knows_priming: AtomicBool,
    /// True if its client hides text and images beside structured content.
    is_content_only: AtomicBool,
    /// An event of the stream of every request that is being worked on.
    requests: Mutex<HashMap<RequestId, EventId>>,
}

pub(super) struct Sessions {
    local: LocalSessionManager,
    events: Arc<dyn EventLog>,
    limits: SessionLimits,
    metrics: Metrics,
    tasks: TaskTracker,
    stop: CancellationToken,
    started: Instant,
    sessions: DashMap<SessionId, Arc<Session>>,
    counts: Arc<DashMap<Arc<str>, usize>>,
    total: Arc<AtomicUsize>,
}

/// Counts a piece of work as long as it lives.
struct Busy {
    session: Arc<Session>,
    started: Instant,
    request: Option<RequestId>,
}

impl Busy {
    /// Makes the work that of a request, whose stream is found by its id from now on.
    fn on(mut self, request: Option<RequestId>, event_id: &str) -> Self {
        if let Some(request) = &request {
            self.session
                .requests
                .lock()
                .insert(request.clone(), event_id.to_owned());
        }
        self.request = request;
        self
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            self.session.requests.lock().remove(request);
        }
        self.session.touch(self.started);
        self.session.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Session {
    fn touch(&self, started: Instant) {
        let now = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(now, Ordering::Relaxed);
    }

    fn event_of(&self, request: &RequestId) -> Option<EventId> {
        self.requests.lock().get(request).cloned()
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }

    fn owner(&self) -> Arc<str> {
        Arc::clone(&self.principal.lock().id)
    }

    /// Returns whether the rights under which it goes on have been revoked. A token that has expired is another matter:
    /// clients get the next one when they are told so, and use their session on.
    fn is_revoked(&self) -> bool {
        let owner = self.principal.lock();
        owner.revoked().is_cancelled() && !owner.is_expired(SystemTime::now())
    }

    /// Returns whether it is the principal's own and goes on.
    fn is_used_by(&self, principal: &Arc<Principal>) -> bool {
        let mut owner = self.principal.lock();
        let has_expired = owner.is_expired(SystemTime::now());
        if owner.id != principal.id || owner.revoked().is_cancelled() && !has_expired {
            return false;
        }
        let is_renewed = has_expired || principal.outlasts(&owner);
        if is_renewed && principal.includes_rights_of(&owner) {
            *owner = Arc::clone(principal);
            return true;
        }
        !has_expired
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.total.fetch_sub(1, Ordering::Relaxed);
        if let Some(mut count) = self.counts.get_mut(&self.principal) {
            *count -= 1;
        }
        self.counts.remove_if(&self.principal, |_, count| *count == 0);
    }
}

impl Sessions {
    /// Sessions whose tasks are tracked by `tasks`. Cancelling `stop` ends them.
    pub(super) fn new(
        limits: SessionLimits,
        events: Arc<dyn EventLog>,
        metrics: Metrics,
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let mut config = SessionConfig::default();
        // This type closes idle sessions itself, because rmcp cannot tell idle from silently working.
        config.keep_alive = None;
        let mut local = LocalSessionManager::default().with_event_store(Arc::new(SessionEvents(Arc::clone(&events))));
        local.session_config = config;
        Self {
            local,
            events,
            limits,
            metrics,
            tasks,
            stop,
            started: Instant::now(),
            sessions: DashMap::new(),
            counts: Arc::default(),
            total: Arc::default(),
        }
    }

    /// Returns whether a session exists and belongs to the principal. Foreign, revoked and unknown look the same.
    pub(super) fn is_owner(&self, session: &str, principal: &Arc<Principal>) -> bool {
        let session = self.sessions.get(session);
        session.is_some_and(|session| session.is_used_by(principal))
    }

    /// Sets whether the session's client hides text and images beside structured content.
    pub(super) fn set_content_only(&self, session: &str, is_content_only: bool) {
        if let Some(session) = self.sessions.get(session) {
            session.is_content_only.store(is_content_only, Ordering::Relaxed);
        }
    }

    /// Returns whether the session's client hides text and images beside structured content.
    pub(super) fn is_content_only(&self, session: &str) -> bool {
        let session = self.sessions.get(session);
        session.is_some_and(|session| session.is_content_only.load(Ordering::Relaxed))
    }

    /// Returns whether a resumption names an event of the session.
    pub(super) async fn can_resume(&self, session: &str, event_id: &str) -> bool {
        let known = self.events.belongs(event_id, session).await;
        self.metrics.replayed(known);
        known
    }

    /// Begins a session in the principal's name, with what its client says first, and returns what that is answered.
    pub(super) async fn begin<H: ServerHandler>(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        request: Option<&limits::Admission>,
        handler: H,
        message: ClientJsonRpcMessage,
    ) -> Result<(SessionId, ServerJsonRpcMessage), BeginError> {
        let admission = self.admit(principal, request).await?;
        let (id, transport) = self.local.create_session().await?;
        self.events.set_owner(&id, &principal.tenant.name);
        let session = Session {
            principal: Mutex::new(Arc::clone(principal)),
            _admission: admission,
            opened: Instant::now(),
            last_used: AtomicU64::default(),
            busy: AtomicUsize::default(),
            knows_priming: AtomicBool::new(true),
            is_content_only: AtomicBool::default(),
            requests: Mutex::default(),
        };
        session.touch(self.started);
        self.sessions.insert(Arc::clone(&id), Arc::new(session));
        self.metrics.session_opened();
        let (sessions, served) = (Arc::clone(self), Arc::clone(&id));
        self.tasks.spawn(async move {
            let serving = async {
                // On the heap, so that a session does not hold for its whole life what only its beginning needs.
                let beginning = Box::pin(serve_server::<_, _, _, TransportAdapterIdentity>(handler, transport));
                match beginning.await {
                    Ok(service) => drop(service.waiting().await),
                    Err(error) => tracing::debug!(%error, "a session was not begun"),
                }
            };
            sessions.stop.run_until_cancelled(serving).await;
            let _ = sessions.close(&served).await;
        });
        let answer = self.local.initialize_session(&id, message).await?;
        if let (Some(session), Some(version)) = (self.sessions.get(&id), negotiated(&answer)) {
            let knows = version.as_str() >= ProtocolVersion::V_2025_11_25.as_str();
            session.knows_priming.store(knows, Ordering::Relaxed);
        }
        Ok((id, answer))
    }

    /// A place for a session. At the limit the principal's longest unused session makes room; only if all are busy is
    /// another one refused.
    async fn admit(
        &self,
        principal: &Arc<Principal>,
        request: Option<&limits::Admission>,
    ) -> Result<Admission, BeginError> {
        match self.reserve(principal, request) {
            Ok(admission) => Ok(admission),
            Err(refused) => {
                let oldest = self.least_used_idle(&principal.id).ok_or(refused)?;
                let _ = self.close(&oldest).await;
                self.reserve(principal, request)
            }
        }
    }

    /// Closes sessions that are revoked or that nobody used for long, and forgets old events; called now and then.
    pub(super) async fn sweep(&self) {
        self.events.sweep().await;
        let now = self.started.elapsed();
        let expired: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|entry| {
                let last_used = Duration::from_millis(entry.last_used.load(Ordering::Relaxed));
                let is_idle = entry.is_idle() && now.saturating_sub(last_used) > self.limits.idle_timeout;
                is_idle || entry.is_revoked()
            })
            .map(|entry| Arc::clone(entry.key()))
            .collect();
        for session in expired {
            let _ = self.close(&session).await;
        }
    }

    fn reserve(
        &self,
        principal: &Arc<Principal>,
        request: Option<&limits::Admission>,
    ) -> Result<Admission, BeginError> {
        let of_tenant = request.map(limits::Admission::hold_session).transpose()?;
        let mut count = self.counts.entry(Arc::clone(&principal.id)).or_insert(0);
        let limit = match (
            *count >= self.limits.per_principal,
            self.total.load(Ordering::Relaxed) >= self.limits.total,
        ) {
            (true, _) => self.limits.per_principal,
            (_, true) => self.limits.total,
            _ => {
                *count += 1;
                self.total.fetch_add(1, Ordering::Relaxed);
                return Ok(Admission {
                    principal: Arc::clone(&principal.id),
                    counts: Arc::clone(&self.counts),
                    total: Arc::clone(&self.total),
                    _of_tenant: of_tenant,
                });
            }
        };
        Err(TooManySessions { limit }.into())
    }

    fn least_used_idle(&self, principal: &Arc<str>) -> Option<SessionId> {
        self.sessions
            .iter()
            .filter(|entry| entry.is_idle() && entry.owner() == *principal)
            .min_by_key(|entry| entry.last_used.load(Ordering::Relaxed))
            .map(|entry| Arc::clone(entry.key()))
    }

    fn work_in(&self, id: &SessionId) -> Option<Busy> {
        let session = Arc::clone(&*self.sessions.get(id)?);
        session.touch(self.started);
        session.busy.fetch_add(1, Ordering::Relaxed);
        Some(Busy {
            session,
            started: self.started,
            request: None,
        })
    }

    /// Follows a request that needs no session to be answered. Most are answered at once; one that takes its time goes
    /// on whether or not anybody listens, until it is cancelled or the session is closed.
    pub(super) async fn follow(&self, id: &SessionId, begun: Begun) -> Result<EventStream, LocalSessionManagerError> {
        let Begun {
            id: request,
            mut answer,
            is_droppable,
        } = begun;
        let work = self.work_in(id).ok_or_else(|| unknown(id))?;
        let name = uuid::Uuid::new_v4().to_string();
        let retry = self.local.session_config.sse_retry.unwrap_or_default();
        let event_id = self.append(&name, &ServerSseMessage::retry(retry)).await?;
        let wanted = CancellationToken::new();
        let guard = (work.on(Some(request.clone()), &event_id), wanted.clone().drop_guard());
        let stream = self.open(&event_id, id, Box::new(guard)).await?;
        let event = move |result: &Written| ServerSseMessage::from_message(stored_response(request, result));
        if let Some(result) = (&mut answer).now_or_never() {
            self.append(&name, &event(&result)).await?;
            return Ok(stream);
        }
        let events = Arc::clone(&self.events);
        self.tasks.spawn(async move {
            let answered = match is_droppable {
                true => wanted.run_until_cancelled(answer).await,
                // What has begun is done whole, also if nobody wants to hear of it any more.
                false => Some(answer.await).filter(|_| !wanted.is_cancelled()),
            };
            if let Some(result) = &answered
                && let Err(error) = events.append(&name, &event(result)).await
            {
                tracing::error!(%error, "an answer cannot be stored for its client");
            }
        });
        Ok(stream)
    }

    async fn append(&self, stream: &str, event: &ServerSseMessage) -> Result<EventId, LocalSessionManagerError> {
        let appended = self.events.append(stream, event).await;
        appended.map_err(|error| SessionError::EventStore(error).into())
    }

    async fn open(
        &self,
        event_id: &str,
        id: &SessionId,
        guard: StreamGuard,
    ) -> Result<EventStream, LocalSessionManagerError> {
        let opened = self.events.open(event_id, id, guard).await;
        let stream = opened.map_err(|_| SessionError::InvalidEventId)?;
        let knows_priming = self
            .sessions
            .get(id)
            .map(|session| session.knows_priming.load(Ordering::Relaxed));
        Ok(match knows_priming {
            Some(false) => Box::pin(stream.filter(|event| ready(event.message.is_some()))),
            _ => stream,
        })
    }

    /// Sends a request to the session and follows its stream in the event store. Nobody reads rmcp's own channel, so
    /// that a reader who stalls or leaves holds up nobody: what is sent into a closed channel is
    /// discarded at once, after it was stored.
    pub(super) async fn send_request(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<EventStream, LocalSessionManagerError> {
        let work = self.work_in(id).ok_or_else(|| unknown(id))?;
        let handle = self
            .local
            .sessions
            .read()
            .await
            .get(id)
            .cloned()
            .ok_or_else(|| unknown(id))?;
        let mut channel = handle.establish_request_wise_channel().await?;
        // The stream's first event carries nothing but the id to resume from.
        let priming = channel.inner.recv().await.and_then(|event| event.event_id);
        drop(channel.inner);
        let event_id = priming.ok_or(SessionError::ChannelClosed(channel.http_request_id))?;
        let unsent = Unsent(&*self.events, &event_id);
        let guard = Box::new(work.on(request_of(&message), &event_id));
        let stream = self.open(&event_id, id, guard).await?;
        if let Some(extensions) = extensions_of_call(&mut message)
            && let Ok(audience) = self.events.audience(&event_id).await
        {
            extensions.insert(audience);
        }
        handle.push_message(message, channel.http_request_id).await?;
        std::mem::forget(unsent);
        Ok(stream)
    }

    /// Hands a message to the session that is no request.
    pub(super) async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), LocalSessionManagerError> {
        let busy = self.work_in(id);
        let cancelled = busy
            .as_ref()
            .and_then(|busy| busy.session.event_of(cancelled_request(&message)?));
        self.local.accept_message(id, message).await?;
        // A cancelled request is not answered, so nothing else would end its stream.
        if let Some(event_id) = cancelled {
            self.events.end(&event_id);
        }
        Ok(())
    }

    /// The stream of what the session is told unasked.
    pub(super) async fn common_stream(&self, id: &SessionId) -> EventStream {
        let busy = self.work_in(id);
        holding(busy, self.events.follow_common(id).await)
    }

    /// The rest of a stream after an event.
    pub(super) async fn resume(&self, id: &SessionId, last_event_id: &str) -> EventStream {
        let busy = self.work_in(id);
        let followed = self.events.replay_after(last_event_id).await;
        holding(busy, followed.unwrap_or_else(|_| Box::pin(stream::empty())))
    }

    pub(super) async fn close(&self, id: &SessionId) -> Result<(), LocalSessionManagerError> {
        if let Some((_, session)) = self.sessions.remove(id) {
            self.metrics.session_closed(session.opened.elapsed());
        }
        self.events.forget_session(id).await;
        self.local.close_session(id).await
    }
}

fn unknown(id: &SessionId) -> LocalSessionManagerError {
    LocalSessionManagerError::SessionNotFound(Arc::clone(id))
}

fn negotiated(answer: &ServerJsonRpcMessage) -> Option<&ProtocolVersion> {
    match answer {
        JsonRpcMessage::Response(JsonRpcResponse {
            result: ServerResult::InitializeResult(initialized),
            ..
        }) => Some(&initialized.protocol_version),
        _ => None,
    }
}

/// Ends the stream of a request that never got as far as rmcp, when dropped.
struct Unsent<'a>(&'a dyn EventLog, &'a str);

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

/// The extensions that travel with a call to its handler.
fn extensions_of_call(message: &mut ClientJsonRpcMessage) -> Option<&mut Extensions> {
    match message {
        JsonRpcMessage::Request(JsonRpcRequest {
            request: ClientRequest::CallToolRequest(call),
            ..
        }) => Some(&mut call.extensions),
        _ => None,
    }
}

fn request_of(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// The request that a message cancels.
fn cancelled_request(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Notification(JsonRpcNotification {
            notification: ClientNotification::CancelledNotification(cancelled),
            ..
        }) => cancelled.params.request_id.as_ref(),
        _ => None,
    }
}

/// Keeps a session busy for as long as somebody reads the stream.
fn holding(busy: Option<Busy>, stream: EventStream) -> EventStream {
    Box::pin(stream.map(move |item| {
        let _held = &busy;
        item
    }))
}
