//! Cell ids as callers write them: whole, or the beginning of one that no other cell of the notebook has.

use std::{collections::HashMap, sync::Arc};

use crate::core::document::Document;

/// Fewest characters by which a cell can be named without its whole id.
const MIN_PREFIX: usize = 4;
/// Fewest characters of a short id, so that it mostly stays one while cells are added.
const MIN_SHORT: usize = 6;
/// Ids are looked up one by one if they are no more than this part of all.
const FEW: usize = 8;
/// Number of cells that are named if several could be meant.
const MAX_CANDIDATES: usize = 10;

/// The cells of one moment, in order.
pub trait CellOrder {
    fn count(&self) -> usize;
    /// The position of the cell with exactly this id.
    fn position_of(&self, cell: &str) -> Option<usize>;
    /// The cells whose ids begin with something, with their positions, in order.
    fn starting_with<'a>(&'a self, prefix: &'a str) -> Vec<(usize, &'a str)>;
    /// Of the first cells, for those who asked for one that is not there.
    fn some_ids(&self) -> String;

    /// The position of the cell that a caller names by its id, or by the beginning of one that only it has.
    fn find(&self, named: &str) -> Result<usize, CellNameError> {
        if let Some(position) = self.position_of(named) {
            return Ok(position);
        }
        let candidates = match named.chars().count() >= MIN_PREFIX {
            true => self.starting_with(named),
            false => Vec::new(),
        };
        match candidates.as_slice() {
            [(position, _)] => Ok(*position),
            [] => Err(CellNameError::Unknown {
                named: named.to_owned(),
                count: self.count(),
                some: self.some_ids(),
            }),
            several => Err(CellNameError::Ambiguous {
                named: named.to_owned(),
                candidates: listed(several),
            }),
        }
    }
}

/// Reason why a name stands for no cell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CellNameError {
    #[error("no cell {named:?}; the notebook has {} ({some}), read it again for their ids", jupyter_client::counted(*.count, "cell"))]
    Unknown { named: String, count: usize, some: String },
    #[error("the ids of several cells begin with {named:?}: {candidates}; give more of the id")]
    Ambiguous { named: String, candidates: String },
}

fn listed(candidates: &[(usize, &str)]) -> String {
    let shown = candidates.iter().take(MAX_CANDIDATES);
    let mut listed: Vec<String> = shown.map(|(position, id)| format!("{id} at {position}")).collect();
    if candidates.len() > MAX_CANDIDATES {
        listed.push("...".to_owned());
    }
    listed.join(", ")
}

/// The short forms of a notebook's cell ids: of each the shortest beginning that only it has, of 6 characters or more.
#[derive(Debug, Default)]
pub struct ShortIds(HashMap<Arc<str>, usize>);

impl ShortIds {
    /// Sorts the ids once, so that each needs to be compared with its neighbours only.
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut sorted: Vec<&str> = ids.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let sorted: Vec<Arc<str>> = sorted.into_iter().map(Into::into).collect();
        Self::of_sorted(sorted.iter())
    }

    /// The short forms of all ids of a document.
    pub(super) fn of_document(document: &Document) -> Self {
        Self::of_sorted(document.sorted_ids())
    }

    /// The short forms of a few ids of a document. Some of them may be gone from it.
    pub(super) fn of_some(document: &Document, some: &[&str]) -> Self {
        if some.len() * FEW > document.cell_count() {
            let all = Self::of_document(document);
            return match some.iter().all(|id| all.0.contains_key(*id)) {
                true => all,
                false => Self::of(document.sorted_ids().map(|id| &**id).chain(some.iter().copied())),
            };
        }
        let gone: Vec<&str> = some.iter().copied().filter(|id| !document.has_cell(id)).collect();
        let short = some.iter().map(|id| {
            let neighbours = document.neighbours(id).into_iter().flatten().map(|other| &**other);
            let others = neighbours.chain(gone.iter().copied().filter(|other| other != id));
            let shared = others.map(|other| common_characters(id, other)).max();
            ((*id).into(), short_length(id, shared.unwrap_or(0)))
        });
        Self(short.collect())
    }

    fn of_sorted<'a>(sorted: impl Iterator<Item = &'a Arc<str>>) -> Self {
        let mut lengths = HashMap::with_capacity(sorted.size_hint().0);
        let mut shared_before = 0;
        let mut sorted = sorted.peekable();
        while let Some(id) = sorted.next() {
            let shared_after = sorted.peek().map_or(0, |next| common_characters(id, next));
            lengths.insert(Arc::clone(id), short_length(id, shared_before.max(shared_after)));
            shared_before = shared_after;
        }
        Self(lengths)
    }

    /// The short form of an id; the id itself if it is not among those.
    pub fn get<'i>(&self, id: &'i str) -> &'i str {
        self.0.get(id).and_then(|end| id.get(..*end)).unwrap_or(id)
    }
}

