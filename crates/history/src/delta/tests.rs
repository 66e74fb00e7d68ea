//! Deltas between contents, there and back.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Splice;
use crate::{
    Cell, CellKind, Json, Notebook,
    testing::{any_notebook, any_text, cell, notebook, of_cells, shown, text},
};

#[test]
fn a_change_is_told_in_a_few_words() {
    let cases: &[(&[&str], &[&str], &str)] = &[
        (&["a:1"], &["a:1"], "nothing changed"),
        (&["a:1", "b:2"], &["a:10", "b:20", "c:"], "2 cells changed, 1 inserted"),
        (&["a:1", "b:2"], &["a:1"], "1 cell deleted"),
        (&["a:1", "b:2", "c:3"], &["c:3", "a:1", "b:2"], "1 cell moved"),
        (&["a:1", "b:2", "c:3"], &["c:30", "a:1"], "1 cell changed, 1 deleted"),
    ];
    for (old, new, expected) in cases {
        assert_eq!(Delta::between(&notebook(old), &notebook(new)).summary(), *expected);
    }
    let summary = |old, new| Delta::between(&text(old), &text(new)).summary();
    assert_eq!(summary("🎉b", "🎉xyb"), "2 characters added");
    assert_eq!(summary("ab", "b"), "1 character removed");
    assert_eq!(summary("one two", "one three"), "4 characters added, 2 removed");
}

#[test]
fn what_runs_write_is_no_change_of_an_author() {
    let old = notebook(&["a:1"]);
    let mut ran = cell("a", "1");
    (ran.execution_count, ran.outputs) = (Some(1), Outputs::Kept(Hash::of(b"[]")));
    ran.metadata = Json::new(&json!({ "execution": { "shell.execute_reply": "now" } }));
    let delta = Delta::between(&old, &of_cells([ran.clone()]));
    assert!(!delta.is_only_runs(), "an author may have removed them");
    let delta = delta.with_outputs_by_runs(|_| false);
    assert!(delta.is_only_runs());
    assert_eq!(delta.summary(), "outputs of 1 cell changed");
    ran.metadata = Json::new(&json!({ "tags": ["x"] }));
    let delta = Delta::between(&old, &of_cells([ran])).with_outputs_by_runs(|_| false);
    assert!(!delta.is_only_runs());
    assert_eq!(delta.summary(), "1 cell changed");
    let Content::Notebook(mut kernel) = old.clone() else {
        panic!("a notebook")
    };
    kernel.metadata = Json::new(&json!({ "kernelspec": { "name": "python3" } }));
    assert!(Delta::between(&old, &Content::Notebook(kernel)).is_only_runs());
}

#[test]
fn what_does_not_fit_is_an_error() {
    let delta = Delta::between(&notebook(&["a:one", "b:two"]), &notebook(&["a:once", "c:three"]));
    for other in [
        notebook(&["a:o", "b:two"]),
        notebook(&["b:two"]),
        notebook(&["a:one", "b:typed"]),
        notebook(&["a:one", "b:two", "c:"]),
        text("one"),
    ] {
        assert!(delta.apply(&other).is_err(), "{:?}", shown(&other));
    }
    let splice = |at: usize| Splice {
        at,
        old: "a".to_owned(),
        new: String::new(),
    };
    for splices in [
        vec![splice(usize::MAX)],
        vec![splice(1), splice(0)],
        vec![splice(0), splice(0)],
    ] {
        let delta = Delta {
            operations: vec![Operation::Text { splices }],
        };
        assert!(delta.apply(&text("aaa")).is_err());
    }
}

#[test]
fn chosen_cells_can_be_taken_without_the_others() {
    let (old, new) = (
        notebook(&["a:1", "b:2", "c:3", "d:4"]),
        notebook(&["x:new", "y:newer", "a:10", "d:40", "b:20"]),
    );
    let delta = Delta::between(&old, &new);
    let cases: &[(&[&str], &[&str])] = &[
        (&["a"], &["a:10", "b:2", "c:3", "d:4"]),
        (&["c"], &["a:1", "b:2", "d:4"]),
        (&["y"], &["y:newer", "a:1", "b:2", "c:3", "d:4"]),
        (&["y", "d", "b"], &["y:newer", "a:1", "d:40", "b:20", "c:3"]),
        (&[], &["a:1", "b:2", "c:3", "d:4"]),
    ];
    for (cells, expected) in cases {
        assert_eq!(
            shown(&delta.only(cells).apply(&old).expect("it fits")),
            *expected,
            "{cells:?}"
        );
    }
}

#[test]
fn outputs_are_named_that_are_needed() {
    let hash = |text: &str| Hash::of(text.as_bytes());
    let with = |id: &str, outputs: &str| Cell {
        outputs: Outputs::Kept(hash(outputs)),
        ..cell(id, "")
    };
    let delta = Delta::between(
        &of_cells([with("a", "1"), with("b", "2"), with("c", "3")]),
        &of_cells([with("a", "10"), with("c", "3"), with("d", "4")]),
    );
    assert_eq!(delta.outputs(), [hash("4"), hash("10")]);
    assert_eq!(delta.all_outputs(), [hash("2"), hash("4"), hash("1"), hash("10")]);
}

