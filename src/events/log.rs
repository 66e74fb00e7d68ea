//! Interface of an event log, as streams and sessions need it. The seam for one that outlives the process; the one
//! there is keeps events in memory.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::{
    EventId, EventStore, EventStoreError, EventStream, ServerSseMessage, SessionId,
};

use super::Audience;

/// Something that lives as long as a stream has more to say.
pub type StreamGuard = Box<dyn Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the event id is not known here; it may have expired")]
pub struct UnknownEvent;

/// The events of all streams. Each stream is the answer to one request, or what a server says unasked, and belongs to
/// one MCP session once it is bound; whoever else asks for it is told that it does not exist.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Adds an event to the stream of a name and gives it its id.
    async fn append(&self, stream_id: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError>;

    /// Tells whose a session is, until it is forgotten: what is too much of one tenant pushes out nobody else's.
    fn set_owner(&self, session: &SessionId, tenant: &str);

    /// Binds the stream that begins with an event to the session it was made for, and follows it from
    /// that event on. Only that session may resume it, and it goes when the session goes. The guard is
    /// dropped when the stream ends or goes.
    async fn open(&self, event_id: &str, session: &SessionId, guard: StreamGuard) -> Result<EventStream, UnknownEvent>;

    /// Returns whether an event is known and belongs to the session.
    async fn belongs(&self, event_id: &str, session: &str) -> bool;

    /// Follows a stream from just after an event: what is stored, then what comes, until it ends.
    async fn replay_after(&self, event_id: &str) -> Result<EventStream, UnknownEvent>;

    /// Follows what a session's server says unasked, from where the last reader stopped.
    async fn follow_common(&self, session: &SessionId) -> EventStream;

    /// Returns the readers of an event's stream.
    async fn audience(&self, event_id: &str) -> Result<Audience, UnknownEvent>;

    /// Marks the stream of an event as complete, for a request that ended without an answer. It does not wait, since
    /// requests that are dropped end so.
    fn end(&self, event_id: &str);

    /// Forgets all streams of a session that is closed; their readers end.
    async fn forget_session(&self, session: &str);

    /// Drops what is too old; called now and then, since age passes without events.
    async fn sweep(&self);
}

/// A log as rmcp's sessions use it.
pub struct SessionEvents(pub Arc<dyn EventLog>);

#[async_trait]
impl EventStore for SessionEvents {
    async fn store_event(&self, stream_id: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError> {
        self.0.append(stream_id, event).await
    }

    async fn replay_events_after(&self, last_event_id: &str) -> Result<EventStream, EventStoreError> {
        Ok(self.0.replay_after(last_event_id).await?)
    }
}
