//! MCP sessions of protocol versions up to 2025-11-25: who owns them, how many there may be, how long
//! they live, and streams that survive a lost connection.
//!
//! rmcp's own manager runs the sessions. It is wrapped because it knows no owner, keeps a silent
//! session only five minutes even in the middle of a call, and lets one stalled reader hold up
//! everything else in its session. Here readers follow the event store, which never waits for them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use dashmap::DashMap;
use futures::{FutureExt, Stream, StreamExt, future::ready, stream};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, Extensions, JsonRpcMessage, JsonRpcNotification,
        JsonRpcRequest, JsonRpcResponse, ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
    },
    transport::{
        WorkerTransport,
        streamable_http_server::session::{
            EventId, EventStore, EventStream, ServerSseMessage, SessionId, SessionManager,
            local::{LocalSessionManager, LocalSessionManagerError, LocalSessionWorker, SessionConfig, SessionError},
        },
    },
};
use tokio_util::sync::CancellationToken;

use super::{
    Direct,
    direct::{Begun, begin_legacy},
};
use crate::{
    auth::Principal,
    events::{EventLog, SessionEvents, StreamGuard},
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

tokio::task_local! {
    /// The place reserved for the session that the current request opens. rmcp's trait passes no
    /// caller to `create_session`, so it travels beside the call.
    static ADMISSION: Mutex<Option<Admission>>;
}

/// A place among a principal's sessions, given back when dropped.
struct Admission {
    principal: Arc<Principal>,
    counts: Arc<DashMap<Arc<str>, usize>>,
    total: Arc<AtomicUsize>,
}

struct Session {
    admission: Option<Admission>,
    opened: Instant,
    /// Milliseconds after the manager's start.
    last_used: AtomicU64,
    /// Requests that are being worked on, and streams that somebody listens to.
    busy: AtomicUsize,
    /// Whether its client knows events that carry nothing but the id to resume from. Those of older versions take them for
    /// malformed messages.
    knows_priming: AtomicBool,
    /// An event of the stream of every request that is being worked on.
    requests: Mutex<HashMap<RequestId, EventId>>,
}

pub struct Sessions {
    local: LocalSessionManager,
    events: Arc<dyn EventLog>,
    direct: Option<Arc<dyn Direct>>,
    limits: SessionLimits,
    metrics: Metrics,
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
            self.session.requests().insert(request.clone(), event_id.to_owned());
        }
        self.request = request;
        self
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            self.session.requests().remove(request);
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

    /// No code panics while it holds the lock.
    fn requests(&self) -> MutexGuard<'_, HashMap<RequestId, EventId>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event_of(&self, request: &RequestId) -> Option<EventId> {
        self.requests().get(request).cloned()
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }

    fn owner(&self) -> Option<&Arc<str>> {
        self.admission.as_ref().map(|admission| &admission.principal.id)
    }

    /// Whether whoever opened it may no longer do what they could do then.
    fn is_revoked(&self) -> bool {
        let admission = self.admission.as_ref();
        admission.is_some_and(|admission| admission.principal.revoked().is_cancelled())
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.total.fetch_sub(1, Ordering::Relaxed);
        let id = &self.principal.id;
        if let Some(mut count) = self.counts.get_mut(id) {
            *count -= 1;
        }
        self.counts.remove_if(id, |_, count| *count == 0);
    }
}

impl Sessions {
    pub fn new(
        limits: SessionLimits,
        events: Arc<dyn EventLog>,
        direct: Option<Arc<dyn Direct>>,
        metrics: Metrics,
    ) -> Self {
        let mut config = SessionConfig::default();
        // This type closes idle sessions itself, because rmcp cannot tell idle from silently working.
        config.keep_alive = None;
        let mut local = LocalSessionManager::default().with_event_store(Arc::new(SessionEvents(Arc::clone(&events))));
        local.session_config = config;
        Self {
            local,
            events,
            direct,
            limits,
            metrics,
            started: Instant::now(),
            sessions: DashMap::new(),
            counts: Arc::default(),
            total: Arc::default(),
        }
    }

    /// Whether a session exists and belongs to the principal. Foreign, revoked and unknown look the same.
    pub(super) fn is_owner(&self, session: &str, principal: &str) -> bool {
        let is_owned = |session: &Session| session.owner().is_some_and(|owner| &**owner == principal);
        self.sessions
            .get(session)
            .is_some_and(|session| is_owned(&session) && !session.is_revoked())
    }

    /// Whether a resumption names an event of the session.
    pub(super) async fn can_resume(&self, session: &str, event_id: &str) -> bool {
        let known = self.events.belongs(event_id, session).await;
        self.metrics.replayed(known);
        known
    }

