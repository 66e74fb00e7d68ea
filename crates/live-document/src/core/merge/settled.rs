//! Three-way merge of a text that always has a result: character by character, as Yjs merges what two people type, except where
//! that would make what neither of them wrote.
//!
//! | one side | the other | result |
//! | --- | --- | --- |
//! | changes some characters | changes others, not beside them | both changes |
//! | inserts | inserts at the same place | both, what goes on with a word first; once if they are the same |
//! | deletes | deletes some of the same | all of it is gone |
//! | replaces | replaces or deletes some of the same, or inserts inside | the lines in both versions |
//! | changes the end of a word | goes on with that word | the lines in both versions: `x = 2` and `x = 10` are no `x = 20` |
//!
//! But for lines in both versions, of which theirs come first, the result is the same whichever side is called theirs.

use std::{cmp::Ordering, collections::BTreeMap, ops::Range};

use super::{fine_differences, is_word, lines};

/// Treatment of lines in which both sides changed the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Theirs stand there, and ours below them.
    Both,
    Ours,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) text: String,
    /// Some lines stand there in both versions, or stay though one side deleted them.
    pub(crate) is_doubled: bool,
}

impl Settled {
    fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            is_doubled: false,
        }
    }
}

/// The text with the change from `base` to `ours` put into `theirs`.
pub(crate) fn settled_text(base: &str, theirs: &str, ours: &str, settlement: Settlement) -> Settled {
    if theirs == ours || theirs == base {
        return Settled::plain(ours);
    }
    if ours == base {
        return Settled::plain(theirs);
    }
    let (theirs, ours) = (edits(base, theirs), edits(base, ours));
    let mut is_doubled = false;
    let mut weaving = Weaving::new(base);
    let regions = regions(base, &theirs, &ours);
    for region in &regions {
        let [now, wanted] = [&theirs, &ours].map(|edits| version(base, region, edits));
        let settled = settle(&base[region.clone()], &now, &wanted, settlement);
        is_doubled |= settled.is_doubled;
        weaving.replace(region.clone(), &settled.text);
    }
    let is_settled = |edit: &Edit<'_>| regions.iter().any(|region| is_in(base, edit, region));
    for edit in theirs.iter().filter(|edit| !is_settled(edit)) {
        weaving.add(edit);
    }
    // What both did is done once.
    for edit in ours.iter().filter(|edit| !is_settled(edit) && !theirs.contains(edit)) {
        weaving.add(edit);
    }
    Settled {
        text: weaving.finish(),
        is_doubled,
    }
}

/// What becomes of some lines in which both changed the same.
fn settle(before: &str, theirs: &str, ours: &str, settlement: Settlement) -> Settled {
    let [before, now, wanted] = [before, theirs, ours].map(lines);
    if before.len() > 1 && before.len() == now.len() && before.len() == wanted.len() {
        // As many as there were: each was changed in its place.
        let each = before.into_iter().zip(now).zip(wanted);
        let each = each.map(|((before, now), wanted)| settled_text(before, now, wanted, settlement));
        return each.fold(Settled::default(), |before, line| Settled {
            text: before.text + &line.text,
            is_doubled: before.is_doubled || line.is_doubled,
        });
    }
    match settlement {
        _ if theirs == ours => Settled::plain(ours),
        Settlement::Ours => Settled::plain(ours),
        Settlement::Both => Settled {
            text: both(theirs, ours),
            is_doubled: true,
        },
    }
}

/// A change of the base by one side: bytes of it, and what stands there instead.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit<'t> {
    old: Range<usize>,
    new: &'t str,
}

impl Edit<'_> {
    fn is_insertion(&self) -> bool {
        self.old.is_empty()
    }
}

fn edits<'t>(base: &str, side: &'t str) -> Vec<Edit<'t>> {
    let pairs = fine_differences(base, side).into_iter();
    let edits = pairs.map(|pair| Edit {
        old: pair.old,
        new: &side[pair.new],
    });
    edits.collect()
}

