//! Edits by one principal beside those of others.

use serde_json::json;
use yrs::StateVector;

use super::*;
use crate::core::clock::Clock;
use crate::{CellKind, NewCell, RoomKind};

/// Our document, a person's copy of it, and what ana knows of it.
struct Scene {
    ours: Document,
    theirs: Document,
    readings: Readings,
    present: Vec<String>,
}

fn ana() -> Arc<str> {
    "token:ana".into()
}

fn cell(id: &str, source: &str) -> NewCell {
    NewCell {
        id: id.to_owned(),
        ..NewCell::new(CellKind::Code, source)
    }
}

fn set(cell: &str, source: &str) -> Edit {
    Edit::SetSource {
        cell: cell.to_owned(),
        source: source.to_owned(),
    }
}

fn delete(cells: &[&str]) -> Edit {
    Edit::DeleteCells {
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
    }
}

fn splice(position: usize, delete: usize, insert: &str) -> Edit {
    Edit::SpliceText {
        position,
        delete,
        insert: insert.to_owned(),
    }
}

const FORCE: EditOptions<'static> = EditOptions {
    if_revision: None,
    force: true,
    tool: None,
};

impl Scene {
    fn of(kind: RoomKind, edit: Edit) -> Self {
        let mut theirs = Document::new(kind, Clock::default());
        theirs.apply_local(&"server".into(), &[edit]).expect("valid");
        let mut ours = Document::new(kind, Clock::default());
        ours.apply_remote(&theirs.diff(&StateVector::default()))
            .expect("an update");
        Self {
            ours,
            theirs,
            readings: Readings::default(),
            present: Vec::new(),
        }
    }

    fn notebook(cells: &[(&str, &str)]) -> Self {
        let cells = cells.iter().map(|(id, source)| cell(id, source)).collect();
        Self::of(RoomKind::Notebook, Edit::AppendCells { cells })
    }

    fn text(text: &str) -> Self {
        let text = text.to_owned();
        Self::of(RoomKind::Text, Edit::AppendText { text })
    }

    fn read(&mut self) {
        let now = self.ours.log().now();
        if !self.ours.is_notebook() {
            let text = self.ours.text();
            self.readings.record(&ana(), Readable::Text, &text, true, now);
            return;
        }
        for (_, cell) in self.ours.cells(0..self.ours.cell_count()) {
            self.readings
                .record(&ana(), Readable::cell(&cell.id), &cell.source, true, now.clone());
        }
        let order = self.ours.ids().join("\n");
        self.readings.record(&ana(), Readable::Order, &order, true, now);
    }

    fn person(&mut self, edit: Edit) {
        let applied = self.theirs.apply_local(&"person".into(), &[edit]).expect("valid");
        self.ours.apply_live(&applied.update).expect("an update");
    }

    fn edit(&mut self, edits: &[Edit], options: EditOptions<'_>) -> Result<Vec<Merged>, Refused> {
        let present = self.present.clone();
        let planned = Reconciler {
            document: &self.ours,
            readings: &self.readings,
            principal: &ana(),
            options,
            name: &|author| match author {
                Author::Client(_) => "Ida".to_owned(),
                Author::Local(id) => id.to_string(),
                Author::Unknown => "somebody else".to_owned(),
            },
            present: &|_| present.clone(),
        }
        .plan(edits);
        let plan = match planned {
            Ok(plan) => plan,
            Err(EditError::Refused(refused)) => return Err(*refused),
            Err(other) => panic!("{other}"),
        };
        let applied = self.ours.apply_local(&ana(), &plan.edits).expect("valid");
        self.theirs.apply_remote(&applied.update).expect("an update");
        for Known {
            subject,
            text,
            is_whole,
            since,
        } in plan.known
        {
            let since = since.unwrap_or_else(|| self.ours.log().now());
            match text {
                Some(text) => self.readings.record(&ana(), subject, &text, is_whole, since),
                None => self.readings.forget(&ana(), &subject),
            }
        }
        Ok(plan.merged)
    }

