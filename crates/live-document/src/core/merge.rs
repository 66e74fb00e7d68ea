//! Three-way merge of a text: what one side made of a common base is put into what the other side made of it, unless
//! both changed the same place. Pure; knows nothing of documents.

mod settled;

use std::{ops::Range, time::Instant};

use history::text::starts;
use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

pub(crate) use self::settled::{Settlement, settled_text};
use super::{
    policy::DIFF_TIMEOUT,
    splice::{MAX_COMPARED, Splice, common_prefix, common_suffix, deadline, utf16_len},
};

/// Longer lines that differ are compared word by word first.
const MAX_BY_CHARACTERS: usize = 2048;

/// Both sides changed the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict;

/// One change of the base: bytes of it, and what stands there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) old: Range<usize>,
    pub(crate) new: String,
    /// Little is left of the lines it is in, so that what others put at their ends belongs to what is gone.
    rewrites: bool,
}

impl Change {
    /// A change that is known, and not found by comparing.
    pub(crate) fn exact(old: Range<usize>, new: &str) -> Self {
        Self {
            old,
            new: new.to_owned(),
            rewrites: false,
        }
    }

    fn is_insertion(&self) -> bool {
        self.old.is_empty()
    }
}

/// Treatment of two insertions at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    Conflict,
    /// Ours comes after theirs.
    OursLast,
}

/// The splices that put the change from `base` to `ours` into `theirs`, from the end to the beginning.
pub(crate) fn merge(base: &str, theirs: &str, ours: &str) -> Result<Vec<Splice>, Conflict> {
    if theirs == ours {
        return Ok(Vec::new());
    }
    put_into(base, theirs, changes(base, ours), Ties::Conflict)
}

/// The same for changes of `base` that are in order and do not overlap.
pub(crate) fn put_into(base: &str, theirs: &str, ours: Vec<Change>, ties: Ties) -> Result<Vec<Splice>, Conflict> {
    let made = changes(base, theirs);
    // A change that both made stands beside the other changes of each, so it conflicts with none of them.
    let by_them_alone: Vec<&Change> = made.iter().filter(|change| !ours.contains(change)).collect();
    let mut splices = Vec::new();
    for change in ours.iter().filter(|change| !made.contains(change)) {
        if by_them_alone.iter().any(|other| conflict(base, change, other, ties)) {
            return Err(Conflict);
        }
        splices.extend(splice(theirs, change, shifted(&made, change.old.start)));
    }
    splices.reverse();
    Ok(splices)
}

/// A text after splices that come from its end to its beginning.
pub(crate) fn apply(text: &str, splices: &[Splice]) -> String {
    let mut units: Vec<u16> = text.encode_utf16().collect();
    for splice in splices {
        let start = (splice.at as usize).min(units.len());
        let end = (start + splice.delete as usize).min(units.len());
        units.splice(start..end, splice.insert.encode_utf16());
    }
    String::from_utf16_lossy(&units)
}

fn conflict(base: &str, ours: &Change, theirs: &Change, ties: Ties) -> bool {
    match (ours.is_insertion(), theirs.is_insertion()) {
        (true, true) => ours.old.start == theirs.old.start && ties == Ties::Conflict,
        (true, false) => touches(base, ours, theirs),
        (false, true) => touches(base, theirs, ours),
        (false, false) => ours.old.start < theirs.old.end && theirs.old.start < ours.old.end,
    }
}

/// Returns whether an insertion is inside the range that a change removes. At its ends it is beside it, unless whole
/// lines were rewritten: there only what is on another line is.
fn touches(base: &str, insertion: &Change, change: &Change) -> bool {
    let (at, removed) = (insertion.old.start, &base[change.old.clone()]);
    if at == change.old.end {
        change.rewrites && !insertion.new.starts_with('\n') && !removed.ends_with('\n')
    } else if at == change.old.start {
        change.rewrites && !insertion.new.ends_with('\n') && !removed.starts_with('\n')
    } else {
        change.old.contains(&at)
    }
}

/// Maps an offset of the base to their text. Their insertions at that offset come before it.
fn shifted(made: &[Change], at: usize) -> usize {
    let before = made.iter().filter(|change| change.old.end <= at);
    let (removed, added) = before.fold((0, 0), |(removed, added), change| {
        (removed + change.old.len(), added + change.new.len())
    });
    at + added - removed
}

/// A change as a splice of the text in which it starts at a byte; none if it changes nothing.
fn splice(text: &str, change: &Change, start: usize) -> Option<Splice> {
    let old = text.get(start..start + change.old.len())?;
    let prefix = common_prefix(old, &change.new);
    let suffix = common_suffix(&old[prefix..], &change.new[prefix..]);
    let removed = &old[prefix..old.len() - suffix];
    let insert = &change.new[prefix..change.new.len() - suffix];
    if removed.is_empty() && insert.is_empty() {
        return None;
    }
    Some(Splice {
        at: utf16_len(&text[..start + prefix]),
        delete: utf16_len(removed),
        insert: insert.to_owned(),
    })
}

