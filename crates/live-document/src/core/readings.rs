//! Last reading or writing of each principal, per document: a whole text that it sends means a change of that.
//! Bounded: the least recently used is dropped first, texts before the digests that tell that nothing changed.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
    sync::Arc,
};

use lru::LruCache;
use parking_lot::Mutex;

use super::change_log::Moment;

/// Texts that are kept, in bytes; the same text is kept once, whoever read it.
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Readings that are kept.
const MAX_READINGS: usize = 32 * 1024;
/// A reading that is among so many newest does not become newer by being repeated: notebooks are read again and again.
const RECENT: u64 = MAX_READINGS as u64 / 4;

/// Number of documents that are remembered after they were closed: agents often think longer than a room stays open.
const MAX_DOCUMENTS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Readings of the documents of a server, also of closed ones.
#[derive(Debug)]
pub(crate) struct ReadDocuments(Mutex<LruCache<String, Arc<Mutex<Readings>>>>);

impl Default for ReadDocuments {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_DOCUMENTS)))
    }
}

impl ReadDocuments {
    /// Readings of a document, by the id of its room.
    pub(crate) fn of(&self, room_id: &str) -> Arc<Mutex<Readings>> {
        let mut documents = self.0.lock();
        if let Some(known) = documents.get_mut(room_id) {
            return Arc::clone(known);
        }
        let new = Arc::default();
        documents.put(room_id.to_owned(), Arc::clone(&new));
        new
    }
}

/// Part of a document that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Readable {
    Cell(Arc<str>),
    /// The text of a plain document.
    Text,
    /// The list of cells, one id a line.
    Order,
}

impl Readable {
    pub(crate) fn cell(id: &str) -> Self {
        Self::Cell(id.into())
    }
}

/// Reading of such a part.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    digest: u64,
    /// The whole text, unless it is forgotten.
    pub(crate) text: Option<Arc<str>>,
    /// True if all of it was shown.
    pub(crate) is_whole: bool,
    /// Moment of the reading; later changes of others are not known to the principal.
    pub(crate) at: Moment,
}

type Key = (Arc<str>, Readable);

#[derive(Debug, Default)]
pub(crate) struct Readings {
    hasher: RandomState,
    entries: HashMap<Key, (u64, Reading)>,
    /// The readings by their last use, and those among them that have a text.
    used: BTreeMap<u64, Key>,
    with_text: BTreeMap<u64, Key>,
    texts: HashMap<u64, Arc<str>>,
    bytes: usize,
    clock: u64,
}

impl Readings {
    pub(crate) fn get(&self, principal: &Arc<str>, subject: &Readable) -> Option<&Reading> {
        let key = (Arc::clone(principal), subject.clone());
        self.entries.get(&key).map(|(_, reading)| reading)
    }

    /// Returns whether a reading was of this very text.
    pub(crate) fn is_of(&self, reading: &Reading, text: &str) -> bool {
        match &reading.text {
            Some(read) => **read == *text,
            None => reading.digest == self.hasher.hash_one(text),
        }
    }

    /// Records that a principal knows a text. A principal that knew all of it and was shown a part still knows all.
    pub(crate) fn record(&mut self, principal: &Arc<str>, subject: Readable, text: &str, is_whole: bool, at: Moment) {
        let key = (Arc::clone(principal), subject);
        if let Some((used, reading)) = self.entries.get_mut(&key)
            && self.clock - *used < RECENT
            && reading.is_whole >= is_whole
            && reading.text.as_deref() == Some(text)
        {
            reading.at = at;
            return;
        }
        let digest = self.hasher.hash_one(text);
        let text = self.keep(digest, text);
        let knew = self.remove(&key);
        let is_whole = is_whole || knew.is_some_and(|knew| knew.is_whole && knew.digest == digest);
        self.clock += 1;
        self.used.insert(self.clock, key.clone());
        if text.is_some() {
            self.with_text.insert(self.clock, key.clone());
        }
        let reading = Reading {
            digest,
            text,
            is_whole,
            at,
        };
        self.entries.insert(key, (self.clock, reading));
        self.shrink();
    }

    pub(crate) fn forget(&mut self, principal: &Arc<str>, subject: &Readable) {
        self.remove(&(Arc::clone(principal), subject.clone()));
    }

