//! The smallest replacements that turn one text into another. Other people's cursors and the edits
//! they make at the same moment survive outside of them, between two changes of one cell too.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use similar::{DiffTag, TextDiff};

/// Longer texts are compared by their ends only.
pub(crate) const MAX_COMPARED: usize = 256 * 1024;
/// Time limit of comparing; what is found until then is right too, only not as small. Nobody else gets at the document
/// meanwhile.
const PATIENCE: Duration = Duration::from_millis(10);
/// Texts up to this length are compared in a few milliseconds at worst, and always the same, however busy the machine is.
const MAX_UNTIMED: usize = 2048;
/// Between two changes of a line, fewer characters than this are not worth keeping.
const MIN_KEPT: usize = 4;

/// Replace `delete` units at `at` by `insert`. Units are UTF-16 code units, as the shared text counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    pub at: u32,
    pub delete: u32,
    pub insert: String,
}

/// Bytes of the old text, and those of the new one that stand in their place.
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// From the end to the beginning, so that the position of each is true when it is made; none if the texts are
/// equal. Never splits a code point.
pub(crate) fn between(old: &str, new: &str) -> Vec<Splice> {
    let everything = Change {
        old: 0..old.len(),
        new: 0..new.len(),
    };
    let Some(whole) = narrowed(old, new, everything) else {
        return Vec::new();
    };
    let is_simple = whole.old.is_empty() || whole.new.is_empty();
    let changes = match is_simple || whole.old.len().max(whole.new.len()) > MAX_COMPARED {
        true => vec![whole],
        false => apart(old, new, whole),
    };
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
    let mut splices: Vec<Splice> = changes.into_iter().map(splice).collect();
    splices.reverse();
    splices
}

/// Where the inserted texts stand once all splices are done, from the beginning to the end; a place where something was
/// only taken away is empty.
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

/// The time when comparing two texts has to end, if they are long enough for that to matter.
pub(crate) fn deadline(limit: Duration, old: &str, new: &str) -> Option<Instant> {
    (old.len().max(new.len()) > MAX_UNTIMED).then(|| Instant::now() + limit)
}

/// The changes within a change: by lines, and by words in the lines that differ.
fn apart(old: &str, new: &str, whole: Change) -> Vec<Change> {
    let mut config = TextDiff::configure();
    if let Some(deadline) = deadline(PATIENCE, old, new) {
        config.deadline(deadline);
    }
    let lines = differences(old, new, &whole, |old, new| config.diff_lines(old, new));
    let words = lines
        .iter()
        .flat_map(|change| differences(old, new, change, |old, new| config.diff_words(old, new)));
    let mut changes: Vec<Change> = Vec::new();
    for change in words {
        match changes.last_mut() {
            Some(last) if !is_worth_keeping(&old[last.old.end..change.old.start]) => {
                last.old.end = change.old.end;
                last.new.end = change.new.end;
            }
            _ => changes.push(change),
        }
    }
    changes
        .into_iter()
        .filter_map(|change| narrowed(old, new, change))
        .collect()
}

/// Text that two versions share by chance would only tear a rewritten line to pieces.
fn is_worth_keeping(kept: &str) -> bool {
    let text = kept.trim();
    text.chars().count() >= MIN_KEPT || !text.is_empty() && kept.contains('\n')
}

fn differences<'t>(
    old: &'t str,
    new: &'t str,
    within: &Change,
    compare: impl FnOnce(&'t str, &'t str) -> TextDiff<'t, 't, str>,
) -> Vec<Change> {
    let diff = compare(&old[within.old.clone()], &new[within.new.clone()]);
    let old_starts = starts(within.old.start, diff.iter_old_slices());
    let new_starts = starts(within.new.start, diff.iter_new_slices());
    let changed = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    changed
        .map(|op| Change {
            old: old_starts[op.old_range().start]..old_starts[op.old_range().end],
            new: new_starts[op.new_range().start]..new_starts[op.new_range().end],
        })
        .collect()
}

/// Where each piece of a text starts, and where the last one ends.
fn starts<'t>(first: usize, pieces: impl Iterator<Item = &'t str>) -> Vec<usize> {
    let mut end = first;
    let ends = pieces.map(|piece| {
        end += piece.len();
        end
    });
    std::iter::once(first).chain(ends).collect()
}

/// A change without what is the same at both of its ends; nothing if all of it is.
fn narrowed(old: &str, new: &str, change: Change) -> Option<Change> {
    let (before, after) = (&old[change.old.clone()], &new[change.new.clone()]);
    if before == after {
        return None;
    }
    let prefix = common_prefix(before, after);
    let suffix = common_suffix(&before[prefix..], &after[prefix..]);
    Some(Change {
        old: change.old.start + prefix..change.old.end - suffix,
        new: change.new.start + prefix..change.new.end - suffix,
    })
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

/// The byte at which a code point starts; the end of the text is a valid position too.
pub(crate) fn byte_of(text: &str, position: usize) -> Option<usize> {
    let mut starts = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    starts.nth(position)
}

pub(crate) fn utf16_len(text: &str) -> u32 {
    u32::try_from(text.chars().map(char::len_utf16).sum::<usize>()).unwrap_or(u32::MAX)
}

pub(crate) fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same)
        .rev()
        .find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at))
        .unwrap_or(0)
}

pub(crate) fn common_suffix(a: &str, b: &str) -> usize {
    let same = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let fits = |length: &usize| a.is_char_boundary(a.len() - length) && b.is_char_boundary(b.len() - length);
    (0..=same).rev().find(fits).unwrap_or(0)
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
