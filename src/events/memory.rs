//! The event log in memory: bounded by events per stream, bytes in all, and age.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use futures::stream;
use parking_lot::Mutex;
use rmcp::{
    model::JsonRpcMessage,
    transport::streamable_http_server::session::{
        EventId, EventStoreError, EventStream, ServerSseMessage, SessionId, StreamId,
    },
};

use super::{
    audience::{Audience, Reading},
    log::{EventLog, StreamGuard, UnknownEvent},
    position::{KeyHash, Position, StreamKey},
    queues::Queues,
    size::memory_size,
    stream::{Cursor, Delivery, Next, Stream},
};

/// Memory of an event beyond its message: its stream, its entries in the ring, the index and the queue.
const OVERHEAD: usize = 512;
/// Suffix of rmcp's name for the stream of a session's unsolicited messages; the session's id comes before it.
const COMMON_SUFFIX: &str = ":common";

#[derive(Debug, Clone, Copy)]
pub struct EventLimits {
    pub max_events_per_stream: usize,
    pub max_bytes: usize,
    pub ttl: Duration,
}

#[derive(Clone)]
pub struct MemoryEvents {
    limits: EventLimits,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    streams: HashMap<StreamKey, Stream, KeyHash>,
    keys: HashMap<StreamId, StreamKey>,
    sessions: HashMap<SessionId, HashSet<StreamKey, KeyHash>>,
    /// The tenants of sessions.
    owners: HashMap<SessionId, Arc<str>>,
    /// Every event, in the order in which they go.
    queues: Queues,
}

impl MemoryEvents {
    pub fn new(limits: EventLimits) -> Self {
        Self {
            limits,
            state: Arc::default(),
        }
    }

    /// Bytes held and streams known, for the dashboards.
    pub fn usage(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.queues.bytes(), state.streams.len())
    }

    fn reader(&self, key: StreamKey, cursor: Cursor) -> EventStream {
        let events = self.clone();
        let reading = self
            .state
            .lock()
            .streams
            .get(&key)
            .map(|stream| Reading::of(&stream.readers));
        Box::pin(stream::unfold(
            (events, key, cursor, reading),
            |(events, key, cursor, reading)| async move {
                loop {
                    match events.next(key, cursor) {
                        Next::Event(next, event) => return Some((event, (events, key, next, reading))),
                        Next::End => return None,
                        Next::Wait(changed) => changed.await,
                    }
                }
            },
        ))
    }

    fn next(&self, key: StreamKey, cursor: Cursor) -> Next {
        self.state
            .lock()
            .streams
            .get_mut(&key)
            .map_or(Next::End, |stream| stream.next(cursor))
    }
}

