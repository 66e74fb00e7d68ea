//! A room that the gateway keeps itself, in memory: it answers as a server's room does. One client uses it at a time.

use std::{
    collections::VecDeque,
    future::pending,
    sync::Arc,
    time::{Instant, SystemTime},
};

use parking_lot::Mutex;

use super::backend::Incoming;
use crate::{
    DocumentContent, EditError, RoomKind,
    core::{
        clock::Clock,
        disconnect::{Disconnect, guarded},
        document::{Document, decode_vector},
        wire::Message,
    },
};

/// The document of a room without a server.
pub struct KeptRoom(Mutex<Document>);

impl KeptRoom {
    /// A room with this content.
    pub fn new(kind: RoomKind, content: DocumentContent) -> Result<Self, EditError> {
        let mut document = Document::new(kind, Clock::new(Instant::now(), SystemTime::now()));
        document.apply_local(&"gateway".into(), &[content.into_edit()])?;
        Ok(Self(Mutex::new(document)))
    }

    pub(super) fn connect(self: &Arc<Self>) -> KeptConnection {
        KeptConnection {
            room: Arc::clone(self),
            answers: VecDeque::new(),
        }
    }

    /// The answer to a frame: what the sender lacks, or an echo of what it changed.
    fn answer(&self, frame: &[u8]) -> Result<Option<Message>, Disconnect> {
        let message = Message::decode(frame).map_err(|error| Disconnect::Malformed(error.to_string()))?;
        let mut document = self.0.lock();
        Ok(match message {
            Some(Message::SyncStep1(vector)) => {
                let vector = decode_vector(&vector)?;
                Some(Message::SyncStep2(document.diff(&vector)))
            }
            Some(Message::SyncStep2(update) | Message::Update(update)) => {
                guarded(|| Ok(document.apply_remote(&update)?))?;
                Some(Message::Update(update))
            }
            Some(Message::Awareness(_) | Message::Jupyter(_)) | None => None,
        })
    }
}

pub(crate) struct KeptConnection {
    room: Arc<KeptRoom>,
    answers: VecDeque<Incoming>,
}

impl KeptConnection {
    pub(super) fn send(&mut self, frames: &[Vec<u8>]) -> Result<(), Disconnect> {
        for frame in frames {
            let answer = self.room.answer(frame)?;
            let answer = answer.map(|message| Incoming::Frame(message.encode().into()));
            self.answers.extend(answer);
        }
        Ok(())
    }

    pub(super) fn ping(&mut self, payload: &[u8]) {
        self.answers.push_back(Incoming::Pong(payload.to_vec().into()));
    }

    /// Waits for the next answer. All are there when something was sent, so that without one there is nothing to wait for.
    pub(super) async fn receive(&mut self) -> Incoming {
        match self.answers.pop_front() {
            Some(answer) => answer,
            None => pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::handshake::{Handshake, Step};

    #[tokio::test]
    async fn a_kept_room_synchronises_and_echoes() {
        let content = DocumentContent::Text("one".to_owned());
        let room = Arc::new(KeptRoom::new(RoomKind::Text, content).expect("a room"));
        let mut connection = room.connect();
        connection.send(&[Handshake::request()]).expect("sent");
        let Incoming::Frame(frame) = connection.receive().await else {
            panic!("an answer");
        };
        let mut handshake = Handshake::new(RoomKind::Text, false, Clock::default());
        let step = handshake.on_frame(&frame, Instant::now()).expect("a document");
        assert_eq!((step, handshake.document.text()), (Step::Complete, "one".to_owned()));
        connection.ping(b"x");
        assert!(matches!(connection.receive().await, Incoming::Pong(payload) if &*payload == b"x"));
    }
}