/// Returns whether two edits of different sides cannot both be done as they are.
fn clash(base: &str, one: &Edit<'_>, other: &Edit<'_>) -> bool {
    if one == other {
        return false;
    }
    if one.is_insertion() && other.is_insertion() {
        return one.old == other.old && insertions_clash(base, one, other);
    }
    let place = |edit: &Edit<'_>| (edit.old.start, edit.old.end);
    let (first, second) = match place(one) < place(other) {
        true => (one, other),
        false => (other, one),
    };
    let only_delete = first.new.is_empty() && second.new.is_empty();
    if first.old.end > second.old.start {
        return !only_delete;
    }
    first.old.end == second.old.start && !only_delete && makes_a_word(end_of(base, first), start_of(base, second))
}

/// Returns whether two insertions at one place change the same word, or would make one word of two.
fn insertions_clash(base: &str, one: &Edit<'_>, other: &Edit<'_>) -> bool {
    let mut both = [one, other].map(|edit| Insertion::of(base, edit));
    both.sort_unstable();
    let [first, second] = both;
    first.goes_on_with_word && second.goes_on_with_word
        || first.begins_word && second.begins_word
        || makes_a_word(first.text.chars().next_back(), second.text.chars().next())
}

fn makes_a_word(one: Option<char>, next: Option<char>) -> bool {
    one.is_some_and(is_word) && next.is_some_and(is_word)
}

/// The last character that an edit is about: one that it wrote, or else deleted.
fn end_of(base: &str, edit: &Edit<'_>) -> Option<char> {
    let written = edit.new.chars().next_back();
    written.or_else(|| base[edit.old.clone()].chars().next_back())
}

fn start_of(base: &str, edit: &Edit<'_>) -> Option<char> {
    let written = edit.new.chars().next();
    written.or_else(|| base[edit.old.clone()].chars().next())
}

/// What is inserted at a place. Those at one place have an order: first what goes on with the word before them, and last what the word
/// behind them goes on with; what is put at the end of a line before lines below it, and lines above it before what is put at its
/// beginning. Elsewhere the alphabet decides, not who came first.
#[derive(Debug, PartialEq, Eq)]
struct Insertion<'t> {
    goes_on_with_word: bool,
    begins_word: bool,
    text: &'t str,
}

impl<'t> Insertion<'t> {
    fn of(base: &str, insertion: &Edit<'t>) -> Self {
        let (before, behind) = base.split_at(insertion.old.start);
        let text = insertion.new;
        Self {
            goes_on_with_word: makes_a_word(before.chars().next_back(), text.chars().next()),
            begins_word: makes_a_word(text.chars().next_back(), behind.chars().next()),
            text,
        }
    }

    fn rank(&self) -> (bool, bool, bool, bool, &str) {
        (
            !self.goes_on_with_word,
            self.text.starts_with('\n'),
            !self.text.ends_with('\n'),
            self.begins_word,
            self.text,
        )
    }
}

impl Ord for Insertion<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Insertion<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The lines of the base in which edits of both sides clash, with all lines that other edits in them reach into.
fn regions(base: &str, theirs: &[Edit<'_>], ours: &[Edit<'_>]) -> Vec<Range<usize>> {
    let mut regions = Vec::new();
    for one in theirs {
        for other in ours.iter().filter(|other| clash(base, one, other)) {
            let (start, end) = (one.old.start.min(other.old.start), one.old.end.max(other.old.end));
            regions.push(whole_lines(base, start..end));
        }
    }
    loop {
        let before = regions.clone();
        for region in &mut regions {
            for edit in theirs.iter().chain(ours) {
                if is_in(base, edit, region) {
                    let (start, end) = (region.start.min(edit.old.start), region.end.max(edit.old.end));
                    *region = whole_lines(base, start..end);
                }
            }
        }
        regions = joined(regions);
        if regions == before {
            return regions;
        }
    }
}