    #[track_caller]
    fn merges(&mut self, edit: Edit) {
        let merged = self.edit(&[edit], EditOptions::default()).expect("merged");
        assert_eq!(merged.iter().flat_map(|merged| &merged.by).collect::<Vec<_>>(), ["Ida"]);
    }

    #[track_caller]
    fn refuses(&mut self, edit: Edit) -> Cause {
        let before = self.ours.revision();
        let refused = self.edit(&[edit], EditOptions::default()).expect_err("refused");
        assert_eq!(self.ours.revision(), before);
        refused.refusals[0].cause
    }

    #[track_caller]
    fn does(&mut self, edit: Edit) {
        let merged = self.edit(&[edit], EditOptions::default()).expect("done");
        assert_eq!(merged, []);
    }

    #[track_caller]
    fn shows(&self, cells: &[(&str, &str)]) {
        for document in [&self.ours, &self.theirs] {
            let found: Vec<(String, String)> = document
                .cells(0..document.cell_count())
                .into_iter()
                .map(|(_, cell)| (cell.id, cell.source))
                .collect();
            let found: Vec<(&str, &str)> = found
                .iter()
                .map(|(id, source)| (id.as_str(), source.as_str()))
                .collect();
            assert_eq!(found, cells);
        }
    }
}

#[test]
fn a_change_of_what_was_read_is_merged_and_what_others_typed_stays_unknown() {
    let mut scene = Scene::notebook(&[("a", "x = 1\ny = 2")]);
    scene.read();
    scene.person(set("a", "x = 1\ny = 2\nz = 3"));
    scene.merges(set("a", "x = 10\ny = 2"));
    scene.shows(&[("a", "x = 10\ny = 2\nz = 3")]);
    // It continues from what it sent, not from the result.
    scene.merges(set("a", "x = 100\ny = 2"));
    scene.shows(&[("a", "x = 100\ny = 2\nz = 3")]);
    assert_eq!(scene.refuses(delete(&["a"])), Cause::Changed, "it has never seen z");
    assert_eq!(scene.edit(&[delete(&["a"])], FORCE), Ok(vec![]));
    scene.shows(&[]);
}

#[test]
fn the_same_place_is_refused_and_a_batch_is_done_whole_or_not_at_all() {
    let mut scene = Scene::notebook(&[("a", "x = 1"), ("b", "y = 1")]);
    scene.read();
    scene.person(set("a", "x = 2"));
    let both = [set("b", "y = 3"), set("a", "x = 3")];
    let refused = scene.edit(&both, EditOptions::default()).expect_err("refused");
    assert_eq!(
        (
            refused.refusals.len(),
            refused.refusals[0].cause,
            refused.refusals[0].text.as_str()
        ),
        (1, Cause::SamePlace, "x = 2")
    );
    assert!(refused.to_string().contains("Ida changed the same place"), "{refused}");
    scene.shows(&[("a", "x = 2"), ("b", "y = 1")]);
    scene.edit(&both, FORCE).expect("forced");
    scene.shows(&[("a", "x = 3"), ("b", "y = 3")]);
}

#[test]
fn who_never_read_a_cell_sets_it_unless_somebody_types_in_it() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.person(set("a", "1 typed"));
    scene.does(set("b", "as asked"));
    assert_eq!(scene.refuses(set("a", "sent")), Cause::Typing);
    assert_eq!(scene.refuses(delete(&["a"])), Cause::Typing);
    scene.edit(&[set("a", "sent")], FORCE).expect("forced");
    scene.shows(&[("a", "sent"), ("b", "as asked")]);
}

#[test]
fn a_cell_that_somebody_is_in_is_deleted_only_by_who_has_read_it() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.present = vec!["Ida".to_owned()];
    assert_eq!(scene.refuses(delete(&["a"])), Cause::Present);
    scene.read();
    scene.does(delete(&["a"]));
    scene.person(set("b", "2 typed"));
    assert_eq!(scene.refuses(delete(&["b"])), Cause::Changed);
    scene.read();
    scene.does(delete(&["b"]));
}