    fn remove(&mut self, key: &Key) -> Option<Reading> {
        let (used, mut reading) = self.entries.remove(key)?;
        self.used.remove(&used);
        self.with_text.remove(&used);
        self.drop_text(&mut reading);
        Some(reading)
    }

    fn keep(&mut self, digest: u64, text: &str) -> Option<Arc<str>> {
        match self.texts.get(&digest) {
            Some(kept) if **kept == *text => Some(Arc::clone(kept)),
            Some(_) => None,
            None if text.len() > MAX_BYTES / 2 => None,
            None => {
                let kept: Arc<str> = text.into();
                self.bytes += kept.len();
                self.texts.insert(digest, Arc::clone(&kept));
                Some(kept)
            }
        }
    }

    fn drop_text(&mut self, reading: &mut Reading) {
        let Some(text) = reading.text.take() else { return };
        // The map has one reference, this is the other.
        if Arc::strong_count(&text) <= 2 {
            self.texts.remove(&reading.digest);
            self.bytes -= text.len();
        }
    }

    fn shrink(&mut self) {
        while self.bytes > MAX_BYTES
            && let Some((_, key)) = self.with_text.pop_first()
        {
            if let Some((used, mut reading)) = self.entries.remove(&key) {
                self.drop_text(&mut reading);
                self.entries.insert(key, (used, reading));
            }
        }
        while self.entries.len() > MAX_READINGS
            && let Some((_, key)) = self.used.first_key_value()
        {
            let key = key.clone();
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::change_log::ChangeLog;

    fn now() -> Moment {
        ChangeLog::new(crate::core::clock::Clock::default()).now()
    }

    #[test]
    fn what_several_read_is_kept_once_and_goes_with_the_last() {
        let mut readings = Readings::default();
        let (ana, bob) = ("ana".into(), "bob".into());
        readings.record(&ana, Readable::Text, "the text", true, now());
        readings.record(&bob, Readable::Text, "the text", true, now());
        readings.record(&bob, Readable::Text, "the text", true, now());
        assert_eq!(readings.bytes, 8);
        readings.forget(&ana, &Readable::Text);
        assert_eq!(readings.bytes, 8);
        readings.record(&bob, Readable::Text, "another", true, now());
        assert_eq!((readings.bytes, readings.texts.len()), (7, 1));
        assert!(readings.get(&ana, &Readable::Text).is_none());
    }

    #[test]
    fn who_was_shown_a_part_of_what_they_know_still_knows_it() {
        let mut readings = Readings::default();
        let ana = "ana".into();
        readings.record(&ana, Readable::cell("a"), "long", true, now());
        readings.record(&ana, Readable::cell("a"), "long", false, now());
        assert!(
            readings
                .get(&ana, &Readable::cell("a"))
                .is_some_and(|reading| reading.is_whole)
        );
        readings.record(&ana, Readable::cell("a"), "longer", false, now());
        assert!(
            readings
                .get(&ana, &Readable::cell("a"))
                .is_some_and(|reading| !reading.is_whole)
        );
    }

    #[test]
    fn texts_are_forgotten_before_digests_and_the_oldest_first() {
        let mut readings = Readings::default();
        let (ana, text) = ("ana".into(), |number: usize| {
            format!("{number}{}", "x".repeat(MAX_BYTES / 4))
        });
        for number in 0..6 {
            readings.record(&ana, Readable::cell(&number.to_string()), &text(number), true, now());
        }
        assert!(readings.bytes <= MAX_BYTES);
        let first = readings.get(&ana, &Readable::cell("0")).expect("a digest").clone();
        assert!(first.text.is_none() && readings.is_of(&first, &text(0)) && !readings.is_of(&first, "other"));
        assert!(
            readings
                .get(&ana, &Readable::cell("5"))
                .is_some_and(|last| last.text.is_some())
        );
        readings.record(&ana, Readable::Text, &"x".repeat(MAX_BYTES), true, now());
        let huge = readings.get(&ana, &Readable::Text).expect("a digest");
        assert!(huge.text.is_none(), "too large to be kept");
        for number in 0..2 * MAX_READINGS {
            readings.record(&ana, Readable::cell(&number.to_string()), "", true, now());
        }
        assert_eq!(
            (
                readings.entries.len(),
                readings.used.len(),
                readings.with_text.len(),
                readings.bytes
            ),
            (MAX_READINGS, MAX_READINGS, MAX_READINGS, 0)
        );
    }
}
