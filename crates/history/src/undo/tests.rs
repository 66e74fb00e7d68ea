//! Undo case by case.

use serde_json::json;

use super::*;
use crate::{
    Cell, CellKind, Hash, Json, Notebook, Operation, Outputs,
    testing::{Log, cell, notebook, of_cells, text},
};

#[test]
fn what_others_wrote_in_the_same_cell_stays() {
    let mut log = Log::new(notebook(&["a:def f():\n    pass\n"]));
    let agent = log.replace("agent", "pass", "return 12");
    log.replace("ana", "12", "1🎉2");
    log.replace("ana", "def f", "def fun");
    let second = log.replace("agent", "return", "yield");
    log.undo("agent", &[&agent, &second]);
    log.assert_shows(&["a:def fun():\n    pass🎉\n"]);
    let undo = log.versions.last().expect("a version").id.clone();
    log.undo("agent", &[&undo]);
    log.assert_shows(&["a:def fun():\n    yield 1🎉2\n"]);
}

#[test]
fn twenty_edits_of_an_agent_leave_five_of_a_person() {
    let mut log = Log::new(notebook(&["a:", "b:x = 1\n"]));
    let mut agents = Vec::new();
    let mut written = String::new();
    for number in 0..25 {
        let (who, mark) = if number % 5 == 4 { ("ana", "P") } else { ("agent", "q") };
        let mut cells: Vec<Cell> = log.now.cells().iter().map(|cell| (**cell).clone()).collect();
        let source = format!("{}{mark}{number};", cells[0].source);
        cells[0].source = source.into();
        let id = log.becomes(who, of_cells(cells));
        match who {
            "ana" => written.extend(["P", &number.to_string(), ";"]),
            _ => agents.push(id),
        }
    }
    let now = log.now.clone();
    let undo = log.undo("agent", &agents.iter().collect::<Vec<_>>());
    log.assert_shows(&[&format!("a:{written}"), "b:x = 1\n"]);
    log.undo("agent", &[&undo]);
    assert_eq!(log.now, now);
}

#[test]
fn a_deleted_cell_comes_back_where_it_was() {
    let mut log = Log::new(notebook(&["a:1", "b:2", "c:3"]));
    let delete = log.becomes("agent", notebook(&["a:1", "c:3"]));
    log.becomes("ana", notebook(&["x:new", "a:10", "c:3", "y:end"]));
    log.undo("agent", &[&delete]);
    log.assert_shows(&["x:new", "a:10", "b:2", "c:3", "y:end"]);
}

#[test]
fn an_inserted_cell_stays_with_what_others_typed_in_it() {
    let mut log = Log::new(notebook(&["a:1"]));
    let insert = log.becomes("agent", notebook(&["a:1", "b:plot(x)", "c:empty"]));
    log.replace("ana", "plot(x)", "plot(x, y)");
    log.undo("agent", &[&insert]);
    log.assert_shows(&["a:1", "b:, y"]);
    let undo = log.versions.last().expect("a version").id.clone();
    log.undo("agent", &[&undo]);
    log.assert_shows(&["a:1", "b:plot(x, y)", "c:empty"]);
}

#[test]
fn a_cell_that_somebody_else_deleted_stays_deleted() {
    let mut log = Log::new(notebook(&["a:1", "b:2"]));
    let edit = log.replace("agent", "2", "20");
    log.becomes("ana", notebook(&["a:1"]));
    log.undo("agent", &[&edit]);
    log.assert_shows(&["a:1"]);
    let mut log = Log::new(notebook(&["a:1"]));
    let insert = log.becomes("agent", notebook(&["a:1", "b:2"]));
    log.becomes("ana", notebook(&["a:1"]));
    let undo = log.undo("agent", &[&insert]);
    log.undo("agent", &[&undo]);
    log.assert_shows(&["a:1"]);
}

#[test]
fn a_cell_that_came_back_keeps_the_past_of_its_characters() {
    let mut log = Log::new(notebook(&["a:one", "b:"]));
    let edit = log.replace("agent", "one", "one two");
    let delete = log.becomes("agent", notebook(&["b:"]));
    log.becomes("ana", notebook(&["b:", "a:one two three"]));
    log.undo("agent", &[&edit]);
    log.assert_shows(&["b:", "a:one three"]);
    log.undo("agent", &[&delete]);
    log.assert_shows(&["b:", "a:one three"]);
}

