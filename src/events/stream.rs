//! One stream's events in memory: a bounded ring with positions that only grow.

use std::{collections::VecDeque, sync::Arc};

use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::{Notify, futures::OwnedNotified, watch};

use super::log::StreamGuard;

/// Delivery of a stream's events to its readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The answer to one request: each reader follows it from its own position, and it ends.
    Request,
    /// Unsolicited messages of the server: several readers share the stream, each event going to one of them.
    Common,
}

pub(super) struct Stream {
    pub(super) stream_id: String,
    pub(super) delivery: Delivery,
    pub(super) session: Option<SessionId>,
    pub(super) changed: Arc<Notify>,
    pub(super) ended: bool,
    pub(super) guard: Option<StreamGuard>,
    /// Number of current readers.
    pub(super) readers: watch::Sender<usize>,
    events: VecDeque<ServerSseMessage>,
    /// The position of the front of `events`.
    first: u64,
    /// The position after the last event that some reader of a common stream was given.
    delivered: u64,
}

/// Position of a reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    position: u64,
    /// End of the replay: events before this position had been delivered when the reader came.
    replay_until: u64,
}

/// Result of a read.
pub(super) enum Next {
    Event(Cursor, ServerSseMessage),
    /// Ready with the next change, whether or not it was polled before.
    Wait(OwnedNotified),
    End,
}

impl Stream {
    pub(super) fn new(stream_id: &str, delivery: Delivery, session: Option<SessionId>) -> Self {
        Self {
            stream_id: stream_id.to_owned(),
            delivery,
            session,
            changed: Arc::default(),
            ended: false,
            guard: None,
            readers: watch::Sender::new(0),
            events: VecDeque::new(),
            first: 0,
            delivered: 0,
        }
    }

    pub(super) fn push(&mut self, event: ServerSseMessage) -> u64 {
        self.events.push_back(event);
        self.first + self.events.len() as u64 - 1
    }

    /// Nothing more comes: readers end when they have read what is there.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.guard = None;
        self.changed.notify_waiters();
    }

    pub(super) fn next_position(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// A cursor for a reader that has had everything before `position`.
    pub(super) fn cursor_from(&self, position: u64) -> Cursor {
        Cursor {
            position,
            replay_until: self.delivered,
        }
    }

    /// A cursor for a reader that wants what nobody was given yet.
    pub(super) fn cursor_at_live_end(&self) -> Cursor {
        self.cursor_from(self.delivered)
    }

    /// Returns whether the stream ever had an event at this position.
    pub(super) fn has_had(&self, position: u64) -> bool {
        position < self.next_position()
    }

    /// Drops the oldest events up to and including `position`.
    pub(super) fn drop_through(&mut self, position: u64) {
        while self.first <= position && self.events.pop_front().is_some() {
            self.first += 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The next event for a reader. What a limit has dropped meanwhile is skipped: the newest events,
    /// the result among them, are the last to go.
    pub(super) fn next(&mut self, cursor: Cursor) -> Next {
        // At the live end of a common stream readers compete, so that no event is sent on two connections.
        let competes = self.delivery == Delivery::Common && cursor.position >= cursor.replay_until;
        let position = if competes { self.delivered } else { cursor.position }.max(self.first);
        let index = usize::try_from(position - self.first).ok();
        match index.and_then(|index| self.events.get(index)) {
            Some(event) => {
                self.delivered = self.delivered.max(position + 1);
                Next::Event(
                    Cursor {
                        position: position + 1,
                        ..cursor
                    },
                    event.clone(),
                )
            }
            None if self.ended => Next::End,
            None => Next::Wait(Arc::clone(&self.changed).notified_owned()),
        }
    }
}
