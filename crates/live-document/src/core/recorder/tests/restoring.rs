//! Undoing versions and applying deltas to an open document.

use std::collections::{HashMap, HashSet};

use history::{Operation, Outputs, plan_undo, undoable};

use super::*;
use crate::core::document::Restoration;

impl Scene {
    /// Takes back versions, as a caller does.
    fn undo(&mut self, undone: &[VersionId]) {
        let now = self.state.recorded_content();
        let opened = self.memory.told(|told| told.opened.clone()).expect("a content");
        let undone: HashSet<VersionId> = undone.iter().cloned().collect();
        let delta = plan_undo(&opened, &self.log(), &undone).expect("it fits");
        let undoes: Vec<VersionId> = undone.into_iter().collect();
        self.apply(&delta, &now, &undoes);
    }

    fn apply(&mut self, delta: &Delta, now: &Content, undoes: &[VersionId]) -> Vec<Arc<str>> {
        let outputs = self.memory.told(|told| {
            let blobs = told.blobs.iter();
            blobs.map(|blob| (blob.hash, blob.outputs())).collect::<HashMap<_, _>>()
        });
        let restoration = Restoration {
            delta,
            now,
            undoes,
            outputs: &outputs,
        };
        let applied = self.state.document.apply_delta(&"token:agent".into(), &restoration);
        let (applied, missing) = applied.expect("it fits");
        self.other.apply_remote(&applied.update).expect("it fits");
        self.state.changed(applied.update, Origin::Caller);
        self.state.tell_versions();
        missing
    }
}

#[test]
fn undoing_all_of_an_agent_leaves_what_the_person_did() {
    let mut scene = Scene::notebook(&[("a", ""), ("b", "x = 1\n")]);
    scene.introduce("Ana");
    let mut hers = String::new();
    for number in 0..25 {
        let now = scene.other.source("a").expect("the cell");
        if number % 5 == 4 {
            hers += "🎉";
            hers += &number.to_string();
            scene.others(set("a", &format!("{now}🎉{number}")));
        } else {
            scene.agent(set("a", &format!("é{number}{now}")));
        }
    }
    scene.agent(append("c", "agent"));
    scene.agent(delete(&["b"]));
    scene.state.recorded_content();
    let log = scene.log();
    let mine = undoable(
        &log,
        |version| (&version.id, &version.undoes),
        |version| version.author.is_principal("token:agent"),
    );
    let mine: Vec<VersionId> = mine.iter().map(|version| version.id.clone()).collect();
    assert_eq!(mine.len(), 22);
    let before = scene.shown();
    for steps in mine.chunks(7) {
        scene.undo(steps);
    }
    assert_eq!(scene.shown(), [format!("a:{hers}"), "b:x = 1\n".to_owned()]);
    let undos: Vec<VersionId> = scene
        .log()
        .iter()
        .filter(|version| !version.undoes.is_empty())
        .map(|version| version.id.clone())
        .collect();
    assert_eq!(undos.len(), 4);
    scene.undo(&undos);
    assert_eq!(scene.shown(), before);
    scene.memory.check(&mut scene.state);
}

