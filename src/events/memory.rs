//! The event store in memory: bounded by events per stream, bytes in all, and age.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    hash::{BuildHasherDefault, Hasher},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::stream;
use rmcp::{
    model::JsonRpcMessage,
    transport::streamable_http_server::session::{
        EventId, EventStore, EventStoreError, EventStream, ServerSseMessage, SessionId, StreamId,
    },
};

use super::{
    audience::{Audience, Reading},
    stream::{Cursor, Delivery, Held, Next, Stream},
};

/// What an event takes beyond its message: its stream, its place in the ring, the index and the queue.
const OVERHEAD: usize = 512;
/// What an object takes in memory beyond its bytes on the wire: it has room for eleven members.
const OBJECT: usize = 640;

/// How rmcp names the stream of what a server says unasked: the session's id and this.
const COMMON_SUFFIX: &str = ":common";

#[derive(Debug, Clone, Copy)]
pub struct EventLimits {
    pub max_events_per_stream: usize,
    pub max_bytes: usize,
    pub ttl: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown event id; it may have expired")]
pub struct UnknownEvent;

/// Names a stream in event ids. Random, so that nobody can guess the id of somebody else's event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct StreamKey(u128);

/// A place in a stream: the event with this position, as its id says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    key: StreamKey,
    event: u64,
}

#[derive(Clone)]
pub struct MemoryEvents {
    limits: EventLimits,
    state: Arc<Mutex<State>>,
}

/// Keys are random already, so that hashing them again would gain nothing.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, _) = bytes.as_chunks();
        self.0 = words.iter().fold(self.0, |hash, word| hash ^ u64::from_ne_bytes(*word));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type KeyHash = BuildHasherDefault<KeyHasher>;

#[derive(Default)]
struct State {
    streams: HashMap<StreamKey, Stream, KeyHash>,
    keys: HashMap<StreamId, StreamKey>,
    sessions: HashMap<SessionId, HashSet<StreamKey, KeyHash>>,
    /// Every event in the order of arrival, so that the oldest of all goes first.
    queue: VecDeque<Queued>,
    bytes: usize,
}

struct Queued {
    position: Position,
    bytes: usize,
    stored_at: Instant,
}

impl MemoryEvents {
    pub fn new(limits: EventLimits) -> Self {
        Self {
            limits,
            state: Arc::default(),
        }
    }

    /// Binds the stream that begins with an event to the session it was made for, and follows it from
    /// that event on. Only that session may resume it, and it goes when the session goes. What is given
    /// to hold is dropped when the stream ends or goes.
    pub fn open(&self, event_id: &str, session: &SessionId, held: Held) -> Result<EventStream, UnknownEvent> {
        let position: Position = event_id.parse()?;
        let cursor = {
            let mut state = self.lock();
            let stream = state.streams.get_mut(&position.key).ok_or(UnknownEvent)?;
            stream.session = Some(Arc::clone(session));
            stream.held = Some(held);
            let cursor = stream.cursor_from(position.event);
            let streams = state.sessions.entry(Arc::clone(session)).or_default();
            streams.insert(position.key);
            cursor
        };
        Ok(self.reader(position.key, cursor))
    }

    /// Whether an event is known and belongs to the session.
    pub fn belongs(&self, event_id: &str, session: &str) -> bool {
        let Ok(position) = event_id.parse::<Position>() else {
            return false;
        };
        let mut state = self.lock();
        state.enforce(&self.limits, Instant::now());
        state
            .streams
            .get(&position.key)
            .is_some_and(|stream| stream.has_had(position.event) && stream.session.as_deref() == Some(session))
    }

    /// Follows a stream from just after an event: what is stored, then what comes, until it ends.
    pub fn follow(&self, event_id: &str) -> Result<EventStream, UnknownEvent> {
        let position: Position = event_id.parse()?;
        let cursor = {
            let state = self.lock();
            let stream = state
                .streams
                .get(&position.key)
                .filter(|stream| stream.has_had(position.event));
            stream.ok_or(UnknownEvent)?.cursor_from(position.event + 1)
        };
        Ok(self.reader(position.key, cursor))
    }

