//! Two documents that exchange updates, one of them ours.

mod moves;

use super::*;
use crate::core::recovery::is_same_history;
use crate::{CellKind, NewCell};

fn ana() -> Arc<str> {
    "ana".into()
}

fn cell(id: &str, source: &str) -> NewCell {
    NewCell {
        id: id.to_owned(),
        ..NewCell::new(CellKind::Code, source)
    }
}

fn insert(at: usize, id: &str, source: &str) -> Edit {
    Edit::InsertCells {
        at,
        cells: vec![cell(id, source)],
    }
}

fn set(cell: &str, source: &str) -> Edit {
    Edit::SetSource {
        cell: cell.to_owned(),
        source: source.to_owned(),
    }
}

/// A document of ours, and the server's copy of it.
struct Pair {
    ours: Document,
    theirs: Document,
}

impl Pair {
    fn with_cells(cells: &[(&str, &str)]) -> Self {
        let mut theirs = Document::new(RoomKind::Notebook, Clock::default());
        for (index, (id, source)) in cells.iter().enumerate() {
            theirs
                .apply_local(&"server".into(), &[insert(index, id, source)])
                .expect("valid");
        }
        let mut ours = Document::new(RoomKind::Notebook, Clock::default());
        ours.apply_remote(&theirs.diff(&StateVector::default()))
            .expect("an update");
        Self { ours, theirs }
    }

    fn edit(&mut self, edits: &[Edit], if_revision: Option<&str>) -> Result<Applied, EditError> {
        if let Some(given) = if_revision {
            let stale = self.ours.changed_since(given, edits, &Author::Local(ana()))?;
            if !stale.is_empty() {
                let cells: Vec<String> = stale.cells.into_iter().map(|(cell, _)| cell).collect();
                return Err(EditError::Stale { what: cells.join(", ") });
            }
        }
        let applied = self.ours.apply_local(&ana(), edits)?;
        self.theirs.apply_remote(&applied.update).expect("an update");
        Ok(applied)
    }

    /// An edit by somebody else, which we receive.
    fn others_edit(&mut self, edit: Edit) {
        let applied = self.theirs.apply_local(&"bob".into(), &[edit]).expect("valid");
        self.ours.apply_remote(&applied.update).expect("an update");
    }

    fn sources(document: &Document) -> Vec<(String, String)> {
        document
            .cells(0..document.cell_count())
            .into_iter()
            .map(|(_, cell)| (cell.id, cell.source))
            .collect()
    }

    #[track_caller]
    fn assert_both(&self, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(id, source)| ((*id).to_owned(), (*source).to_owned()))
            .collect();
        assert_eq!(Self::sources(&self.ours), expected);
        assert_eq!(Self::sources(&self.theirs), expected);
        let order: Vec<&str> = self.ours.cell_ids().collect();
        assert_eq!(
            order,
            expected.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
            "the order is in step"
        );
    }
}

#[test]
fn cells_are_inserted_changed_and_deleted_on_both_sides() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2")]);
    pair.edit(&[insert(1, "x", "ü🎉")], None).expect("valid");
    pair.edit(&[set("b", "22"), set("a", "11")], None).expect("valid");
    pair.others_edit(insert(0, "y", "0"));
    pair.assert_both(&[("y", "0"), ("a", "11"), ("x", "ü🎉"), ("b", "22")]);
    pair.edit(
        &[Edit::DeleteCells {
            cells: vec!["b".to_owned(), "y".to_owned()],
        }],
        None,
    )
    .expect("valid");
    pair.assert_both(&[("a", "11"), ("x", "ü🎉")]);
}

#[test]
fn what_somebody_types_between_two_changes_of_a_cell_at_the_same_moment_stays_in_its_place() {
    let mut pair = Pair::with_cells(&[("c0", "x = 1\nmiddle = 'here'\ny = 2")]);
    let ours = [set("c0", "x = 10\nmiddle = 'here'\ny = 20")];
    let ours = pair.ours.apply_local(&ana(), &ours).expect("valid");
    let theirs = [set("c0", "x = 1\nmiddle = 'over there'\ny = 2")];
    let theirs = pair.theirs.apply_local(&"bob".into(), &theirs).expect("valid");
    pair.ours.apply_remote(&theirs.update).expect("an update");
    pair.theirs.apply_remote(&ours.update).expect("an update");
    pair.assert_both(&[("c0", "x = 10\nmiddle = 'over there'\ny = 20")]);
}