/// The length in bytes of a short id that has more than the characters that it shares with another.
fn short_length(id: &str, shared: usize) -> usize {
    let characters = (shared + 1).max(MIN_SHORT);
    id.char_indices().nth(characters).map_or(id.len(), |(at, _)| at)
}

fn common_characters(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ids<'a>(&'a [&'a str]);

    impl CellOrder for Ids<'_> {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn position_of(&self, cell: &str) -> Option<usize> {
            self.0.iter().position(|id| *id == cell)
        }

        fn starting_with<'a>(&'a self, prefix: &'a str) -> Vec<(usize, &'a str)> {
            let ids = self.0.iter().copied().enumerate();
            ids.filter(|(_, id)| id.starts_with(prefix)).collect()
        }

        fn some_ids(&self) -> String {
            self.0.join(", ")
        }
    }

    #[test]
    fn a_cell_is_found_by_its_id_or_the_beginning_of_one_that_only_it_has() {
        let cells = Ids(&["abcd", "abcdef01", "abcdef02", "été-12", "c1"]);
        for (named, position) in [("abcd", 0), ("abcdef01", 1), ("abcdef02", 2), ("été-", 3), ("c1", 4)] {
            assert_eq!(cells.find(named), Ok(position), "{named}");
        }
        let ambiguous = cells.find("abcdef").expect_err("two").to_string();
        assert!(ambiguous.contains("abcdef01 at 1, abcdef02 at 2"), "{ambiguous}");
        for unknown in ["", "abc", "c", "abce", "abcdef011", "été"] {
            assert!(
                matches!(cells.find(unknown), Err(CellNameError::Unknown { .. })),
                "{unknown}"
            );
        }
    }

    #[test]
    fn a_short_id_names_its_cell_and_no_other() {
        let ids = [
            "0123456789",
            "0123456aaa",
            "0123456",
            "ab",
            "abcdefgh",
            "ééééééééa",
            "ééééééééb",
        ];
        let (cells, short) = (Ids(&ids), ShortIds::of(ids));
        for (position, id) in ids.iter().enumerate() {
            assert_eq!(cells.find(short.get(id)), Ok(position), "{id}");
        }
        let shortened = ids.map(|id| short.get(id));
        assert_eq!(
            shortened,
            [
                "01234567",
                "0123456a",
                "0123456",
                "ab",
                "abcdef",
                "ééééééééa",
                "ééééééééb"
            ]
        );
        assert_eq!(short.get("not there"), "not there");
    }

    #[test]
    fn short_ids_of_a_large_notebook_are_found_at_once() {
        let ids: Vec<String> = (0..5000).map(|number| format!("{:08x}-0000", number * 7919)).collect();
        let short = ShortIds::of(ids.iter().map(String::as_str));
        let distinct: std::collections::HashSet<&str> = ids.iter().map(|id| short.get(id)).collect();
        assert_eq!(distinct.len(), 5000);
    }
}