/// Bytes of two texts that stand for each other.
#[derive(Clone)]
struct Pair {
    old: Range<usize>,
    new: Range<usize>,
}

/// Diff of two texts, in whole words.
fn changes(old: &str, new: &str) -> Vec<Change> {
    let prefix = common_prefix(old, new);
    if prefix == old.len() && prefix == new.len() {
        return Vec::new();
    }
    let deadline = deadline(DIFF_TIMEOUT, old, new);
    let by_lines = line_differences(old, new, deadline);
    let found = match is_too_long(old, new) {
        true => by_lines,
        false => by_lines
            .iter()
            .flat_map(|pair| differences(old, new, pair, words, deadline))
            .collect(),
    };
    with_rewritten_lines(old, found)
        .into_iter()
        .map(|(pair, rewrites)| Change {
            old: pair.old,
            new: new[pair.new].to_owned(),
            rewrites,
        })
        .collect()
}

/// Diff of two texts by characters, except in words and lines of which little is left.
fn fine_differences(old: &str, new: &str) -> Vec<Pair> {
    let deadline = deadline(DIFF_TIMEOUT, old, new);
    let by_lines = line_differences(old, new, deadline);
    let fine = match is_too_long(old, new) {
        true => by_lines,
        false => by_lines
            .iter()
            .flat_map(|pair| by_characters(old, new, pair, deadline))
            .collect(),
    };
    let found = with_rewritten_lines(old, with_rewritten_words(old, fine)).into_iter();
    found.map(|(pair, _)| narrowed(old, new, &pair)).collect()
}

/// Diff of some lines by characters: of all of them if most is left, else of the words that differ.
fn by_characters(old: &str, new: &str, lines: &Pair, deadline: Option<Instant>) -> Vec<Pair> {
    if lines.old.len().max(lines.new.len()) <= MAX_BY_CHARACTERS {
        let found = differences(old, new, lines, characters, deadline);
        let removed: usize = found.iter().map(|pair| pair.old.len()).sum();
        if removed * 4 <= lines.old.len() {
            return found;
        }
    }
    differences(old, new, lines, words, deadline)
        .iter()
        .flat_map(|pair| differences(old, new, pair, characters, deadline))
        .collect()
}

/// A pair without what is the same at both of its ends.
fn narrowed(old: &str, new: &str, pair: &Pair) -> Pair {
    let (before, after) = (&old[pair.old.clone()], &new[pair.new.clone()]);
    let prefix = common_prefix(before, after);
    let suffix = common_suffix(&before[prefix..], &after[prefix..]);
    Pair {
        old: pair.old.start + prefix..pair.old.end - suffix,
        new: pair.new.start + prefix..pair.new.end - suffix,
    }
}

fn is_too_long(old: &str, new: &str) -> bool {
    old.len().max(new.len()) > MAX_COMPARED
}

/// Diff of two texts, in whole lines.
fn line_differences(old: &str, new: &str, deadline: Option<Instant>) -> Vec<Pair> {
    if is_too_long(old, new) {
        return vec![outer(old, new)];
    }
    let whole = Pair {
        old: 0..old.len(),
        new: 0..new.len(),
    };
    differences(old, new, &whole, lines, deadline)
}

/// Everything between the lines that are the same at both ends.
fn outer(old: &str, new: &str) -> Pair {
    let prefix = old[..common_prefix(old, new)].rfind('\n').map_or(0, |at| at + 1);
    let suffix = common_suffix(&old[prefix..], &new[prefix..]);
    let tail = &old[old.len() - suffix..];
    let suffix = tail.find('\n').map_or(0, |at| suffix - at);
    Pair {
        old: prefix..old.len() - suffix,
        new: prefix..new.len() - suffix,
    }
}

fn differences(
    old: &str,
    new: &str,
    within: &Pair,
    split: fn(&str) -> Vec<&str>,
    deadline: Option<Instant>,
) -> Vec<Pair> {
    let (before, after) = (split(&old[within.old.clone()]), split(&new[within.new.clone()]));
    let (old_starts, new_starts) = (
        starts(within.old.start, before.iter().copied()),
        starts(within.new.start, after.iter().copied()),
    );
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &before, &after, deadline);
    ops.iter()
        .filter(|op| op.tag() != DiffTag::Equal)
        .map(|op| Pair {
            old: old_starts[op.old_range().start]..old_starts[op.old_range().end],
            new: new_starts[op.new_range().start]..new_starts[op.new_range().end],
        })
        .collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Words, spaces between them, and every other character on its own, with what belongs to it.
