//! Tests of merging by characters, beside a merge of Yjs too.

use proptest::prelude::*;
use yrs::{Doc, GetString, ReadTxn, StateVector, Text, Transact, Update, updates::decoder::Decode};

use super::*;

/// Both sides are done, whichever is called theirs, and no line stands there twice.
#[track_caller]
fn merges(base: &str, one: &str, other: &str, expected: &str) {
    for (theirs, ours) in [(one, other), (other, one)] {
        let settled = settled_text(base, theirs, ours, Settlement::Both);
        assert_eq!(
            (&*settled.text, settled.is_doubled),
            (expected, false),
            "{base:?} {theirs:?} {ours:?}"
        );
    }
}

/// The lines stand there in both versions.
#[track_caller]
fn doubles(base: &str, theirs: &str, ours: &str, expected: &str) {
    let settled = settled_text(base, theirs, ours, Settlement::Both);
    assert_eq!((&*settled.text, settled.is_doubled), (expected, true));
}

#[test]
fn changes_that_do_not_touch_each_other_are_merged_by_character() {
    merges("a = 1", "a = 1 # mine", "a = 10", "a = 10 # mine");
    merges("value", "values", "my_value", "my_values");
    merges(
        "f(aaa,bbb,ccc)",
        "f(aaaX,bbb,cccX)",
        "f(aaa,bYbb,ccc)",
        "f(aaaX,bYbb,cccX)",
    );
    merges("f(a,b)", "f(aX,b)", "f(a,bY)", "f(aX,bY)");
    merges("x = 1", "x = 1  # mine", "print('hello')", "print('hello')  # mine");
    merges("data[0]", "data[01]", "table[0]", "table[01]");
    merges(
        "plot(data, width=3)",
        "plot(data, width=4)",
        "plot(table, width=3)",
        "plot(table, width=4)",
    );
    merges(
        "👩\u{200d}💻 é",
        "👩\u{200d}💻! é",
        "👩\u{200d}💻 éa",
        "👩\u{200d}💻! éa",
    );
    merges(
        "abcdefgh abcdefgh abcdefgh",
        "abcdefgh abcdAefgh abcdefgh",
        "abcdefghabcdefgh bcdefgh",
        "abcdefghabcdAefgh bcdefgh",
    );
    merges("漢字を書く", "漢字もを書く", "漢字を書け", "漢字もを書け");
}

#[test]
fn what_both_insert_at_one_place_is_there_in_a_fixed_order() {
    merges("hello", "hello world", "hello there", "hello there world");
    merges("f(a)", "f(a, b)", "f(a, c)", "f(a, b, c)");
    merges("a", "a\nb", "a\nc", "a\nb\nc");
    merges("a\nz", "a\nb\nz", "a\nc\nz", "a\nb\nc\nz");
    merges("a", "a\nb", "a  # note", "a  # note\nb");
    merges("a\nb", "a\nnew\nb", "a\n# b", "a\nnew\n# b");
    merges("a", "a\nb", "a\nb", "a\nb");
    merges("(a)", "#(a)", "[(a)", "#[(a)");
}

#[test]
fn what_both_delete_is_gone() {
    merges("abcdefgh", "abgh", "abcd", "ab");
    merges("one two three", "one three", "two three", "three");
    merges("a\nb\nc\nd", "a\nd", "a\nb", "a\n");
}

#[test]
fn what_neither_wrote_is_not_made_of_both() {
    doubles("x = 1", "x = 3", "x = 2", "x = 3\nx = 2");
    doubles("x = 1", "x = 10", "x = 2", "x = 10\nx = 2");
    doubles("x = 1", "x = 10", "x = 12", "x = 10\nx = 12");
    doubles("x = ", "x = foo", "x = bar", "x = foo\nx = bar");
    doubles("", "typed", "sent", "typed\nsent");
    doubles("a = foo", "a = bar", "a = fooo", "a = bar\na = fooo");
    doubles("x = 1", "x = ", "x = 10", "x = \nx = 10");
    doubles(
        "total = a + b",
        "total = a + c + b",
        "result = compute()",
        "total = a + c + b\nresult = compute()",
    );
}

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

/// Words that each side types.
const WORDS: [[&str; 3]; 2] = [["IJ", "KLM", "N"], ["PQ", "RST", "U"]];

/// A text, and what two make of it who type their words at any places.
fn both_typed() -> impl Strategy<Value = (String, String, String)> {
    let places = proptest::collection::vec(0_usize..30, 0..=3);
    (text(), [places.clone(), places]).prop_map(|(base, [one, other])| {
        let typed = |places: Vec<usize>, words: [&str; 3]| {
            let mut characters: Vec<char> = base.chars().collect();
            for (place, word) in places.into_iter().zip(words) {
                let at = place.min(characters.len());
                characters.splice(at..at, word.chars());
            }
            characters.into_iter().collect::<String>()
        };
        let (theirs, ours) = (typed(one, WORDS[0]), typed(other, WORDS[1]));
        (base, theirs, ours)
    })
}

