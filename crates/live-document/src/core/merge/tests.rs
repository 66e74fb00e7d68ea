//! Tests of merging.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn merged(base: &str, theirs: &str, ours: &str) -> String {
    match merge(base, theirs, ours) {
        Ok(splices) => apply(theirs, &splices),
        Err(Conflict) => panic!("a conflict: {base:?} became {theirs:?} and {ours:?}"),
    }
}

#[track_caller]
fn conflicts(base: &str, theirs: &str, ours: &str) {
    let merged = merge(base, theirs, ours).map(|splices| apply(theirs, &splices));
    assert_eq!(merged, Err(Conflict), "{base:?} became {theirs:?} and {ours:?}");
}

#[test]
fn changes_of_different_lines_are_both_there() {
    assert_eq!(merged("a\nb\nc", "A\nb\nc", "a\nb\nC"), "A\nb\nC");
    assert_eq!(
        merged("x = 1\ny = 2\n", "x = 1 # one\ny = 2\n", "x = 1\ny = 20\n"),
        "x = 1 # one\ny = 20\n"
    );
    assert_eq!(merged("a\nb\nc\n", "a\nnew\nb\nc\n", "a\nb\n"), "a\nnew\nb\n");
}

#[test]
fn a_line_that_is_put_beside_a_changed_one_stays() {
    assert_eq!(merged("a\nb", "a\nb\nc", "a\nB"), "a\nB\nc");
    assert_eq!(merged("a\nb", "a\nb\nc", "something else"), "something else\nc");
    assert_eq!(merged("a\nb\n", "a\nb\nc\n", "a\nB\n"), "a\nB\nc\n");
    assert_eq!(merged("a\nb\n", "a\nnew\nb\n", "a\nB\n"), "a\nnew\nB\n");
    assert_eq!(
        merged("a\nb\nc", "a\nb\n# c", "a\nc"),
        "a\n# c",
        "the line before is gone"
    );
    assert_eq!(merged("a\nb", "a!\nb", "a"), "a!", "the line after is gone");
}

#[test]
fn words_of_one_line_are_told_apart() {
    assert_eq!(
        merged("plot(data, width=3)", "plot(data, width=4)", "plot(table, width=3)"),
        "plot(table, width=4)"
    );
    assert_eq!(merged("x = 1", "x = 1  # note", "x = 2"), "x = 2  # note");
    assert_eq!(merged("f(bar)", "f(bar, qux)", "f(baz)"), "f(baz, qux)");
    assert_eq!(merged("漢字を書く", "漢字もを書く", "漢字を書け"), "漢字もを書け");
}

#[test]
fn the_same_place_is_a_conflict() {
    conflicts("x = 1", "x = 3", "x = 2");
    conflicts("value = 1", "value_new = 1", "result = 1");
    conflicts("foo", "foobar", "baz");
    conflicts("0", "0 by hand", "agent");
    conflicts("total = a + b", "total = a + c + b", "result = compute()");
    conflicts("total = a + b", "total = a + b + c", "result = compute()");
    conflicts("a\nb\nc", "a\nb!\nc", "a\nc");
    conflicts("a", "a\nb", "a\nc");
    conflicts("", "typed", "sent");
}

#[test]
fn who_did_the_same_is_no_conflict() {
    assert_eq!(merged("a\nb", "a\nb\nc", "a\nb\nc"), "a\nb\nc");
    assert_eq!(merged("a\nb\nc\n", "A\nb\nc\n", "A\nb\nC\n"), "A\nb\nC\n");
}

#[test]
fn a_change_that_both_made_conflicts_with_no_other() {
    let (base, one) = ("漢é", "(\u{200d}é\u{200d}\n 漢(👩(👩");
    let merged = |theirs: &str, ours: &str| merge(base, theirs, ours).map(|splices| apply(theirs, &splices));
    assert_eq!(merged(one, "(漢👩é"), merged("(漢👩é", one));
}

#[test]
fn signs_that_belong_together_are_not_torn_apart() {
    assert_eq!(
        words("e\u{301}té 👩\u{200d}💻!"),
        ["e\u{301}té", " ", "👩\u{200d}💻", "!"]
    );
    assert_eq!(
        words("漢字 a_b1(x)\r\n"),
        ["漢", "字", " ", "a_b1", "(", "x", ")", "\r\n"]
    );
    conflicts("👩\u{200d}💻", "👩\u{200d}🔬", "👩\u{200d}🚀");
}