#[async_trait]
impl EventLog for MemoryEvents {
    async fn append(&self, stream_id: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError> {
        let bytes = OVERHEAD + event.message.as_deref().map_or(0, memory_size);
        let ends = matches!(
            event.message.as_deref(),
            Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
        );
        let mut state = self.state.lock();
        let (key, stream) = state.stream(stream_id);
        let session = stream.session.clone();
        let position = Position {
            key,
            event: stream.next_position(),
        };
        let event_id = position.to_string();
        let mut stored = event.clone();
        stored.event_id = Some(event_id.clone());
        stream.push(stored);
        if ends && stream.delivery == Delivery::Request {
            stream.end();
        } else {
            stream.changed.notify_waiters();
        }
        let excess = stream.len().saturating_sub(self.limits.max_events_per_stream) as u64;
        if excess > 0 {
            stream.drop_through(position.event - self.limits.max_events_per_stream as u64);
        }
        let now = Instant::now();
        let owner = session.and_then(|session| state.owners.get(&session).cloned());
        state.queues.push(owner.unwrap_or_default(), position, bytes, now);
        state.enforce(&self.limits, now);
        Ok(event_id)
    }

    fn set_owner(&self, session: &SessionId, tenant: &str) {
        let owner = (Arc::clone(session), tenant.into());
        self.state.lock().owners.extend([owner]);
    }

    async fn open(&self, event_id: &str, session: &SessionId, guard: StreamGuard) -> Result<EventStream, UnknownEvent> {
        let position: Position = event_id.parse()?;
        let cursor = {
            let mut state = self.state.lock();
            let stream = state.streams.get_mut(&position.key).ok_or(UnknownEvent)?;
            stream.session = Some(Arc::clone(session));
            stream.guard = Some(guard);
            let cursor = stream.cursor_from(position.event);
            let streams = state.sessions.entry(Arc::clone(session)).or_default();
            streams.insert(position.key);
            cursor
        };
        Ok(self.reader(position.key, cursor))
    }

    async fn belongs(&self, event_id: &str, session: &str) -> bool {
        let Ok(position) = event_id.parse::<Position>() else {
            return false;
        };
        let mut state = self.state.lock();
        state.enforce(&self.limits, Instant::now());
        state
            .streams
            .get(&position.key)
            .is_some_and(|stream| stream.has_had(position.event) && stream.session.as_deref() == Some(session))
    }

    async fn replay_after(&self, event_id: &str) -> Result<EventStream, UnknownEvent> {
        let position: Position = event_id.parse()?;
        let cursor = {
            let state = self.state.lock();
            let stream = state
                .streams
                .get(&position.key)
                .filter(|stream| stream.has_had(position.event));
            stream.ok_or(UnknownEvent)?.cursor_from(position.event + 1)
        };
        Ok(self.reader(position.key, cursor))
    }

    async fn follow_common(&self, session: &SessionId) -> EventStream {
        let (key, cursor) = {
            let mut state = self.state.lock();
            let (key, stream) = state.stream(&format!("{session}{COMMON_SUFFIX}"));
            (key, stream.cursor_at_live_end())
        };
        self.reader(key, cursor)
    }

    async fn audience(&self, event_id: &str) -> Result<Audience, UnknownEvent> {
        let position: Position = event_id.parse()?;
        let state = self.state.lock();
        let stream = state.streams.get(&position.key).ok_or(UnknownEvent)?;
        Ok(Audience::of(&stream.readers))
    }

    fn end(&self, event_id: &str) {
        let Ok(position) = event_id.parse::<Position>() else {
            return;
        };
        if let Some(stream) = self.state.lock().streams.get_mut(&position.key) {
            stream.end();
        }
    }

    async fn forget_session(&self, session: &str) {
        let mut state = self.state.lock();
        state.owners.remove(session);
        for key in state.sessions.remove(session).unwrap_or_default() {
            state.remove_stream(key);
        }
    }

    async fn sweep(&self) {
        self.state.lock().enforce(&self.limits, Instant::now());
    }
}

impl State {
    /// The stream of a name, which is made at its first event.
    fn stream(&mut self, stream_id: &str) -> (StreamKey, &mut Stream) {
        let key = match (uuid::Uuid::try_parse(stream_id), self.keys.get(stream_id)) {
            // rmcp names the stream of a request with a random number, which serves as the key too.
            (Ok(name), _) => StreamKey(name.as_u128()),
            (_, Some(key)) => *key,
            (_, None) => self.new_key(stream_id),
        };
        let stream = self.streams.entry(key).or_insert_with(|| {
            let common = stream_id.strip_suffix(COMMON_SUFFIX).map(SessionId::from);
            let delivery = if common.is_some() {
                Delivery::Common
            } else {
                Delivery::Request
            };
            Stream::new(stream_id, delivery, common)
        });
        (key, stream)
    }

    fn new_key(&mut self, stream_id: &str) -> StreamKey {
        let key = StreamKey(uuid::Uuid::new_v4().as_u128());
        self.keys.insert(stream_id.to_owned(), key);
        if let Some(session) = stream_id.strip_suffix(COMMON_SUFFIX) {
            self.sessions.entry(session.into()).or_default().insert(key);
        }
        key
    }

    fn enforce(&mut self, limits: &EventLimits, now: Instant) {
        while let Some(position) = self.queues.pop(limits.max_bytes, limits.ttl, now) {
            self.drop_event(position);
        }
    }

    fn drop_event(&mut self, position: Position) {
        let Some(stream) = self.streams.get_mut(&position.key) else {
            return;
        };
        stream.drop_through(position.event);
        // A stream without a session was begun for a client that left before its request was sent.
        if stream.is_empty() && (stream.ended || stream.session.is_none()) {
            self.remove_stream(position.key);
        }
    }