#[test]
fn typing_in_a_cell_that_was_brought_back_stays_when_that_is_undone() {
    let mut log = Log::new(notebook(&["a:one", "b:"]));
    log.becomes("ana", notebook(&["b:"]));
    let back = log.becomes("agent", notebook(&["a:one", "b:"]));
    log.replace("ana", "one", "one!");
    log.undo("agent", &[&back]);
    assert!(log.now.cell("a").is_some_and(|cell| cell.source.contains('!')));
}

#[test]
fn moves_are_taken_back_unless_somebody_moved_it_since() {
    let mut log = Log::new(notebook(&["a:1", "b:2", "c:3"]));
    let moved = log.becomes("agent", notebook(&["c:3", "a:1", "b:2"]));
    log.becomes("ana", notebook(&["c:3", "a:1", "x:", "b:2"]));
    let undo = log.undo("agent", &[&moved]);
    log.assert_shows(&["a:1", "x:", "b:2", "c:3"]);
    log.undo("agent", &[&undo]);
    log.assert_shows(&["c:3", "a:1", "x:", "b:2"]);

    let mut log = Log::new(notebook(&["a:1", "b:2", "c:3"]));
    let moved = log.becomes("agent", notebook(&["c:3", "a:1", "b:2"]));
    log.becomes("ana", notebook(&["a:1", "c:3", "b:2"]));
    log.undo("agent", &[&moved]);
    let order: Vec<String> = crate::testing::shown(&log.now);
    assert_eq!(order.len(), 3, "nothing is lost: {order:?}");
}

#[test]
fn steps_one_by_one_are_the_same_as_all_at_once() {
    let build = || {
        let mut log = Log::new(text("one two three"));
        let first = log.replace("agent", "two", "2");
        log.replace("ana", "one", "One");
        let second = log.replace("agent", "2", "two and a half");
        log.replace("ana", "half", "HALF");
        let third = log.replace("agent", "three", "");
        (log, [first, second, third])
    };
    let (mut at_once, [a, b, c]) = build();
    at_once.undo("agent", &[&a, &b, &c]);
    at_once.assert_shows(&["One twoHALF three"]);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let (mut log, steps) = build();
        for step in order {
            log.undo("agent", &[&steps[step]]);
        }
        assert_eq!(log.now, at_once.now, "{order:?}");
    }
}

#[test]
fn undo_of_undo_of_undo() {
    let mut log = Log::new(text("base"));
    let edit = log.replace("agent", "base", "base + agent");
    log.replace("ana", "base", "Base");
    let undo = log.undo("agent", &[&edit]);
    log.assert_shows(&["Base"]);
    log.replace("ana", "Base", "Base!");
    let redo = log.undo("agent", &[&undo]);
    log.assert_shows(&["Base! + agent"]);
    log.undo("agent", &[&redo]);
    log.assert_shows(&["Base!"]);
}

#[test]
fn kinds_metadata_and_outputs_are_taken_back_where_nobody_changed_them_since() {
    let outputs = |text: &str| Outputs::Kept(Hash::of(text.as_bytes()));
    let first = Cell {
        metadata: Json::new(&json!({ "tags": ["a"] })),
        outputs: outputs("1"),
        ..cell("a", "1")
    };
    let agents = Cell {
        kind: CellKind::Markdown,
        metadata: Json::new(&json!({ "tags": ["b"], "mine": 1 })),
        outputs: Outputs::None,
        ..first.clone()
    };
    let mut log = Log::new(of_cells([first.clone()]));
    let edit = log.becomes("agent", of_cells([agents.clone()]));
    let persons = Cell {
        metadata: Json::new(&json!({ "tags": ["c"], "mine": 1, "hers": 2 })),
        ..agents
    };
    log.becomes("ana", of_cells([persons]));
    log.undo("agent", &[&edit]);
    let left = log.now.cell("a").expect("the cell");
    assert_eq!((left.kind, left.outputs), (CellKind::Code, outputs("1")));
    assert_eq!(left.metadata, Json::new(&json!({ "tags": ["c"], "hers": 2 })));
}

#[test]
fn what_a_run_wrote_since_is_left_alone() {
    let ran = |outputs: &str| Cell {
        outputs: Outputs::Kept(Hash::of(outputs.as_bytes())),
        execution_count: Some(1),
        ..cell("a", "1")
    };
    let mut log = Log::new(of_cells([cell("a", "1"), cell("b", "2")]));
    let delta = Delta::between(&log.now, &of_cells([ran("1"), cell("b", "20")])).with_outputs_by_runs(|_| false);
    let edit = log.push("agent", delta, Vec::new());
    log.undo("agent", &[&edit]);
    assert_eq!(log.now, of_cells([ran("1"), cell("b", "2")]));
}

