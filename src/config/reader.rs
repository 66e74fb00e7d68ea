//! Owns how a table of the tree becomes a section: every key is taken by its name, what is wrong is
//! noted and replaced by the default, and what nobody took is an unknown key.

use super::error::{Problem, Why, key_name};
use super::node::{Node, Table};
use super::parse;

/// A part of the configuration that is read from one table.
pub(super) trait Section: Sized {
    fn read(reader: &mut Reader<'_>) -> Self;

    /// Adds the keys below `path` in which another one differs.
    fn compare(&self, other: &Self, path: &str, changed: &mut Vec<String>);
}

/// Reads a section and all below it, noting in `problems` what is wrong.
pub(super) fn read<S: Section>(path: &str, table: Table, problems: &mut Vec<Problem>) -> S {
    let mut reader = Reader {
        path: path.to_owned(),
        table,
        known: Vec::new(),
        problems,
    };
    let section = S::read(&mut reader);
    reader.note_unknown();
    section
}

pub(super) struct Reader<'a> {
    path: String,
    table: Table,
    known: Vec<&'static str>,
    problems: &'a mut Vec<Problem>,
}

type Parse<T> = fn(&Node) -> Result<T, Why>;

impl Reader<'_> {
    pub(super) fn value<T>(&mut self, key: &'static str, default: T, parse: Parse<T>) -> T {
        let Some(node) = self.take(key) else {
            return default;
        };
        self.checked(&self.key(key), &node, parse).unwrap_or(default)
    }

    /// A key that may be left out or, which is the same, set to the empty string.
    pub(super) fn optional<T>(&mut self, key: &'static str, default: Option<T>, parse: Parse<T>) -> Option<T> {
        let is_set = self.is_set(key);
        let node = self.take(key).filter(|_| is_set);
        match node {
            Some(node) => self.checked(&self.key(key), &node, parse),
            None => default,
        }
    }

    /// A key without which the section makes no sense; the default stands in so that reading goes on.
    pub(super) fn required<T>(&mut self, key: &'static str, default: T, parse: Parse<T>) -> T {
        if !self.table.contains_key(key) {
            self.note(&self.key(key), Why::Missing);
        }
        self.value(key, default, parse)
    }

    pub(super) fn number<T: TryFrom<i64>>(&mut self, key: &'static str, default: T, range: Range) -> T {
        let (min, max) = range;
        let Some(node) = self.take(key) else {
            return default;
        };
        let Some(value) = self.checked(&self.key(key), &node, parse::integer) else {
            return default;
        };
        match T::try_from(value) {
            Ok(number) if (min..=max).contains(&value) => number,
            _ => {
                self.note(&self.key(key), Why::OutOfRange { value, min, max });
                default
            }
        }
    }

    /// A list; every element that is wrong is noted by its index.
    pub(super) fn list<T, L>(&mut self, key: &'static str, default: L, parse: Parse<T>) -> L
    where
        L: FromIterator<T>,
    {
        let Some(node) = self.take(key) else {
            return default;
        };
        let path = self.key(key);
        match parse::items(node) {
            Ok(items) => (0..)
                .zip(items)
                .filter_map(|(i, item)| self.checked(&format!("{path}[{i}]"), &item, parse))
                .collect(),
            Err(why) => {
                self.note(&path, why);
                default
            }
        }
    }

    pub(super) fn section<S: Section>(&mut self, key: &'static str) -> S {
        let table = self.take_table(key).unwrap_or_default();
        read(&self.key(key), table, self.problems)
    }

    pub(super) fn optional_section<S: Section>(&mut self, key: &'static str) -> Option<S> {
        let table = self.take_table(key)?;
        Some(read(&self.key(key), table, self.problems))
    }

    /// A list of tables below this one.
    pub(super) fn tables<S: Section>(&mut self, key: &'static str, _: Vec<S>, _: fn(&mut Reader<'_>) -> S) -> Vec<S> {
        self.sections(key)
    }

    pub(super) fn sections<S: Section>(&mut self, key: &'static str) -> Vec<S> {
        let path = self.key(key);
        match self.take(key) {
            None => Vec::new(),
            Some(Node::Array(items)) => (0..)
                .zip(items)
                .filter_map(|(i, item)| {
                    let path = format!("{path}[{i}]");
                    let table = self.as_table(&path, item)?;
                    Some(read(&path, table, self.problems))
                })
                .collect(),
            Some(other) => {
                self.note_type(&path, "an array of tables ([[...]])", &other);
                Vec::new()
            }
        }
    }

    /// Notes it if more than one of the keys is set. It comes before reading them.
    pub(super) fn at_most_one(&mut self, keys: &'static [&'static str]) {
        let mut set = keys.iter().filter(|key| self.is_set(key));
        if let Some(second) = set.nth(1) {
            self.note(&self.key(second), Why::OnlyOneOf(keys));
        }
    }

    pub(super) fn exactly_one(&mut self, keys: &'static [&'static str]) {
        self.at_most_one(keys);
        if !keys.iter().any(|key| self.is_set(key)) {
            self.note(&self.path.clone(), Why::OneOfRequired(keys));
        }
    }

    /// Notes it if none of the keys is set, lists that are empty included.
    pub(super) fn some_of(&mut self, keys: &'static [&'static str]) {
        let says_nothing = |key: &&str| match self.table.get(*key) {
            Some(Node::Array(items)) => items.is_empty(),
            _ => !self.is_set(key),
        };
        if keys.iter().all(says_nothing) {
            self.note(&self.path.clone(), Why::OneOfRequired(keys));
        }
    }

    fn is_set(&self, key: &str) -> bool {
        self.table.get(key).is_some_and(|node| node.text() != Some(""))
    }

    fn take(&mut self, key: &'static str) -> Option<Node> {
        self.known.push(key);
        self.table.remove(key)
    }

    fn take_table(&mut self, key: &'static str) -> Option<Table> {
        let node = self.take(key)?;
        self.as_table(&self.key(key), node)
    }

    fn as_table(&mut self, path: &str, node: Node) -> Option<Table> {
        match node {
            Node::Table(table) => Some(table),
            other => {
                self.note_type(path, "a table", &other);
                None
            }
        }
    }

    fn checked<T>(&mut self, path: &str, node: &Node, parse: Parse<T>) -> Option<T> {
        parse(node).map_err(|why| self.note(path, why)).ok()
    }

    fn note_unknown(&mut self) {
        for name in std::mem::take(&mut self.table).into_keys() {
            let path = self.key(&key_name(&name));
            let allowed = self.known.clone();
            self.note(&path, Why::UnknownKey { name, allowed });
        }
    }

    fn note_type(&mut self, path: &str, expected: &'static str, node: &Node) {
        let found = node.kind();
        self.note(path, Why::WrongType { expected, found });
    }

    fn note(&mut self, path: &str, why: Why) {
        self.problems.push(Problem::new(path, why));
    }

    fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

/// The smallest and the largest number that a key takes.
pub(super) type Range = (i64, i64);
