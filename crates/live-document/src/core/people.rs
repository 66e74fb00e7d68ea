//! People in a room: their names and cursors.

use std::{num::NonZeroUsize, sync::Arc};

use lru::LruCache;
use serde_json::Value;

use super::{change_log::Author, state::State};

/// Number of names that are remembered, also of those who have left, whose changes are still theirs.
const MAX_NAMES: NonZeroUsize = NonZeroUsize::new(512).unwrap();
/// Number of people that are listed.
const MAX_PEOPLE: usize = 100;
/// Characters of a name.
const MAX_NAME: usize = 100;

/// A person in a document, not an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    pub name: String,
    /// Position of the cursor, if there is one.
    pub at: Option<Cursor>,
}

/// The place of a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The cell and its position; none in a text document.
    pub cell: Option<(usize, String)>,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 0, in code points.
    pub column: usize,
}

/// The names of authors.
#[derive(Debug)]
pub(crate) struct Names(LruCache<Author, Arc<str>>);

impl Default for Names {
    fn default() -> Self {
        Self(LruCache::new(MAX_NAMES))
    }
}

impl Names {
    pub(crate) fn record(&mut self, author: Author, name: &str) {
        if self.0.get_mut(&author).is_none_or(|known| **known != *name) {
            self.0.put(author, name.into());
        }
    }

    pub(crate) fn name_of(&self, author: &Author) -> Option<Arc<str>> {
        self.0.peek(author).cloned()
    }

    /// Identifies agents of this gateway.
    pub(crate) fn of(&self, author: &Author) -> String {
        match (self.0.peek(author), author) {
            (Some(name), Author::Local(_)) => format!("agent `{name}`"),
            (Some(name), _) => name.to_string(),
            (None, Author::Local(principal)) => format!("agent `{principal}`"),
            (None, Author::Client(_) | Author::Unknown) => "somebody else".to_owned(),
        }
    }
}

impl State {
    /// Remembers the names of clients that have just sent their state.
    pub(crate) fn note_names(&mut self, clients: &[u64]) {
        for client in clients {
            if let Some(name) = self.awareness.state_of(*client).and_then(user_name) {
                self.names.record(Author::Client(*client), &name);
                if let Some(recorder) = self.document.recorder_mut() {
                    recorder.people().record(*client, &name);
                }
            }
        }
    }

    /// The people who are known to be here, each with the place of their cursor.
    pub(crate) fn people(&self) -> Vec<Person> {
        let mut people: Vec<Person> = self
            .awareness
            .people()
            .take(MAX_PEOPLE)
            .filter_map(|state| {
                Some(Person {
                    name: user_name(state)?,
                    at: cursor(state).and_then(|position| self.document.locate(position)),
                })
            })
            .collect();
        let place = |person: &Person| person.at.as_ref().map(|at| (at.cell.clone(), at.line));
        people.sort_by_key(|person| (person.name.clone(), place(person)));
        people.dedup();
        people
    }

    /// The names of the people whose cursor is in a cell.
    pub(crate) fn people_in(&self, cell: &str) -> Vec<String> {
        let is_in = |person: &Person| {
            let at = person.at.as_ref().and_then(|at| at.cell.as_ref());
            at.is_some_and(|(_, id)| id == cell)
        };
        self.people()
            .into_iter()
            .filter(is_in)
            .map(|person| person.name)
            .collect()
    }
}

/// Display name in an awareness state.
pub(super) fn user_name(state: &Value) -> Option<String> {
    let user = state.get("user")?;
    let names = ["display_name", "name", "username"].iter();
    let mut named = names.filter_map(|member| user.get(member)?.as_str());
    let name = named.find(|name| !name.trim().is_empty())?;
    Some(
        name.chars()
            .filter(|character| !character.is_control())
            .take(MAX_NAME)
            .collect(),
    )
}

/// The head of the main cursor of a presence.
fn cursor(state: &Value) -> Option<&Value> {
    let cursors = state.get("cursors")?.as_array()?;
    let main = cursors.iter().find(|cursor| cursor["primary"] == true);
    main.or(cursors.first())?.get("head")
}
