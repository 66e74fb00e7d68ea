//! Ids of events: a stream's random name and a place in it.

use std::{
    fmt,
    hash::{BuildHasherDefault, Hasher},
};

use super::log::UnknownEvent;

/// Names a stream in event ids. Random, so that nobody can guess the id of somebody else's event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StreamKey(pub(super) u128);

/// A place in a stream: the event with this position, as its id says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) key: StreamKey,
    pub(super) event: u64,
}

/// Keys are random already, so that hashing them again would gain nothing.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, _) = bytes.as_chunks();
        self.0 = words.iter().fold(self.0, |hash, word| hash ^ u64::from_ne_bytes(*word));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) type KeyHash = BuildHasherDefault<KeyHasher>;

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
