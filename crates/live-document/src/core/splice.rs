//! The smallest replacements that turn one text into another. Other people's cursors and the edits
//! they make at the same moment survive outside of them, between two changes of one cell too.

use std::ops::Range;

use history::text::{self, Change};
pub(crate) use history::text::{MAX_COMPARED, byte_of, common_prefix, common_suffix, deadline};

/// Replace `delete` units at `at` by `insert`. Units are UTF-16 code units, as the shared text counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    pub at: u32,
    pub delete: u32,
    pub insert: String,
}

/// From the end to the beginning, so that the position of each is true when it is made; none if the texts are
/// equal. Never splits a code point.
pub(crate) fn between(old: &str, new: &str) -> Vec<Splice> {
    let (mut byte, mut at) = (0, 0);
    let splice = |change: Change| {
        at += utf16_len(&old[byte..change.old.start]);
        let delete = utf16_len(&old[change.old.clone()]);
        let splice = Splice {
            at,
            delete,
            insert: new[change.new].to_owned(),
        };
        byte = change.old.end;
        at += delete;
        splice
    };
    let mut splices: Vec<Splice> = text::changes(old, new).into_iter().map(splice).collect();
    splices.reverse();
    splices
}

/// Ranges of the inserted texts once all splices are done, from the beginning to the end; empty where something was
/// only deleted.
pub(crate) fn spans(splices: &[Splice]) -> Vec<Range<u32>> {
    let (mut inserted, mut deleted) = (0_u32, 0_u32);
    let span = |splice: &Splice| {
        let start = (splice.at + inserted).saturating_sub(deleted);
        let length = utf16_len(&splice.insert);
        inserted += length;
        deleted += splice.delete;
        start..start + length
    };
    splices.iter().rev().map(span).collect()
}

/// Splices of a text at positions that count code points, from the end to the beginning.
pub(crate) fn in_units(text: &str, splices: &[history::Splice]) -> Vec<Splice> {
    let (mut rest, mut position, mut at) = (text, 0, 0);
    let mut units = Vec::with_capacity(splices.len());
    for splice in splices {
        let kept = byte_of(rest, splice.at.saturating_sub(position)).unwrap_or(rest.len());
        at += utf16_len(&rest[..kept]);
        let delete = utf16_len(&splice.old);
        units.push(Splice {
            at,
            delete,
            insert: splice.new.clone(),
        });
        at += delete;
        rest = rest[kept..].get(splice.old.len()..).unwrap_or_default();
        position = splice.at + splice.old.chars().count();
    }
    units.reverse();
    units
}

/// A splice at positions that count code points; `None` if they are outside of the text.
pub(crate) fn at_code_points(text: &str, position: usize, delete: usize, insert: &str) -> Option<Splice> {
    let start = byte_of(text, position)?;
    let removed = &text[start..];
    let end = byte_of(removed, delete)?;
    Some(Splice {
        at: utf16_len(&text[..start]),
        delete: utf16_len(&removed[..end]),
        insert: insert.to_owned(),
    })
}

pub(crate) fn utf16_len(text: &str) -> u32 {
    u32::try_from(text.chars().map(char::len_utf16).sum::<usize>()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn splice(at: u32, delete: u32, insert: &str) -> Splice {
        Splice {
            at,
            delete,
            insert: insert.to_owned(),
        }
    }

    fn apply(old: &str, splices: &[Splice]) -> String {
        let mut units: Vec<u16> = old.encode_utf16().collect();
        for splice in splices {
            let (at, delete) = (splice.at as usize, splice.delete as usize);
            units.splice(at..at + delete, splice.insert.encode_utf16());
            String::from_utf16(&units).expect("no code point is split");
        }
        String::from_utf16(&units).expect("no code point is split")
    }

    #[test]
    fn only_what_differs_is_touched() {
        let splices = between("print('a')\nx = 1\n", "print('a')\nx = 12\n");
        assert_eq!(splices, [splice(16, 0, "2")]);
        assert!(between("same", "same").is_empty());
        assert_eq!(between("aa", "aaa"), [splice(2, 0, "a")]);
    }

    #[test]
    fn what_stands_between_two_changes_is_not_touched() {
        let (old, new) = ("🎉 = 1\ny = two\nz = 3\n", "🎉 = 10\ny = two\nz = 30\n");
        let splices = between(old, new);
        assert_eq!(splices, [splice(20, 0, "0"), splice(6, 0, "0")], "the last one first");
        assert_eq!(spans(&splices), [6..7, 21..22]);
        let splices = between("plot(data, color='red', width=3)", "plot(table, color='red', width=4)");
        assert_eq!(splices, [splice(30, 1, "4"), splice(5, 4, "table")]);
    }

    #[test]
    fn what_is_the_same_by_chance_is_not_kept() {
        assert_eq!(between("a b c d", "w x y z"), [splice(0, 7, "w x y z")]);
        let (old, new) = ("first\n\nsecond", "another\n\nthing");
        assert_eq!(between(old, new), [splice(0, 13, new)]);
    }

    #[test]
    fn positions_outside_are_none() {
        assert!(at_code_points("🎉b", 3, 0, "x").is_none());
        assert!(at_code_points("🎉b", 1, 2, "x").is_none());
        assert_eq!(at_code_points("🎉b", 1, 1, "x"), Some(splice(2, 1, "x")));
        assert_eq!(at_code_points("🎉b", 2, 0, "x").map(|splice| splice.at), Some(3));
    }

    proptest! {
        #[test]
        fn splices_turn_old_into_new(old in "[ab é漢🎉👩‍💻\u{301}\n]{0,60}", new in "[ab é漢🎉👩‍💻\u{301}\n]{0,60}") {
            let splices = between(&old, &new);
            prop_assert_eq!(splices.is_empty(), old == new);
            let units: Vec<u16> = new.encode_utf16().collect();
            let inserted = spans(&splices).into_iter().map(|span| String::from_utf16(&units[span.start as usize..span.end as usize]).unwrap());
            prop_assert_eq!(inserted.collect::<Vec<_>>(), splices.iter().rev().map(|splice| splice.insert.clone()).collect::<Vec<_>>());
            prop_assert_eq!(apply(&old, &splices), new);
        }

        #[test]
        fn code_point_positions_do_what_they_say(text in "[aé漢🎉\u{301}]{0,20}", position in 0_usize..25, delete in 0_usize..25, insert in "[x🎉]{0,3}") {
            let characters: Vec<char> = text.chars().collect();
            let splice = at_code_points(&text, position, delete, &insert);
            prop_assert_eq!(splice.is_some(), position + delete <= characters.len());
            if let Some(splice) = splice {
                let mut expected = characters;
                expected.splice(position..position + delete, insert.chars());
                prop_assert_eq!(apply(&text, &[splice]), expected.into_iter().collect::<String>());
            }
        }
    }
}