    fn remove_stream(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.remove(&key) else {
            return;
        };
        self.keys.remove(&stream.stream_id);
        if let Some(streams) = stream
            .session
            .as_ref()
            .and_then(|session| self.sessions.get_mut(session))
        {
            streams.remove(&key);
        }
        stream.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use rmcp::model::{EmptyResult, JsonRpcResponse, JsonRpcVersion2_0, RequestId, ServerResult};

    use super::*;

    fn log(max_events_per_stream: usize, max_bytes: usize, ttl: Duration) -> MemoryEvents {
        MemoryEvents::new(EventLimits {
            max_events_per_stream,
            max_bytes,
            ttl,
        })
    }

    fn roomy() -> MemoryEvents {
        log(1000, usize::MAX, Duration::from_secs(3600))
    }

    fn event() -> ServerSseMessage {
        ServerSseMessage::retry(Duration::from_secs(1))
    }

    fn result() -> ServerSseMessage {
        ServerSseMessage::from_message(JsonRpcMessage::Response(JsonRpcResponse {
            jsonrpc: JsonRpcVersion2_0,
            id: RequestId::Number(1),
            result: ServerResult::EmptyResult(EmptyResult {}),
        }))
    }

    fn ready(stream: &mut EventStream) -> Vec<String> {
        let mut ids = Vec::new();
        while let Some(Some(event)) = stream.next().now_or_never() {
            ids.extend(event.event_id);
        }
        ids
    }

    #[tokio::test]
    async fn a_tenant_pushes_out_only_its_own_events() {
        let log = log(1000, 10 * OVERHEAD, Duration::from_secs(3600));
        let (quiet, loud): (SessionId, SessionId) = ("quiet".into(), "loud".into());
        log.set_owner(&quiet, "a");
        log.set_owner(&loud, "b");
        let first = log.append("quiet:common", &event()).await.unwrap();
        for _ in 0..100 {
            log.append("loud:common", &event()).await.unwrap();
        }
        assert!(log.usage().0 <= 10 * OVERHEAD);
        assert!(log.belongs(&first, &quiet).await);
        let position: Position = first.parse().unwrap();
        assert_eq!(log.state.lock().streams[&position.key].len(), 1, "it is kept");
        log.forget_session(&loud).await;
        assert_eq!(log.state.lock().owners.len(), 1);
    }

    #[tokio::test]
    async fn bytes_are_bounded_over_all_streams_and_the_oldest_go_first() {
        let events = log(1000, 10 * OVERHEAD, Duration::from_secs(3600));
        let first = events.append("a", &event()).await.expect("memory");
        let mut reader = events.open(&first, &"s".into(), Box::new(())).await.expect("known");
        for _ in 0..10 {
            events.append("b", &event()).await.expect("memory");
        }
        assert!(events.usage().0 <= 10 * OVERHEAD);
        assert!(ready(&mut reader).is_empty());
        assert!(events.belongs(&first, "s").await, "the stream is still open");
    }

    #[tokio::test]
    async fn a_finished_stream_is_forgotten_with_its_last_event() {
        let events = log(1000, 8 * OVERHEAD, Duration::from_secs(3600));
        events.append("a", &result()).await.expect("memory");
        assert_eq!(events.usage().1, 1);
        for _ in 0..8 {
            events.append("b", &event()).await.expect("memory");
        }
        assert_eq!(events.usage().1, 1, "only b is left");
    }

    #[tokio::test]
    async fn age_is_bounded() {
        let events = log(1000, usize::MAX, Duration::ZERO);
        let id = events.append("a", &result()).await.expect("memory");
        // The event must be older than nothing.
        std::thread::sleep(Duration::from_millis(2));
        events.sweep().await;
        assert_eq!(events.usage(), (0, 0));
        assert!(events.replay_after(&id).await.is_err());
    }

    #[tokio::test]
    async fn a_session_takes_its_streams_with_it() {
        let events = roomy();
        let session: SessionId = "s".into();
        let id = events.append("a", &event()).await.expect("memory");
        let mut reader = events.open(&id, &session, Box::new(())).await.expect("known");
        assert_eq!(ready(&mut reader), std::slice::from_ref(&id));
        events.append("s:common", &event()).await.expect("memory");
        events.forget_session("s").await;
        assert!(!events.belongs(&id, "s").await);
        assert!(matches!(reader.next().now_or_never(), Some(None)), "its readers end");
        assert_eq!(events.usage().1, 0);
    }

    #[tokio::test]
    async fn what_a_stream_holds_is_dropped_with_its_result() {
        let events = roomy();
        let (session, work) = (SessionId::from("s"), Arc::new(()));
        let open = async |stream: &str| {
            let first = events.append(stream, &event()).await.expect("memory");
            events.open(&first, &session, Box::new(Arc::clone(&work))).await
        };
        let (_answered, _cancelled) = (open("a").await, open("b").await);
        assert_eq!(Arc::strong_count(&work), 3);
        events.append("a", &result()).await.expect("memory");
        assert_eq!(Arc::strong_count(&work), 2);
        events.forget_session("s").await;
        assert_eq!(Arc::strong_count(&work), 1);
    }

    #[tokio::test]
    async fn what_is_said_unasked_goes_to_one_of_several_listeners() {
        let events = roomy();
        let session: SessionId = "s".into();
        let mut one = events.follow_common(&session).await;
        let mut two = events.follow_common(&session).await;
        let mut stored = Vec::new();
        for _ in 0..4 {
            stored.push(events.append("s:common", &event()).await.expect("memory"));
        }
        let mut seen = vec![one.next().now_or_never().flatten(), two.next().now_or_never().flatten()];
        seen.extend(ready(&mut one).into_iter().map(|id| {
            let mut event = event();
            event.event_id = Some(id);
            Some(event)
        }));
        seen.push(two.next().now_or_never().flatten());
        let mut ids: Vec<String> = seen.into_iter().flatten().filter_map(|event| event.event_id).collect();
        ids.sort();
        assert_eq!(ids, stored, "each once");
        let missed = events.append("s:common", &event()).await.expect("memory");
        assert_eq!(
            ready(&mut events.follow_common(&session).await),
            [missed],
            "a new listener gets what nobody got"
        );
        assert_eq!(
            ready(&mut events.replay_after(&stored[1]).await.expect("known")).len(),
            3,
            "and one that lost them may ask again"
        );
    }
}