#[test]
fn what_is_stored_is_read_again_and_damage_is_noticed() {
    let (old, new) = (
        notebook(&["a:1"]),
        notebook(&["a:2", "b:long long long long long long long"]),
    );
    let delta = Delta::between(&old, &new);
    let bytes = delta.encode();
    assert_eq!(Delta::decode(&bytes), Ok(delta));
    assert_eq!(Content::decode(&new.encode()), Ok(new.clone()));
    assert_eq!(Delta::decode(&[2, 0]), Err(DecodeError::Format { found: 2 }));
    for cut in 0..bytes.len() {
        assert!(Delta::decode(&bytes[..cut]).is_err());
    }
    let large = notebook(&[&format!("a:{}", "x = 1\n".repeat(10_000))]);
    let packed = large.encode();
    assert!(packed.len() < 1000, "{}", packed.len());
    assert_eq!(Content::decode(&packed), Ok(large));
    assert!(Content::decode(&packed[..packed.len() - 20]).is_err());
}

fn kinds_and_parts(content: &Content) -> Vec<(CellKind, &Json)> {
    content.cells().iter().map(|cell| (cell.kind, &cell.metadata)).collect()
}

proptest! {
    #[test]
    fn a_delta_leads_to_the_new_content_and_back(old in any_notebook(), new in any_notebook()) {
        let delta = Delta::between(&old, &new);
        prop_assert_eq!(delta.is_empty(), old == new);
        let applied = delta.apply(&old).unwrap();
        prop_assert_eq!(kinds_and_parts(&applied), kinds_and_parts(&new));
        prop_assert_eq!(&applied, &new);
        prop_assert_eq!(&delta.invert().apply(&new).unwrap(), &old);
        prop_assert_eq!(&delta.invert().invert(), &delta);
        prop_assert_eq!(&Delta::decode(&delta.encode()).unwrap(), &delta);
        prop_assert_eq!(&Content::decode(&new.encode()).unwrap(), &new);
    }

    #[test]
    fn a_delta_of_texts_leads_there_and_back(old in any_text(), new in any_text()) {
        let (old, new) = (text(&old), text(&new));
        let delta = Delta::between(&old, &new);
        prop_assert_eq!(&delta.apply(&old).unwrap(), &new);
        prop_assert_eq!(&delta.invert().apply(&new).unwrap(), &old);
    }

    #[test]
    fn any_choice_of_cells_fits(old in any_notebook(), new in any_notebook(), chosen in prop::collection::vec("[a-h]", 0..5)) {
        let chosen: Vec<&str> = chosen.iter().map(String::as_str).collect();
        let part = Delta::between(&old, &new).only(&chosen).apply(&old).unwrap();
        for id in 'a'..='h' {
            let id = id.to_string();
            let from = if chosen.contains(&id.as_str()) { &new } else { &old };
            prop_assert_eq!(part.cell(&id), from.cell(&id));
        }
    }

    #[test]
    fn damaged_bytes_never_panic(old in any_notebook(), new in any_notebook(), at in 0_usize..2000, byte in any::<u8>()) {
        let mut bytes = Delta::between(&old, &new).encode();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(delta) = Delta::decode(&bytes) {
            let _ = (delta.apply(&old), delta.invert(), delta.summary(), delta.only(&["a"]), delta.rebase(&old, &new));
        }
        let mut bytes = new.encode();
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = Content::decode(&bytes);
    }
}

#[test]
fn metadata_of_a_notebook_is_part_of_it() {
    let of = |title: &str| {
        Content::Notebook(Notebook {
            metadata: Json::new(&json!({ "title": title })),
            cells: Vec::new(),
        })
    };
    let delta = Delta::between(&of("one"), &of("two"));
    assert_eq!(delta.summary(), "metadata of the notebook changed");
    assert_eq!(delta.apply(&of("one")), Ok(of("two")));
}

#[test]
fn ten_thousand_small_edits_are_small() {
    let id = |number: usize| format!("{number:08}-0000-4000-8000-000000000000");
    let source = |number: usize| format!("value_{number} = compute(table, {number})\n").repeat(5);
    let mut now = of_cells((0..100).map(|number| cell(&id(number), &source(number))));
    let mut bytes = 0;
    for edit in 0..10_000 {
        let Content::Notebook(mut notebook) = now.clone() else {
            panic!("a notebook")
        };
        let cell = Arc::make_mut(&mut notebook.cells[edit * 37 % 100]);
        let line = format!("value = {edit}\n");
        cell.source = match edit % 3 {
            0 => format!("{}{line}", cell.source).into(),
            _ => cell
                .source
                .replacen("compute", if edit % 2 == 0 { "compute_all" } else { "compute" }, 1)
                .into(),
        };
        let next = Content::Notebook(notebook);
        bytes += Delta::between(&now, &next).encode().len();
        if edit % 100 == 0 {
            bytes += next.encode().len();
        }
        now = next;
    }
    assert!(bytes < 3 << 20, "{bytes} bytes");
}