#[test]
fn a_bad_member_of_a_batch_changes_nothing() {
    let mut pair = Pair::with_cells(&[("a", "1")]);
    let before = pair.ours.revision();
    let refused = pair.edit(&[set("a", "2"), set("nowhere", "3")], None).err();
    assert_eq!(
        refused,
        Some(EditError::UnknownCell {
            id: "nowhere".to_owned(),
            count: 1,
            some: "a".to_owned()
        })
    );
    assert!(pair.edit(&[insert(5, "x", "")], None).is_err());
    assert!(pair.edit(&[Edit::SetText { text: String::new() }], None).is_err());
    assert_eq!(pair.ours.revision(), before);
    pair.assert_both(&[("a", "1")]);
}

#[test]
fn an_edit_is_acknowledged_by_its_echo_and_deletions_too() {
    let mut pair = Pair::with_cells(&[("a", "1")]);
    let mut inserted = pair.edit(&[insert(0, "x", "1")], None).expect("valid");
    assert!(inserted.ticket.try_recv().is_err(), "not before the echo");
    pair.ours.apply_remote(&inserted.update).expect("an update");
    assert_eq!(inserted.ticket.try_recv(), Ok(Ok(())));
    let mut deleted = pair
        .edit(
            &[Edit::DeleteCells {
                cells: vec!["a".to_owned()],
            }],
            None,
        )
        .expect("valid");
    assert!(deleted.ticket.try_recv().is_err());
    pair.ours.apply_remote(&deleted.update).expect("an update");
    assert_eq!(deleted.ticket.try_recv(), Ok(Ok(())));
    let mut nothing = pair.edit(&[set("x", "1")], None).expect("valid");
    assert_eq!(
        nothing.ticket.try_recv(),
        Ok(Ok(())),
        "what changes nothing needs no answer"
    );
}

#[test]
fn what_others_changed_since_is_refused_by_name() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2")]);
    let read = pair.ours.revision();
    pair.edit(&[set("a", "mine")], Some(&read))
        .expect("nobody else changed it");
    pair.edit(&[set("a", "mine again")], Some(&read))
        .expect("one's own change is no obstacle");
    pair.others_edit(set("b", "theirs"));
    pair.edit(&[set("a", "still fine")], Some(&read))
        .expect("another cell was changed");
    let stale = pair.edit(&[set("b", "mine")], Some(&read)).err();
    assert_eq!(stale, Some(EditError::Stale { what: "b".to_owned() }));
    pair.others_edit(insert(0, "new", ""));
    assert!(
        pair.edit(&[insert(1, "x", "")], Some(&read)).is_err(),
        "positions mean others now"
    );
    pair.edit(&[set("b", "mine")], None)
        .expect("without a revision it is set as asked");
    assert!(matches!(
        pair.edit(&[set("b", "")], Some("nonsense")).err(),
        Some(EditError::UnknownRevision { .. })
    ));
}

#[test]
fn who_changed_a_cell_is_known_wherever_it_has_moved_since() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2"), ("c", "3")]);
    for others in ["b again", "b once more"] {
        pair.others_edit(insert(0, others, "new"));
        let read = pair.ours.revision();
        pair.others_edit(set("b", others));
        let is_changed = |cell: &str| {
            let edits = [set(cell, "")];
            let stale = pair.ours.changed_since(&read, &edits, &Author::Local(ana()));
            !stale.expect("a revision").is_empty()
        };
        assert!(is_changed("b"), "{others}");
        for cell in ["a", "c", others] {
            assert!(!is_changed(cell), "{cell}");
        }
    }
}

#[test]
fn a_whole_notebook_is_set_by_touching_only_what_differs() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2"), ("c", "3")]);
    pair.edit(
        &[Edit::SetNotebook {
            metadata: json!({ "title": "whole" }),
            cells: vec![cell("a", "1"), cell("x", "new"), cell("c", "33")],
        }],
        None,
    )
    .expect("valid");
    pair.assert_both(&[("a", "1"), ("x", "new"), ("c", "33")]);
    assert_eq!(pair.theirs.notebook()["metadata"], json!({ "title": "whole" }));
    let nothing = Edit::SetNotebook {
        metadata: json!({}),
        cells: vec![],
    };
    pair.edit(&[nothing], None).expect("valid");
    assert_eq!(pair.theirs.notebook()["metadata"], json!({}));
    pair.assert_both(&[]);
}

#[test]
fn a_rebuilt_document_is_told_from_the_one_we_know() {
    let mut pair = Pair::with_cells(&[("a", "1")]);
    let edited = pair.edit(&[set("a", "12")], None).expect("valid");
    pair.ours.apply_remote(&edited.update).expect("the echo");
    assert!(is_same_history(
        pair.ours.acknowledgements.acknowledged(),
        &pair.theirs.state_vector()
    ));
    let rebuilt = Pair::with_cells(&[("a", "1")]);
    assert!(!is_same_history(
        pair.ours.acknowledgements.acknowledged(),
        &rebuilt.theirs.state_vector()
    ));
}

