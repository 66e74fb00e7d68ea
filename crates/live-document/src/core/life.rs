//! The life of an open document: a state machine without I/O. The driver tells it what happened and the time, and
//! carries out the effects.
//!
//! ```text
//!              joined                    close                  saved, or nothing to save
//! (handshake) ────────▶ Synced ────────────────────▶ Leaving ──────────────────────────▶ Closed
//!                       │    ▲                          │ connection lost                  ▲
//!       connection lost │    │ joined: recovery         └──────────────────────────────────┤
//!                       ▼    │                                                             │
//!                      Reconnecting ───────────────────────────────────────────────────────┘
//!                       └─▲ join failed: back-off        closed, or joining again is of no use
//! ```
//!
//! Edits of callers need no input: they change the document under the same lock, and [`Input::Flush`] sends them.

use std::time::{Duration, Instant, SystemTime};

use jupyter_client::{DocPath, JupyterError};
use yrs::StateVector;

use super::{
    RoomError,
    disconnect::{Disconnect, GONE, guarded},
    policy::{
        AWARENESS_ROUND, CONNECTION_TIMEOUT, FILE_POLL_INTERVAL, LEAVE_SAVE_TIMEOUT, LEAVE_SAVES, LEAVE_TICK, TICK,
        backoff,
    },
    recovery::{Clocks, ServerDocument},
    saving::Saving,
    state::State,
    wire::Message,
};

/// Phase in the life of a document.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Connected, and complete in memory.
    Synced { last_received: Instant, next_tick: Instant },
    /// The connection was lost, and the document is being joined again.
    Reconnecting { attempts: u32, last_received: Instant },
    /// It is being closed: edits are saved first.
    Leaving(Leaving),
    /// It is over.
    Closed,
}

/// Condition that closing a document waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Leaving {
    /// Until it is known whether people want it saved.
    Learning {
        until: Instant,
    },
    Saving {
        until: Instant,
        requests: usize,
    },
}

impl Phase {
    /// The beginning of a life, and of every connection.
    pub(crate) fn synced(now: Instant) -> Self {
        Self::Synced {
            last_received: now,
            next_tick: now,
        }
    }
}

/// Input of the state machine.
pub(crate) enum Input<'a> {
    /// A frame came from the server.
    Frame(&'a [u8]),
    /// A ping came back.
    Pong(&'a [u8]),
    /// A caller changed something, or the time of [`State::next_timer`] has come.
    Tick,
    /// Pending changes of callers and runs may be sent.
    Flush,
    /// Somebody needs the document on disk.
    SaveRequested,
    /// The answer to [`Effect::AskForFile`].
    FileAnswer {
        exists: bool,
    },
    /// A directory above the document has another name now. Jupyter may have lost track of the document, so that it can
    /// never be saved on this connection.
    Moved(DocPath),
    Lost(Disconnect),
    JoinFailed(RoomError),
    /// The document was joined again, and the server's is complete.
    Joined(Box<Joined>),
    Close,
    /// There is no more time to wait for the edits to be saved.
    GiveUp,
}

/// Result of joining again.
pub(crate) struct Joined {
    /// Path of the document when it was joined.
    pub(crate) path: DocPath,
    pub(crate) file_id: String,
    /// True if the server can write the file.
    pub(crate) writable: bool,
    /// Modification time of the file, by the server's clock.
    pub(crate) file_written: Option<SystemTime>,
    pub(crate) theirs: ServerDocument,
    /// State vector of the server, if it sent one yet; some ask only after they have answered.
    pub(crate) server_vector: Option<StateVector>,
}

/// Effect that the driver carries out.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Send(Vec<Vec<u8>>),
    /// Ask the server to write the document to disk.
    Save(u64),
    Ping([u8; 8]),
    /// Ask whether the file is still there: Jupyter goes on taking edits of one that is gone.
    AskForFile,
    /// Tell those who wait that the document is connected again.
    Connected,
    /// Drop the connection, if there is one, and join again.
    Reconnect {
        after: Duration,
    },
    /// The document is over; a connection that is there is closed in good order.
    Close(CloseReason),
}

#[derive(Debug, PartialEq)]
pub(crate) enum CloseReason {
    Left,
    Lost(Disconnect),
    CannotJoin(RoomError),
}

impl State {
    /// Takes an input, and returns the effects.
    pub(crate) fn on(&mut self, input: Input<'_>, now: Instant) -> Vec<Effect> {
        self.set_now(now);
        // Pending changes should be on their way first.
        let is_sending = matches!(input, Input::Flush);
        let effects = self.take_in(input);
        if !is_sending {
            self.tell_versions();
        }
        effects
    }

