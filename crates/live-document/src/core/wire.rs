//! The messages of Jupyter's rooms, as bytes. Does no I/O.
//!
//! yrs' own decoder cannot be used: it takes tag 2 for an authentication message, which here carries
//! Jupyter's own ("save" and its answers).

use serde::Deserialize;

use super::reader::{Malformed, Reader};

const SYNC: u8 = 0;
const AWARENESS: u8 = 1;
const RAW: u8 = 2;

/// A message to or from a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// "This is what I have": a state vector.
    SyncStep1(Vec<u8>),
    /// The answer: what the other side lacks.
    SyncStep2(Vec<u8>),
    Update(Vec<u8>),
    Awareness(Vec<AwarenessEntry>),
    /// A JSON text of Jupyter's own.
    Jupyter(String),
}

/// The presence of one client; a `state` of "null" says that it is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwarenessEntry {
    pub(crate) client: u64,
    pub(crate) clock: u64,
    pub(crate) state: String,
}

/// Answer of the server to a save, or its notice of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum JupyterMessage {
    Save {
        #[serde(rename = "responseTo")]
        response_to: u64,
        status: SaveStatus,
    },
    Conflict,
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SaveStatus {
    Success,
    Skipped,
    Failed,
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::SyncStep1(vector) => sync(&mut bytes, 0, vector),
            Self::SyncStep2(update) => sync(&mut bytes, 1, update),
            Self::Update(update) => sync(&mut bytes, 2, update),
            Self::Awareness(entries) => {
                let mut inner = Vec::new();
                put_number(&mut inner, entries.len() as u64);
                for entry in entries {
                    put_number(&mut inner, entry.client);
                    put_number(&mut inner, entry.clock);
                    put_buffer(&mut inner, entry.state.as_bytes());
                }
                bytes.push(AWARENESS);
                put_buffer(&mut bytes, &inner);
            }
            Self::Jupyter(text) => {
                bytes.push(RAW);
                put_buffer(&mut bytes, text.as_bytes());
            }
        }
        bytes
    }

    /// Reads a frame; `None` is a kind of message that this client does not know and may ignore.
    pub(crate) fn decode(frame: &[u8]) -> Result<Option<Self>, Malformed> {
        let mut reader = Reader::new(frame);
        let message = match reader.byte()? {
            SYNC => match (reader.number()?, reader.buffer()?.to_vec()) {
                (0, vector) => Self::SyncStep1(vector),
                (1, update) => Self::SyncStep2(update),
                (2, update) => Self::Update(update),
                _ => return Ok(None),
            },
            AWARENESS => Self::Awareness(entries(Reader::new(reader.buffer()?))?),
            RAW => Self::Jupyter(reader.text()?),
            _ => return Ok(None),
        };
        Ok(Some(message))
    }
}

/// The request to write the document to disk now.
pub(crate) fn save_request(id: u64) -> Vec<u8> {
    let mut bytes = vec![RAW];
    put_buffer(&mut bytes, b"save");
    put_number(&mut bytes, id);
    bytes
}

fn sync(bytes: &mut Vec<u8>, step: u8, payload: &[u8]) {
    bytes.reserve(payload.len() + 8);
    bytes.extend([SYNC, step]);
    put_buffer(bytes, payload);
}

fn put_buffer(bytes: &mut Vec<u8>, buffer: &[u8]) {
    put_number(bytes, buffer.len() as u64);
    bytes.extend_from_slice(buffer);
}

/// Numbers are LEB128.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    bytes.push(low_bits(number));
}

fn low_bits(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

/// The presences in an awareness message.
fn entries(mut reader: Reader<'_>) -> Result<Vec<AwarenessEntry>, Malformed> {
    let count = reader.number()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push(AwarenessEntry {
            client: reader.number()?,
            clock: reader.number()?,
            state: reader.text()?,
        });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_as_jupyter_sends_them() {
        assert_eq!(Message::SyncStep1(vec![0]).encode(), [0, 0, 1, 0]);
        assert_eq!(Message::Update(vec![1, 2]).encode(), [0, 2, 2, 1, 2]);
        assert_eq!(save_request(300), [2, 4, b's', b'a', b'v', b'e', 0xac, 2]);
        let gone = AwarenessEntry {
            client: 5,
            clock: 130,
            state: "null".to_owned(),
        };
        assert_eq!(
            Message::Awareness(vec![gone]).encode(),
            [1, 9, 1, 5, 0x82, 1, 4, b'n', b'u', b'l', b'l']
        );
    }

    #[test]
    fn answers_to_a_save_are_understood() {
        let read = |text| serde_json::from_str::<JupyterMessage>(text).ok();
        assert_eq!(
            read(r#"{"type":"save","responseTo":7,"status":"success"}"#),
            Some(JupyterMessage::Save {
                response_to: 7,
                status: SaveStatus::Success
            })
        );
        assert_eq!(read(r#"{"type":"conflict"}"#), Some(JupyterMessage::Conflict));
        assert_eq!(read(r#"{"type":"news"}"#), Some(JupyterMessage::Other));
    }

    #[test]
    fn malformed_frames_are_refused_and_unknown_ones_ignored() {
        for frame in [
            &[][..],
            &[0],
            &[0, 0],
            &[0, 0, 5, 1],
            &[1, 2, 9, 9],
            &[0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            &[2, 1, 0xff],
        ] {
            assert!(Message::decode(frame).is_err(), "{frame:?}");
        }
        assert_eq!(Message::decode(&[9, 1, 2]), Ok(None));
        assert_eq!(Message::decode(&[0, 7, 0]), Ok(None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(frame in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Message::decode(&frame);
        }

        #[test]
        fn what_is_encoded_is_decoded(payload in proptest::collection::vec(any::<u8>(), 0..300), client: u64, clock: u64, state in ".{0,40}") {
            for message in [
                Message::SyncStep1(payload.clone()),
                Message::SyncStep2(payload.clone()),
                Message::Update(payload.clone()),
                Message::Awareness(vec![AwarenessEntry { client, clock, state: state.clone() }]),
                Message::Jupyter(state.clone()),
            ] {
                prop_assert_eq!(Message::decode(&message.encode()), Ok(Some(message)));
            }
        }
    }
}