fn words(text: &str) -> Vec<&str> {
    pieces(text, |one, next| is_one_word(one, next) || is_one_character(one, next))
}

/// Every character on its own, with what belongs to it.
fn characters(text: &str) -> Vec<&str> {
    pieces(text, is_one_character)
}

fn pieces(text: &str, holds_together: impl Fn(char, char) -> bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut previous: Option<char> = None;
    for (at, character) in text.char_indices() {
        if previous.is_some_and(|previous| !holds_together(previous, character)) {
            pieces.push(&text[start..at]);
            start = at;
        }
        previous = Some(character);
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric() && character < '\u{2e80}'
}

fn is_one_word(one: char, next: char) -> bool {
    let is_space = |character: char| character.is_whitespace() && character != '\n' && character != '\r';
    is_word(one) && is_word(next)
        || is_space(one) && is_space(next)
        // Letters go on after an accent that is written on its own.
        || matches!(one, '\u{300}'..='\u{36f}') && is_word(next)
}

fn is_one_character(one: char, next: char) -> bool {
    const JOINER: char = '\u{200d}';
    let is_attached = matches!(next,
        '\u{300}'..='\u{36f}' | JOINER | '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}' | '\u{1f3fb}'..='\u{1f3ff}');
    (one, next) == ('\r', '\n') || one == JOINER || is_attached && one != '\n'
}

/// Takes all changes of a word together of which half is gone or more: characters that both versions have by chance would only
/// mix two words.
fn with_rewritten_words(old: &str, found: Vec<Pair>) -> Vec<Pair> {
    let mut groups: Vec<(Range<usize>, Vec<Pair>)> = Vec::new();
    for pair in found {
        let word = word_around(old, &pair.old);
        match groups.last_mut() {
            Some((around, pairs)) if word.start < around.end => {
                around.end = around.end.max(word.end);
                pairs.push(pair);
            }
            _ => groups.push((word, vec![pair])),
        }
    }
    groups
        .into_iter()
        .flat_map(|(word, pairs)| {
            let removed: usize = pairs.iter().map(|pair| pair.old.len()).sum();
            match (pairs.first(), pairs.last()) {
                (Some(first), Some(last)) if removed * 2 >= word.len() => vec![Pair {
                    old: first.old.start..last.old.end,
                    new: first.new.start..last.new.end,
                }],
                _ => pairs,
            }
        })
        .collect()
}

/// A part of a text, with the rest of the words at its ends.
fn word_around(text: &str, part: &Range<usize>) -> Range<usize> {
    let before = text[..part.start].trim_end_matches(is_word).len();
    let behind = text[part.end..].trim_start_matches(is_word).len();
    before..text.len() - behind
}

/// Takes all changes of a line together of which little is left: words that both versions have by chance would only mix
/// two sentences. Says of each change whether it is such a one.
fn with_rewritten_lines(old: &str, found: Vec<Pair>) -> Vec<(Pair, bool)> {
    let mut groups: Vec<(Range<usize>, Vec<Pair>)> = Vec::new();
    for pair in found {
        let lines = lines_around(old, &pair.old);
        match groups.last_mut() {
            Some((around, pairs)) if lines.start < around.end || lines.start == around.start => {
                around.end = around.end.max(lines.end);
                pairs.push(pair);
            }
            _ => groups.push((lines, vec![pair])),
        }
    }
    groups
        .into_iter()
        .flat_map(|(lines, pairs)| judged(old, &lines, pairs))
        .collect()
}

/// The changes of some lines as they are, or one of all of it if they leave less than half.
fn judged(old: &str, lines: &Range<usize>, pairs: Vec<Pair>) -> Vec<(Pair, bool)> {
    let removed: usize = pairs.iter().map(|pair| visible(&old[pair.old.clone()])).sum();
    match (pairs.first(), pairs.last()) {
        (Some(first), Some(last)) if removed * 2 > visible(&old[lines.clone()]) => {
            let before = first.old.start - lines.start;
            let after = lines.end - last.old.end;
            let whole = Pair {
                old: lines.clone(),
                new: first.new.start - before..last.new.end + after,
            };
            vec![(whole, true)]
        }
        _ => pairs.into_iter().map(|pair| (pair, false)).collect(),
    }
}

/// The lines that a part of a text is in, without the line break at their end.
fn lines_around(text: &str, part: &Range<usize>) -> Range<usize> {
    let start = text[..part.start].rfind('\n').map_or(0, |at| at + 1);
    // A part that ends with a line break does not reach into the next line.
    let last = match text[part.clone()].ends_with('\n') {
        true => part.end - 1,
        false => part.end,
    };
    let end = text[last..].find('\n').map_or(text.len(), |at| last + at);
    start..end.max(part.end)
}

fn visible(text: &str) -> usize {
    text.chars().filter(|character| !character.is_whitespace()).count()
}

#[cfg(test)]
mod tests;
