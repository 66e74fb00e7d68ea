//! Changes that are taken over, and conflicts.

use serde_json::json;

use super::*;

fn cell(id: &str, source: &str) -> Cell {
    Cell {
        id: id.to_owned(),
        cell_type: "code".to_owned(),
        source: source.to_owned(),
        metadata: json!({}),
        execution_count: Value::Null,
        outputs: Vec::new(),
        attachments: None,
        execution_state: String::new(),
    }
}

fn notebook(cells: &[(&str, &str)]) -> DocumentContent {
    DocumentContent::Notebook {
        metadata: json!({}),
        cells: cells.iter().map(|(id, source)| cell(id, source)).collect(),
    }
}

fn shown(content: &DocumentContent) -> Vec<(&str, &str)> {
    content.cells().iter().map(|cell| (&*cell.id, &*cell.source)).collect()
}

fn take_over<'a>(base: &'a DocumentContent, copy: &'a DocumentContent) -> TakeOver<'a> {
    TakeOver {
        base,
        copy,
        only: None,
        overlap: Overlap::Refuse,
    }
}

#[test]
fn both_sides_survive_in_the_same_cell() {
    let base = notebook(&[("a", "x = 1\ny = 2")]);
    let copy = notebook(&[("a", "x = 10\ny = 2")]);
    let now = notebook(&[("a", "x = 1\ny = 2  # why?")]);
    let combined = combine(&take_over(&base, &copy), &now).expect("no conflict").content;
    assert_eq!(shown(&combined), [("a", "x = 10\ny = 2  # why?")]);
}

#[test]
fn what_is_typed_behind_a_rewritten_line_stays() {
    let base = notebook(&[("a", "x = 1")]);
    let copy = notebook(&[("a", "print('hello')")]);
    let now = notebook(&[("a", "x = 1  # mine")]);
    let combined = combine(&take_over(&base, &copy), &now).expect("no conflict").content;
    assert_eq!(shown(&combined), [("a", "print('hello')  # mine")]);
}

#[test]
fn the_same_place_is_a_conflict_unless_forced() {
    let base = notebook(&[("a", "x = 1"), ("b", "1")]);
    let copy = notebook(&[("a", "x = 2"), ("b", "2")]);
    let now = notebook(&[("a", "x = 3"), ("b", "1")]);
    let conflicts = combine(&take_over(&base, &copy), &now).expect_err("a conflict");
    assert_eq!(
        conflicts,
        [Conflict {
            cell: Some("a".to_owned()),
            clash: Clash::SamePlace
        }]
    );
    let forced = TakeOver {
        overlap: Overlap::Overwrite,
        ..take_over(&base, &copy)
    };
    assert_eq!(
        shown(&combine(&forced, &now).expect("forced").content),
        [("a", "x = 2"), ("b", "2")]
    );
}

#[test]
fn lines_that_both_changed_can_stand_there_twice() {
    let base = notebook(&[("a", "x = 1\ny = 1"), ("b", "1")]);
    let copy = notebook(&[("a", "x = 2\ny = 1"), ("b", "2")]);
    let now = notebook(&[("a", "x = 3\ny = 1  # typed"), ("b", "1")]);
    let both = TakeOver {
        overlap: Overlap::KeepBoth,
        ..take_over(&base, &copy)
    };
    let combination = combine(&both, &now).expect("no conflict");
    assert_eq!(
        shown(&combination.content),
        [("a", "x = 3\nx = 2\ny = 1  # typed"), ("b", "2")]
    );
    assert_eq!(combination.doubled, [Some("a".to_owned())]);
    let deleted = notebook(&[("b", "1")]);
    let conflicts = combine(&both, &deleted).expect_err("a cell that is gone has no second version");
    assert_eq!(conflicts[0].clash, Clash::DeletedMeanwhile);
    let forced = TakeOver {
        overlap: Overlap::Overwrite,
        ..both
    };
    let combination = combine(&forced, &now).expect("forced");
    assert_eq!(
        shown(&combination.content),
        [("a", "x = 2\ny = 1  # typed"), ("b", "2")],
        "only where both changed it"
    );
}