#[test]
fn unsaved_edits_are_repeated_where_they_still_make_sense() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    pair.edit(&[insert(1, "x", "new")], None).expect("valid");
    pair.edit(&[set("x", "newer")], None).expect("valid");
    pair.edit(&[set("a", "11")], None).expect("valid");
    pair.edit(&[set("b", "22")], None).expect("valid");
    pair.edit(
        &[Edit::DeleteCells {
            cells: vec!["c".to_owned()],
        }],
        None,
    )
    .expect("valid");
    // The server lost all of it, and somebody changed b meanwhile.
    let mut rebuilt = Pair::with_cells(&[("a", "1"), ("b", "somebody"), ("c", "3"), ("d", "4")]);
    let before = pair.ours.snapshot();
    let journal = std::mem::take(&mut pair.ours.journal);
    let outcome = rebuilt.ours.repeat(journal, &before, None);
    assert_eq!((outcome.repeated, outcome.conflicting), (4, 1));
    assert_eq!(outcome.discarded.len(), 1, "its author is told");
    let update = rebuilt.ours.diff(&rebuilt.theirs.state_vector());
    rebuilt.theirs.apply_remote(&update).expect("an update");
    rebuilt.assert_both(&[("a", "11"), ("x", "newer"), ("b", "somebody"), ("d", "4")]);
}

#[test]
fn text_counts_code_points_and_refuses_what_is_outside() {
    let mut text = Document::new(RoomKind::Text, Clock::default());
    let mut edit = |edit: Edit| text.apply_local(&ana(), &[edit]).map(drop);
    edit(Edit::SetText {
        text: "a🎉漢".to_owned(),
    })
    .expect("valid");
    edit(Edit::SpliceText {
        position: 2,
        delete: 1,
        insert: "é👩‍💻".to_owned(),
    })
    .expect("valid");
    let beyond = edit(Edit::SpliceText {
        position: 9,
        delete: 0,
        insert: String::new(),
    });
    assert_eq!(beyond, Err(EditError::Position { position: 9, length: 6 }));
    let too_long = edit(Edit::SpliceText {
        position: 1,
        delete: 9,
        insert: String::new(),
    });
    assert_eq!(
        too_long,
        Err(EditError::Length {
            position: 1,
            length: 9,
            available: 5
        })
    );
    assert_eq!(text.text(), "a🎉é👩‍💻");
}

fn splice(position: usize, delete: usize, insert: &str) -> Edit {
    Edit::SpliceText {
        position,
        delete,
        insert: insert.to_owned(),
    }
}

#[test]
fn positions_of_a_batch_mean_the_cells_before_it() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2")]);
    let end = Edit::AppendCells {
        cells: vec![cell("end", "e")],
    };
    let edits = [
        insert(2, "y", "y"),
        insert(0, "v", "v"),
        end,
        insert(0, "w", "w"),
        insert(1, "x", "x"),
    ];
    pair.edit(&edits, None).map(drop).expect("valid");
    pair.assert_both(&[
        ("v", "v"),
        ("w", "w"),
        ("a", "1"),
        ("x", "x"),
        ("b", "2"),
        ("y", "y"),
        ("end", "e"),
    ]);
}

#[test]
fn a_cell_of_another_kind_keeps_its_id_and_its_place() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2"), ("c", "3")]);
    let kind = |cell: &str, kind: CellKind, source: Option<&str>| Edit::SetKind {
        cell: cell.to_owned(),
        kind,
        source: source.map(str::to_owned),
    };
    let before = pair.theirs.revision();
    let edits = [
        kind("a", CellKind::Markdown, Some("# 1")),
        kind("b", CellKind::Code, Some("22")),
        kind("c", CellKind::Raw, None),
    ];
    pair.edit(&edits, None).map(drop).expect("valid");
    pair.assert_both(&[("a", "# 1"), ("b", "22"), ("c", "3")]);
    let kinds: Vec<String> = pair
        .theirs
        .cells(0..3)
        .into_iter()
        .map(|(_, cell)| cell.cell_type)
        .collect();
    assert_eq!(kinds, ["markdown", "code", "raw"]);
    let stale = pair
        .theirs
        .changed_since(&before, &[set("a", "x")], &Author::Local("bob".into()));
    assert!(
        stale.is_ok_and(|stale| !stale.is_empty()),
        "it was changed by somebody else"
    );
}