/// Ranges in order, those that share something as one.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start < last.end || range == *last => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The lines that a part of a text is in, with the line break at their end.
fn whole_lines(text: &str, part: Range<usize>) -> Range<usize> {
    let start = text[..part.start].rfind('\n').map_or(0, |at| at + 1);
    let end = match text[start..part.end].ends_with('\n') {
        true => part.end,
        false => text[part.end..].find('\n').map_or(text.len(), |at| part.end + at + 1),
    };
    start..end
}

/// Returns whether an edit is of some whole lines. Lines that are inserted before or behind them are not.
fn is_in(base: &str, edit: &Edit<'_>, lines: &Range<usize>) -> bool {
    if !edit.is_insertion() {
        return edit.old.start < lines.end && lines.start < edit.old.end;
    }
    let at = edit.old.start;
    if at == lines.end {
        return !base[lines.clone()].ends_with('\n');
    }
    lines.contains(&at) && (at > lines.start || !edit.new.ends_with('\n'))
}

/// What a side made of some lines.
fn version(base: &str, lines: &Range<usize>, edits: &[Edit<'_>]) -> String {
    let mut version = String::new();
    let mut end = lines.start;
    for edit in edits.iter().filter(|edit| is_in(base, edit, lines)) {
        version.push_str(&base[end..edit.old.start]);
        version.push_str(edit.new);
        end = edit.old.end;
    }
    version + &base[end..lines.end]
}

/// Puts a text together from its base and what happens to it, in any order.
struct Weaving<'t> {
    base: &'t str,
    /// Which bytes of the base are gone.
    is_gone: Vec<bool>,
    added: BTreeMap<usize, Added<'t>>,
}

/// What is put at a place.
#[derive(Default)]
struct Added<'t> {
    /// Instead of what ends there.
    replaced: String,
    inserted: Vec<Insertion<'t>>,
}

impl<'t> Weaving<'t> {
    fn new(base: &'t str) -> Self {
        Self {
            base,
            is_gone: vec![false; base.len()],
            added: BTreeMap::new(),
        }
    }

    fn add(&mut self, edit: &Edit<'t>) {
        match edit.is_insertion() {
            true => {
                let insertion = Insertion::of(self.base, edit);
                self.added.entry(edit.old.start).or_default().inserted.push(insertion);
            }
            false => self.replace(edit.old.clone(), edit.new),
        }
    }

    fn replace(&mut self, old: Range<usize>, new: &str) {
        self.added.entry(old.end).or_default().replaced.push_str(new);
        self.is_gone[old].fill(true);
    }

    fn finish(self) -> String {
        let (base, is_gone) = (self.base, &self.is_gone);
        let kept = |range: Range<usize>| {
            let start = range.start;
            let characters = base[range].char_indices();
            let kept = characters.filter(move |(at, _)| !is_gone[start + at]);
            kept.map(|(_, character)| character)
        };
        let mut text = String::with_capacity(base.len());
        let mut end = 0;
        for (at, mut added) in self.added {
            text.extend(kept(end..at));
            text.push_str(&added.replaced);
            added.inserted.sort_unstable();
            text.extend(added.inserted.iter().map(|insertion| insertion.text));
            end = at;
        }
        text.extend(kept(end..base.len()));
        text
    }
}

/// Both versions of some lines, those at the ends that they share once.
fn both(theirs: &str, ours: &str) -> String {
    let (now, wanted) = (lines(theirs), lines(ours));
    let same = |(one, other): &(&&str, &&str)| one == other;
    let before = now.iter().zip(&wanted).take_while(same).count();
    let (now_left, wanted_left) = (&now[before..], &wanted[before..]);
    let after = now_left
        .iter()
        .rev()
        .zip(wanted_left.iter().rev())
        .take_while(same)
        .count();
    let mut text = now[..now.len() - after].concat();
    let added = wanted_left[..wanted_left.len() - after].concat();
    if !text.is_empty() && !text.ends_with('\n') && !added.is_empty() {
        text.push('\n');
    }
    text.push_str(&added);
    if after > 0 && !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + &now[now.len() - after..].concat()
}

#[cfg(test)]
mod tests;