#[test]
fn what_was_typed_beside_a_splice_is_not_touched() {
    let splices = merge("a = 1\nb = 2\n", "a = 1\n🎉 typed\nb = 2\n", "a = 10\nb = 20\n").expect("merged");
    let narrowed = |splice: &Splice| (splice.at, splice.delete, splice.insert.clone());
    let found: Vec<_> = splices.iter().map(narrowed).collect();
    assert_eq!(found, [(20, 0, "0".to_owned()), (5, 0, "0".to_owned())]);
}

#[test]
fn known_changes_shift_with_what_others_did() {
    let insert = |at: usize| vec![Change::exact(at..at, "!")];
    let put =
        |base, theirs, changes| put_into(base, theirs, changes, Ties::OursLast).map(|splices| apply(theirs, &splices));
    assert_eq!(
        put("one two", "zero one two", insert(3)).as_deref(),
        Ok("zero one! two")
    );
    assert_eq!(put("one", "one two", insert(3)).as_deref(), Ok("one two!"));
    assert_eq!(put("one two", "1 two", insert(2)).as_deref(), Err(&Conflict));
    assert_eq!(
        put("one two", "one 2", vec![Change::exact(4..7, "")]).as_deref(),
        Err(&Conflict)
    );
    assert_eq!(
        put("one two", "1 two", vec![Change::exact(4..7, "")]).as_deref(),
        Ok("1 ")
    );
}

#[test]
fn long_texts_are_compared_by_their_ends() {
    let long = "line of text\n".repeat(30_000);
    let (theirs, ours) = (format!("first\n{long}"), format!("{long}last\n"));
    assert_eq!(merged(&long, &theirs, &ours), format!("first\n{long}last\n"));
    let both = long.replacen("line", "LINE", 1);
    conflicts(&long, &both, &long.replacen("text", "TEXT", 1));
}

/// A text of short lines, so that chance makes many of them the same.
fn text() -> impl Strategy<Value = String> {
    proptest::string::string_regex("([ab é漢🎉👩‍💻\u{301}(=]{0,6}\n){0,5}[ab é漢🎉👩‍💻(]{0,6}").expect("a pattern")
}

/// A text, and one in which a word that is nowhere else was typed at some places.
fn typed() -> impl Strategy<Value = (String, String)> {
    (text(), proptest::collection::vec(0_usize..60, 1..4)).prop_map(|(base, places)| {
        let mut characters: Vec<char> = base.chars().collect();
        for (number, place) in places.into_iter().enumerate() {
            let at = place.min(characters.len());
            characters.splice(at..at, format!("typed{number}").chars());
        }
        (base, characters.into_iter().collect())
    })
}

proptest! {
    #[test]
    fn where_nobody_else_changed_anything_it_is_as_asked(base in text(), ours in text()) {
        prop_assert_eq!(merged(&base, &base, &ours), ours);
    }

    #[test]
    fn who_changed_nothing_changes_nothing(base in text(), theirs in text()) {
        prop_assert_eq!(merge(&base, &theirs, &base), Ok(Vec::new()));
    }

    #[test]
    fn what_both_did_is_there_once(base in text(), both in text()) {
        prop_assert_eq!(merged(&base, &both, &both), both);
    }

    #[test]
    fn no_word_that_was_typed_is_missing((base, theirs) in typed(), ours in text()) {
        if let Ok(splices) = merge(&base, &theirs, &ours) {
            let merged = apply(&theirs, &splices);
            let words = |text: &str| (0..4).map(|number| text.matches(&format!("typed{number}")).count()).collect::<Vec<_>>();
            prop_assert_eq!(words(&merged), words(&theirs));
        }
    }

    #[test]
    fn whose_turn_it_is_makes_no_difference(base in text(), one in text(), other in text()) {
        let first = merge(&base, &one, &other).map(|splices| apply(&one, &splices));
        let second = merge(&base, &other, &one).map(|splices| apply(&other, &splices));
        prop_assert_eq!(first, second);
    }

    #[test]
    fn splices_hit_whole_characters(base in text(), theirs in text(), ours in text()) {
        if let Ok(splices) = merge(&base, &theirs, &ours) {
            let merged = apply(&theirs, &splices);
            prop_assert!(!merged.contains(char::REPLACEMENT_CHARACTER));
            prop_assert!(splices.windows(2).all(|pair| pair[1].at + pair[1].delete <= pair[0].at));
        }
    }
}
