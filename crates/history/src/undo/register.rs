//! A value that versions write as a whole.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Json;

/// The writes of a value, in their order.
#[derive(Debug, Clone)]
pub(super) struct Register<T> {
    initial: T,
    writes: Vec<(By, T)>,
}

/// Author of a write: a version by its place in the log. A write by none always counts.
pub(super) type By = Option<usize>;

/// Returns whether a write by an author counts.
pub(super) fn counts(by: By, active: &[bool]) -> bool {
    by.is_none_or(|version| active.get(version).copied().unwrap_or(true))
}

impl<T> Register<T> {
    pub(super) fn new(initial: T) -> Self {
        Self {
            initial,
            writes: Vec::new(),
        }
    }

    pub(super) fn write(&mut self, by: By, value: T) {
        self.writes.push((by, value));
    }

    /// The last write that counts.
    pub(super) fn last(&self, active: &[bool]) -> Option<&(By, T)> {
        self.writes.iter().rev().find(|(by, _)| counts(*by, active))
    }

    pub(super) fn value(&self, active: &[bool]) -> &T {
        self.last(active).map_or(&self.initial, |(_, value)| value)
    }
}

/// The members of an object, each of which is written by itself.
#[derive(Debug, Clone)]
pub(super) struct Members {
    initial: Json,
    members: BTreeMap<String, Register<Option<Value>>>,
}

impl Members {
    pub(super) fn new(initial: Json) -> Self {
        Self {
            initial,
            members: BTreeMap::new(),
        }
    }

    pub(super) fn write(&mut self, by: By, old: &Json, new: &Json) {
        let (old, new, initial) = (old.value(), new.value(), self.initial.value());
        let keys = |value: &Value| {
            value
                .as_object()
                .map(|object| object.keys().cloned().collect::<Vec<_>>())
        };
        let changed = keys(&old).into_iter().chain(keys(&new)).flatten();
        for key in changed.filter(|key| old.get(key) != new.get(key)) {
            let first = initial.get(&key).cloned();
            let member = self.members.entry(key.clone()).or_insert_with(|| Register::new(first));
            // Both the old and the new value may have it.
            let value = new.get(&key).cloned();
            if member.writes.last().is_none_or(|last| *last != (by, value.clone())) {
                member.write(by, value);
            }
        }
    }

    pub(super) fn value(&self, active: &[bool]) -> Json {
        if self.members.is_empty() {
            return self.initial.clone();
        }
        let mut value = self.initial.value();
        if let Value::Object(object) = &mut value {
            for (key, member) in &self.members {
                match member.value(active) {
                    Some(value) => drop(object.insert(key.clone(), value.clone())),
                    None => drop(object.remove(key)),
                }
            }
        }
        Json::new(&value)
    }
}