#[test]
fn who_was_shown_a_part_cannot_send_the_whole() {
    let mut scene = Scene::notebook(&[("a", "a long source")]);
    let now = scene.ours.log().now();
    scene
        .readings
        .record(&ana(), Readable::cell("a"), "a long source", false, now);
    assert_eq!(scene.refuses(set("a", "a long")), Cause::Part);
    let revision = scene.ours.revision();
    let unchanged = EditOptions {
        if_revision: Some(&revision),
        force: false,
        ..EditOptions::default()
    };
    assert!(
        scene.edit(&[set("a", "a long")], unchanged).is_err(),
        "unchanged or not"
    );
    scene.does(delete(&["a"]));
}

#[test]
fn a_revision_counts_sources_and_every_author() {
    let mut scene = Scene::notebook(&[("a", "1")]);
    let revision = scene.ours.revision();
    let since = EditOptions {
        if_revision: Some(&revision),
        force: false,
        ..EditOptions::default()
    };
    let run = crate::CellWrite {
        begin: true,
        ..Default::default()
    };
    scene.ours.write_cell(&"token:bob".into(), "a", &run).expect("a cell");
    scene.edit(&[set("a", "2")], since).expect("a run is no edit");
    scene.person(set("a", "typed"));
    scene.ours.write_cell(&ana(), "a", &run).expect("a cell");
    let refused = scene
        .edit(&[set("a", "3")], since)
        .expect_err("an own run hides nobody");
    assert_eq!(
        (refused.refusals[0].cause, refused.refusals[0].by.as_slice()),
        (Cause::Revision, &["Ida".to_owned()][..])
    );
    assert!(refused.to_string().contains(&scene.ours.revision()), "{refused}");
}

#[test]
fn a_text_is_forgotten_and_then_nothing_is_lost_either() {
    let mut scene = Scene::text(&"long text\n".repeat(400_000));
    scene.read();
    scene.does(Edit::SetText {
        text: "short".to_owned(),
    });
    let long = "another long text\n".repeat(200_000);
    scene.does(Edit::SetText { text: long.clone() });
    scene.person(splice(0, 0, "typed "));
    assert_eq!(
        scene.refuses(Edit::SetText {
            text: "sent".to_owned()
        }),
        Cause::Changed
    );
    assert!(scene.ours.text().starts_with("typed another"));
}

#[test]
fn positions_mean_the_text_that_was_read() {
    let mut scene = Scene::text("one two three 🎉");
    scene.read();
    scene.person(splice(0, 0, "zero "));
    scene.merges(splice(4, 3, "2"));
    assert_eq!(scene.ours.text(), "zero one 2 three 🎉");
    scene.merges(splice(13, 0, "!"));
    assert_eq!(scene.theirs.text(), "zero one 2 three 🎉!");
    scene.person(splice(9, 1, "two"));
    assert_eq!(scene.refuses(splice(4, 1, "")), Cause::SamePlace);
    scene.does(Edit::AppendText {
        text: " end".to_owned(),
    });
    let far = Reconciler {
        document: &scene.ours,
        readings: &scene.readings,
        principal: &ana(),
        options: EditOptions::default(),
        name: &|_| String::new(),
        present: &|_| Vec::new(),
    }
    .plan(&[splice(30, 0, "")]);
    assert!(matches!(far, Err(EditError::Position { .. })));
}

#[test]
fn who_never_read_a_text_may_add_to_it() {
    let mut scene = Scene::text("one");
    scene.person(splice(3, 0, " two"));
    scene.does(splice(0, 0, "zero "));
    assert_eq!(scene.refuses(splice(0, 3, "")), Cause::Typing);
    assert_eq!(scene.ours.text(), "zero one two");
}

