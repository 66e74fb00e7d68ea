//! Three-way merge of a text that always has a result. Words that do not meet are merged as words; lines that both sides
//! changed so that no merge of their words fits are settled as asked.
//!
//! Whole lines, because a merge by characters, as that of Yjs, makes of `x = 2` and `x = 3` an `x = 23` that nobody wrote.

use std::ops::Range;

use super::{DIFF_TIMEOUT, Pair, line_differences, lines, merged_text};
use crate::core::splice::deadline;

/// Treatment of lines that both sides changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settlement {
    /// Theirs stand there, and ours below them.
    Both,
    Ours,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) text: String,
    /// Some lines stand there in both versions.
    pub(crate) is_doubled: bool,
}

/// The text with the change from `base` to `ours` put into `theirs`.
pub(crate) fn settled_text(base: &str, theirs: &str, ours: &str, settlement: Settlement) -> Settled {
    if let Ok(text) = merged_text(base, theirs, ours) {
        return Settled {
            text,
            is_doubled: false,
        };
    }
    let mut settled = Settled {
        text: String::new(),
        is_doubled: false,
    };
    let mut end = 0;
    for region in regions(base, theirs, ours) {
        settled.text.push_str(&base[end..region.base.start]);
        end = region.base.end;
        let (before, now, wanted) = (&base[region.base], &theirs[region.theirs], &ours[region.ours]);
        settled.settle(before, now, wanted, settlement);
    }
    settled.text.push_str(&base[end..]);
    settled
}

impl Settled {
    /// Adds the outcome for some lines that both changed.
    fn settle(&mut self, before: &str, theirs: &str, ours: &str, settlement: Settlement) {
        if let Ok(merged) = merged_text(before, theirs, ours) {
            self.text.push_str(&merged);
            return;
        }
        let [before, now, wanted] = [before, theirs, ours].map(lines);
        if before.len() > 1 && before.len() == now.len() && before.len() == wanted.len() {
            // As many lines as before: each was changed in its place.
            for ((before, now), wanted) in before.into_iter().zip(now).zip(wanted) {
                self.settle(before, now, wanted, settlement);
            }
            return;
        }
        match settlement {
            Settlement::Ours => self.text.push_str(ours),
            Settlement::Both => {
                self.is_doubled = true;
                self.text.push_str(&both(theirs, ours));
            }
        }
    }
}

/// Lines of the base that a side changed, or both, and what each made of them. What is between two regions nobody changed.
struct Region {
    base: Range<usize>,
    theirs: Range<usize>,
    ours: Range<usize>,
}