    /// Runs a request that opens a session in the principal's name. At the limit the principal's
    /// longest unused session makes room; only if all are busy is the request refused.
    pub(super) async fn admit<T>(
        &self,
        principal: &Arc<Principal>,
        request: impl Future<Output = T>,
    ) -> Result<T, TooManySessions> {
        let admission = match self.reserve(principal) {
            Ok(admission) => admission,
            Err(refused) => {
                let Some(oldest) = self.least_used_idle(&principal.id) else {
                    return Err(refused);
                };
                let _ = self.close_session(&oldest).await;
                self.reserve(principal)?
            }
        };
        Ok(ADMISSION.scope(Mutex::new(Some(admission)), request).await)
    }

    /// Closes sessions that are revoked or that nobody used for long, and forgets old events; called now and then.
    pub async fn sweep(&self) {
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
            let _ = self.close_session(&session).await;
        }
    }

    fn reserve(&self, principal: &Arc<Principal>) -> Result<Admission, TooManySessions> {
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
                    principal: Arc::clone(principal),
                    counts: Arc::clone(&self.counts),
                    total: Arc::clone(&self.total),
                });
            }
        };
        Err(TooManySessions { limit })
    }

    fn least_used_idle(&self, principal: &Arc<str>) -> Option<SessionId> {
        self.sessions
            .iter()
            .filter(|entry| entry.is_idle() && entry.owner() == Some(principal))
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

    /// Follows a call that needs no session to be answered. Most are answered at once; one that takes its time goes on
    /// whether or not anybody listens, until it is cancelled or the session is closed.
    async fn follow_answer(
        &self,
        id: &SessionId,
        work: Busy,
        Begun {
            request,
            mut answer,
            is_droppable,
        }: Begun,
    ) -> Result<EventStream, LocalSessionManagerError> {
        let name = uuid::Uuid::new_v4().to_string();
        let retry = self.local.session_config.sse_retry.unwrap_or_default();
        let event_id = self.append(&name, &ServerSseMessage::retry(retry)).await?;
        let wanted = CancellationToken::new();
        let held = (work.on(Some(request), &event_id), wanted.clone().drop_guard());
        let stream = self.open(&event_id, id, Box::new(held)).await?;
        if let Some(message) = (&mut answer).now_or_never() {
            self.append(&name, &ServerSseMessage::from_message(message)).await?;
            return Ok(stream);
        }
        let events = Arc::clone(&self.events);
        tokio::spawn(async move {
            let answered = match is_droppable {
                true => wanted.run_until_cancelled(answer).await,
                // What has begun is done whole, also if nobody wants to hear of it any more.
                false => Some(answer.await).filter(|_| !wanted.is_cancelled()),
            };
            if let Some(message) = answered
                && let Err(error) = events.append(&name, &ServerSseMessage::from_message(message)).await
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

    async fn forget(&self, id: &SessionId) {
        if let Some((_, session)) = self.sessions.remove(id) {
            self.metrics.session_closed(session.opened.elapsed());
        }
        self.events.forget_session(id).await;
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = WorkerTransport<LocalSessionWorker>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.local.create_session().await?;
        let admission = ADMISSION
            .try_with(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).take())
            .unwrap_or_default();
        let session = Session {
            admission,
            opened: Instant::now(),
            last_used: AtomicU64::default(),
            busy: AtomicUsize::default(),
            knows_priming: AtomicBool::new(true),
            requests: Mutex::default(),
        };
        session.touch(self.started);
        self.sessions.insert(Arc::clone(&id), Arc::new(session));
        self.metrics.session_opened();
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let answer = self.local.initialize_session(id, message).await?;
        if let (Some(session), Some(version)) = (self.sessions.get(id), negotiated(&answer)) {
            let knows = version.as_str() >= ProtocolVersion::V_2025_11_25.as_str();
            session.knows_priming.store(knows, Ordering::Relaxed);
        }
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.forget(id).await;
        self.local.close_session(id).await
    }

    /// Starts a request and follows its stream in the event store. Nobody reads rmcp's own channel, so
    /// that a reader who stalls or leaves holds up nobody: what is sent into a closed channel is
    /// discarded at once, after it was stored.
    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let unknown = || LocalSessionManagerError::SessionNotFound(Arc::clone(id));
        let work = self.work_in(id).ok_or_else(unknown)?;
        let direct = self.direct.as_ref();
        if let Some(begun) = direct.and_then(|direct| begin_legacy(direct, &mut message)) {
            return self.follow_answer(id, work, begun).await;
        }
        let handle = self.local.sessions.read().await.get(id).cloned().ok_or_else(unknown)?;
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

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
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

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let busy = self.work_in(id);
        Ok(holding(busy, self.events.follow_common(id).await))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let busy = self.work_in(id);
        let followed = self
            .events
            .replay_after(&last_event_id)
            .await
            .unwrap_or_else(|_| Box::pin(stream::empty()));
        Ok(holding(busy, followed))
    }

    fn event_store(&self) -> Option<Arc<dyn EventStore>> {
        Some(Arc::new(SessionEvents(Arc::clone(&self.events))))
    }
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

/// What travels with a call to those who do it.
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
fn holding<S: Stream>(busy: Option<Busy>, stream: S) -> impl Stream<Item = S::Item> {
    stream.map(move |item| {
        let _held = &busy;
        item
    })
}
