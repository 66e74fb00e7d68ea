//! The smallest replacements that turn one text into another. Other people's cursors and the edits
//! they make at the same moment survive outside of them, between two changes of one text too.

use std::{
    collections::BTreeMap,
    ops::Range,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use similar::{DiffTag, TextDiff, TextDiffConfig};

/// Longer texts are compared by their ends only.
pub const MAX_COMPARED: usize = 256 * 1024;
/// Time limit of comparing; what is found until then is right too, only not as small. Nobody else gets at the document
/// meanwhile.
const COMPARE_TIMEOUT: Duration = Duration::from_millis(10);
/// Texts up to this length are compared in a few milliseconds at worst, and always the same, however busy the machine is.
const MAX_UNTIMED: usize = 2048;
/// Longer words are not compared character by character.
const MAX_COMPARED_BY_CHARACTER: usize = 256;
/// Between two changes of a line, fewer characters than this are not worth keeping.
const MIN_KEPT: usize = 4;

/// The replacement of a part of a text. Positions count code points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    pub at: usize,
    pub old: String,
    pub new: String,
}

/// Bytes of the old text, and those of the new one that stand in their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The splices that turn a text into another, from the beginning to the end; positions are those in the old text. None if
/// the texts are equal. What stands between two changes is not touched, however short it is, so that it stays its author's.
pub fn between(old: &str, new: &str) -> Vec<Splice> {
    splices(old, new, precise(old, new))
}

/// The changes that turn a text into another by bytes, never within a code point. What both have in common by chance is replaced
/// too, rather than tear a rewritten line to pieces under people's cursors.
pub fn changes(old: &str, new: &str) -> Vec<Change> {
    let Some((whole, is_simple)) = whole(old, new) else {
        return Vec::new();
    };
    match is_simple {
        true => vec![whole],
        false => merged(old, new, words(old, new, &whole)),
    }
}

/// The time when comparing two texts has to end, if they are long enough for that to matter.
pub fn deadline(limit: Duration, old: &str, new: &str) -> Option<Instant> {
    (old.len().max(new.len()) > MAX_UNTIMED).then(|| Instant::now() + limit)
}

/// A text after splices as [`between`] makes them; none if they do not fit.
pub fn apply(text: &str, splices: &[Splice]) -> Option<String> {
    let mut result = String::with_capacity(text.len());
    let (mut rest, mut at) = (text, 0);
    for splice in splices {
        let kept = byte_of(rest, splice.at.checked_sub(at)?)?;
        result.push_str(&rest[..kept]);
        rest = rest[kept..].strip_prefix(splice.old.as_str())?;
        result.push_str(&splice.new);
        at = splice.at + splice.old.chars().count();
    }
    result.push_str(rest);
    Some(result)
}

/// The splices that revert others.
pub fn invert(splices: &[Splice]) -> Vec<Splice> {
    let (mut added, mut removed) = (0_usize, 0_usize);
    let inverted = |splice: &Splice| {
        let at = (splice.at.saturating_add(added)).saturating_sub(removed);
        added += splice.new.chars().count();
        removed += splice.old.chars().count();
        Splice {
            at,
            old: splice.new.clone(),
            new: splice.old.clone(),
        }
    };
    splices.iter().map(inverted).collect()
}

/// Splices of a text for what others made of it meanwhile: `theirs` was made for the same text, and is done. Nothing that they wrote
/// is lost, and nothing is done twice that both did. None if one of them does not fit.
pub fn rebase(base: &str, ours: &[Splice], theirs: &[Splice]) -> Option<Vec<Splice>> {
    let characters: Vec<char> = base.chars().collect();
    let theirs_only = theirs.iter();
    let mine: Vec<&Splice> = ours.iter().filter(|splice| !theirs.contains(splice)).collect();
    let (gone, come) = marks(&characters, theirs_only)?;
    let (going, coming) = marks(&characters, mine.into_iter())?;
    let mut builder = Builder::default();
    for at in 0..=characters.len() {
        if let Some(text) = come.get(&at) {
            builder.keep(text.chars().count());
        }
        if let Some(text) = coming.get(&at) {
            builder.insert(text);
        }
        match (characters.get(at), gone.get(at), going.get(at)) {
            (None, ..) | (_, Some(true), _) => {}
            (Some(character), _, Some(true)) => builder.delete(*character),
            _ => builder.keep(1),
        }
    }
    Some(builder.finish())
}