#[test]
fn an_undo_whose_versions_are_not_known_any_more_is_a_change_like_others() {
    let mut log = Log::new(text("base"));
    let edit = log.replace("agent", "base", "base agent");
    log.replace("ana", "base", "Base");
    let undo = log.undo("agent", &[&edit]);
    log.replace("ana", "Base", "Base ana");
    // The log was cut off before the undo.
    let base = log.versions[..2].iter().fold(log.base.clone(), |content, version| {
        version.delta.apply(&content).expect("it fits")
    });
    let mut rest = Log::new(base);
    rest.versions = log.versions[2..].to_vec();
    rest.now = log.now.clone();
    rest.undo("agent", &[&undo]);
    rest.assert_shows(&["Base ana agent"]);
}

#[test]
fn what_an_undo_did_beside_is_its_own() {
    let mut log = Log::new(text("one"));
    let edit = log.replace("agent", "one", "one two");
    let delta = Delta::between(&log.now, &text("one and more"));
    let undo = log.push("agent", delta, vec![edit]);
    log.undo("agent", &[&undo]);
    log.assert_shows(&["one two"]);
}

#[test]
fn a_log_that_does_not_fit_is_an_error() {
    let mut log = Log::new(notebook(&["a:1"]));
    let edit = log.replace("agent", "1", "2");
    let undone = HashSet::from([edit]);
    for base in [notebook(&["a:3"]), notebook(&[]), text("1")] {
        assert!(plan_undo(&base, &log.versions, &undone).is_err());
    }
    let ghost = Delta {
        operations: vec![Operation::Kind {
            cell: "ghost".into(),
            old: CellKind::Code,
            new: CellKind::Raw,
        }],
    };
    log.versions[0].delta = ghost;
    assert!(plan_undo(&notebook(&["a:1"]), &log.versions, &undone).is_err());
}

#[test]
fn the_notebooks_own_metadata_goes_back() {
    let of = |metadata: serde_json::Value| {
        Content::Notebook(Notebook {
            metadata: Json::new(&metadata),
            cells: Vec::new(),
        })
    };
    let mut log = Log::new(of(json!({ "title": "one" })));
    let edit = log.becomes("agent", of(json!({ "title": "two" })));
    log.becomes("ana", of(json!({ "title": "two", "authors": ["ana"] })));
    log.undo("agent", &[&edit]);
    assert_eq!(log.now, of(json!({ "title": "one", "authors": ["ana"] })));
}

#[test]
fn what_can_be_undone_and_redone() {
    let mut log = Log::new(text("x"));
    let add = |log: &mut Log, author: &str| {
        let Content::Text(now) = log.now.clone() else {
            panic!("a text")
        };
        log.becomes(author, text(&format!("{now}{}", log.versions.len())))
    };
    let (a, _, b) = (add(&mut log, "agent"), add(&mut log, "ana"), add(&mut log, "agent"));
    let ids = |found: Vec<&LoggedVersion>| found.iter().map(|version| version.id.clone()).collect::<Vec<_>>();
    let undo_list = |log: &Log| {
        ids(undoable(
            &log.versions,
            |v| (&v.id, &v.undoes),
            |v| v.author.is_principal("agent"),
        ))
    };
    let redo_list = |log: &Log| {
        ids(redoable(
            &log.versions,
            |v| (&v.id, &v.undoes),
            |v| v.author.is_principal("agent"),
        ))
    };
    assert_eq!((undo_list(&log), redo_list(&log)), (vec![b.clone(), a.clone()], vec![]));
    let undo_b = log.undo("agent", &[&b]);
    assert_eq!(
        (undo_list(&log), redo_list(&log)),
        (vec![a.clone()], vec![undo_b.clone()])
    );
    let undo_a = log.undo("agent", &[&a]);
    assert_eq!(
        (undo_list(&log), redo_list(&log)),
        (vec![], vec![undo_a.clone(), undo_b.clone()])
    );
    let redo_a = log.undo("agent", &[&undo_a]);
    assert_eq!(
        (undo_list(&log), redo_list(&log)),
        (vec![a.clone()], vec![undo_b.clone()])
    );
    let views = || {
        log.versions
            .iter()
            .map(|version| (&version.id, version.undoes.as_slice()))
    };
    let needed = |id: &VersionId| oldest_needed(views(), &HashSet::from([id.clone()]));
    assert_eq!(needed(&redo_a), Some(a));
    assert_eq!(needed(&undo_b), Some(b));
    assert_eq!(needed(&"unknown".into()), None);
}