    fn take_in(&mut self, input: Input<'_>) -> Vec<Effect> {
        match input {
            Input::Frame(frame) => self.on_frame(frame),
            Input::Pong(ping) => {
                self.note_received();
                self.on_pong(ping);
                self.leave_if_ready()
            }
            Input::Tick => self.on_tick(),
            Input::Flush if self.has_no_connection() => Vec::new(),
            Input::Flush => send(self.take_changes()),
            Input::SaveRequested => self
                .request_save_now()
                .map(|request| self.save(request))
                .unwrap_or_default(),
            Input::FileAnswer { exists: true } => Vec::new(),
            Input::FileAnswer { exists: false } => self.on_lost(Disconnect::Closed {
                code: GONE,
                reason: "the file was deleted".to_owned(),
            }),
            Input::Moved(path) => {
                self.set_path(path);
                match self.phase {
                    Phase::Synced { .. } => self.on_lost(Disconnect::Cut("its directory was renamed".to_owned())),
                    _ => Vec::new(),
                }
            }
            Input::Lost(end) => self.on_lost(end),
            Input::JoinFailed(error) => self.on_join_failed(error),
            Input::Joined(joined) => self.on_joined(*joined),
            Input::Close => self.on_close(),
            Input::GiveUp => match self.phase {
                Phase::Leaving(_) => self.close(CloseReason::Left),
                Phase::Synced { .. } | Phase::Reconnecting { .. } | Phase::Closed => Vec::new(),
            },
        }
    }

