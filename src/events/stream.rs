//! One stream's events in memory: a bounded ring with positions that only grow.

use std::{collections::VecDeque, sync::Arc};

use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::Notify;

/// How the events of a stream are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// The answer to one request: each reader follows it from its own position, and it ends.
    Request,
    /// What the server says unasked: several open readers share it, each event going to one of them.
    Common,
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) stream_id: String,
    pub(super) delivery: Delivery,
    pub(super) session: Option<SessionId>,
    pub(super) changed: Arc<Notify>,
    pub(super) ended: bool,
    events: VecDeque<ServerSseMessage>,
    /// The position of the front of `events`.
    first: u64,
    /// The position after the last event that some reader of a common stream was given.
    delivered: u64,
}

/// What a reader finds when it asks for its next event.
pub(super) enum Next {
    Event(u64, ServerSseMessage),
    Wait(Arc<Notify>),
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
            events: VecDeque::new(),
            first: 0,
            delivered: 0,
        }
    }

    pub(super) fn push(&mut self, event: ServerSseMessage) -> u64 {
        self.events.push_back(event);
        self.first + self.events.len() as u64 - 1
    }

    pub(super) fn next_position(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether an event with this position was ever part of the stream.
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

    /// The next event for a reader that stands at `position`. What a limit has dropped meanwhile is
    /// skipped: the newest events, the result among them, are the last to go.
    pub(super) fn next(&mut self, position: u64) -> Next {
        let mut wanted = position.max(self.first);
        if self.delivery == Delivery::Common {
            // At the live end readers compete, so that no event is sent on two connections.
            let replaying = wanted < self.delivered;
            wanted = if replaying {
                wanted
            } else {
                self.delivered.max(self.first)
            };
        }
        let index = wanted
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok());
        match index.and_then(|index| self.events.get(index)) {
            Some(event) => {
                self.delivered = self.delivered.max(wanted + 1);
                Next::Event(wanted + 1, event.clone())
            }
            None if self.ended => Next::End,
            None => Next::Wait(Arc::clone(&self.changed)),
        }
    }
}
