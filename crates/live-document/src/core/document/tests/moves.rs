//! Cells that are moved keep all that they have.

use serde_json::json;

use super::*;

fn move_cells(cells: &[&str], before: Option<&str>) -> Edit {
    Edit::MoveCells {
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
        before: before.map(str::to_owned),
    }
}

#[test]
fn a_moved_cell_keeps_its_id_outputs_count_metadata_and_state() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let write = CellWrite {
        begin: true,
        outputs: Some(OutputsChange {
            push: vec![json!({ "output_type": "stream", "name": "stdout", "text": "🎉\n" })],
            ..OutputsChange::default()
        }),
        end: None,
    };
    let (written, _) = pair.ours.write_cell(&ana(), "a", &write).expect("there");
    pair.theirs.apply_remote(&written.update).expect("an update");
    let before = pair.ours.cell("a").expect("there");
    assert_eq!(before.execution_state, "running");
    pair.edit(&[move_cells(&["a"], None)], None).expect("valid");
    pair.assert_both(&[("b", "2"), ("c", "3"), ("a", "1")]);
    for document in [&pair.ours, &pair.theirs] {
        assert_eq!(document.cell("a").as_ref(), Some(&before));
    }
    pair.edit(&[move_cells(&["a", "c"], Some("b"))], None).expect("valid");
    pair.assert_both(&[("a", "1"), ("c", "3"), ("b", "2")]);
}

#[test]
fn a_move_that_changes_nothing_makes_nothing_anew() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let made = |pair: &Pair| ["a", "b", "c"].map(|id| pair.ours.made(id));
    let before = made(&pair);
    for moved in [
        move_cells(&["a"], Some("b")),
        move_cells(&["a", "b"], Some("c")),
        move_cells(&["c"], None),
    ] {
        pair.edit(&[moved], None).expect("valid");
    }
    assert_eq!(made(&pair), before);
    assert!(pair.edit(&[move_cells(&["x"], None)], None).is_err());
    assert!(pair.edit(&[move_cells(&["a"], Some("x"))], None).is_err());
}

#[test]
fn an_untrusted_cell_stays_so() {
    let untrusted = NewCell {
        trusted: false,
        ..cell("x", "y")
    };
    let mut pair = Pair::with_cells(&[("a", "1")]);
    let edit = Edit::InsertCells {
        at: 0,
        cells: vec![untrusted],
    };
    pair.edit(&[edit], None).expect("valid");
    pair.edit(&[move_cells(&["x"], None)], None).expect("valid");
    let is_trusted = |id: &str| {
        let txn = pair.ours.doc.transact();
        let metadata = map_to_json(&pair.ours.map(&txn, id).expect("there"), &txn)["metadata"].clone();
        metadata["trusted"] == true
    };
    assert_eq!((is_trusted("x"), is_trusted("a")), (false, true));
}

#[test]
fn an_unsaved_move_is_repeated_with_what_the_cells_are_by_then() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    pair.edit(&[move_cells(&["d", "a"], Some("c"))], None).expect("valid");
    pair.assert_both(&[("b", "2"), ("d", "4"), ("a", "1"), ("c", "3")]);
    let before = pair.ours.snapshot();
    let journal = std::mem::take(&mut pair.ours.journal);
    let mut rebuilt = Pair::with_cells(&[("a", "somebody"), ("b", "2"), ("c", "3"), ("d", "4")]);
    let outcome = rebuilt.ours.repeat(journal, &before, None);
    assert_eq!((outcome.repeated, outcome.conflicting), (1, 0));
    let update = rebuilt.ours.diff(&rebuilt.theirs.state_vector());
    rebuilt.theirs.apply_remote(&update).expect("an update");
    rebuilt.assert_both(&[("b", "2"), ("d", "4"), ("a", "somebody"), ("c", "3")]);
    // Where it is done already, nothing is made anew.
    let made = rebuilt.ours.made("a");
    let before = rebuilt.ours.snapshot();
    let journal = std::mem::take(&mut rebuilt.ours.journal);
    let outcome = rebuilt.ours.repeat(journal, &before, None);
    assert_eq!((outcome.repeated, outcome.conflicting), (0, 0));
    assert_eq!(rebuilt.ours.made("a"), made);
}

#[test]
fn outputs_are_cleared_except_of_what_runs() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2")]);
    let write = |end| CellWrite {
        begin: true,
        outputs: Some(OutputsChange {
            push: vec![json!({ "output_type": "stream", "name": "stdout", "text": "x" })],
            ..OutputsChange::default()
        }),
        end,
    };
    let ended = Some(RunEnd {
        execution_count: Some(7),
    });
    pair.ours.write_cell(&ana(), "a", &write(ended)).expect("there");
    pair.ours.write_cell(&ana(), "b", &write(None)).expect("there");
    let clear = Edit::ClearOutputs {
        cells: vec!["a".to_owned(), "b".to_owned()],
    };
    pair.ours.apply_local(&ana(), &[clear]).expect("valid");
    let outputs = |id: &str| pair.ours.cell(id).expect("there");
    assert_eq!(
        (outputs("a").outputs.len(), outputs("a").execution_count),
        (0, json!(null))
    );
    assert_eq!(outputs("b").outputs.len(), 1);
}