/// The characters that splices delete, and the texts that they insert before which.
fn marks<'s>(
    base: &[char],
    splices: impl Iterator<Item = &'s Splice>,
) -> Option<(Vec<bool>, BTreeMap<usize, &'s str>)> {
    let (mut deleted, mut inserted) = (vec![false; base.len()], BTreeMap::new());
    for splice in splices {
        let end = splice.at.checked_add(splice.old.chars().count())?;
        let range = base.get(splice.at..end)?;
        if !range.iter().copied().eq(splice.old.chars()) {
            return None;
        }
        deleted[splice.at..end].fill(true);
        if !splice.new.is_empty() {
            inserted.insert(end, splice.new.as_str());
        }
    }
    Some((deleted, inserted))
}

/// Builds splices from the changes of a text, from its beginning to its end.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    at: usize,
    open: Option<Splice>,
    splices: Vec<Splice>,
}

impl Builder {
    pub(crate) fn keep(&mut self, characters: usize) {
        if characters > 0 {
            self.splices.extend(self.open.take());
            self.at += characters;
        }
    }

    pub(crate) fn delete(&mut self, character: char) {
        self.opened().old.push(character);
        self.at += 1;
    }

    pub(crate) fn delete_text(&mut self, text: &str) {
        text.chars().for_each(|character| self.delete(character));
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.opened().new.push_str(text);
    }

    pub(crate) fn finish(mut self) -> Vec<Splice> {
        self.splices.extend(self.open.take());
        self.splices.retain(|splice| splice.old != splice.new);
        self.splices
    }

    fn opened(&mut self) -> &mut Splice {
        let at = self.at;
        self.open.get_or_insert_with(|| Splice {
            at,
            old: String::new(),
            new: String::new(),
        })
    }
}

/// The byte at which a code point starts; the end of the text is a valid position too.
pub fn byte_of(text: &str, position: usize) -> Option<usize> {
    let mut starts = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    starts.nth(position)
}

fn splices(old: &str, new: &str, changes: Vec<Change>) -> Vec<Splice> {
    let (mut byte, mut at) = (0, 0);
    let splice = |change: Change| {
        at += old[byte..change.old.start].chars().count();
        byte = change.old.start;
        Splice {
            at,
            old: old[change.old].to_owned(),
            new: new[change.new].to_owned(),
        }
    };
    changes.into_iter().map(splice).collect()
}

/// Everything from the first to the last difference, and whether there is nothing to be found inside.
fn whole(old: &str, new: &str) -> Option<(Change, bool)> {
    let everything = Change {
        old: 0..old.len(),
        new: 0..new.len(),
    };
    let whole = narrowed(old, new, everything)?;
    let is_simple = whole.old.is_empty() || whole.new.is_empty();
    let is_long = whole.old.len().max(whole.new.len()) > MAX_COMPARED;
    Some((whole, is_simple || is_long))
}

/// The changes by lines, by words in the lines that differ, and by characters in short words that differ.
fn precise(old: &str, new: &str) -> Vec<Change> {
    let Some((whole, is_simple)) = whole(old, new) else {
        return Vec::new();
    };
    if is_simple {
        return vec![whole];
    }
    let mut found = Vec::new();
    for change in words(old, new, &whole)
        .into_iter()
        .filter_map(|change| narrowed(old, new, change))
    {
        let is_short = change.old.len().max(change.new.len()) <= MAX_COMPARED_BY_CHARACTER;
        match is_short && !change.old.is_empty() && !change.new.is_empty() {
            true => found.extend(differences(old, new, &change, |old, new| {
                limited(old, new).diff_chars(old, new)
            })),
            false => found.push(change),
        }
    }
    found
}

fn limited(old: &str, new: &str) -> TextDiffConfig {
    let mut config = TextDiff::configure();
    if let Some(deadline) = deadline(COMPARE_TIMEOUT, old, new) {
        config.deadline(deadline);
    }
    config
}

/// The changes within a change: by lines, and by words in the lines that differ.
fn words(old: &str, new: &str, whole: &Change) -> Vec<Change> {
    let config = limited(old, new);
    let lines = differences(old, new, whole, |old, new| config.diff_lines(old, new));
    let words = lines
        .iter()
        .flat_map(|change| differences(old, new, change, |old, new| config.diff_words(old, new)));
    words.collect()
}