#[test]
fn a_whole_notebook_is_merged_by_cells() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    scene.read();
    scene.person(set("a", "1\ntyped"));
    scene.person(Edit::InsertBefore {
        cell: "c".to_owned(),
        cells: vec![cell("theirs", "by hand")],
    });
    scene.person(delete(&["d"]));
    let whole = |cells: &[(&str, &str)]| Edit::SetNotebook {
        metadata: json!({}),
        cells: cells.iter().map(|(id, source)| cell(id, source)).collect(),
    };
    let sent = whole(&[("a", "1"), ("new", "0"), ("c", "33"), ("d", "4")]);
    scene
        .edit(std::slice::from_ref(&sent), EditOptions::default())
        .expect("merged");
    scene.shows(&[("a", "1\ntyped"), ("theirs", "by hand"), ("new", "0"), ("c", "33")]);
    scene.read();
    scene.person(set("c", "333"));
    let refused = scene
        .edit(&[whole(&[("a", "1")])], EditOptions::default())
        .expect_err("refused");
    assert_eq!(names(&refused.refusals[0].by), "Ida");
    scene.edit(&[whole(&[("a", "1")])], FORCE).expect("forced");
    scene.shows(&[("a", "1")]);
}

fn replace(cell: Option<&str>, old: &str, new: &str) -> Edit {
    Edit::ReplaceText {
        cell: cell.map(str::to_owned),
        old: old.to_owned(),
        new: new.to_owned(),
        all: false,
    }
}

fn move_to_end(cell: &str) -> Edit {
    Edit::MoveCells {
        cells: vec![cell.to_owned()],
        before: None,
    }
}

#[test]
fn a_replacement_is_found_in_what_stands_there_and_changes_what_was_read() {
    let mut scene = Scene::notebook(&[("a", "x = 1\ny = 2")]);
    scene.read();
    scene.person(set("a", "# 🎉\nx = 1\ny = 2\nz = 3"));
    scene.does(replace(Some("a"), "x = 1", "x = 10"));
    scene.shows(&[("a", "# 🎉\nx = 10\ny = 2\nz = 3")]);
    // What it sends next means a change of what it knows: its own replacement, and nothing of what the person typed.
    scene.merges(set("a", "x = 10\ny = 20"));
    scene.shows(&[("a", "# 🎉\nx = 10\ny = 20\nz = 3")]);
    assert_eq!(scene.refuses(delete(&["a"])), Cause::Changed, "it has never seen z");

    let mut text = Scene::text("one\ntwo");
    text.read();
    text.does(replace(None, "two", "2"));
    text.does(Edit::SetText {
        text: "one\n2\nthree".to_owned(),
    });
    assert_eq!(text.theirs.text(), "one\n2\nthree");
}

#[test]
fn a_replacement_by_who_saw_a_part_leaves_the_rest_unread() {
    let mut scene = Scene::notebook(&[("a", "x = 1\ny = 2")]);
    let now = scene.ours.log().now();
    scene
        .readings
        .record(&ana(), Readable::cell("a"), "x = 1\ny = 2", false, now);
    scene.does(replace(Some("a"), "x = 1", "x = 2"));
    assert_eq!(scene.refuses(set("a", "x = 3")), Cause::Part);
}

#[test]
fn a_cell_that_somebody_is_in_is_neither_moved_nor_made_another_kind() {
    let mut scene = Scene::notebook(&[("a", "1"), ("b", "2")]);
    scene.read();
    scene.present = vec!["Ida".to_owned()];
    assert_eq!(scene.refuses(move_to_end("a")), Cause::Remade);
    assert_eq!(scene.refuses(to_markdown("a")), Cause::Remade);
    // Nothing is made anew for it.
    scene.does(move_to_end("b"));
    scene.present.clear();
    scene.person(set("a", "1 + 1"));
    assert_eq!(scene.refuses(move_to_end("a")), Cause::Remade, "more may be on its way");
    assert_eq!(scene.edit(&[move_to_end("a")], FORCE), Ok(vec![]));
    scene.shows(&[("b", "2"), ("a", "1 + 1")]);
    scene.does(to_markdown("b"));
}

fn to_markdown(cell: &str) -> Edit {
    Edit::SetKind {
        cell: cell.to_owned(),
        kind: CellKind::Markdown,
        source: None,
    }
}
