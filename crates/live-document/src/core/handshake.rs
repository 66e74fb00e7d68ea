//! The first synchronisation of a connection: the server's document is received into an empty one, and the server is told
//! nothing of ours yet. Does no I/O.

use std::time::Instant;

use yrs::StateVector;

use super::{
    RoomKind,
    clock::Clock,
    disconnect::{Disconnect, guarded},
    document::{Document, decode_vector, encode_vector},
    policy::{CONNECTION_TIMEOUT, EMPTY_QUIET, FIRST_QUIET, LOADING_QUIET, SYNC_PINGS, SYNC_TIMEOUT},
    wire::Message,
};

/// A synchronisation under way.
pub(crate) struct Handshake {
    pub(crate) document: Document,
    pub(crate) updates: Vec<Vec<u8>>,
    /// State vector of the server, if it sent one yet; some ask only after they have answered.
    pub(crate) server_vector: Option<StateVector>,
    /// True if the server was seen to send a notebook in parts.
    pub(crate) loads_progressively: bool,
    stage: Stage,
    until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The server has not answered yet.
    Requested,
    /// It has, and may go on sending cells: when none came for a moment, pings that come back without any tell a
    /// notebook that is complete from a server that is busy.
    Growing,
    Pinged {
        left: u8,
    },
}

/// Next step of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Wait,
    Ping,
    Complete,
}

impl Handshake {
    pub(crate) fn new(kind: RoomKind, loads_progressively: bool, clock: Clock) -> Self {
        Self {
            document: Document::new(kind, clock),
            updates: Vec::new(),
            server_vector: None,
            loads_progressively,
            stage: Stage::Requested,
            until: clock.now() + SYNC_TIMEOUT,
        }
    }

    /// First message of the handshake.
    pub(crate) fn request() -> Vec<u8> {
        Message::SyncStep1(encode_vector(&StateVector::default())).encode()
    }

    /// Time when [`Self::on_timeout`] is due.
    pub(crate) fn until(&self) -> Instant {
        self.until
    }

    pub(crate) fn on_frame(&mut self, frame: &[u8], now: Instant) -> Result<Step, Disconnect> {
        let message = Message::decode(frame).map_err(|error| Disconnect::Malformed(error.to_string()))?;
        match message {
            Some(Message::SyncStep1(vector)) => {
                let vector = decode_vector(&vector)?;
                self.document.acknowledgements.server_has(&vector);
                self.server_vector = Some(vector);
            }
            Some(Message::SyncStep2(update)) => {
                self.take(update)?;
                // Jupyter gives every notebook a cell, so one without is probably being loaded.
                let is_empty = self.document.is_notebook() && self.document.cell_count() == 0;
                if !self.document.is_notebook() || !is_empty && !self.loads_progressively {
                    return Ok(Step::Complete);
                }
                self.stage = Stage::Growing;
                self.until = now + if is_empty { EMPTY_QUIET } else { FIRST_QUIET };
            }
            Some(Message::Update(update)) => {
                let before = self.document.cell_count();
                self.take(update)?;
                if self.stage != Stage::Requested && self.document.cell_count() > before {
                    self.loads_progressively = true;
                    self.stage = Stage::Growing;
                    self.until = now + LOADING_QUIET;
                }
            }
            Some(Message::Awareness(_) | Message::Jupyter(_)) | None => {}
        }
        Ok(Step::Wait)
    }

    pub(crate) fn on_pong(&mut self) -> Step {
        match &mut self.stage {
            Stage::Pinged { left: 1 } => Step::Complete,
            Stage::Pinged { left } => {
                *left -= 1;
                Step::Ping
            }
            Stage::Requested | Stage::Growing => Step::Wait,
        }
    }

    pub(crate) fn on_timeout(&mut self, now: Instant) -> Result<Step, Disconnect> {
        match self.stage {
            Stage::Growing => {
                self.stage = Stage::Pinged { left: SYNC_PINGS };
                self.until = now + CONNECTION_TIMEOUT;
                Ok(Step::Ping)
            }
            Stage::Requested | Stage::Pinged { .. } => Err(Disconnect::Cut(
                "the server did not send the document in time".to_owned(),
            )),
        }
    }

    fn take(&mut self, update: Vec<u8>) -> Result<(), Disconnect> {
        let document = &mut self.document;
        guarded(|| Ok(document.apply_remote(&update)?))?;
        self.updates.push(update);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{CellKind, Edit, NewCell};

    fn handshake(loads_progressively: bool) -> Handshake {
        Handshake::new(RoomKind::Notebook, loads_progressively, Clock::default())
    }

    /// A server's notebook that grows by one cell with every frame.
    fn frames(count: usize) -> Vec<Vec<u8>> {
        let mut server = Document::new(RoomKind::Notebook, Clock::default());
        let mut grow = |_| {
            let before = server.state_vector();
            let cells = vec![NewCell::new(CellKind::Code, "1")];
            let added = server.apply_local(&"lab".into(), &[Edit::AppendCells { cells }]);
            added.map(|_| server.diff(&before)).expect("valid")
        };
        (0..count).map(&mut grow).collect()
    }

    #[test]
    fn a_notebook_with_cells_is_complete_with_the_answer() {
        let mut handshake = handshake(false);
        let answer = Message::SyncStep2(frames(1).remove(0)).encode();
        let now = Instant::now();
        assert_eq!(handshake.on_frame(&answer, now).expect("valid"), Step::Complete);
        assert_eq!(handshake.updates.len(), 1);
    }

    #[test]
    fn a_notebook_that_grows_is_complete_when_pings_come_back_without_cells() {
        let mut handshake = handshake(true);
        let now = Instant::now();
        let mut frames = frames(3).into_iter();
        let answer = Message::SyncStep2(frames.next().expect("a frame")).encode();
        assert_eq!(handshake.on_frame(&answer, now).expect("valid"), Step::Wait);
        assert_eq!(handshake.until(), now + FIRST_QUIET);
        assert_eq!(handshake.on_timeout(now).expect("it may be complete"), Step::Ping);
        assert_eq!(handshake.on_pong(), Step::Ping);
        let more = Message::Update(frames.next().expect("a frame")).encode();
        assert_eq!(handshake.on_frame(&more, now).expect("valid"), Step::Wait);
        assert_eq!(handshake.on_pong(), Step::Wait, "a cell came in between");
        assert_eq!(handshake.on_timeout(now).expect("it may be complete"), Step::Ping);
        let pongs: Vec<Step> = (0..SYNC_PINGS).map(|_| handshake.on_pong()).collect();
        assert_eq!(pongs, [Step::Ping, Step::Ping, Step::Complete]);
        assert_eq!(handshake.document.cell_count(), 2);
    }

    #[test]
    fn a_server_that_sends_nothing_is_given_up() {
        assert!(handshake(false).on_timeout(Instant::now()).is_err());
    }
}
