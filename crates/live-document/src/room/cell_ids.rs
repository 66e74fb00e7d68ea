//! Cell ids as callers write them: whole, or the beginning of one that no other cell of the notebook has.

use std::collections::HashMap;

/// Fewest characters by which a cell can be named without its whole id.
const MIN_PREFIX: usize = 4;
/// Fewest characters of a short id, so that it mostly stays one while cells are added.
const MIN_SHORT: usize = 6;
/// As many of the cells that could be meant are named.
const MAX_CANDIDATES: usize = 10;

/// The cells of one moment, in order.
pub trait CellOrder {
    fn count(&self) -> usize;
    /// The position of the cell with exactly this id.
    fn position_of(&self, cell: &str) -> Option<usize>;
    fn ids(&self) -> Vec<&str>;
    /// Of the first cells, for those who asked for one that is not there.
    fn some_ids(&self) -> String;

    /// The position of the cell that a caller names by its id, or by the beginning of one that only it has.
    fn find(&self, named: &str) -> Result<usize, CellNameError> {
        if let Some(position) = self.position_of(named) {
            return Ok(position);
        }
        let is_prefix = named.chars().count() >= MIN_PREFIX;
        let ids = self.ids();
        let candidates: Vec<(usize, &str)> = ids
            .into_iter()
            .enumerate()
            .filter(|(_, id)| is_prefix && id.starts_with(named))
            .collect();
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

/// Why a name stands for no cell.
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
pub struct ShortIds(HashMap<String, usize>);

impl ShortIds {
    /// Sorts the ids once, so that each needs to be compared with its neighbours only.
    pub fn of<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut sorted: Vec<&str> = ids.into_iter().collect();
        sorted.sort_unstable();
        sorted.dedup();
        let shared = |one: usize, other: Option<usize>| {
            let (one, other) = (sorted[one], other.and_then(|other| sorted.get(other)));
            other.map_or(0, |other| common_characters(one, other))
        };
        let length = |index: usize| {
            let longest = shared(index, index.checked_sub(1)).max(shared(index, Some(index + 1)));
            (longest + 1).max(MIN_SHORT)
        };
        let lengths = sorted.iter().enumerate().map(|(index, id)| {
            let end = id.char_indices().nth(length(index)).map_or(id.len(), |(at, _)| at);
            ((*id).to_owned(), end)
        });
        Self(lengths.collect())
    }

    /// The short forms of a few of all ids, each of which is compared with all.
    pub fn of_some<'a>(all: impl IntoIterator<Item = &'a str>, some: &[&str]) -> Self {
        let mut shared = vec![0; some.len()];
        for other in all {
            for (id, shared) in some.iter().zip(&mut shared) {
                if *id != other {
                    *shared = common_characters(id, other).max(*shared);
                }
            }
        }
        let lengths = some.iter().zip(shared).map(|(id, shared)| {
            let length = (shared + 1).max(MIN_SHORT);
            let end = id.char_indices().nth(length).map_or(id.len(), |(at, _)| at);
            ((*id).to_owned(), end)
        });
        Self(lengths.collect())
    }

    /// The short form of an id; the id itself if it is not among those.
    pub fn get<'i>(&self, id: &'i str) -> &'i str {
        self.0.get(id).and_then(|end| id.get(..*end)).unwrap_or(id)
    }
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

        fn ids(&self) -> Vec<&str> {
            self.0.to_vec()
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