/// Changes without what is the same between two of them by chance.
fn merged(old: &str, new: &str, words: Vec<Change>) -> Vec<Change> {
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

/// Offsets of the pieces of a text, and the end of the last one.
pub fn starts<'t>(first: usize, pieces: impl Iterator<Item = &'t str>) -> Vec<usize> {
    let mut end = first;
    let ends = pieces.map(|piece| {
        end += piece.len();
        end
    });
    std::iter::once(first).chain(ends).collect()
}

/// A change without what is the same at both of its ends; none if all of it is.
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

/// Bytes that two texts have in common at the beginning.
pub fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same)
        .rev()
        .find(|at| a.is_char_boundary(*at) && b.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Bytes that two texts have in common at the end.
pub fn common_suffix(a: &str, b: &str) -> usize {
    let same = a.bytes().rev().zip(b.bytes().rev()).take_while(|(a, b)| a == b).count();
    let fits = |length: &usize| a.is_char_boundary(a.len() - length) && b.is_char_boundary(b.len() - length);
    (0..=same).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::any_text;

    fn splice(at: usize, old: &str, new: &str) -> Splice {
        Splice {
            at,
            old: old.to_owned(),
            new: new.to_owned(),
        }
    }

    #[test]
    fn only_what_differs_is_touched() {
        let cases: &[(&str, &str, &[Splice])] = &[
            ("same", "same", &[]),
            ("aa", "aaa", &[splice(2, "", "a")]),
            ("🎉b", "🎉éb", &[splice(1, "", "é")]),
            ("🎉b🎉", "🎉🎉", &[splice(1, "b", "")]),
            ("axb", "cxd", &[splice(0, "a", "c"), splice(2, "b", "d")]),
            (
                "x = 1\ny\nz = 3",
                "x = 2\ny\nz = 4",
                &[splice(4, "1", "2"), splice(12, "3", "4")],
            ),
        ];
        for (old, new, expected) in cases {
            assert_eq!(between(old, new), *expected, "{old:?} to {new:?}");
        }
        assert_eq!(
            changes("a b c d", "w x y z").len(),
            1,
            "what is the same by chance is not kept"
        );
    }

    #[test]
    fn both_sides_of_a_merge_survive() {
        let cases: &[(&str, &str, &str, &str)] = &[
            ("one two three", "one 2 three", "One two three!", "One 2 three!"),
            ("ab", "aXb", "aYb", "aYXb"),
            ("ab", "aXb", "aXb", "aXb"),
            ("one two", "one", "one two!", "one!"),
            ("abc", "X", "abYc", "YX"),
            ("abc", "", "", ""),
            ("", "🎉", "é", "é🎉"),
        ];
        for (base, ours, theirs, expected) in cases {
            let splices = rebase(base, &between(base, ours), &between(base, theirs)).expect("it fits");
            assert_eq!(
                apply(theirs, &splices).as_deref(),
                Some(*expected),
                "{base:?} {ours:?} {theirs:?}"
            );
        }
        assert_eq!(rebase("a", &[splice(0, "b", "")], &[]), None);
        assert_eq!(rebase("a", &[splice(usize::MAX, "a", "")], &[]), None);
    }

    proptest! {
        #[test]
        fn splices_lead_there_and_back(old in any_text(), new in any_text()) {
            let splices = between(&old, &new);
            prop_assert_eq!(apply(&old, &splices), Some(new.clone()));
            prop_assert_eq!(apply(&new, &invert(&splices)), Some(old.clone()));
            let changes = changes(&old, &new);
            prop_assert_eq!(changes.is_empty(), old == new);
        }

        #[test]
        fn a_merge_never_loses_what_others_wrote(base in any_text(), ours in any_text(), more in "[XYZ🦀]{0,5}", at in 0_usize..30) {
            let mut theirs: Vec<char> = base.chars().collect();
            let at = at % (theirs.len() + 1);
            theirs.splice(at..at, more.chars());
            let theirs: String = theirs.into_iter().collect();
            let splices = rebase(&base, &between(&base, &ours), &between(&base, &theirs)).unwrap();
            let merged = apply(&theirs, &splices).unwrap();
            let without: String = merged.chars().filter(|character| !more.contains(*character)).collect();
            prop_assert_eq!(without, ours);
            prop_assert!(merged.chars().filter(|character| more.contains(*character)).eq(more.chars()));
        }
    }
}
