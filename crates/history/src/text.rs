//! The smallest replacements that turn one text into another. Other people's cursors and the edits
//! they make at the same moment survive outside of them, between two changes of one text too.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use similar::{DiffTag, TextDiff};

/// Longer texts are compared by their ends only.
pub const MAX_COMPARED: usize = 256 * 1024;
/// What is found until then is right too, only not as small; nobody else gets at the document meanwhile.
const PATIENCE: Duration = Duration::from_millis(10);
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
/// the texts are equal.
pub fn between(old: &str, new: &str) -> Vec<Splice> {
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
    changes(old, new).into_iter().map(splice).collect()
}

/// The same by bytes, never within a code point.
pub fn changes(old: &str, new: &str) -> Vec<Change> {
    let everything = Change {
        old: 0..old.len(),
        new: 0..new.len(),
    };
    let Some(whole) = narrowed(old, new, everything) else {
        return Vec::new();
    };
    let is_simple = whole.old.is_empty() || whole.new.is_empty();
    match is_simple || whole.old.len().max(whole.new.len()) > MAX_COMPARED {
        true => vec![whole],
        false => apart(old, new, whole),
    }
}

/// The changes within a change: by lines, and by words in the lines that differ.
fn apart(old: &str, new: &str, whole: Change) -> Vec<Change> {
    let mut config = TextDiff::configure();
    config.deadline(Instant::now() + PATIENCE);
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
