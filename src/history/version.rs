//! Versions as callers see them.

use std::time::{SystemTime, UNIX_EPOCH};

use history::{Author, VersionId};
use store::VersionRow;

/// Letters of version ids, without those that look alike; in the order of their bytes.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Letters of a version's time in milliseconds, enough until the year 3000.
const TIME_LETTERS: u32 = 9;
/// Random letters, which tell versions of one millisecond apart.
const CHANCE_LETTERS: u32 = 5;

/// The word for changes from outside.
pub(super) const OUTSIDE: &str = "outside";
/// The word for people of whom no name is known.
const PEOPLE: &str = "people";

/// A version without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub id: VersionId,
    /// Its place in the log; none until it is written.
    pub seq: Option<i64>,
    pub time: SystemTime,
    pub kind: Kind,
    /// The principal of the gateway that made it.
    pub principal: Option<String>,
    pub authors: Vec<String>,
    pub tool: Option<String>,
    pub revision: Option<String>,
    pub summary: String,
    /// Bytes of the document's texts.
    pub size: i64,
    pub undoes: Vec<VersionId>,
    /// True if it is taken back.
    pub is_undone: bool,
}

/// Cause of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The document as it was when its recording began, or began again.
    Opened,
    Agent,
    People,
    /// The file was written from outside, or the document was rebuilt.
    Outside,
    /// Changes whose own versions could not be kept.
    Lost,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Agent => "agent",
            Self::People => PEOPLE,
            Self::Outside => OUTSIDE,
            Self::Lost => "lost",
        }
    }

    fn parse(word: &str) -> Self {
        let all = [Self::Opened, Self::Agent, Self::People, Self::Lost];
        let found = all.into_iter().find(|kind| kind.as_str() == word);
        found.unwrap_or(Self::Outside)
    }

    pub(super) fn of(author: &Author) -> Self {
        match author {
            Author::Agent { .. } => Self::Agent,
            Author::People { .. } => Self::People,
            Author::Outside => Self::Outside,
        }
    }
}

impl Version {
    /// Its author, as filters name it.
    pub fn author(&self) -> String {
        self.authors.join(", ")
    }

    /// Returns whether a principal or somebody of a name made it.
    pub fn is_by(&self, author: &str) -> bool {
        self.principal.as_deref() == Some(author) || self.authors.iter().any(|name| name == author)
    }

    pub(super) fn of_row(row: VersionRow) -> Self {
        Self {
            id: row.version_id.into(),
            seq: Some(row.seq),
            time: row.time,
            kind: Kind::parse(&row.kind),
            principal: row.principal,
            authors: row.authors,
            tool: row.tool,
            revision: row.revision,
            summary: row.summary,
            size: row.size,
            undoes: row.undoes.into_iter().map(VersionId::from).collect(),
            is_undone: false,
        }
    }
}

/// The principal of an author, and the names by which it is listed and found.
pub(super) fn names(author: &Author) -> (Option<String>, Vec<String>) {
    let owned = |name: &std::sync::Arc<str>| name.to_string();
    match author {
        Author::Agent { principal, name } => (Some(owned(principal)), vec![owned(name)]),
        Author::People { names } if names.is_empty() => (None, vec![PEOPLE.to_owned()]),
        Author::People { names } => (None, names.iter().map(owned).collect()),
        Author::Outside => (None, vec![OUTSIDE.to_owned()]),
    }
}

/// A new version's id: short, since models write it, and in the order of time as far as the clock is.
pub(super) fn new_id(time: SystemTime) -> VersionId {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let chance = uuid::Uuid::new_v4().as_u128() % 32u128.pow(CHANCE_LETTERS);
    let mut number = (millis % 32u128.pow(TIME_LETTERS)) * 32u128.pow(CHANCE_LETTERS) + chance;
    let mut letters = vec![b'v'; 1 + usize::try_from(TIME_LETTERS + CHANCE_LETTERS).unwrap_or_default()];
    for letter in letters.iter_mut().skip(1).rev() {
        *letter = LETTERS[usize::try_from(number % 32).unwrap_or_default()];
        number /= 32;
    }
    String::from_utf8(letters).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ids_are_short_and_follow_the_clock() {
        let now = SystemTime::now();
        let (one, other) = (new_id(now), new_id(now + Duration::from_millis(1)));
        assert!(one < other && one.as_str().len() == 15, "{one} {other}");
        assert_ne!(new_id(now), new_id(now));
    }
}