#[test]
fn a_delta_touches_only_what_it_is_about() {
    let cells = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    let cases: &[&[(&str, &str)]] = &[
        &[("a", "10"), ("b", "2"), ("c", "3"), ("d", "4")],
        &[("a", "1"), ("c", "3"), ("d", "4")],
        &[("d", "4"), ("a", "1"), ("b", "2"), ("c", "3")],
        &[
            ("x", ""),
            ("a", "1"),
            ("y", "new"),
            ("b", "2"),
            ("c", "3"),
            ("d", "4"),
            ("z", ""),
        ],
        &[("d", "4 🎉"), ("n", ""), ("b", "2"), ("a", "11")],
        &[],
    ];
    for wanted in cases {
        let mut scene = Scene::notebook(&cells);
        for id in ["a", "b", "c", "d"] {
            scene.run(id, "out");
        }
        scene.agent(append("e", ""));
        let made: Vec<_> = ["a", "b", "c", "d"]
            .iter()
            .map(|id| scene.state.document.made(id))
            .collect();
        let now = scene.state.recorded_content();
        let Scene { memory: target, .. } = Scene::notebook(wanted);
        let target = target.told(|told| told.opened.clone()).expect("a content");
        let delta = Delta::between(&now, &target);
        scene.apply(&delta, &now, &[]);
        let expected: Vec<String> = wanted.iter().map(|(id, source)| format!("{id}:{source}")).collect();
        assert_eq!(scene.shown(), expected);
        let moved: Vec<&str> = delta
            .operations
            .iter()
            .filter(|one| matches!(one, Operation::Move { .. }))
            .filter_map(Operation::cell)
            .collect();
        for (id, made) in ["a", "b", "c", "d"].iter().zip(made) {
            if target.cell(id).is_some() && !moved.contains(id) {
                assert_eq!(scene.state.document.made(id), made, "it stays where it is");
            }
        }
        scene.memory.check(&mut scene.state);
        // And back again, with the outputs that the runs left.
        let back = Delta::between(&target, &now);
        let missing = scene.apply(&back, &target, &[]);
        assert!(missing.is_empty());
        let (content, _) = scene.other.read_content();
        assert_eq!(content, now, "{:?}", scene.shown());
        scene.memory.check(&mut scene.state);
    }
}

#[test]
fn what_somebody_types_at_the_same_moment_stays() {
    let mut scene = Scene::notebook(&[("a", "one two three"), ("b", "2")]);
    scene.introduce("Ana");
    scene.agent(set("a", "one 2 three"));
    let now = scene.state.recorded_content();
    let typed = scene
        .other
        .apply_local(&"x".into(), &[set("a", "one 2 three!")])
        .expect("valid");
    let delta = plan_undo(
        &scene.memory.told(|told| told.opened.clone()).expect("one"),
        &scene.log(),
        &HashSet::from(["0".into()]),
    );
    scene.apply(&delta.expect("it fits"), &now, &["0".into()]);
    scene.on(Input::Frame(&Message::Update(typed.update).encode()));
    assert_eq!(scene.shown(), ["a:one two three!", "b:2"]);
    assert_eq!(scene.state.document.source("a").as_deref(), Some("one two three!"));
    scene.later(VERSION_QUIET);
    scene.assert_authors(&["agent", "agent", "people Ana"]);
}

#[test]
fn kinds_metadata_and_attachments_come_back() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.run("a", "out");
    scene.agent(set("b", "3"));
    let before = scene.state.recorded_content();
    let kind = Edit::SetKind {
        cell: "a".to_owned(),
        kind: CellKind::Markdown,
        source: Some("# title".to_owned()),
    };
    scene.agent(kind);
    let cells = vec![
        NewCell {
            attachments: Some(json!({ "x.png": {} })),
            metadata: json!({ "tags": ["t"] }),
            ..NewCell {
                kind: CellKind::Markdown,
                ..new_cell("a", "# title")
            }
        },
        new_cell("b", "3"),
    ];
    scene.agent(Edit::SetNotebook {
        metadata: json!({ "title": "t" }),
        cells,
    });
    scene.undo(&["1".into(), "2".into()]);
    let (after, _) = scene.other.read_content();
    assert_eq!(after, before);
    let missing = {
        let now = scene.state.recorded_content();
        let mut gone = before.clone();
        if let Content::Notebook(notebook) = &mut gone {
            let unknown = Arc::make_mut(&mut notebook.cells[0]);
            unknown.outputs = Outputs::Kept(history::Hash::of(b"unknown"));
        }
        scene.apply(&Delta::between(&now, &gone), &now, &[])
    };
    assert_eq!(missing, ["a".into()], "outputs that are not kept are left out");
}

#[test]
fn a_text_goes_back_too() {
    let mut scene = Scene::text("🎉 one\ntwo\n");
    scene.introduce("Ana");
    scene.agent(Edit::SetText {
        text: "🎉 1\ntwo\nthree\n".to_owned(),
    });
    scene.others(Edit::SetText {
        text: "🎉 1\ntwo!\nthree\n".to_owned(),
    });
    scene.state.recorded_content();
    scene.undo(&["0".into()]);
    assert_eq!(scene.other.text(), "🎉 one\ntwo!\n");
    scene.assert_authors(&["agent", "people Ana", "agent"]);
}