    /// Time when [`Input::Tick`] is due, if nothing happens before.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        match self.phase {
            Phase::Synced { next_tick, .. } => {
                let (held, version) = (self.changes_held_until(), self.version_due_at());
                let due = self.awareness.due_at().into_iter().chain(held).chain(version);
                due.chain([next_tick]).min()
            }
            Phase::Leaving(Leaving::Learning { until }) => Some(until.min(self.now() + LEAVE_TICK)),
            Phase::Leaving(Leaving::Saving { until, .. }) => Some(until),
            Phase::Reconnecting { .. } | Phase::Closed => None,
        }
    }

    /// Returns whether the document needs no connection any more, or a new one.
    pub(crate) fn has_no_connection(&self) -> bool {
        matches!(self.phase, Phase::Reconnecting { .. } | Phase::Closed)
    }

    fn on_frame(&mut self, frame: &[u8]) -> Vec<Effect> {
        self.note_received();
        if let Err(end) = guarded(|| self.receive(frame)) {
            return self.on_lost(end);
        }
        if matches!(self.phase, Phase::Leaving(_)) {
            return self.leave_if_ready();
        }
        let mut effects = send(self.take_outbox());
        if self.saving.take_failure() {
            effects.push(Effect::AskForFile);
        }
        effects
    }

    fn note_received(&mut self) {
        let now = self.now();
        if let Phase::Synced { last_received, .. } = &mut self.phase {
            *last_received = now;
        }
    }

    fn on_tick(&mut self) -> Vec<Effect> {
        let now = self.now();
        match &mut self.phase {
            Phase::Synced { next_tick, .. } if now < *next_tick => send(self.take_outbox()),
            Phase::Synced { last_received, .. } if now.duration_since(*last_received) > CONNECTION_TIMEOUT => {
                self.on_lost(Disconnect::Cut("nothing came for too long".to_owned()))
            }
            Phase::Synced { next_tick, .. } => {
                *next_tick = now + TICK;
                self.on_regular_tick()
            }
            Phase::Leaving(_) => self.leave_if_ready(),
            Phase::Reconnecting { .. } | Phase::Closed => Vec::new(),
        }
    }

    /// Does the periodic work: presences, saving what keeps changing, and a ping.
    fn on_regular_tick(&mut self) -> Vec<Effect> {
        self.show_unsaved();
        let mut effects = send(self.take_outbox());
        self.hold_changes_once();
        effects.extend(self.request_overdue_save().map(Effect::Save));
        effects.push(Effect::Ping(self.saving.ping()));
        effects
    }

    fn save(&self, request: u64) -> Vec<Effect> {
        vec![Effect::Save(request), Effect::Ping(self.saving.ping())]
    }

    fn on_lost(&mut self, end: Disconnect) -> Vec<Effect> {
        match self.phase {
            Phase::Synced { last_received, .. } if end.is_recoverable() => {
                self.phase = Phase::Reconnecting {
                    attempts: 0,
                    last_received,
                };
                self.clear_outbox();
                vec![Effect::Reconnect { after: Duration::ZERO }]
            }
            Phase::Synced { .. } => self.close(CloseReason::Lost(end)),
            Phase::Leaving(_) => self.close(CloseReason::Left),
            Phase::Reconnecting { .. } | Phase::Closed => Vec::new(),
        }
    }

    fn on_join_failed(&mut self, error: RoomError) -> Vec<Effect> {
        match &mut self.phase {
            Phase::Reconnecting { attempts, .. } if is_worth_retrying(&error) => {
                tracing::debug!(%error, path = %self.path, "a document cannot be joined again yet");
                let after = backoff(*attempts);
                *attempts += 1;
                vec![Effect::Reconnect { after }]
            }
            Phase::Reconnecting { .. } => self.close(CloseReason::CannotJoin(error)),
            Phase::Synced { .. } | Phase::Leaving(_) | Phase::Closed => Vec::new(),
        }
    }

    fn on_joined(&mut self, joined: Joined) -> Vec<Effect> {
        let Phase::Reconnecting { last_received, .. } = self.phase else {
            return Vec::new();
        };
        if joined.path != self.path {
            // Renamed meanwhile.
            return vec![Effect::Reconnect { after: Duration::ZERO }];
        }
        self.file_id = joined.file_id;
        self.writable = joined.writable;
        let is_restarted = self.server_session != joined.theirs.server_session;
        let saves_from = self.now()
            + if is_restarted {
                FILE_POLL_INTERVAL
            } else {
                Duration::ZERO
            };
        self.saving = Saving::not_before(saves_from);
        // Queued changes are of the document before; those that still count go out with the answer.
        self.clear_outbox();
        self.awareness.repeat_all();
        let clocks = Clocks {
            file_written: joined.file_written,
            last_heard: self.document.clock().wall_at(last_received),
        };
        if let Err(end) = self.recover(joined.theirs, clocks) {
            return self.close(CloseReason::Lost(end));
        }
        self.note_discarded_since(last_received, is_restarted);
        if let Some(vector) = joined.server_vector {
            let answer = Message::SyncStep2(self.document.diff(&vector));
            self.send(&answer);
        }
        self.phase = Phase::Synced {
            last_received: self.now(),
            next_tick: saves_from,
        };
        let mut effects = send(self.take_all());
        effects.push(Effect::Connected);
        effects
    }

    fn on_close(&mut self) -> Vec<Effect> {
        match self.phase {
            Phase::Synced { .. } => {
                let until = self.now() + AWARENESS_ROUND;
                self.phase = Phase::Leaving(Leaving::Learning { until });
                // The closing may have overtaken an edit that waits.
                self.release_changes();
                let mut effects = send(self.take_all());
                effects.extend(self.leave_if_ready());
                effects
            }
            Phase::Reconnecting { .. } => self.close(CloseReason::Left),
            Phase::Leaving(_) | Phase::Closed => Vec::new(),
        }
    }

    /// Continues leaving: to saving once it is known whether people want that, and to the end once everything is on disk.
    fn leave_if_ready(&mut self) -> Vec<Effect> {
        let now = self.now();
        let Phase::Leaving(leaving) = self.phase else {
            return Vec::new();
        };
        let (until, requests) = match leaving {
            Leaving::Learning { until } if self.may_want_saving() && now < until => return Vec::new(),
            Leaving::Learning { .. } => (now + LEAVE_SAVE_TIMEOUT, 0),
            Leaving::Saving { until, requests } => (until, requests),
        };
        if !self.needs_save() || requests > LEAVE_SAVES || now >= until || self.saving.take_failure() {
            return self.close(CloseReason::Left);
        }
        let request = self.request_save();
        self.phase = Phase::Leaving(Leaving::Saving {
            until,
            requests: requests + usize::from(request.is_some()),
        });
        request.map(|request| self.save(request)).unwrap_or_default()
    }

    fn close(&mut self, reason: CloseReason) -> Vec<Effect> {
        let remove_all = match self.phase {
            Phase::Leaving(_) => self.awareness.remove_all(),
            _ => Vec::new(),
        };
        self.phase = Phase::Closed;
        if reason == CloseReason::Left && self.unsaved.is_some() && self.awareness.autosave() != Some(false) {
            tracing::warn!(path = %self.path, "closed a document before Jupyter had saved its last edits");
        }
        self.end_history();
        // No acknowledgement can come any more, so that nobody need wait for one.
        drop(self.document.acknowledgements.take_waiting());
        let mut effects = match remove_all.is_empty() {
            true => Vec::new(),
            false => send(vec![Message::Awareness(remove_all).encode()]),
        };
        effects.push(Effect::Close(reason));
        effects
    }
}

fn send(frames: Vec<Vec<u8>>) -> Vec<Effect> {
    match frames.is_empty() {
        true => Vec::new(),
        false => vec![Effect::Send(frames)],
    }
}

/// Returns whether joining the document may succeed later.
fn is_worth_retrying(error: &RoomError) -> bool {
    !matches!(
        error,
        RoomError::Refused { .. }
            | RoomError::Excess { .. }
            | RoomError::Jupyter(JupyterError::NotFound { .. } | JupyterError::LargeDocument { .. })
    )
}

#[cfg(test)]
mod tests;