    /// Follows what a session's server says unasked, from where the last reader stopped.
    pub fn follow_common(&self, session: &SessionId) -> EventStream {
        let (key, cursor) = {
            let mut state = self.lock();
            let (key, stream) = state.stream(&format!("{session}{COMMON_SUFFIX}"));
            (key, stream.cursor_at_live_end())
        };
        self.reader(key, cursor)
    }

    /// Who reads the stream of an event.
    pub fn audience(&self, event_id: &str) -> Result<Audience, UnknownEvent> {
        let position: Position = event_id.parse()?;
        let state = self.lock();
        let stream = state.streams.get(&position.key).ok_or(UnknownEvent)?;
        Ok(Audience::of(&stream.readers))
    }

    /// Marks the stream of an event as complete, for a request that ended without an answer.
    pub fn end(&self, event_id: &str) {
        let Ok(position) = event_id.parse::<Position>() else {
            return;
        };
        if let Some(stream) = self.lock().streams.get_mut(&position.key) {
            stream.end();
        }
    }

    /// Forgets all streams of a session that is closed; their readers end.
    pub fn forget_session(&self, session: &str) {
        let mut state = self.lock();
        for key in state.sessions.remove(session).unwrap_or_default() {
            state.remove_stream(key);
        }
    }

    /// Drops what is older than the limit; called now and then, since age passes without events.
    pub fn expire(&self) {
        self.lock().enforce(&self.limits, Instant::now());
    }

    /// Bytes held and streams known, for the dashboards.
    pub fn usage(&self) -> (usize, usize) {
        let state = self.lock();
        (state.bytes, state.streams.len())
    }