/// A text, and edits of two sides with some characters between them.
#[derive(Debug, Clone)]
struct Apart {
    base: String,
    edits: Vec<Typed>,
}

#[derive(Debug, Clone)]
struct Typed {
    is_ours: bool,
    at: usize,
    deleted: usize,
    inserted: String,
}

/// Words of different letters, so that it is certain what was typed where.
fn apart() -> impl Strategy<Value = Apart> {
    let letters: Vec<char> = ('a'..='z').collect();
    let word = Just(letters)
        .prop_shuffle()
        .prop_map(|letters| letters[..8].iter().collect::<String>());
    let line = proptest::collection::vec(word, 2..6).prop_map(|words| words.join(" "));
    let base = proptest::collection::vec(line, 1..5).prop_map(|lines| lines.join("\n"));
    let edit = (4_usize..20, 0_usize..=1, "[A-Z]{0,3}", any::<bool>());
    (base, proptest::collection::vec(edit, 0..8)).prop_map(|(base, edits)| {
        let mut end = 0;
        let edits = edits.into_iter().map(|(gap, deleted, inserted, is_ours)| {
            let at = end + gap;
            end = at + deleted;
            Typed {
                is_ours,
                at,
                deleted,
                inserted,
            }
        });
        let edits = edits.filter(|edit| edit.at + edit.deleted <= base.len()).collect();
        Apart { base, edits }
    })
}

impl Apart {
    fn edits_of(&self, is_ours: bool) -> impl Iterator<Item = &Typed> {
        // From the end, so that the places of the others stay.
        self.edits.iter().rev().filter(move |edit| edit.is_ours == is_ours)
    }

    fn text_of(&self, is_ours: bool) -> String {
        let mut text = self.base.clone();
        for edit in self.edits_of(is_ours) {
            text.replace_range(edit.at..edit.at + edit.deleted, &edit.inserted);
        }
        text
    }

    fn merged_by_yjs(&self) -> String {
        let document = || {
            let document = Doc::new();
            let text = document.get_or_insert_text("text");
            (document, text)
        };
        let update = |bytes: &[u8]| Update::decode_v1(bytes).expect("an update");
        let (merged, text) = document();
        text.push(&mut merged.transact_mut(), &self.base);
        let start = merged.transact().encode_diff_v1(&StateVector::default());
        for is_ours in [false, true] {
            let (copy, text) = document();
            let mut txn = copy.transact_mut();
            txn.apply_update(update(&start)).expect("it fits");
            for edit in self.edits_of(is_ours) {
                let at = u32::try_from(edit.at).expect("short");
                text.remove_range(&mut txn, at, u32::try_from(edit.deleted).expect("short"));
                text.insert(&mut txn, at, &edit.inserted);
            }
            let typed = txn.encode_diff_v1(&StateVector::default());
            merged.transact_mut().apply_update(update(&typed)).expect("it fits");
        }
        text.get_string(&merged.transact())
    }
}

proptest! {
    #[test]
    fn no_word_that_either_typed_is_missing(base in text(), theirs in typed("theirs"), ours in typed("ours")) {
        let settled = settled_text(&base, &theirs, &ours, Settlement::Both);
        prop_assert!(settled.text.contains("theirs") && settled.text.contains("ours"), "{settled:?}");
    }

    #[test]
    fn who_comes_first_makes_no_difference(base in text(), one in text(), other in text()) {
        let [first, second] = [(&one, &other), (&other, &one)].map(|(theirs, ours)| settled_text(&base, theirs, ours, Settlement::Both));
        prop_assert_eq!(first.is_doubled, second.is_doubled);
        if !first.is_doubled {
            prop_assert_eq!(first.text, second.text);
        }
    }

    #[test]
    fn nothing_that_either_inserted_is_lost((base, theirs, ours) in both_typed()) {
        for settled in [settled_text(&base, &theirs, &ours, Settlement::Both), settled_text(&base, &ours, &theirs, Settlement::Both)] {
            for word in WORDS.concat() {
                let in_either = theirs.contains(word) || ours.contains(word);
                prop_assert_eq!(settled.text.contains(word), in_either, "{}: {:?}", word, settled);
            }
        }
    }

    #[test]
    fn edits_that_do_not_touch_each_other_end_as_in_yjs(scene in apart()) {
        let [theirs, ours] = [false, true].map(|side| scene.text_of(side));
        let settled = settled_text(&scene.base, &theirs, &ours, Settlement::Both);
        prop_assert_eq!((settled.text, settled.is_doubled), (scene.merged_by_yjs(), false));
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