fn regions(base: &str, theirs: &str, ours: &str) -> Vec<Region> {
    let deadline = deadline(DIFF_TIMEOUT, theirs, ours);
    let (by_them, by_us) = (
        line_differences(base, theirs, deadline),
        line_differences(base, ours, deadline),
    );
    let mut changed: Vec<Range<usize>> = by_them.iter().chain(&by_us).map(|pair| pair.old.clone()).collect();
    changed.sort_unstable_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in changed {
        match joined.last_mut() {
            Some(last) if range.start < last.end || range == *last => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    let (mut theirs, mut ours) = (Side::of(&by_them), Side::of(&by_us));
    let region = |base: Range<usize>| Region {
        theirs: theirs.take(&base),
        ours: ours.take(&base),
        base,
    };
    joined.into_iter().map(region).collect()
}

/// The changes of a side that no region has taken yet, and how far they moved what is behind them.
struct Side<'a> {
    pairs: &'a [Pair],
    moved: isize,
}

impl<'a> Side<'a> {
    fn of(pairs: &'a [Pair]) -> Self {
        Self { pairs, moved: 0 }
    }

    /// The side's version of a region; regions are asked for in their order.
    fn take(&mut self, region: &Range<usize>) -> Range<usize> {
        let is_in = |pair: &Pair| pair.old.end <= region.end && (pair.old.start < region.end || pair.old == *region);
        let count = self.pairs.iter().take_while(|pair| is_in(pair)).count();
        let (own, rest) = self.pairs.split_at(count);
        let start = region.start.saturating_add_signed(self.moved);
        let grown = own
            .iter()
            .map(|pair| pair.new.len().cast_signed() - pair.old.len().cast_signed());
        self.moved += grown.sum::<isize>();
        self.pairs = rest;
        start..region.end.saturating_add_signed(self.moved)
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn settles(base: &str, theirs: &str, ours: &str, kept_both: &str, ours_wins: &str) {
        let text = |settlement| settled_text(base, theirs, ours, settlement).text;
        assert_eq!(text(Settlement::Both), kept_both);
        assert_eq!(text(Settlement::Ours), ours_wins);
    }

    #[test]
    fn only_lines_that_both_changed_are_settled() {
        settles("x = 1", "x = 3", "x = 2", "x = 3\nx = 2", "x = 2");
        settles(
            "a = 1\nb = 1\nc = 1\nd = 1\n",
            "a = 3\nb = 1\nc = 3  # typed\nd = 1\n",
            "a = 1\nb = 2\nc = 2\nd = 1\n",
            "a = 3\nb = 2\nc = 3  # typed\nc = 2\nd = 1\n",
            "a = 3\nb = 2\nc = 2\nd = 1\n",
        );
        settles(
            "x = 1\nz = 1",
            "x = 3\nz = 1  # typed",
            "x = 2\nz = 1",
            "x = 3\nx = 2\nz = 1  # typed",
            "x = 2\nz = 1  # typed",
        );
        settles(
            "one\nx = 1\ntwo\n",
            "zero\none\nx = 3\ntwo\nthree\n",
            "one\nx = 2\n2\n",
            "zero\none\nx = 3\nx = 2\n2\nthree\n",
            "zero\none\nx = 2\n2\nthree\n",
        );
    }

    #[test]
    fn what_one_side_removed_and_the_other_changed_stays() {
        settles("a\nb\nc", "a\nb!\nc", "a\nc", "a\nb!\nc", "a\nc");
        settles("a\nb\nc\n", "a\nc\n", "a\nB!\nc\n", "a\nB!\nc\n", "a\nB!\nc\n");
    }

    #[test]
    fn lines_that_both_versions_share_stand_once() {
        assert_eq!(both("a\nb\nc\n", "a\nB\nc\n"), "a\nb\nB\nc\n");
        assert_eq!(both("a\nb", "b"), "a\nb");
        assert_eq!(both("a", "b\n"), "a\nb\n");
        assert_eq!(both("", "b"), "b");
        assert_eq!(both("b", ""), "b");
    }

    #[test]
    fn what_can_be_merged_is_not_doubled() {
        let settled = settled_text(
            "x = 1\ny = 2",
            "x = 1\ny = 2  # why?",
            "x = 10\ny = 2",
            Settlement::Both,
        );
        assert_eq!((&*settled.text, settled.is_doubled), ("x = 10\ny = 2  # why?", false));
    }

    #[test]
    fn long_texts_are_settled_too() {
        let long = "line of text\n".repeat(30_000);
        let (theirs, ours) = (long.replacen("line", "LINE", 1), long.replacen("line", "Line", 1));
        let settled = settled_text(&long, &theirs, &ours, Settlement::Both);
        assert!(settled.text.starts_with("LINE of text\nLine of text\nline of text\n"));
        assert_eq!(settled.text.len(), long.len() + "line of text\n".len());
    }

    /// A text of short lines, so that chance makes many of them the same.
    fn text() -> impl Strategy<Value = String> {
        proptest::string::string_regex("([ab é漢🎉(=]{0,4}\n){0,5}[ab é漢🎉(]{0,4}").expect("a pattern")
    }

    /// The same with a word in it that is nowhere else.
    fn typed(word: &'static str) -> impl Strategy<Value = String> {
        (text(), 0_usize..30).prop_map(move |(text, at)| {
            let mut characters: Vec<char> = text.chars().collect();
            let at = at.min(characters.len());
            characters.splice(at..at, word.chars());
            characters.into_iter().collect()
        })
    }

    proptest! {
        #[test]
        fn no_word_that_either_typed_is_missing(base in text(), theirs in typed("theirs"), ours in typed("ours")) {
            let settled = settled_text(&base, &theirs, &ours, Settlement::Both);
            prop_assert!(settled.text.contains("theirs") && settled.text.contains("ours"), "{settled:?}");
        }

        #[test]
        fn who_wins_has_every_word(base in text(), theirs in text(), ours in typed("ours")) {
            let settled = settled_text(&base, &theirs, &ours, Settlement::Ours);
            prop_assert!(settled.text.contains("ours") && !settled.is_doubled, "{settled:?}");
        }

        #[test]
        fn what_only_one_changed_is_as_it_is_there(base in text(), one in text()) {
            for settlement in [Settlement::Both, Settlement::Ours] {
                prop_assert_eq!(settled_text(&base, &one, &base, settlement).text, one.clone());
                prop_assert_eq!(settled_text(&base, &base, &one, settlement).text, one.clone());
            }
        }
    }
}