    /// Adds an event to the stream of a name and gives it its id.
    pub fn store(&self, stream_id: &str, event: &ServerSseMessage) -> EventId {
        let bytes = OVERHEAD + event.message.as_deref().map_or(0, memory_size);
        let ends = matches!(
            event.message.as_deref(),
            Some(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
        );
        let mut state = self.lock();
        let (key, stream) = state.stream(stream_id);
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
        state.bytes += bytes;
        let now = Instant::now();
        state.queue.push_back(Queued {
            position,
            bytes,
            stored_at: now,
        });
        state.enforce(&self.limits, now);
        event_id
    }

    fn reader(&self, key: StreamKey, cursor: Cursor) -> EventStream {
        let events = self.clone();
        let reading = self.lock().streams.get(&key).map(|stream| Reading::of(&stream.readers));
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
        self.lock()
            .streams
            .get_mut(&key)
            .map_or(Next::End, |stream| stream.next(cursor))
    }

    /// No code panics while it holds the lock, and the state is whole between any two lines.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        while let Some(oldest) = self.queue.front() {
            let expired = now.duration_since(oldest.stored_at) > limits.ttl;
            if !expired && self.bytes <= limits.max_bytes {
                break;
            }
            let Some(Queued { position, bytes, .. }) = self.queue.pop_front() else {
                break;
            };
            self.bytes -= bytes;
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

#[async_trait::async_trait]
impl EventStore for MemoryEvents {
    async fn store_event(&self, stream_id: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError> {
        Ok(self.store(stream_id, event))
    }

    async fn replay_events_after(&self, last_event_id: &str) -> Result<EventStream, EventStoreError> {
        Ok(self.follow(last_event_id)?)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Much faster than formatting a 128-bit number, and two ids are made for every call.
        write!(f, "{}-{}", uuid::Uuid::from_u128(self.key.0).simple(), self.event)
    }
}

impl std::str::FromStr for Position {
    type Err = UnknownEvent;

    fn from_str(event_id: &str) -> Result<Self, UnknownEvent> {
        let (key, event) = event_id.split_once('-').ok_or(UnknownEvent)?;
        let key = u128::from_str_radix(key, 16).map_err(|_| UnknownEvent)?;
        Ok(Self {
            key: StreamKey(key),
            event: event.parse().map_err(|_| UnknownEvent)?,
        })
    }
}

/// About what a message takes in memory, found by counting the JSON that it would make.
fn memory_size(message: &impl serde::Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Punctuation comes by itself; a brace in a text comes with the rest of it.
            let object = if bytes == b"{" { OBJECT } else { 0 };
            self.0 += bytes.len() + object;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A counter never fails, and messages always serialise; an undercount would do no harm.
    let _ = serde_json::to_writer(&mut counter, message);
    counter.0
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use rmcp::model::{EmptyResult, JsonRpcResponse, JsonRpcVersion2_0, RequestId, ServerResult};

    use super::*;

    fn store(max_events_per_stream: usize, max_bytes: usize, ttl: Duration) -> MemoryEvents {
        MemoryEvents::new(EventLimits {
            max_events_per_stream,
            max_bytes,
            ttl,
        })
    }

    fn roomy() -> MemoryEvents {
        store(1000, usize::MAX, Duration::from_secs(3600))
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

    #[test]
    fn bytes_are_bounded_over_all_streams_and_the_oldest_go_first() {
        let events = store(1000, 10 * OVERHEAD, Duration::from_secs(3600));
        let first = events.store("a", &event());
        let mut reader = events.open(&first, &"s".into(), Box::new(())).expect("known");
        for _ in 0..10 {
            events.store("b", &event());
        }
        assert!(events.usage().0 <= 10 * OVERHEAD);
        assert!(ready(&mut reader).is_empty());
        assert!(events.belongs(&first, "s"), "the stream is still open");
    }

    #[test]
    fn a_finished_stream_is_forgotten_with_its_last_event() {
        let events = store(1000, 8 * OVERHEAD, Duration::from_secs(3600));
        events.store("a", &result());
        assert_eq!(events.usage().1, 1);
        for _ in 0..8 {
            events.store("b", &event());
        }
        assert_eq!(events.usage().1, 1, "only b is left");
    }

    #[test]
    fn age_is_bounded() {
        let events = store(1000, usize::MAX, Duration::ZERO);
        let id = events.store("a", &result());
        std::thread::sleep(Duration::from_millis(2));
        events.expire();
        assert_eq!(events.usage(), (0, 0));
        assert!(events.follow(&id).is_err());
    }

    #[test]
    fn a_session_takes_its_streams_with_it() {
        let events = roomy();
        let session: SessionId = "s".into();
        let id = events.store("a", &event());
        let mut reader = events.open(&id, &session, Box::new(())).expect("known");
        assert_eq!(ready(&mut reader), std::slice::from_ref(&id));
        events.store("s:common", &event());
        events.forget_session("s");
        assert!(!events.belongs(&id, "s"));
        assert!(matches!(reader.next().now_or_never(), Some(None)), "its readers end");
        assert_eq!(events.usage().1, 0);
    }

    #[test]
    fn what_a_stream_holds_is_dropped_with_its_result() {
        let events = roomy();
        let (session, work) = (SessionId::from("s"), Arc::new(()));
        let open = |stream: &str| {
            let first = events.store(stream, &event());
            events.open(&first, &session, Box::new(Arc::clone(&work)))
        };
        let (_answered, _cancelled) = (open("a"), open("b"));
        assert_eq!(Arc::strong_count(&work), 3);
        events.store("a", &result());
        assert_eq!(Arc::strong_count(&work), 2);
        events.forget_session("s");
        assert_eq!(Arc::strong_count(&work), 1);
    }

    #[test]
    fn what_is_said_unasked_goes_to_one_of_several_listeners() {
        let events = roomy();
        let session: SessionId = "s".into();
        let (mut one, mut two) = (events.follow_common(&session), events.follow_common(&session));
        let stored: Vec<String> = (0..4).map(|_| events.store("s:common", &event())).collect();
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
        let missed = events.store("s:common", &event());
        assert_eq!(
            ready(&mut events.follow_common(&session)),
            [missed],
            "a new listener gets what nobody got"
        );
        assert_eq!(
            ready(&mut events.follow(&stored[1]).expect("known")).len(),
            3,
            "and one that lost them may ask again"
        );
    }
}