#[test]
fn cells_are_inserted_moved_and_deleted_beside_those_of_others() {
    let base = notebook(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let copy = notebook(&[("c", "3"), ("a", "1"), ("n", "new"), ("m", "newer")]);
    let now = notebook(&[("a", "1"), ("h", "human"), ("b", "2"), ("c", "3")]);
    let combined = combine(&take_over(&base, &copy), &now).expect("no conflict").content;
    assert_eq!(
        shown(&combined),
        [("c", "3"), ("a", "1"), ("n", "new"), ("m", "newer"), ("h", "human")]
    );
}

#[test]
fn deletions_that_meet_work_of_the_other_side_conflict() {
    let base = notebook(&[("a", "1"), ("b", "2")]);
    let copy = notebook(&[("b", "20")]);
    let now = notebook(&[("a", "1 + 1")]);
    let conflicts = combine(&take_over(&base, &copy), &now).expect_err("conflicts");
    let clashes: Vec<_> = conflicts.iter().map(|conflict| conflict.clash).collect();
    assert_eq!(clashes, [Clash::DeletedMeanwhile, Clash::DeletedInCopy]);
    let unchanged = notebook(&[("a", "1")]);
    let gone = TakeOver {
        overlap: Overlap::Overwrite,
        ..take_over(&base, &copy)
    };
    assert_eq!(
        shown(&combine(&gone, &unchanged).expect("forced").content),
        [("b", "20")]
    );
}

#[test]
fn only_some_cells_are_taken_and_are_no_differences_then() {
    let base = notebook(&[("a", "1"), ("b", "2")]);
    let copy = notebook(&[("a", "10"), ("n", "new"), ("b", "20")]);
    let only = ["n".to_owned(), "b".to_owned()];
    let some = TakeOver {
        only: Some(&only),
        ..take_over(&base, &copy)
    };
    let now = notebook(&[("a", "1"), ("b", "2")]);
    assert_eq!(
        shown(&combine(&some, &now).expect("no conflict").content),
        [("a", "1"), ("n", "new"), ("b", "20")]
    );
    let left = differences(&advanced(&some), &copy);
    assert_eq!(
        left,
        [CellDifference {
            cell: "a".to_owned(),
            difference: Difference::Changed
        }]
    );
}

#[test]
fn outputs_of_the_copy_come_with_its_source_only() {
    let base = notebook(&[("a", "x")]);
    let ran = |count: i64| DocumentContent::Notebook {
        metadata: json!({}),
        cells: vec![Cell {
            outputs: vec![json!({ "output_type": "stream", "text": count.to_string() })],
            execution_count: count.into(),
            ..cell("a", "x")
        }],
    };
    let combined = combine(&take_over(&base, &ran(7)), &ran(3))
        .expect("no conflict")
        .content;
    assert_eq!(combined, ran(7), "the source is the same");
    let (copy, now) = (ran(7), notebook(&[("a", "x + 1")]));
    let combined = combine(&take_over(&base, &copy), &now).expect("no conflict").content;
    assert_eq!(combined, now, "they are of another source");
}

#[test]
fn texts_and_metadata_are_merged_too() {
    let text = |text: &str| DocumentContent::Text(text.to_owned());
    let (base, copy) = (text("one\ntwo\n"), text("one\n2\n"));
    let combined = combine(&take_over(&base, &copy), &text("zero\none\ntwo\n"))
        .expect("no conflict")
        .content;
    assert_eq!(combined.text(), "zero\none\n2\n");
    let (before, mine, theirs) = (json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), json!({ "c": 3 }));
    assert_eq!(
        combine_members(&before, &mine, &theirs, Overlap::KeepBoth),
        Ok(json!({ "b": 2, "c": 3 }))
    );
    assert_eq!(
        combine_members(&before, &json!({ "a": 2 }), &json!({ "a": 3 }), Overlap::KeepBoth),
        Err(Clash::Properties)
    );
    let inner = |hidden: bool, tags: &[&str]| json!({ "jupyter": { "source_hidden": hidden }, "tags": tags, "x": { "y": { "tags": tags } } });
    assert_eq!(
        combine_members(
            &inner(false, &[]),
            &inner(true, &[]),
            &inner(false, &["a"]),
            Overlap::KeepBoth
        ),
        Ok(inner(true, &["a"])),
        "members of members"
    );
}

#[test]
fn changes_within_one_word_are_merged_too() {
    let base = notebook(&[("a", "a = 1\nvalue")]);
    let copy = notebook(&[("a", "a = 10\nvalues")]);
    let now = notebook(&[("a", "a = 1 # mine\nmy_value")]);
    for overlap in [Overlap::Refuse, Overlap::KeepBoth, Overlap::Overwrite] {
        let take_over = TakeOver {
            overlap,
            ..take_over(&base, &copy)
        };
        let combination = combine(&take_over, &now).expect("no conflict");
        assert_eq!(shown(&combination.content), [("a", "a = 10 # mine\nmy_values")]);
        assert!(combination.doubled.is_empty());
    }
}

#[test]
fn cells_that_both_insert_at_one_place_are_both_there() {
    let base = notebook(&[("a", "1"), ("b", "2")]);
    let copy = notebook(&[("a", "1"), ("n", "of the copy"), ("b", "2")]);
    let now = notebook(&[("a", "1"), ("h", "of a person"), ("b", "2")]);
    let combined = combine(&take_over(&base, &copy), &now).expect("no conflict").content;
    assert_eq!(
        shown(&combined),
        [("a", "1"), ("n", "of the copy"), ("h", "of a person"), ("b", "2")]
    );
    let again = combine(&take_over(&base, &copy), &combined)
        .expect("no conflict")
        .content;
    assert_eq!(again, combined, "once");
}

#[test]
fn a_cell_that_both_moved_or_deleted_is_where_the_copy_has_it_or_gone() {
    let base = notebook(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let copy = notebook(&[("b", "2"), ("c", "3"), ("a", "1")]);
    let now = notebook(&[("b", "2"), ("a", "1"), ("c", "3")]);
    let combined = combine(&take_over(&base, &copy), &now).expect("no conflict").content;
    assert_eq!(shown(&combined), [("b", "2"), ("c", "3"), ("a", "1")]);
    let without = notebook(&[("a", "1"), ("c", "3")]);
    let combined = combine(&take_over(&base, &without), &without)
        .expect("no conflict")
        .content;
    assert_eq!(combined, without);
}