#[test]
fn positions_of_a_batch_mean_the_text_before_it() {
    let mut text = Document::new(RoomKind::Text, Clock::default());
    let mut edit = |edits: &[Edit]| text.apply_local(&ana(), edits).map(drop).map(|()| text.text());
    let append = |more: &str| Edit::AppendText { text: more.to_owned() };
    assert_eq!(
        edit(&[append("🎉one two"), append(" three")]).as_deref(),
        Ok("🎉one two three")
    );
    let edits = [
        splice(5, 3, "2"),
        splice(0, 1, ""),
        splice(1, 0, "<"),
        splice(4, 0, ">"),
        append("!"),
        splice(5, 0, "="),
    ];
    assert_eq!(edit(&edits).as_deref(), Ok("<one> =2 three!"));
    for overlapping in [
        [splice(1, 3, ""), splice(3, 2, "")],
        [splice(2, 0, "x"), splice(0, 3, "")],
    ] {
        assert!(matches!(edit(&overlapping), Err(EditError::Overlap { .. })));
    }
    assert!(edit(&[splice(0, 1, ""), splice(99, 0, "x")]).is_err());
    assert_eq!(
        edit(&[append("")]).as_deref(),
        Ok("<one> =2 three!"),
        "nothing was changed"
    );
}

#[test]
fn a_run_leaves_a_cell_alone_that_is_no_code_any_more() {
    let mut pair = Pair::with_cells(&[("a", "1")]);
    let write = CellWrite {
        begin: true,
        end: Some(RunEnd {
            execution_count: Some(1),
        }),
        ..CellWrite::default()
    };
    assert!(pair.ours.write_cell(&ana(), "a", &write).is_some());
    pair.edit(
        &[Edit::SetKind {
            cell: "a".to_owned(),
            kind: CellKind::Markdown,
            source: None,
        }],
        None,
    )
    .expect("valid");
    assert!(pair.ours.write_cell(&ana(), "a", &write).is_none());
    let cell = &pair.ours.notebook()["cells"][0];
    assert_eq!(
        (cell.get("outputs"), cell.get("execution_count")),
        (None, None),
        "{cell}"
    );
}

#[test]
fn a_cell_that_a_restarted_server_made_anew_is_recognised() {
    let mut pair = Pair::with_cells(&[("a", "1")]);
    let noted = pair.theirs.diff(&StateVector::default());
    pair.edit(&[insert(0, "x", "2")], None).expect("valid");
    let run = CellWrite {
        begin: true,
        end: Some(RunEnd {
            execution_count: Some(7),
        }),
        ..CellWrite::default()
    };
    pair.ours.write_cell(&ana(), "x", &run).expect("a cell");
    // The server had saved the cell and not noted it down.
    let held = pair.ours.snapshot();
    let mut back = Document::new(RoomKind::Notebook, Clock::default());
    back.apply_remote(&noted).expect("an update");
    back.apply_local(&"server".into(), &[insert(0, "x", "2")])
        .expect("valid");
    pair.ours
        .apply_remote(&back.diff(&StateVector::default()))
        .expect("an update");
    assert_eq!(pair.ours.cell_count(), 3);
    assert!(pair.ours.identify_cells(&held, FileAge::Stale).is_some());
    assert_eq!(pair.ours.restore(&held), 0, "nothing is missing");
    back.apply_remote(&pair.ours.diff(&back.state_vector()))
        .expect("an update");
    pair.theirs = back;
    pair.assert_both(&[("x", "2"), ("a", "1")]);
    assert_eq!(pair.theirs.execution_count_of("x"), Some(7));
    assert!(pair.ours.identify_cells(&held, FileAge::Stale).is_none());
}

#[test]
fn a_cell_keeps_the_id_that_the_server_takes_from_it() {
    let mut pair = Pair::with_cells(&[("a", "1"), ("b", "2")]);
    let rename = |pair: &mut Pair, at: usize, id: &str| {
        let doc = pair.theirs.doc.clone();
        let mut txn = doc.transact_mut_with(OBSERVER);
        let hook = pair.theirs.order[at].hook.as_ref().expect("a cell");
        yrs::Map::insert(&hook.get(&txn).expect("a cell"), &mut txn, "id", id);
        let applied = pair.theirs.finish(txn, &Author::Unknown);
        pair.ours.apply_remote(&applied.update).expect("an update");
    };
    rename(&mut pair, 1, "new");
    assert_eq!(pair.ours.position_of("new"), Some(1), "the order is in step");
    let restored = pair.ours.restore_ids().expect("something to do");
    pair.theirs.apply_remote(&restored.update).expect("an update");
    pair.assert_both(&[("a", "1"), ("b", "2")]);
    assert!(pair.ours.restore_ids().is_none());
    // Of two with the same id one has to have another.
    pair.others_edit(insert(2, "a", "3"));
    rename(&mut pair, 2, "other");
    assert!(pair.ours.restore_ids().is_none());
    pair.assert_both(&[("a", "1"), ("b", "2"), ("other", "3")]);
}
