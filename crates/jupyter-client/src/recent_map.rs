//! A map of bounded size, which forgets what was used longest ago.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

#[derive(Debug)]
pub struct RecentMap<K, V> {
    max: usize,
    clock: u64,
    /// With the time of the last use.
    entries: HashMap<K, (u64, V)>,
}

impl<K: Hash + Eq + Clone, V> RecentMap<K, V> {
    pub fn new(max: usize) -> Self {
        Self {
            max,
            clock: 0,
            entries: HashMap::new(),
        }
    }

    /// Adds or replaces an entry. For a new one in a full map the one that was used longest ago is forgotten.
    pub fn insert(&mut self, key: K, value: V) {
        if self.entries.len() >= self.max && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.entries.remove(&oldest);
            }
        }
        self.clock += 1;
        self.entries.insert(key, (self.clock, value));
    }

    /// An entry for use.
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.clock;
        Some(value)
    }

    /// An entry that is only looked at, which is no use.
    pub fn peek<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Takes an entry away.
    pub fn take<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.remove(key).map(|(_, value)| value)
    }

    /// All entries to be changed, in no order; that is no use of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.entries.iter_mut().map(|(key, (_, value))| (key, value))
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, (_, value))| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_is_forgotten_first() {
        let mut map = RecentMap::new(2);
        map.insert("a", 1);
        map.insert("b", 2);
        assert_eq!(map.get_mut("a"), Some(&mut 1));
        map.insert("c", 3);
        assert_eq!(
            (map.peek("a"), map.peek("b"), map.peek("c")),
            (Some(&1), None, Some(&3))
        );
        map.insert("a", 4);
        assert_eq!((map.peek("a"), map.iter().count()), (Some(&4), 2));
    }
}
